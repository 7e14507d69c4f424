"""What commands teach: which pairs of a failure and a success are lessons, and which commands verify a project."""

from __future__ import annotations

import pytest
from made_sessions import edit, model, ran, session, user

from commonplace.learning.extract import rules
from commonplace.learning.reading import commands
from commonplace.learning.reading.session_view import ViewEvent

MISSING = "bash: foo: command not found"


def texts(kind: str, *events: ViewEvent) -> list[str]:
    _, findings = rules.findings_of(session(*events))
    return [finding.text for finding in findings if finding.kind == kind]


@pytest.mark.parametrize(
    ("failed", "output", "between", "worked", "lesson"),
    [
        ("npm ci", "npm error ERESOLVE could not resolve", [], "npm ci --legacy-peer-deps", "--legacy-peer-deps"),
        ("docker-compose up -d", MISSING, [], "docker compose up -d", "docker compose up -d"),
        ("bundle install", "error: cannot find zlib", ["brew install zlib"], "bundle install", "brew install zlib"),
        ("mix phx.server", "error: stale build", ["mix deps.clean x --build"], "mix phx.server", "deps.clean"),
        ("make run", "error: address already in use", [], "make run PORT=8081", "PORT=8081"),
        ("./gradlew test", "error: requires Java 17", ["java -version"], "JAVA_HOME=/j/17 ./gradlew test", "/j/17"),
        ("terraform plan", "Error: state lock", ["terraform force-unlock 7"], "terraform plan", "force-unlock"),
        ("make html", "No rule to make target, error", ["ls doc"], "make -C doc html", "make -C doc html"),
        ("kubectl get deploy api", "Error: not found", [], "kubectl --context stg get deploy api", "--context stg"),
        ("pg_dump -d x", "error: version mismatch", [], "/usr/lib/pg/16/bin/pg_dump -d x", "/usr/lib/pg/16"),
        ("npm run build", "Error: digital envelope unsupported", [], "NODE_OPTIONS=-x npm run build", "NODE_OPTIONS"),
        ("rails test", "NoDatabaseError: does not exist", ["rails db:create"], "rails test", "rails db:create"),
        ("python t.py", "ModuleNotFoundError: No module", ["pip install einops"], "python t.py", "pip install einops"),
        ("make flash", "error: permission denied", [], "sudo make flash", "sudo make flash"),
        ("yarn", "error: packageManager is pnpm", [], "pnpm install", "pnpm install"),
        ("psql shop", "FATAL: role does not exist", [], "psql -U postgres shop", "-U postgres"),
        ("mvn test", "[ERROR] invalid target release: 21", ["sdk use java 21"], "mvn test", "sdk use java 21"),
    ],
)
def test_what_put_a_failure_right_is_a_lesson(
    failed: str, output: str, between: list[str], worked: str, lesson: str
) -> None:
    found = texts("fix", user("get it going"), ran(failed, 1, output), *map(ran, between), ran(worked))

    assert 1 == len(found)
    assert lesson in found[0]
    assert f"`{failed}` failed" in found[0]


@pytest.mark.parametrize(
    ("failed", "output", "worked"),
    [
        ("git lgo --oneline", "git: 'lgo' is not a git command.", "git log --oneline"),
        ("npm run storbook", "npm error Missing script: storbook", "npm run storybook"),
        ("curl -fLO https://x.example/a.gz", "curl: (56) Recv failure", "curl -fLO https://x.example/a.gz"),
        ("sudo apt-get install jq", "E: Could not get lock", "sleep 30; sudo apt-get install jq"),
        ("grep -rn foo src", "", "grep -rn food src"),
        ("sed -n 1,5p src/con.rs", "sed: can't read: No such file", "sed -n 1,5p src/conn.rs"),
        ("git checkout fature", "error: pathspec 'fature' did not match", "git checkout feature"),
        ("git commit -m wip", "nothing to commit, working tree clean", "git add -A && git commit -m wip"),
        ("pytest tests/a.py", "E assert 1 == 2\n1 failed", "pytest tests/b.py"),
    ],
)
def test_typos_retries_and_looks_teach_nothing(failed: str, output: str, worked: str) -> None:
    assert [] == texts("fix", user("go on"), ran(failed, 1, output), ran(worked))


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("python app.py", "NameError: name 'foo' is not defined"),
        ("cargo build", "error[E0425]: cannot find value `x`"),
        ("tsc --noEmit", "error TS2339: Property 'x' does not exist"),
        ("eslint src", "error  'x' is defined but never used"),
        ("go test ./...", "--- FAIL: TestX\n want 3 got 4"),
    ],
)
def test_code_that_had_to_be_written_right_teaches_nothing(command: str, output: str) -> None:
    assert [] == texts("fix", user("go on"), ran(command, 1, output), edit("src/a.x"), ran(command))


def test_the_error_that_is_told_is_the_one_that_was_put_right() -> None:
    found = texts(
        "fix",
        user("plan it"),
        ran("terraform plan", 1, "Error: Unsupported argument"),
        edit("src/a.x"),
        ran("terraform plan", 1, "Error: state lock"),
        ran("terraform plan -lock-timeout=10m"),
    )

    assert 1 == len(found)
    assert "state lock" in found[0]
    assert "Unsupported" not in found[0]


def test_a_test_that_is_red_until_the_code_is_right_teaches_nothing() -> None:
    red = ran("pytest -q", 1, "E  AssertionError: 3 != 4\n1 failed")

    assert [] == texts("fix", user("fix the sum"), red, edit(), ran("pytest -q", 0, "1 passed"))


def test_a_change_of_configuration_that_put_a_build_right_is_a_lesson() -> None:
    red = ran("./gradlew assemble", 1, "error: incompatible version of Kotlin")

    found = texts("fix", user("fix the build"), red, edit("build.gradle"), ran("./gradlew assemble"))

    assert 1 == len(found)
    assert "build.gradle" in found[0]


def test_what_a_retry_shows_to_be_of_no_help_is_no_part_of_the_lesson() -> None:
    broken = "error: no such file"
    found = texts(
        "fix",
        user("build it"),
        ran("nix build", 1, broken),
        ran("nix flake update"),
        ran("nix build", 1, broken),
        ran("git add new.nix"),
        ran("nix build"),
    )

    assert 1 == len(found)
    assert "git add new.nix" in found[0]
    assert "flake update" not in found[0]


def test_what_was_never_put_right_is_a_failure() -> None:
    found = texts(
        "failure",
        user("print from the container"),
        ran("docker run labels print x", 1, "USBError: Resource busy"),
        user("drop the idea, I give up"),
    )

    assert 1 == len(found)
    assert "Resource busy" in found[0]


@pytest.mark.parametrize(
    "line",
    [
        "pytest -q",
        "npm run test:unit",
        "cargo nextest run",
        "./dev/check.sh full",
        "mage verify",
        "gotestsum ./...",
        "./build/engine_tests",
        "make sim-test LINE=a",
        "cd web && npx vitest run",
        "ruff check . && mypy src && pytest -q",
    ],
)
def test_checks_are_known_by_name_or_by_what_a_project_calls_them(line: str) -> None:
    assert commands.is_verifying(line)


@pytest.mark.parametrize(
    "line",
    [
        "cargo build --release",
        "pytest -q || true",
        "cat tests/test_sum.py",
        "git add tests/test_sum.py",
        "rm -rf test",
        "ls tests",
        "docker build -t test .",
        "vim check.py",
        "cp test.db /tmp",
    ],
)
def test_builds_looks_and_hidden_failures_verify_nothing(line: str) -> None:
    assert not commands.is_verifying(line)


def test_each_program_is_told_in_its_most_complete_form() -> None:
    found = texts(
        "verify",
        user("fix the sum"),
        edit(),
        ran("pytest tests/test_sum.py -q"),
        ran("pytest -q"),
        ran("pytest tests/test_sum.py -q"),
    )

    assert ["verify with `pytest -q` (exit 0 here)"] == found


@pytest.mark.parametrize("output", ["usage: make sim-test LINE=<a|b>", "?   smety  [no test files]", "no tests ran"])
def test_a_check_that_checked_nothing_verifies_nothing(output: str) -> None:
    assert [] == texts("verify", user("fix the sum"), edit(), ran("make test", 0, output))


def test_a_check_that_failed_last_is_not_told() -> None:
    assert [] == texts("verify", user("fix it"), ran("make check"), edit(), ran("make check", 2, "error: x"), model())


def test_steps_to_a_goal_that_comes_back_are_a_procedure() -> None:
    found = texts(
        "procedure",
        user("release 1.4.0"),
        ran("cargo test"),
        ran("git tag v1.4.0 && git push --tags"),
        ran("cargo publish"),
        ran("brew bump-formula-pr --version 1.4.0 tap/tool"),
        user("it's out, thanks"),
    )

    assert 1 == len(found)
    assert found[0].index("git tag") < found[0].index("cargo publish") < found[0].index("brew bump")


def test_the_same_steps_for_something_else_are_a_procedure() -> None:
    def steps(locale: str) -> list[ViewEvent]:
        return [ran(f"npx site extract -l {locale}"), edit("site.config.js"), ran(f"cp -r docs i18n/{locale}")]

    found = texts(
        "procedure",
        user("add Italian to the site"),
        *steps("it"),
        ran("npm run build"),
        user("perfect. same for Polish"),
        *steps("pl"),
        ran("npm run build"),
        user("both live, thanks"),
    )

    assert 1 == len(found)

"""What commands teach: what put a failure right, how a project is checked, and nothing from slips and code."""

from __future__ import annotations

import pytest
from made_sessions import edit, listed, model, ran, user

from commonplace.learning.reading import commands
from commonplace.learning.reading.session_view import ViewEvent

NO_MODULE = "ModuleNotFoundError: No module named 'einops'"


def texts(kind: str, *events: ViewEvent) -> list[str]:
    return [lesson.text for lesson in listed(*events) if lesson.kind == kind]


@pytest.mark.parametrize(
    ("failed", "output", "between", "worked", "lesson"),
    [
        ("npm ci", "npm error ERESOLVE could not resolve", [], "npm ci --legacy-peer-deps", "--legacy-peer-deps"),
        ("bundle install", "error: cannot find zlib", ["brew install zlib"], "bundle install", "brew install zlib"),
        ("mix phx.server", "error: stale build", ["mix deps.clean x --build"], "mix phx.server", "deps.clean"),
        ("make run", "error: address already in use", [], "make run PORT=8081", "PORT=8081"),
        ("./gradlew test", "error: requires Java 17", ["java -version"], "JAVA_HOME=/j/17 ./gradlew test", "/j/17"),
        ("terraform plan", "Error: state lock", ["terraform force-unlock 7"], "terraform plan", "force-unlock"),
        ("make html", "No rule to make target, error", ["ls doc"], "make -C doc html", "make -C doc html"),
        ("kubectl get deploy api", "Error: not found", [], "kubectl --context stg get deploy api", "--context stg"),
        ("npm run build", "Error: digital envelope unsupported", [], "NODE_OPTIONS=-x npm run build", "NODE_OPTIONS"),
        ("rails test", "NoDatabaseError: does not exist", ["rails db:create"], "rails test", "rails db:create"),
        ("python t.py", NO_MODULE, ["pip install einops"], "python t.py", "pip install einops"),
        ("make flash", "error: permission denied", [], "sudo make flash", "sudo make flash"),
        ("mvn test", "[ERROR] invalid target release: 21", ["sdk use java 21"], "mvn test", "sdk use java 21"),
        ("swaks --to a", "530 Must issue a STARTTLS error", [], "swaks --tls --to a", "swaks --tls"),
        (
            "npx ember test",
            "expected: 1 actual: 2\n1 failed",
            [],
            "TZ=Europe/Berlin npx ember test",
            "TZ=Europe/Berlin",
        ),
        (
            "helm-docs",
            "bash: helm-docs: command not found",
            ["go install h.example/helm-docs"],
            "helm-docs",
            "go install",
        ),
    ],
)
def test_what_put_a_failure_right_is_a_lesson(
    failed: str, output: str, between: list[str], worked: str, lesson: str
) -> None:
    (found,) = texts("fix", user("get it going"), ran(failed, 1, output), *map(ran, between), ran(worked))

    assert lesson in found.rpartition(": ")[2]
    assert found.startswith((f"`{failed}` fails", f"`{failed}` is not found"))


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
        ("npm i", "npm ERR! network ECONNRESET error", "npm i"),
        ("git add -A", "fatal: Unable to create '.git/index.lock': File exists.", "rm .git/index.lock && git add -A"),
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
        ("pytest -q", "E  AssertionError: 3 != 4\n1 failed"),
        ("./gradlew assemble", "error: incompatible version of Kotlin"),
    ],
)
def test_what_a_change_of_files_put_right_is_no_fix(command: str, output: str) -> None:
    assert [] == texts("fix", user("go on"), ran(command, 1, output), edit("src/a.x"), ran(command))


def test_the_error_that_is_told_is_the_one_that_was_put_right() -> None:
    (found,) = texts(
        "fix",
        user("plan it"),
        ran("terraform plan", 1, "Error: Unsupported argument"),
        edit("src/a.x"),
        ran("terraform plan", 1, "Error: state lock"),
        ran("terraform plan -lock-timeout=10m"),
    )

    assert "state lock" in found
    assert "Unsupported" not in found


def test_what_a_retry_shows_to_be_of_no_help_is_no_part_of_the_lesson() -> None:
    broken = "error: no such file"
    (found,) = texts(
        "fix",
        user("build it"),
        ran("nix build", 1, broken),
        ran("nix flake update"),
        ran("nix build", 1, broken),
        ran("nix store repair"),
        ran("nix build"),
    )

    assert "`nix build` fails with `error: no such file`: run `nix store repair`" == found


@pytest.mark.parametrize(
    "events",
    [
        [ran("docker run labels print x", 1, "USBError: Resource busy"), user("drop the idea, I give up")],
        [edit(), ran("npm run test:e2e", 1, "Error: labels overlap: 41"), user("forget it"), ran("git checkout .")],
        [ran("npm i", 1, "npm ERR! network ECONNRESET error")],
        [ran("git add -A", 128, "fatal: Unable to create '.git/index.lock': File exists.")],
    ],
)
def test_a_single_failure_that_nothing_put_right_is_not_told(events: list[ViewEvent]) -> None:
    assert [] == texts("failure", user("print from the container"), *events)


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


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["make check"], "All checks: `make check`"),
        (["pytest tests/test_sum.py -q", "pytest -q", "pytest tests/test_sum.py -q"], "Tests: `pytest`"),
        (["npm run lint"], "Lint: `npm run lint`"),
        (["cd web && npm test"], "Tests: `npm test` in web"),
    ],
)
def test_a_check_is_told_once_in_its_most_complete_form(lines: list[str], expected: str) -> None:
    assert [expected] == texts("verify", user("fix the sum"), edit(), *map(ran, lines))


def test_a_check_is_told_even_if_it_is_red_at_the_end() -> None:
    red = ran("make check", 2, "error: x")

    assert ["All checks: `make check`"] == texts("verify", user("fix it"), ran("make check"), edit(), red, model())


def test_a_check_that_never_succeeded_is_not_told() -> None:
    assert [] == texts("verify", user("fix it"), ran("make check", 2, "error: x"), edit(), ran("make check", 2, "no"))


def test_steps_of_one_session_are_no_procedure() -> None:
    found = texts(
        "procedure",
        user("deploy the jobs stack"),
        ran("sam build --use-container"),
        ran("aws s3 cp layer.zip s3://acme/layer.zip"),
        ran("sam deploy --stack jobs"),
        user("it is live, thanks"),
    )

    assert [] == found

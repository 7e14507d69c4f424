"""Files that hooks and servers run are protected in a session, however the command names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from consent_doubles import answering
from scripted_session import stage

from commonplace.agent.hooks.config import HookCommand
from commonplace.agent.sandbox.program_files import program_files
from commonplace.agent.servers.config import ServerCommand, ServerConfig
from commonplace.agent.session_environment import IsolatedEnvironment
from commonplace.models.scripted import answer, call, custom, say

SCRIPT = "scripts/check.sh"


@pytest.mark.parametrize(
    "command",
    [
        "./scripts/check.sh",
        "scripts/check.sh --fast",
        "sh scripts/check.sh",
        "sh ./scripts/check.sh",
        "bash -c 'scripts/check.sh; true'",
        "cd . && ./scripts/check.sh",
        "env LEVEL=1 scripts/check.sh",
        "LEVEL=1 ./scripts/check.sh",
        "timeout 5 ./scripts/check.sh",
        "$PWD/scripts/check.sh",
        "${PWD}/scripts/check.sh",
        "python3 --config=scripts/check.sh -",
        "cat x | scripts/check.sh",
        "check.sh",
        ("scripts/check.sh",),
        ("sh", "scripts/check.sh"),
        ("/bin/sh", "-c", "exec scripts/check.sh"),
        ("check.sh", "--fast"),
        "cd scripts && ./check.sh",
        "pushd scripts; bash check.sh",
        "bash -c 'cd scripts && sh check.sh'",
        ("env", "-C", "scripts", "./check.sh"),
        "bash < scripts/check.sh",
        "echo $(scripts/check.sh)",
        "x=`sh scripts/check.sh`; echo $x",
        "$(pwd)/scripts/check.sh",
        "${DIR:-scripts}/check.sh",
        "DIR=scripts; sh $DIR/check.sh",
        "PATH=scripts:$PATH check.sh",
        "for f in scripts/*.sh; do bash $f; done",
        "find scripts -name '*.sh' -exec sh {} ;",
        "run-parts scripts",
        "BASH_ENV=scripts/check.sh bash -c true",
        "sh scripts/check",
        "python3 -c \"exec(open('scripts/check.sh').read())\"",
        "$(git rev-parse --show-toplevel)/scripts/check.sh",
        '"$(git rev-parse --show-toplevel)"/scripts/check.sh',
        "`git rev-parse --show-toplevel`/scripts/check.sh",
        '"$CLAUDE_PROJECT_DIR"/scripts/check.sh',
        "${CLAUDE_PROJECT_DIR}/scripts/check.sh",
        "${PWD%/}/scripts/check.sh",
        '"$(readlink -f .)/scripts/check.sh"',
        'ROOT=$(pwd); "$ROOT/scripts/check.sh"',
        'ROOT="$(git rev-parse --show-toplevel)" && "$ROOT"/scripts/check.sh',
        'export D="scripts"; "$D"/check.sh',
        "D=scripts E=$D; sh $E/check.sh",
        "sh scripts/che*",
        "bash scripts/check.??",
        "sh -c 'sh scripts/*'",
        "sh s*/check.sh",
        "find . -name check.sh -exec sh {} +",
        "find . -name 'c*.sh' | xargs -n 1 bash",
        "sh -e scripts/*",
        "env -C scripts sh check.sh",
        "node -r./scripts/check.sh x",
        "make -fscripts/check.sh",
        "sh scripts//check.sh",
        'sh "scri"pts/check.sh',
        'eval "$(cat scripts/check.sh)"',
    ],
)
def test_the_file_that_a_command_runs_is_known(tmp_path: Path, command: str | tuple[str, ...]) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / SCRIPT).write_text("")

    assert tmp_path / SCRIPT in program_files([command], tmp_path, {"PATH": f"/usr/bin:{tmp_path}/scripts"})


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("python3 -m scripts.check", "scripts/check.py"),
        ("python3 -mscripts.check --fast", "scripts/check.py"),
        (("python3", "-m", "pytest"), "pytest.py"),  # the folder comes first where Python looks
        (("python3", "-m", "pytest"), "pytest/__init__.py"),
        ("python3 -m scripts", "scripts/__main__.py"),
        ("python3 scripts", "scripts/__main__.py"),
        ("node scripts/check", "scripts/check.js"),
        ("make lint", "Makefile"),
        ("cd scripts && make", "scripts/Makefile"),
        (("npm", "run", "lint"), "package.json"),
        ("cd scripts; cd lib; sh deep.sh", "scripts/lib/deep.sh"),
        ("ruby -Iscripts -rcheck -e 1", "scripts/check.rb"),
        ("ruby -r./scripts/check -e 1", "scripts/check.rb"),
        ("perl -Iscripts check.pl", "scripts/check.pl"),
        ("node --import ./scripts/check x", "scripts/check.mjs"),
        ("PYTHONPATH=scripts python3 -m check", "scripts/check.py"),
        ("cargo test", "Cargo.toml"),
        ("tox -e lint", "tox.ini"),
        ("uv run lint", "pyproject.toml"),
        ("pre-commit run -a", ".pre-commit-config.yaml"),
        ("bash -lc 'invoke lint'", "tasks.py"),
        ("./gradlew check", "gradlew"),
    ],
)
def test_the_file_that_an_interpreter_or_a_runner_looks_for_is_known(
    tmp_path: Path, command: str | tuple[str, ...], file: str
) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "lib").mkdir()
    names = ("check.py", "check.js", "check.mjs", "check.rb", "check.pl", "__main__.py", "Makefile", "lib/deep.sh")
    for name in names:
        (tmp_path / "scripts" / name).write_text("")
    for name in ("Makefile", "package.json", "Cargo.toml", "tox.ini", "pyproject.toml", "tasks.py", "gradlew"):
        (tmp_path / name).write_text("")
    (tmp_path / ".pre-commit-config.yaml").write_text("")

    assert tmp_path / file in program_files([command], tmp_path, {"PATH": "/usr/bin"})


def test_a_file_that_no_command_names_is_free(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "other.py").write_text("")
    (tmp_path / "main.py").write_text("")

    commands = [
        "ruff check scripts",
        "cd scripts && ./check.sh",
        "eslint *.ts",
        "bash -lc 'ruff check *.py scripts/*.py'",
        "find . -name '*.py' | xargs ruff check",
        "bash -c 'find . -name m*.py'",
        "git diff --stat -- '*.py'",
        "echo $(date)/x $HOME",
    ]
    found = program_files(commands, tmp_path, {"PATH": "/bin"})

    assert not {tmp_path / "main.py", tmp_path / "scripts" / "other.py", tmp_path / "scripts"} & set(found)


def test_a_place_where_a_program_would_be_found_first_is_known_too(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    variables = {"PATH": f"{tmp_path}/bin:{tmp_path}/none:/usr/bin:{tmp_path}/later"}

    assert (tmp_path / "bin" / "env", Path("/usr/bin/env")) == program_files(["env"], tmp_path, variables)


@pytest.mark.parametrize(
    "settings",
    [
        {"hooks": {"pre_tool_use": (HookCommand("sh scripts/check.sh"),)}},
        {"hooks": {"stop": (HookCommand(("scripts/check.sh",)),)}},
        {"servers": (ServerConfig("x", ServerCommand("sh", ("scripts/check.sh",))),)},
        {"servers": (ServerConfig("x", ServerCommand("sh", ("check.sh",), cwd="scripts")),)},
    ],
)
@pytest.mark.parametrize(
    "change",
    [
        call("shell", {"command": "echo touch out >> scripts/check.sh"}, "c1"),
        call("shell", {"command": "mv scripts/check.sh x"}, "c1"),
        call("shell", {"command": "mv scripts x && mkdir scripts && echo x > scripts/check.sh"}, "c1"),
        custom(
            "apply_patch",
            "*** Begin Patch\n*** Update File: scripts/check.sh\n@@\n-exit 0\n+touch out\n*** End Patch",
            "c1",
        ),
    ],
)
async def test_what_a_hook_or_a_server_runs_cannot_be_changed(
    tmp_path: Path, settings: dict[str, Any], change: dict[str, Any]
) -> None:
    async with stage(
        tmp_path,
        *[answer(change), answer(say("So."))],
        sandbox="workspace-write",
        environment=IsolatedEnvironment({"PATH": "/usr/bin:/bin"}),
        **settings,
    ) as here:
        (here.cwd / "scripts").mkdir()
        (here.cwd / SCRIPT).write_text("exit 0\n")
        await here.run("Work.")

        assert "exit 0\n" == (here.cwd / SCRIPT).read_text()


async def test_no_other_name_of_a_file_that_a_hook_runs_can_be_written(tmp_path: Path) -> None:
    change = call("shell", {"command": "echo touch out > notes/innocent"}, "c1")
    patch = custom("apply_patch", "*** Begin Patch\n*** Delete File: other.sh\n*** End Patch", "c2")
    async with stage(
        tmp_path,
        *[answer(change), answer(patch), answer(say("So."))],
        sandbox="workspace-write",
        approval="never",
        environment=IsolatedEnvironment({"PATH": "/usr/bin:/bin"}),
        hooks={"stop": (HookCommand("sh scripts/check.sh"),)},
    ) as here:
        for folder in ("scripts", "notes"):
            (here.cwd / folder).mkdir()
        (here.cwd / SCRIPT).write_text("exit 0\n")
        (here.cwd / "notes" / "innocent").hardlink_to(here.cwd / SCRIPT)
        (here.cwd / "other.sh").hardlink_to(here.cwd / SCRIPT)
        await here.run("Work.")

        assert "exit 0\n" == (here.cwd / SCRIPT).read_text()
        assert (here.cwd / "other.sh").exists()


@pytest.mark.parametrize("folder", [".agents/skills", ".codex/skills", ".claude/skills", ".commonplace/skills"])
async def test_a_skill_of_the_project_is_changed_with_consent_only(tmp_path: Path, folder: str) -> None:
    text = f"*** Begin Patch\n*** Update File: {folder}/a/SKILL.md\n@@\n-Be kind.\n+Be bad.\n*** End Patch"
    steps = [answer(custom("apply_patch", text, "c1")), answer(say("So."))]
    async with stage(tmp_path, *steps, sandbox="workspace-write", approval="on-request") as here:
        (here.cwd / folder / "a").mkdir(parents=True)
        (here.cwd / folder / "a" / "SKILL.md").write_text("Be kind.\n")
        asked = answering(here, "denied")
        await here.run("Work.")

        assert "Be kind.\n" == (here.cwd / folder / "a" / "SKILL.md").read_text()
        assert "protected" in str(asked[0].problem)

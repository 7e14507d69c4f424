"""What is public is exported, importing does nothing, and starting is cheap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import commonplace
from ledgers import Script, user

HEAVY = {"anyio", "asyncio", "click", "msgspec", "sqlite3", "rich", "zstandard"}


def modules_after(code: str) -> set[str]:
    program = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_every_exported_name_is_there() -> None:
    assert [name for name in commonplace.__all__ if not hasattr(commonplace, name)] == []


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        _ = commonplace.nonsense  # pyright: ignore[reportAttributeAccessIssue]


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert modules_after("import commonplace") & HEAVY == set()


def test_asking_for_the_version_loads_nothing_heavy() -> None:
    code = "sys.argv = ['commonplace', '--version']; from commonplace.surfaces.cli import main; main()"

    assert modules_after(code) & HEAVY == set()


def test_printing_a_context_needs_no_database() -> None:
    path = next((Path(__file__).parent / "data" / "codex_fixtures" / "a_simple").glob("rollout-*"))
    code = f"from commonplace.surfaces.cli.root import run; run(['sessions', 'context', {str(path)!r}])"

    assert modules_after(code) & {"sqlite3", "rich", "zstandard"} == set()


async def test_the_library_lists_and_resumes(home: Path) -> None:
    Script().turn(user("hello", "msg_1")).write_home(home)

    async with commonplace.open() as book:
        page = await book.sessions.list()
        context = await book.sessions.context(page.threads[0].thread_id)

    assert [thread.title for thread in page.threads] == ["hello"]
    assert context.receipt.last_id == "msg_1"


def test_the_program_runs_as_a_module_and_says_its_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "commonplace", "--version"], capture_output=True, text=True, check=True
    )

    assert done.stdout == f"commonplace {commonplace.__version__}\n"


def test_output_cut_by_a_pipe_ends_quietly(home: Path) -> None:
    script = Script()
    for number in range(5000):
        script.item(user(f"line {number} " + "x" * 200))
    path = script.write_home(home)
    program = f"{sys.executable} -m commonplace sessions context {path} --json | head -c 10"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)

    assert done.stderr == ""
    assert done.stdout == '{"thread_i'

"""Kill a consolidation before each of its steps, and look at what is left.

    python crash_program.py HOME WORK EVERY

HOME is a home with sessions that were read (phase 1). For every EVERY-th step that changes something on disk, a copy of
it is consolidated by a child that kills itself just before that step. Then the workspace must be the whole old or the
whole new one, and another run must finish it. Prints how many steps were tried.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import anyio

from commonplace.app import book as books
from commonplace.memory.workspace import layout, staging

STEPS = ("rename", "replace", "fsync", "link", "unlink", "mkdir", "rmdir")


def main() -> None:
    """Try every step."""
    template, work, every = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    old = state(template)
    reference = work / "reference"
    shutil.copytree(template, reference)
    assert child(reference, None) == 0
    new = state(reference)
    assert new != old
    tried = 0
    for step in range(0, 100_000, every):
        home = work / f"home{step}"
        shutil.copytree(template, home)
        status = child(home, step)
        if status == 0:
            break
        assert status == -signal.SIGKILL, f"step {step}: {status}"
        staging.recover(home / layout.FOLDER)
        found = state(home)
        assert found in (old, new), f"step {step}: neither the old nor the new state: {sorted(found)}"
        assert child(home, None) == 0, f"step {step}: the next run failed"
        assert state(home) == new, f"step {step}: the next run did not finish"
        history = (home / "memory_history.jsonl").read_bytes()
        assert history == (reference / "memory_history.jsonl").read_bytes(), f"step {step}: history differs"
        shutil.rmtree(home)
        tried += 1
    print(tried)


def state(home: Path) -> dict[str, bytes]:
    """The files that people read."""
    root = home / layout.FOLDER
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


def child(home: Path, step: int | None) -> int:
    """Consolidate in a child process that dies before a step; return how it ended."""
    pid = os.fork()
    if pid == 0:
        try:
            if step is not None:
                arm(step)
            anyio.run(consolidate, home)
        except BaseException as error:  # the parent must see that it failed
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


async def consolidate(home: Path) -> None:
    """Run phase 2."""
    environment = {"COMMONPLACE_HOME": str(home), "COMMONPLACE_NOW": "2026-11-15T12:00:00Z", "HOME": str(home)}
    async with books.open(environment=environment) as book:
        report = await book.memory.run(phases=(2,))
    if report.consolidation.status not in ("succeeded", "unchanged"):
        raise RuntimeError(report.consolidation.status, report.warnings)


def arm(step: int) -> None:
    """Let the process kill itself before a step."""
    left = [step]

    def before(function: Any) -> Any:
        def inner(*given: Any, **named: Any) -> Any:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return function(*given, **named)

        return inner

    for name in STEPS:
        setattr(os, name, before(getattr(os, name)))
    shutil.rmtree = before(shutil.rmtree)

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *given: Any, **named: Any) -> sqlite3.Cursor:
            if sql.lstrip().upper().startswith("COMMIT") and left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= sql.lstrip().upper().startswith("COMMIT")
            return super().execute(sql, *given, **named)

    connect: Any = sqlite3.connect

    def watched(*given: Any, **named: Any) -> Any:
        return connect(*given, **{"factory": Connection, **named})

    sqlite3.connect = watched


if __name__ == "__main__":
    main()

"""Replaces a workspace again and again, each time in a child that is killed one step later, until one gets through.

    swap_program.py FOLDER exchange|rename

A step is a call that changes something on disk or makes it durable; the child dies right before it. What is left then
is printed, and recovered by children that are killed as well.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from commonplace.memory.workspace import baseline, layout, staging, swap

NOW = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)
OLD = {
    path: f"old {path}" for path in ("MEMORY.md", "memory_summary.md", "skills/one/SKILL.md", "rollout_summaries/x.md")
}
NEW = {
    "MEMORY.md": "new MEMORY.md",
    "memory_summary.md": OLD["memory_summary.md"],
    "skills/one/SKILL.md": OLD["skills/one/SKILL.md"],
    "skills/two/SKILL.md": "new skill",
}
STEPS = ("open", "link", "unlink", "rmdir", "mkdir", "rename", "replace", "fsync")


def make(home: Path) -> Path:
    root = home / layout.FOLDER
    layout.ensure(root)
    for path, text in OLD.items():
        staging.put(root / path, text)
    baseline.reset(root, "old", NOW)
    return root


def replace(root: Path) -> None:
    staged = staging.stage(root)
    for path in ("MEMORY.md", "skills/two/SKILL.md"):
        staging.put(staged / path, NEW[path])
    (staged / "rollout_summaries/x.md").unlink()
    baseline.reset(staged, "new", NOW)
    staging.commit(staged, root)


def countdown(left: int) -> None:
    """Let this process die before its next call but `left` that changes something."""

    def before() -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    def counted(call: Callable[..., Any], is_step: Callable[..., bool]) -> Callable[..., Any]:
        def wrapped(*args: Any, **named: Any) -> Any:
            if is_step(*args, **named):
                before()
            return call(*args, **named)

        return wrapped

    def writes(_path: Any, flags: int, *_: Any, **__: Any) -> bool:
        return bool(flags & os.O_CREAT)

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name), writes if name == "open" else lambda *_, **__: True))
    swap.exchange = counted(swap.exchange, lambda *_, **__: True)


def dies(work: Callable[[], None], step: int) -> bool:
    """Do some work in a child that dies before a step; say whether it got that far."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            countdown(step)
            work()
            code = 0
        finally:
            if code:
                traceback.print_exc()
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    assert status == 0, status
    return False


def main(folder: Path, way: str) -> None:
    os.fsync = lambda fd, /: None  # a kill loses nothing that was written; a step it stays
    if way == "rename":
        swap.exchange = cannot
    step, is_killed = 0, True
    while is_killed:
        home = folder / f"{step:03}"
        root = make(home)
        is_killed = dies(functools.partial(replace, root), step)
        print(json.dumps({"step": step, "killed": is_killed, "left": state(root), "beside": beside(root)}))
        # Each of these gets a few steps further than the one before.
        while dies(functools.partial(staging.recover, root), 1 + step % 10):
            print(json.dumps({"step": step, "recovering": state(root)}))
        print(json.dumps({"step": step, "recovered": state(root), "beside": beside(root)}))
        shutil.rmtree(home)
        step += 1


def cannot(one: Path, other: Path) -> bool:
    return not (one and other)


def beside(root: Path) -> list[str]:
    return sorted(os.listdir(root.parent))


def state(root: Path) -> str:
    """Return whether a workspace is wholly old, wholly new or something else."""
    if not root.exists():
        return "missing"
    files = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    found = {name: path.read_text("utf-8") for name, path in files.items() if not name.startswith(".git/")}
    for name, expected in (("old", OLD), ("new", NEW)):
        if found == expected and baseline.message(root) == name and baseline.status(root) == []:
            return name
    return f"broken: {found}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

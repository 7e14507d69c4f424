"""Homes in which learning can begin by itself, and the processes that it begins in."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commonplace.agent.thread import Thread
from commonplace.app import book as books
from commonplace.app.book import Book
from commonplace.models.scripted import ScriptedModel
from commonplace.state.database import Row
from exec_driver import wait_for_end
from ledgers import Script, assistant, user

SHOP = "0198c0de-0000-7000-8000-0000000000a1"
BLOG = "0198c0de-0000-7000-8000-0000000000b1"
NOW = "2026-11-20T09:00:00Z"
PNPM = "Always use pnpm instead of npm in this repo."
DEPLOY = "In this project we always deploy from the release branch."
_COUNT = """\
import os, sys
if "worker" in sys.orig_argv:
    with open(os.path.join(os.environ["COMMONPLACE_HOME"], "..", "started"), "a") as file:
        file.write(" ".join(sys.orig_argv[1:]) + "\\n")
"""
"""Python runs this first in each process: workers are counted, however short they live."""


@dataclass(frozen=True)
class Beside:
    """A home below `root`, and what runs there."""

    root: Path
    background: bool = True
    """Sessions start workers."""

    @property
    def home(self) -> Path:
        return self.root / "home"

    def variables(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The whole environment of a process that may start workers."""
        own = {
            "COMMONPLACE_HOME": str(self.home),
            "HOME": str(self.root / "user"),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self.root / "counting"),
        }
        own["COMMONPLACE_MEMORY_BACKGROUND"] = str(self.background).lower()
        return {**own, "COMMONPLACE_NOW": NOW, **(more or {})}

    def started(self) -> list[str]:
        """The command lines of the workers that were started, once they have ended."""
        wait_for_workers(self.home)
        file = self.root / "started"
        return file.read_text("utf-8").splitlines() if file.exists() else []

    @asynccontextmanager
    async def open(self, warned: list[str] | None = None, /, **more: str) -> AsyncGenerator[Book]:
        """Open the home; variables are given in lower case and without their prefix."""
        given = {f"COMMONPLACE_{name.upper()}": text for name, text in more.items()}
        take = warned.append if warned is not None else None
        async with books.open(environment=self.variables(given), warn=take) as book:
            yield book

    async def start(self, book: Book, *script: Any, **wishes: Any) -> Thread:
        """Begin a thread whose model answers by a script."""
        (self.root / "project").mkdir(exist_ok=True)
        wanted: dict[str, Any] = {"cwd": self.root / "project", "speaker": ScriptedModel(*script), **wishes}
        return await book.start(**wanted)


def session(thread_id: str, name: str, rule: str) -> Script:
    """A session of long ago that teaches a rule."""
    remote = {"repository_url": f"https://github.com/acme/{name}.git", "branch": "main"}
    script = Script(thread_id, cwd=f"/repo/{name}", git=remote)
    script.turn(user(f"fix the failing test of the {name}. {rule}"), assistant("Done."))
    return script.turn(user("From now on, never push to main without asking me first."), assistant("Understood."))


def make_beside(root: Path, *, background: bool = True) -> Beside:
    """Write the sessions, and what counts processes."""
    made = Beside(root, background)
    session(SHOP, "shop", PNPM).write_home(made.home)
    session(BLOG, "blog", DEPLOY).write_home(made.home)
    (root / "counting").mkdir()
    (root / "counting" / "sitecustomize.py").write_text(_COUNT)
    return made


def workers(home: Path) -> list[int]:
    """Return the processes of workers for a home that live now."""
    wanted = f"COMMONPLACE_HOME={home}".encode()
    found: list[int] = []
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            words = _command_line(place)
            is_one = b"worker" in words and wanted in (place / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if is_one:
            found.append(int(place.name))
    return found


def _command_line(place: Path) -> list[bytes]:
    """Return the words that a process was started with (raises OSError: it is gone, or none of a program).

    Right after its start, while the kernel still lays out the program, a process has no words yet.
    """
    while not (words := (place / "cmdline").read_bytes()):
        (place / "exe").readlink()
        time.sleep(0.001)
    return words.split(b"\0")


def wait_for_workers(home: Path) -> None:
    """Return when no worker for a home lives; one that does not end is a failure."""
    for pid in workers(home):
        assert wait_for_end(pid, 60.0), f"the worker {pid} does not end"


async def jobs(book: Book) -> dict[str, str]:
    """Return the state of each job, by its key."""
    database = await book.state.database()
    keys = [("memory_consolidate_global", str(book.home.resolve()))]
    keys += [("memory_stage1", thread_id) for thread_id in (SHOP, BLOG)]
    found: list[list[Row]] = await database.read(
        lambda tx: [tx.query("jobs.get", kind=kind, job_key=key) for kind, key in keys]
    )
    return {str(rows[0]["job_key"]): str(rows[0]["status"]) for rows in found if rows}

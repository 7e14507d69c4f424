"""Run `commonplace exec` as a process of its own, against a scripted model on loopback.

A `Place` is a throw-away home, a user's HOME and a folder to work in; its configuration names one provider. The child
gets nothing of our environment but PATH, and starts no worker unless it is told to (`more`).
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import processes

Json: TypeAlias = dict[str, Any]

PROGRAM = [sys.executable, "-m", "commonplace"]
MODEL = "mock:gpt-5.5"


@dataclass(frozen=True)
class Ran:
    """What one run left behind."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[Json]:
        """The lines of stdout; each must be JSON."""
        return [cast("Json", json.loads(line)) for line in self.out.splitlines()]

    @property
    def kinds(self) -> list[str]:
        """What the lines are, items with their type."""
        return [
            " ".join([event["type"], *([event["item"]["type"]] if "item" in event else [])]) for event in self.events
        ]

    @property
    def thread_id(self) -> str:
        """The thread of the run."""
        assert self.events[0]["type"] == "thread.started", self.err
        return str(self.events[0]["thread_id"])

    def items(self, kind: str, event: str = "item.completed") -> list[Json]:
        """The items of a type in events of a type."""
        found = [each["item"] for each in self.events if each["type"] == event]
        return [item for item in found if item["type"] == kind]


@dataclass(frozen=True)
class Place:
    """A throw-away home below `root`."""

    root: Path

    @property
    def home(self) -> Path:
        """COMMONPLACE_HOME."""
        return self.root / "home"

    @property
    def cwd(self) -> Path:
        """The folder of the work."""
        return self.root / "demo"

    def ledgers(self) -> list[Path]:
        """The session files, oldest first by name."""
        return sorted(self.home.glob("sessions/*/*/*/rollout-*.jsonl"), key=lambda path: path.name)

    def thread_ids(self) -> list[str]:
        """The threads of the session files."""
        return [path.stem[-36:] for path in self.ledgers()]

    def lines(self) -> list[Json]:
        """The lines of the only session file."""
        (path,) = self.ledgers()
        return [cast("Json", json.loads(line)) for line in path.read_text("utf-8").splitlines()]

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The whole environment of the child."""
        own = {
            "COMMONPLACE_HOME": str(self.home),
            "COMMONPLACE_MEMORY_BACKGROUND": "false",
            "HOME": str(self.root / "user"),
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "TZ": "Etc/UTC",
        }
        return own | dict(more or {})


def make_place(root: Path, base_url: str, *, settings: Mapping[str, Any] | None = None, model: str = MODEL) -> Place:
    """Create the folders and `config.toml`; called again for the same root, it rewrites the configuration."""
    place = Place(root)
    for folder in (place.home, place.cwd, root / "user"):
        folder.mkdir(parents=True, exist_ok=True)
    top = {"model": model, "sandbox": "danger-full-access", **(settings or {})}
    lines = [f"{key} = {json.dumps(value)}" for key, value in top.items() if value is not None]
    lines += ["[providers.mock]", 'api = "responses"', f'base_url = "{base_url}"', "retries = 0"]
    (place.home / "config.toml").write_text("\n".join(lines) + "\n", "utf-8")
    return place


def run_exec(
    place: Place,
    *arguments: object,
    stdin: bytes | None = None,
    as_json: bool = True,
    more: Mapping[str, str] | None = None,
    anywhere: bool = True,
    timeout: float = 100.0,
) -> Ran:
    """Run `exec` with these arguments to its end, unless told otherwise also outside a repository."""
    words = ["exec", *(["--skip-git-repo-check"] if anywhere else []), *(["--json"] if as_json else []), *arguments]
    done = processes.run(words, given=stdin, env=place.environment(more), cwd=place.cwd, timeout=timeout)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def start_exec(place: Place, *arguments: object, as_json: bool = True) -> processes.Process:
    """Start `exec` and return while it runs."""
    words = ["exec", "--skip-git-repo-check", *(["--json"] if as_json else []), *arguments]
    return processes.Process(words, env=place.environment(), cwd=place.cwd)


def wait_for_end(pid: int, timeout: float = 100.0) -> bool:
    """Say whether a process, ours or not, has ended, when it has or the time is over."""
    try:
        opened = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([opened], [], [], timeout)[0])
    finally:
        os.close(opened)


@contextmanager
def held_by_a_command(path: Path) -> Generator[None]:
    """Wait until a command reads from a fifo, and let it wait for the end of that as long as the block lasts."""
    opened = os.open(path, os.O_WRONLY)  # returns when there is a reader
    try:
        yield
    finally:
        os.close(opened)

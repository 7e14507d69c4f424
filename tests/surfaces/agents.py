"""Other agents' folders as tests want them: a small session of each, homes full of recordings, and what was touched."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import copilot_files
import opencode_files

import processes
from commonplace.app import book as books
from commonplace.app.book import Book
from commonplace.state.database import Transaction
from ledgers import Script, assistant, function_call, function_output, user

T = TypeVar("T")
DATA: Final = Path(__file__).parents[1] / "data"
CLAUDE: Final = DATA / "claude_fixtures"
EXPECTED: Final[dict[str, dict[str, Any]]] = json.loads((CLAUDE / "expected.json").read_text("utf-8"))
FORK: Final = "a8880b0c-dbbf-4386-9726-0d81686c3093"
ORIGIN: Final = "7c0f5efa-7816-4351-bdb6-66d602ac42d6"
SIMPLE: Final = "6ac42589-1bd0-4e41-b0ff-ba06dc9add47"
GEMINI: Final = "7c1f0a3e-5b2d-4e8f-9a61-2d4c8b0e6f13"
NOW: Final = 1_794_733_200
COUNTS: Final = ("found", "imported", "updated", "unchanged", "skipped")


def stamps(root: Path) -> dict[str, tuple[int, int, str]]:
    """Mode, time and content of everything under a folder, links as they are."""
    found: dict[str, tuple[int, int, str]] = {}
    for path in [root, *sorted(root.rglob("*"))]:
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
        found[str(path.relative_to(root))] = (status.st_mode, status.st_mtime_ns, content)
    return found


def claude_home(root: Path, *scenarios: str) -> Path:
    """Claude Code's folder, with the recordings of some scenarios (of all, if none are named)."""
    for scenario in scenarios or sorted(path.name for path in CLAUDE.iterdir() if (path / "projects").is_dir()):
        shutil.copytree(CLAUDE / scenario, root, dirs_exist_ok=True)
    return root


def claude_file(root: Path, scenario: str) -> Path:
    """The one transcript of a scenario, in Claude Code's folder."""
    (path,) = claude_home(root, scenario).glob("projects/*/*.jsonl")
    return path


def codex_home(root: Path, *scripts: Script) -> Path:
    """A Codex home: with these sessions, else with one that has two turns and a call that failed."""
    for script in scripts or [codex_script()]:
        script.write_home(root)
    return root


def codex_script(thread_id: str = Script().thread_id, **meta: Any) -> Script:
    script = Script(thread_id, **meta)
    script.turn(user("fix the tests"), function_call("c1"), function_output("c1", "Exit code: 1\nOutput:\nno"))
    return script.turn(user("try again"), assistant("Done."))


def gemini_home(root: Path, cwd: str = "/srv/told") -> Path:
    """Gemini CLI's home with one session of one project."""
    time = "2026-09-28T10:00:01.000Z"
    lines = [
        {"sessionId": GEMINI, "projectHash": "f" * 64, "startTime": time, "lastUpdated": time},
        {"id": "u1", "timestamp": time, "type": "user", "content": [{"text": "fix the tests"}]},
        {"id": "m1", "timestamp": time, "type": "gemini", "content": "Done."},
        {"id": "u2", "timestamp": time, "type": "user", "content": [{"text": "try again"}]},
    ]
    project = root / ".gemini" / "tmp" / "short-id"
    write_lines(project / "chats" / "session-2026-09-28T10-00-7c1f0a3e.jsonl", lines)
    (project / ".project_root").write_text(cwd)
    return root / ".gemini"


def swe_agent_file(folder: Path, name: str = "acme__shop-1.traj") -> Path:
    """A run of SWE-agent."""
    step = {"thought": "I look.", "action": "ls\n", "observation": "a.py", "response": "I look.\nls"}
    step |= {"state": {"working_dir": "/testbed", "open_file": "n/a"}, "execution_time": 1.5}
    task = {"role": "user", "content": "fix the tests", "agent": "main", "message_type": "observation"}
    document: dict[str, Any] = {"trajectory": [step], "history": [task], "info": {}}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(document, indent=2))
    os.utime(folder / name, (NOW, NOW))
    return folder / name


def transcript_file(path: Path, *texts: str, session: str = "talk", **more: Any) -> Path:
    """A plain transcript: the person and an assistant take turns."""
    said = [
        {"session": session, "role": "assistant" if place % 2 else "user", "text": text, "id": f"r{place}", **more}
        for place, text in enumerate(texts or ("fix the tests", "Done.", "try again"))
    ]
    return write_lines(path, said)


def write_lines(path: Path, records: Sequence[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


SOURCES: Final[dict[str, Callable[[Path], Path]]] = {
    "codex": codex_home,
    "claude-code": lambda root: claude_home(root, "simple"),
    "gemini": gemini_home,
    "opencode": lambda root: opencode_files.export(root / "session.jsonl", opencode_files.two_turns()).parent,
    "copilot": lambda root: write_lines(root / "session.jsonl", copilot_files.two_turns()).parent,
    "swe-agent": lambda root: swe_agent_file(root).parent,
    "transcript": lambda root: transcript_file(root / "talk.jsonl").parent,
}
"""How to make a folder with one session of each agent."""


def counts(document: dict[str, Any]) -> dict[str, int]:
    """What an import of one source did, without what is nothing."""
    (source,) = document["sources"]
    assert source["found"] == sum(source[name] for name in COUNTS[1:])
    assert source["skipped"] == sum(source["reasons"].values())
    return {name: source[name] for name in COUNTS if source[name]}


def with_book(action: Callable[[Book], Any]) -> Any:
    """Do something with the book of this test's home, as the program would."""

    async def inside() -> Any:
        async with books.open() as book:
            return await action(book)

    return anyio.run(inside)


def in_database(body: Callable[[Transaction], T]) -> T:
    """Run a store's function on the home's own database."""

    async def inside(book: Book) -> T:
        return await (await book.state.database()).write(body)

    return with_book(inside)


def program(*arguments: object) -> processes.Process:
    """Start the program as a process of its own."""
    return processes.Process(arguments, text=True)


_PAUSING = """
import sys
from pathlib import Path
from commonplace.surfaces.cli import main

home, ledgers, further = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
del sys.argv[1:4]

def pause(event, _):
    global further
    if further < 0 or event not in ("open", "os.rename", "os.remove", "os.mkdir", "os.link"):
        return
    if sum(1 for _ in home.rglob("rollout-*")) >= ledgers:
        further -= 1
        if further < 0:
            print("paused", flush=True)
            sys.stdin.readline()

sys.addaudithook(pause)
main()
"""


def paused(home: Path, ledgers: int, further: int, *arguments: object) -> processes.Process:
    """Start the program, and return when it waits for a line, or has ended.

    It waits at an operation on files, as many `further` as is said after there were so many ledgers.
    """
    process = processes.Process([home, ledgers, further, *arguments], stdin=processes.PIPE, text=True, code=_PAUSING)
    assert process.stdout is not None
    while process.stdout.readline() not in ("paused\n", ""):
        pass
    return process


def ledgers(home: Path) -> list[Path]:
    """The session files of our home."""
    return sorted(path for path in (home / "sessions").rglob("rollout-*") if path.is_file())


def left_behind(home: Path) -> list[str]:
    """Files that only exist while something is written."""
    return [path.name for path in home.rglob(".*.part")]

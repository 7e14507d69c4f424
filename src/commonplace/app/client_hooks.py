"""The hooks of Codex and Claude Code: what we answer at the start of a session, to a prompt, and at the end.

At the start the session gets the memory section of its folder's project, and the person sees one line about it. The
section's first words mark it as memory, so that it is never learned again. Sections are kept ready
(`memory.recall.section_cache`), so that the answer needs almost nothing of this program to be loaded. If none is ready,
the next best one is told, and a process of its own makes the right one for the next session: no session waits for that.
Learning starts in that process, too. At the end the session is imported. All of them treat the client's input as hints:
fields that are missing or wrong count as absent.

Citations are asked for only where the agent takes them out of its answers: Codex does, Claude Code shows them.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from commonplace.memory.recall import section_cache
from commonplace.memory.recall.section_cache import CLAUDE_CODE, CODEX, Section

if TYPE_CHECKING:
    from commonplace.app.book import Book
    from commonplace.learning.run import LearningReport

LOG: Final = "locks/agents.log"
"""What the process that a hook started printed."""
_NICENESS: Final = 10
"""The process that learns gives way to the session from its first moment."""
_PAUSE_SECONDS: Final = 600
"""A hook starts learning at most once in this time; the process that it starts has a limit of its own, too."""


HookAction: TypeAlias = "Callable[[HookInput], Awaitable[str | None]]"


class HookInput(NamedTuple):
    """The fields of a hook's input that are used here."""

    cwd: str | None = None
    transcript: str | None = None
    session_id: str = ""
    prompt: str = ""

    @property
    def agent(self) -> str:
        """The agent that asks: Codex is known by the name of its session files."""
        name = (self.transcript or "").rpartition("/")[2]
        return CODEX if name.startswith("rollout-") else CLAUDE_CODE


def parse(data: bytes) -> HookInput:
    """Return the input of a hook; an empty one if it is not JSON."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return HookInput()
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    session_id, prompt = fields.get("session_id"), fields.get("prompt")
    return HookInput(
        _path(fields.get("cwd")),
        _path(fields.get("transcript_path")),
        session_id if isinstance(session_id, str) and len(session_id) <= 100 and session_id.isascii() else "",
        prompt if isinstance(prompt, str) else "",
    )


def _path(value: Any) -> str | None:
    return value if isinstance(value, str) and value.startswith("/") and "\0" not in value else None


# The start of a session


def start_answer(section: Section) -> dict[str, Any] | None:
    """Return what a hook answers at the start of a session; None if there is nothing to say."""
    if not section["text"]:
        return None
    answer: dict[str, Any] = {
        "suppressOutput": True,
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": section["text"]},
    }
    count = section["lessons"]
    if count:
        answer["systemMessage"] = f"commonplace: {count} lesson{'' if count == 1 else 's'} for {section['project']}"
    return answer


def start(hook: HookInput, environment: Mapping[str, str], *, notes: bool) -> Section | None:
    """Return what a session that begins is told, from what is ready; None if nothing is.

    Starts a process that learns if that is due, and that makes the folder's own section if it was not ready. Nothing
    of that is waited for.
    """
    home = section_cache.home_folder(environment)
    if not os.path.isdir(home):  # noqa: PTH112
        return None
    folder, reader = hook.cwd or os.getcwd(), section_cache.reader(hook.agent, notes=notes)  # noqa: PTH109
    section, is_ready = section_cache.best(home, folder, reader, environment)
    if section is not None:
        _append_told(home, hook.agent, section, environment)
    if not is_ready or (section is not None and _is_learning_due(home, section, environment)):
        current = ["--current", hook.session_id] if hook.session_id else []
        wanted = [] if is_ready else ["--section", folder, reader]
        _learn_detached(home, environment, *current, *wanted)
    return section


def note_told(home: str, reader: str, section: Section, environment: Mapping[str, str]) -> int:
    """Note what a reader was told, and start learning in a process of its own if that is due.

    Returns the id of the process, or 0 if none was started.
    """
    _append_told(home, reader, section, environment)
    return _learn_detached(home, environment) if _is_learning_due(home, section, environment) else 0


def _append_told(home: str, reader: str, section: Section, environment: Mapping[str, str]) -> None:
    if section["lessons"]:
        told = {name: section[name] for name in ("folder", "project", "lessons", "ids")}
        section_cache.append_told(home, {"time": int(_now(environment)), "agent": reader, **told})


def _is_learning_due(home: str, section: Section, environment: Mapping[str, str]) -> bool:
    return section["is_learning"] and section_cache.take_start(home, _now(environment), _PAUSE_SECONDS)


def _learn_detached(home: str, environment: Mapping[str, str], *more: str) -> int:
    words = [sys.executable, "-P", "-m", "commonplace", "worker", "--once", "--background", "--import", *more]
    return _detached(words, home, {**environment, "COMMONPLACE_HOME": home})


def _detached(words: list[str], home: str, environment: Mapping[str, str]) -> int:
    """Start a program that outlives us and has none of our streams; return its id.

    `subprocess` does the same and takes as long to import as all of this takes.
    """
    os.makedirs(f"{home}/locks", 0o700, exist_ok=True)  # noqa: PTH103
    log = os.open(f"{home}/{LOG}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    child = os.fork()
    if child:
        os.close(log)
        return child
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.nice(_NICENESS)
        os.chdir(home)
        os.execve(words[0], words, dict(environment))  # noqa: S606 (our own program)
    finally:
        os._exit(127)


def _now(environment: Mapping[str, str]) -> float:
    """Return the time; tests and demos may fix it."""
    if text := environment.get("COMMONPLACE_NOW"):
        from datetime import datetime

        try:
            return datetime.fromisoformat(text).timestamp()
        except ValueError:
            pass
    return time.time()


# A prompt


async def prompt_hits(hook: HookInput) -> str | None:
    """Return the best lessons for a prompt that its session was not told yet; None where there are none."""
    from commonplace.app import book as books
    from commonplace.memory.recall import prompt_lessons

    async with books.open() as book:
        if not book.settings.memory.prompt_hits or not hook.prompt.strip():
            return None
        folder = Path(hook.cwd or os.getcwd())  # noqa: PTH109
        return await prompt_lessons.unseen_lessons(book.memory_store, folder, hook.session_id, hook.prompt)


# The end of a session


async def import_ended(hook: HookInput) -> str | None:
    """Import a session that has ended."""
    from commonplace.app import book as books
    from commonplace.sessions import imports

    if hook.transcript is None or not Path(hook.transcript).is_file():
        return None
    async with books.open() as book:
        chosen = imports.choose(hook.agent, [Path(hook.transcript)], book.state.environment)
        await book.importer.run(chosen)
    return None


async def learn(book: Book, current: str | None, wanted: tuple[str, str] | None = None) -> LearningReport | None:
    """Take in what agents left in the usual places, learn from it as a background start, and keep sections ready.

    `current` is the session that goes on; `wanted` is a folder and a reader whose section is made first. Returns None
    if learning started by itself a short while ago, or may not.
    """
    from commonplace.app import background_process, ready_sections
    from commonplace.errors import BadInput
    from commonplace.sessions import imports
    from commonplace.state import learning_starts

    home = book.state
    report = None
    await ready_sections.refresh_shared(home)
    if wanted is not None:
        await ready_sections.keep_section(book.memory_store, *wanted)
    await ready_sections.count_told(book.memory_store)
    database = await home.database()
    is_wanted = home.settings.memory.background and home.settings.memory.generate and not home.is_degraded
    if is_wanted and await database.write(lambda tx: learning_starts.begin(tx, home.key, now=home.now_s())):
        with contextlib.suppress(BadInput):  # there is nothing to import
            await book.importer.run(imports.choose(None, [], home.environment))
        report = await background_process.learn(home, current)
    await ready_sections.keep_sections(book.memory_store)
    return report

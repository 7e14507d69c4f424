"""Sessions made of shell calls, as an extractor reads them."""

from __future__ import annotations

from commonplace.learning.commands.calls import SimpleCommand, calls_of
from commonplace.learning.commands.runs import SessionRuns, runs_of
from commonplace.learning.reading.session_view import EventSpan, SessionView, ToolUse, Turn, ViewEvent

ROOT = "/home/ada/shop"
OLD = 6
"""A project of so many sessions is not new any more."""


def used(command: str, code: int | None = 0, output: str = "", *, folder: str | None = None) -> ToolUse:
    """A shell call with its exit code (None: unknown) and its output."""
    at = EventSpan(1, 0, 0, "2026-01-01T00:00:00Z")
    ok = None if code is None else code == 0
    return ToolUse(at, "Bash", "", command, folder, ok=ok, code=code or None, output=output)


def view(
    *uses: ViewEvent, thread: str = "a", cwd: str = ROOT, source: str = "claude-code", day: int = 0
) -> SessionView:
    """A session with one turn; each call has its own bytes."""
    date = f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}T00:00:00Z"
    for number, use in enumerate(uses):
        use.at = EventSpan(1, 100 * number, 100 * number + 50, date)
    return SessionView(thread, "", source, cwd, cwd, None, date, date, [Turn(1, list(uses))])


def stored(*uses: ToolUse | str, thread: str = "a", cwd: str = ROOT, day: int = 0) -> SessionRuns:
    """What is stored of a session; a string is a command that succeeded."""
    calls = [used(use) if isinstance(use, str) else use for use in uses]
    return runs_of(view(*calls, thread=thread, cwd=cwd, day=day))


def project(*sessions: tuple[ToolUse | str, ...]) -> list[SessionRuns]:
    """What is stored of several sessions of one project."""
    return [stored(*uses, thread=f"t{number}") for number, uses in enumerate(sessions)]


def known_project(*sessions: tuple[ToolUse | str, ...]) -> list[SessionRuns]:
    """What is stored of a project that is not new any more: sessions without commands are added until it is not."""
    return project(*sessions, *[()] * max(0, OLD - len(sessions)))


def simple(line: str, folder: str = ROOT) -> SimpleCommand:
    """The only simple command of a line."""
    call = calls_of(view(used(line), cwd=folder))[0]
    assert len(call.commands) == 1, call.commands
    return call.commands[0]

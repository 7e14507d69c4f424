"""Sessions made in a few words: what was said, answered, changed and run, as a view, and what it teaches."""

from __future__ import annotations

from commonplace.learning.extract import rules
from commonplace.learning.reading.session_view import (
    EventSpan,
    Interruption,
    ModelText,
    SessionView,
    ToolUse,
    Turn,
    UserText,
    ViewEvent,
)
from commonplace.memory import lessons
from commonplace.memory.entries import CANDIDATE
from commonplace.memory.lessons import Lesson

PATCH = "*** Begin Patch\n*** Update File: {}\n+changed\n*** End Patch"


def user(text: str) -> UserText:
    return UserText(EventSpan(0, 0, 0), text)


def model(text: str = "Done.") -> ModelText:
    return ModelText(EventSpan(0, 0, 0), text)


def edit(path: str = "src/main.py") -> ToolUse:
    return ToolUse(EventSpan(0, 0, 0), "apply_patch", PATCH.format(path), ok=True)


def ran(command: str, code: int = 0, output: str = "") -> ToolUse:
    return ToolUse(EventSpan(0, 0, 0), "shell", "{}", command, ok=code == 0, code=code, output=output)


def refused(command: str, reason: str = "") -> ToolUse:
    """A command that the person refused; Claude Code records the reason with it, Codex as the next message."""
    said = f"The tool use was rejected. To tell you how to proceed, the user said:\n{reason}"
    call = ran(command, 1, said if reason else "exec command rejected by user")
    call.refused = True
    return call


def stop() -> Interruption:
    return Interruption(EventSpan(0, 0, 0))


def session(*events: ViewEvent) -> SessionView:
    """Return a view of events, each at bytes of its own, a turn for each prompt."""
    view = SessionView(
        "t", "/ledger", "cli", "/home/dev/shop", "shop", None, "2026-11-01T10:00:00Z", "2026-11-01T11:00:00Z"
    )
    view.turns.append(Turn(0))
    for number, event in enumerate(events):
        if isinstance(event, UserText):
            view.turns.append(Turn(len(view.turns)))
        event.at = EventSpan(view.turns[-1].number, number * 100, number * 100 + 99)
        view.turns[-1].events.append(event)
    return view


def taught(*events: ViewEvent) -> list[Lesson]:
    """Return all that the embedded extractor learns from a session of these events, however unlikely it lasts."""
    found = rules.extract(session(*events)).lessons
    return [lesson for task in lessons.decode(found).tasks for lesson in task.lessons] if found else []


def listed(*events: ViewEvent) -> list[Lesson]:
    """Return what it learns and lists."""
    return [lesson for lesson in taught(*events) if lesson.is_listed]


def likely(*events: ViewEvent) -> list[Lesson]:
    """Return what it learns and keeps, as a candidate at least."""
    return [lesson for lesson in taught(*events) if lesson.confidence >= CANDIDATE]

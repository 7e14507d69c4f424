"""Sessions made in a few words: what was said, answered, changed and run, as a view."""

from __future__ import annotations

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

PATCH = "*** Begin Patch\n*** Update File: {}\n+changed\n*** End Patch"


def user(text: str) -> UserText:
    return UserText(EventSpan(0, 0, 0), text)


def model(text: str = "Done.") -> ModelText:
    return ModelText(EventSpan(0, 0, 0), text)


def edit(path: str = "src/main.py") -> ToolUse:
    return ToolUse(EventSpan(0, 0, 0), "apply_patch", PATCH.format(path), ok=True)


def ran(command: str, code: int = 0, output: str = "") -> ToolUse:
    return ToolUse(EventSpan(0, 0, 0), "shell", "{}", command, ok=code == 0, code=code, output=output)


def refused(command: str) -> ToolUse:
    call = ran(command, 1, "exec command rejected by user")
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

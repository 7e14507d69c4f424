"""Sessions made in a few words: what was said, answered, changed and run, as a view."""

from __future__ import annotations

from commonplace.learning.reading.session_view import Answered, Called, Event, Said, Span, Stopped, Turn, View

PATCH = "*** Begin Patch\n*** Update File: {}\n+changed\n*** End Patch"


def user(text: str) -> Said:
    return Said(Span(0, 0, 0), text)


def model(text: str = "Done.") -> Answered:
    return Answered(Span(0, 0, 0), text)


def edit(path: str = "src/main.py") -> Called:
    return Called(Span(0, 0, 0), "apply_patch", PATCH.format(path), ok=True)


def ran(command: str, code: int = 0, output: str = "") -> Called:
    return Called(Span(0, 0, 0), "shell", "{}", command, ok=code == 0, code=code, output=output)


def refused(command: str) -> Called:
    call = ran(command, 1, "exec command rejected by user")
    call.refused = True
    return call


def stop() -> Stopped:
    return Stopped(Span(0, 0, 0))


def session(*events: Event) -> View:
    """Return a view of events, each at bytes of its own, a turn for each prompt."""
    view = View("t", "/ledger", "cli", "/home/dev/shop", "shop", None, "2026-11-01T10:00:00Z", "2026-11-01T11:00:00Z")
    view.turns.append(Turn(0))
    for number, event in enumerate(events):
        if isinstance(event, Said):
            view.turns.append(Turn(len(view.turns)))
        event.at = Span(view.turns[-1].number, number * 100, number * 100 + 99)
        view.turns[-1].events.append(event)
    return view

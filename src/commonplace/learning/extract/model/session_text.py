"""A session as the model reads it: labelled events, in order, each line of what was said or printed indented.

Only lines that we wrote begin at the margin, so no text of a session can pass itself off as another speaker. What came
out of a memory is left out, with the call that asked for it: what was learned once is not learned again from itself.
Turns that were taken back are not there. Outputs keep their ends.
"""

from __future__ import annotations

from typing import Final, assert_never

import msgspec

from commonplace.context.truncate import TruncationPolicy, truncate
from commonplace.learning.reading.session_view import (
    HistoryCut,
    Interruption,
    ModelText,
    SessionView,
    ToolUse,
    UserText,
    ViewEvent,
    Voice,
)

_OUTPUT: Final = TruncationPolicy("bytes", 3_000)
_ARGUMENTS: Final = TruncationPolicy("bytes", 1_600)
_MAX_NAME: Final = 60
_PERSON: Final[dict[Voice, str]] = {
    "user": "PERSON",
    "reply": "PERSON (answering a question of a tool)",
    "command": "PERSON (given to a slash command)",
    "shell": "PERSON (ran in their own shell)",
}
_OTHERS: Final = {"plan": "PLAN (written by an agent)", "harness": "PROGRAM (not typed by the person)"}


class EventText(msgspec.Struct, frozen=True):
    """One event as text."""

    turn: int
    event: int
    """Its place among the events of the view."""
    text: str


def pieces(view: SessionView) -> list[EventText]:
    """Return what of a session is shown, event by event."""
    found: list[EventText] = []
    for place, event in enumerate(view.events()):
        text = _text(event)
        if text:
            found.append(EventText(event.at.turn, place, text))
    return found


def context(view: SessionView) -> str:
    """Return what is known about a session besides what happened in it, as a list."""
    facts = {
        "rollout_path": view.path,
        "rollout_cwd": view.cwd or "unknown",
        "project": view.project,
        "branch": view.branch or "",
        "source": view.source,
        "date": view.started[:10],
    }
    return "\n".join(f"- {name}: {' '.join(value.split())}" for name, value in facts.items() if value.strip())


def _text(event: ViewEvent) -> str:
    match event:
        case UserText():
            return _labelled(_OTHERS.get(event.author or "", _PERSON[event.voice]), event.text)
        case ModelText():
            return _labelled("ASSISTANT", event.text)
        case ToolUse():
            return "" if event.is_memory else _called(event)
        case Interruption():
            return "STOPPED by the person"
        case HistoryCut():
            return "(the agent's history was summed up here)"
        case _:
            assert_never(event)


def _called(call: ToolUse) -> str:
    if call.command:
        folder = f" in {' '.join(call.folder.split())}" if call.folder else ""
        head = _labelled(f"COMMAND ({_ended(call)}){folder}", call.command)
    else:
        name = " ".join(call.name.split())[:_MAX_NAME]
        label = f"TOOL {name} ({_ended(call)})"
        head = _labelled(label, truncate(call.arguments, _ARGUMENTS)) or label
    output = "" if call.refused else _labelled("OUTPUT", truncate(call.output, _OUTPUT))
    return f"{head}\n{output}" if output else head


def _ended(call: ToolUse) -> str:
    if call.refused:
        return "refused by the person"
    if call.code is not None:
        return f"exit {call.code}"
    return "no result" if call.ok is None else "ok" if call.ok else "failed"


def _labelled(label: str, text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines()]
    shown = [f"  {line}" if line else "" for line in lines]
    return "\n".join([label, *shown]).rstrip() if any(shown) else ""

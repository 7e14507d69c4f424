"""The turn of a session that a source of an entry stands in: its messages and commands, read from the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

import msgspec

from commonplace.errors import CommonplaceError
from commonplace.memory.evidence import Link
from commonplace.protocol import citations, fragments, items
from commonplace.protocol.rollout import Line
from commonplace.rollout import reader
from commonplace.rollout.fold import LedgerFold
from commonplace.search.passages import inherited_turns

_MAX_LINES: Final = 200
"""How many lines of a turn are returned."""
_COMMAND: Final = ("cmd", "command", "script", "input")
"""Arguments of calls that hold a command."""


class TurnLine(msgspec.Struct, frozen=True):
    """A message or a command of a turn."""

    role: str
    """`user`, `assistant` or `command`."""
    text: str
    offset: int
    time: str | None = None


def read_turn(link: Link) -> list[TurnLine]:
    """Return the messages and commands of the turn that a source stands in; nothing if its ledger cannot be read."""
    if link.path is None or link.turn is None or link.thread_id is None:
        return []
    path = Path(link.path)
    try:
        fold = _TurnFold(inherited_turns(path), link.turn)
        for line in reader.forward(path):
            if isinstance(line, Line):
                fold.see(line)
            if fold.turn > link.turn and line.offset >= (link.byte_start or 0):
                break
    except (CommonplaceError, OSError):
        return []
    return _near(fold.lines, link.byte_start or 0)


def _near(lines: list[TurnLine], offset: int) -> list[TurnLine]:
    """Return the lines of a long turn that are nearest to a byte."""
    place = next((number for number, line in enumerate(lines) if line.offset >= offset), len(lines))
    first = max(0, min(place - _MAX_LINES // 2, len(lines) - _MAX_LINES))
    return lines[first : first + _MAX_LINES]


class _TurnFold(LedgerFold):
    """Collects the messages and commands of one turn."""

    def __init__(self, turns_before: int, wanted: int) -> None:
        super().__init__(turns_before)
        self._wanted = wanted
        self.lines: list[TurnLine] = []

    def rolled_back(self, count: int) -> None:
        if self.turn < self._wanted:  # the turn was taken back, and another one has its number
            self.lines = []

    def item(self, view: items.View, line: Line, *, begins_turn: bool) -> None:
        if self.turn != self._wanted:
            return
        role, text = _said(view)
        if text.strip():
            self.lines.append(TurnLine(role, text.strip(), line.offset, line.timestamp))


def _said(view: items.View) -> tuple[str, str]:
    """Return who said what in an item; an empty text for items that are neither messages nor commands."""
    match view:
        case items.Message(role="user"):
            return "user", fragments.own_words(view)
        case items.Message(role="assistant"):
            return "assistant", citations.strip(view.text())[0]
        case items.FunctionCall():
            return "command", _command(view.arguments)
        case items.CustomToolCall():
            return "command", view.input
        case _:
            return "", ""


def _command(arguments: str) -> str:
    """Return the command in the arguments of a call; nothing if they hold none."""
    try:
        given = msgspec.json.decode(arguments, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return ""
    found: Any = next((given[key] for key in _COMMAND if key in given), "")
    words = cast("list[Any]", found) if isinstance(found, list) else [found]
    return " ".join(word for word in words if isinstance(word, str))

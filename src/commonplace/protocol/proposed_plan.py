"""The plan that an answer in plan mode proposes: the lines between `<proposed_plan>` and `</proposed_plan>`.

A tag is a line of its own, spaces around it aside; a block that is cut off by the end of the text counts. Streaming
gives what the whole text would, however it is cut: only the beginning of a line that may become a tag is held back.
"""

from __future__ import annotations

from typing import Final

import msgspec

OPEN: Final = "<proposed_plan>"
CLOSE: Final = "</proposed_plan>"
_MOST_SPACES: Final = 256
"""A line that begins with more spaces is no tag; so what is held back is short."""


class Piece(msgspec.Struct, frozen=True):
    """A piece of an answer: of the plan, or of the words around it."""

    text: str
    is_plan: bool


class PlanSplitter:
    """Tells the plan of one answer from its words while it streams."""

    def __init__(self) -> None:
        self._plan: list[str] | None = None
        self._inside = False
        self._held = ""
        """The beginning of a line that may be a tag."""
        self._passing = False
        """The rest of the line is text."""

    @property
    def plan(self) -> str | None:
        """The last plan, as far as it has come; None: there is none."""
        return None if self._plan is None else "".join(self._plan)

    def push(self, chunk: str) -> list[Piece]:
        """Take the next piece of the answer; return what of it can be shown now."""
        found: list[Piece] = []
        *lines, rest = chunk.split("\n")
        for line in [*(f"{line}\n" for line in lines), *([rest] if rest else [])]:
            self._take(line, found)
        return found

    def finish(self) -> list[Piece]:
        """End the answer; return what was held back."""
        found: list[Piece] = []
        held, self._held = self._held, ""
        if held and not self._is_tag(held):
            self._add(held, found)
        return found

    def _take(self, text: str, found: list[Piece]) -> None:
        """Take a piece that holds at most one line's end, which is its last character."""
        if not self._passing:
            text, self._held = self._held + text, ""
            if text.endswith("\n") and self._is_tag(text):
                return
            if not text.endswith("\n") and self._may_be_tag(text):
                self._held = text
                return
        self._passing = not text.endswith("\n")
        self._add(text, found)

    def _is_tag(self, line: str) -> bool:
        """Return whether a line is the tag that counts here, and take it."""
        if len(line) > _MOST_SPACES or line.strip() != (CLOSE if self._inside else OPEN):
            return False
        self._inside = not self._inside
        if self._inside:
            self._plan = []
        return True

    def _may_be_tag(self, text: str) -> bool:
        begun = text.strip()
        return len(text) <= _MOST_SPACES and (CLOSE if self._inside else OPEN).startswith(begun)

    def _add(self, text: str, found: list[Piece]) -> None:
        if self._inside and self._plan is not None:
            self._plan.append(text)
        found.append(Piece(text, self._inside))

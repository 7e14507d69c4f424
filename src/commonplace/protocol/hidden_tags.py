"""Hidden tags in a stream of text: blocks between them are removed, wherever chunks are cut.

Tags are literal: no attributes, no case folding, no nesting. The earliest opening wins; at one place the longer one,
then the one that was declared first. Inside, only the closing tag of that kind counts, or the end of the stream.

Streaming gives what the whole text would: a piece is shown only once no opening can begin in it any more, so what is
held back is always shorter than the longest opening. That bound is also what makes the work linear in the text, however
it is cut and whatever is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec


class Tag(msgspec.Struct, frozen=True):
    """One kind of hidden block."""

    name: str
    open: str
    close: str


class Body(msgspec.Struct, frozen=True):
    """What stood in a hidden block, and of which kind that was."""

    name: str
    text: str


class HiddenTags:
    """Takes hidden blocks out of a stream of text."""

    def __init__(self, tags: Sequence[Tag]) -> None:
        if not tags or any(not tag.open or not tag.close for tag in tags):
            raise ValueError("a hidden tag needs an opening and a closing text")
        self.found: list[Body] = []
        by_opening: dict[str, Tag] = {}
        for tag in tags:
            by_opening.setdefault(tag.open, tag)
        self._tags: Final = by_opening
        longest_first = sorted(by_opening, key=len, reverse=True)  # a stable sort: then as declared
        self._openings: Final = re.compile("|".join(map(re.escape, longest_first)))
        self._beginnings: Final = _Beginnings(by_opening)
        self._endings: Final = {tag.close: _Beginnings([tag.close]) for tag in tags}
        self._active: Tag | None = None
        self._body: list[str] = []
        self._pending = ""

    def push(self, chunk: str) -> str:
        """Take the next piece; return what of the text can be shown now."""
        return self._take(chunk, last=False)

    def finish(self) -> str:
        """End the stream; return what was held back and turned out to be text."""
        visible = self._take("", last=True)
        if self._active is not None:
            self._close(self._pending)
        self._pending = ""
        return visible

    def _take(self, chunk: str, *, last: bool) -> str:
        text = self._pending + chunk
        visible: list[str] = []
        place = 0
        while True:
            if self._active is not None:
                end = text.find(self._active.close, place)
                if end < 0:
                    held = len(text) if last else self._endings[self._active.close].held(text, place)
                    self._body.append(text[place:held])
                    break
                after = end + len(self._active.close)
                self._close(text[place:end])
                place = after
                continue
            found = self._openings.search(text, place)
            held = len(text) if last else self._beginnings.held(text, place)
            if found is None or found.start() >= held:
                visible.append(text[place:held])
                break
            visible.append(text[place : found.start()])
            self._active, place = self._tags[found[0]], found.end()
        self._pending = text[held:]
        return "".join(visible)

    def _close(self, rest: str) -> None:
        assert self._active is not None
        self.found.append(Body(self._active.name, "".join([*self._body, rest])))
        self._active, self._body = None, []


class _Beginnings:
    """Every proper beginning of some tags."""

    def __init__(self, tags: Iterable[str]) -> None:
        self._known: Final = frozenset(tag[:size] for tag in tags for size in range(1, len(tag)))
        self._longest: Final = max(map(len, self._known), default=0)

    def held(self, text: str, place: int) -> int:
        """Return where the longest end of a text begins that may be the beginning of a tag; its length if none may."""
        for start in range(max(place, len(text) - self._longest), len(text)):
            if text[start:] in self._known:
                return start
        return len(text)

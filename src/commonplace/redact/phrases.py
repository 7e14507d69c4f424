"""Phrases: a secret that stands at a known place behind a known word.

A row of a table is an anchor, how far before it the phrase may begin, the phrase with its secret as a group, and the
kind of finding. The tables are in `known` (words that announce a secret) and `positions` (places in commands,
statements and settings); they differ in what they ask of the secret.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from commonplace.patterns import regex
from commonplace.redact.notation import VIEW, line_start

LINE: Final = -1
"""The phrase begins with its line."""
_AHEAD: Final = 420
"""So far behind its anchor a phrase may reach that begins before it."""
_HEAD: Final = regex(VIEW + rb"(?:[\w.:\-]{0,40}[>$][ ])?\Z")
"""What may stand before a phrase that begins a line: what a view puts there, and a prompt."""


@cache
def compiled(form: bytes) -> re.Pattern[bytes]:
    """Return the expression of a row of a table; most rows are never needed."""
    return regex(form)


class Phrase(NamedTuple):
    """A word, how far before it the phrase may begin, the phrase, the kind of finding, the least random length."""

    anchor: bytes
    back: int
    form: bytes
    kind: str
    least: int = 0

    @property
    def expression(self) -> re.Pattern[bytes]:
        """The phrase, compiled when its word is met for the first time."""
        return compiled(self.form)

    def at(self, data: bytes, at: int) -> re.Match[bytes] | None:
        """Return the phrase whose anchor stands at a place."""
        if self.back == LINE and not _HEAD.fullmatch(data, line_start(data, at, 64), at):
            return None
        if self.back <= 0:
            return self.expression.match(data, at)
        found = self.expression.search(data, max(0, at - self.back), at + len(self.anchor) + _AHEAD)
        return found if found is not None and found.start() <= at <= found.end() else None

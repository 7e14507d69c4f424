"""What is compared in a search: texts as they are, in lower case, or with nothing but letters and numbers.

A whole file is prepared at once and keeps its line ends, which gives what preparing each line would: lower case looks
at what stands around a sigma, but never across a line end. Letters and numbers are those of Unicode's properties
Alphabetic and Numeric. Categories come from Python's tables and marks from `alphabetic.toml`, so characters that are
newer than both count as neither.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

_ASCII_OTHERS: Final = bytes(code for code in range(128) if not chr(code).isalnum())
_ASCII_OTHERS_IN_LINES: Final = _ASCII_OTHERS.replace(b"\n", b"")


class Comparison(msgspec.Struct, frozen=True):
    """How texts are compared."""

    lower: bool = False
    normalized: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether texts are compared as they are."""
        return not self.lower and not self.normalized


def query(text: str, way: Comparison) -> str:
    """Return what is looked for; it may be nothing."""
    changed = text.lower() if way.lower else text
    return "".join(char for char in changed if is_alphanumeric(char)) if way.normalized else changed


def lines(data: bytes, way: Comparison) -> bytes:
    """Return what is looked through: UTF-8 text with each line prepared."""
    if way.is_plain:
        return data
    if data.isascii():
        changed = data.lower() if way.lower else data
        return changed.translate(None, _ASCII_OTHERS_IN_LINES) if way.normalized else changed
    text = data.decode("utf-8")
    text = text.lower() if way.lower else text
    return (text.translate(_KEPT) if way.normalized else text).encode()


@cache
def is_alphanumeric(char: str) -> bool:
    """Say whether a character is alphabetic or numeric."""
    return unicodedata.category(char)[0] in "LN" or ord(char) in _marks()


class _CharacterTable(dict[int, int | None]):
    """The characters that are kept, decided when each is first met."""

    def __missing__(self, code: int) -> int | None:
        kept = code if code == 10 or is_alphanumeric(chr(code)) else None
        self[code] = kept
        return kept


_KEPT: Final = _CharacterTable()


@cache
def _marks() -> frozenset[int]:
    import tomllib

    table = tomllib.loads(Path(__file__).with_name("alphabetic.toml").read_text("utf-8"))
    found: set[int] = set()
    for part in str(table["ranges"]).split():
        first, _, last = part.partition("-")
        found.update(range(int(first, 16), int(last or first, 16) + 1))
    return frozenset(found)

"""Rows of the catalogue: what a credential format begins with, and the shape of what follows.

Lengths are lower than documented ones where a prefix is telling, because issuers lengthen tokens without notice; what
follows must look random anyway (`judge`).
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

import msgspec

from commonplace.patterns import regex

_CLASSES: Final = {
    "A": "[A-Za-z0-9]",
    "W": "[A-Za-z0-9_\\-]",
    "D": "[A-Za-z0-9_.\\-]",
    "H": "[0-9a-fA-F]",
    "U": "[A-Z0-9]",
    "L": "[a-z0-9]",
    "B": "(?:[A-Za-z0-9+/_\\-]|\\\\/)",
    "N": "[0-9]",
    "G": "[0-9a-fA-F\\-]",
}
_CLASS: Final = regex(r"([AWDHULBNG])\{")
_RANGE: Final = regex(r"(?<!\))(\{\d+,\d+\})(?![+?])")


class Format(msgspec.Struct, frozen=True):
    """One credential format: its name, what it begins with, and the shape of the rest.

    In a shape, a capital before a brace is a class: A alphanumeric, W and `_-`, D and `.`, H hexadecimal, G and `-`,
    U upper case and digits, L lower case and digits, B base64, N digits. A format that is `sure` needs no randomness.
    """

    kind: str
    prefixes: tuple[str, ...]
    shape: str
    sure: bool = False


def rows(table: str) -> tuple[Format, ...]:
    """Read a table: on each line a name, prefixes separated by blanks, a bar, and the shape (`!` before it: sure)."""
    formats: list[Format] = []
    for line in table.strip().splitlines():
        head, _, shape = line.partition("|")
        kind, *prefixes = head.split()
        shape = shape.strip()
        prefixes = [prefix.replace("¦", "|") for prefix in prefixes]
        formats.append(Format(kind, tuple(prefixes), shape.removeprefix("!"), sure=shape.startswith("!")))
    return tuple(formats)


@cache
def shape_of(shape: str) -> re.Pattern[bytes]:
    """Return the expression of a shape; it is compiled when a prefix of its format is met for the first time."""
    text = _CLASS.sub(lambda found: _CLASSES[found[1]] + "{", shape)
    return regex(_RANGE.sub(r"\1+", text).encode())

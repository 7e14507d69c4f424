"""Bytes that a reader does not see: colours, links and movements of a terminal, controls, letters without a width, and
the zeros of UTF-16.

They may stand between a name and its value, or within either. So a text that has such bytes is looked at twice: as it
is, and without them. What is found without them is moved to where it stands in the text.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from commonplace.patterns import regex
from commonplace.redact.spans import SecretSpan

_CONTROLS: Final = (*range(1, 9), *range(14, 27), *range(28, 32), 127)
_WITHOUT_WIDTH: Final = (0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF)
"""Letters of Unicode that part words, join them or turn their direction."""
_ESCAPES: Final = (rb"\x1b", rb"\\\\{0,14}(?:u001[bB]|x1[bB]|033|e(?=\[))", rb"\^\[")
"""An escape, and how JSON, code and `cat -v` write one."""
_SEQUENCE: Final = (
    rb"(?:\[[0-9;:?]{0,32}+[@-~]|\][0-9]{1,3}+;[^\x07\x1b\n\"\\]{0,400}+(?:\x07|\\{1,15}u0007|(?:"
    + b"|".join(_ESCAPES)
    + rb")\\{1,16})|[()][0AB])"
)
_HIDDEN: Final = regex(
    b"|".join(
        (
            *(b"\\x%02x" % one for one in (0, *_CONTROLS)),
            *(escape + _SEQUENCE for escape in _ESCAPES),
            rb"\xc2\xad|\xe2\x80[\x8b-\x8f\xaa-\xae]|\xe2\x81[\xa0-\xa9]|\xef\xbb\xbf",
            rb"\\\\{0,14}u(?:000[1-7ef]|001[0-9acdefACDEF]|007[fF]|00[aA][dD]|200[b-fB-F]|202[a-eA-E]|206[0-9]|[fF][eE][fF]{2})",
        )
    )
)
"""Each alternative begins with one byte, so that a search passes over all others at once."""
ANCHORS: Final = (
    *(b"\x1b", b"\x00", b"u001b", b"\\x1b", b"\\033", b"\\e[", b"^[["),
    *(bytes((one,)) for one in _CONTROLS),
    *(chr(one).encode() for one in _WITHOUT_WIDTH),
    *(b"u%04x" % one for one in (*_CONTROLS, *_WITHOUT_WIDTH)),
)
"""A text with hidden bytes has one of these, in lower case."""
LONGEST: Final = 512
"""So far behind such an anchor hidden bytes reach that belong together."""


class BaredText:
    """A text without its hidden bytes."""

    def __init__(self, data: bytes) -> None:
        self._original: Final = data
        self._begins: Final[list[int]] = [0]
        """Where the pieces begin between hidden bytes, in the bared text."""
        self._shifts: Final[list[int]] = [0]
        """By how much they are moved."""
        parts: list[bytes] = []
        done = length = 0
        for found in _HIDDEN.finditer(data):
            parts.append(data[done : found.start()])
            length += found.start() - done
            done = found.end()
            self._begins.append(length)
            self._shifts.append(done - length)
        parts.append(data[done:])
        self.data: Final = b"".join(parts) if done else data

    def _place(self, at: int) -> int:
        return at + self._shifts[bisect_right(self._begins, at) - 1]

    def moved(self, span: SecretSpan) -> SecretSpan:
        """Return a finding in the bared text as one in the text; in UTF-16 its mark is written like its letters."""
        start, end = self._place(span.start), self._place(span.end - 1) + 1
        fill = b"\0".join(span.fill[at : at + 1] for at in range(len(span.fill)))
        return SecretSpan(start, end, span.kind, fill if self._original[start + 1 : start + 2] == b"\0" else span.fill)


def without(data: bytes) -> BaredText | None:
    """Return a text without its hidden bytes; None if it has none."""
    bared = BaredText(data)
    return bared if bared.data is not data else None

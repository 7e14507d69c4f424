"""Key blocks: PEM, OpenSSH, PGP and PuTTY private keys, on many lines or on one, whole or cut off.

The lines that begin and end a block stay; what is between them becomes one mark. Between the pieces of a key there may
be line breaks, escaped line breaks, and what editors, diffs and tools put before a line. A block without an end is
taken as far as it looks like a key. Public keys and certificates are not touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from commonplace.redact.spans import SecretSpan

if TYPE_CHECKING:
    from commonplace.redact.lexicon import Text

_BEGIN: Final = re.compile(
    rb"-{4,5}[ ]?BEGIN[ ](?:[A-Z0-9]{1,12}[ ]){0,4}(?:PRIVATE[ ]KEY|SECRET[ ]KEY)(?:[ ]BLOCK)?[ ]?-{4,5}"
)
_PUTTY: Final = re.compile(rb"Private-Lines:[ \t]{0,4}\d{1,4}")
_OPENVPN: Final = re.compile(rb"-----BEGIN OpenVPN Static key V1-----")
_BETWEEN: Final = (
    rb"(?:[\s\"'+,>|#*;&`]|\\{1,15}[nrt\"]|\xe2\x86\x92|\xe2\x94\x82|-(?!-)"
    rb"|[0-9]{1,6}(?=[:|\t]|\xe2\x86\x92|[ ]{1,4}[|])[:|]?)"
)
_PIECE: Final = re.compile(
    rb"(?P<gap>"
    + _BETWEEN
    + rb"{0,64}+)(?:(?P<header>[A-Z][A-Za-z\-]{2,20}: [^\r\n\\\"]{0,120}+)|(?P<body>(?:[A-Za-z0-9+/=]|\\/){1,65536}+))"
)
END: Final = re.compile(_BETWEEN + rb"{0,64}+-{4,6} ?END|" + _BETWEEN + rb"{0,64}+Private-MAC")
SLACK: Final = 160
"""A block whose pieces reach this close to the end of the data may go on behind it."""
KINDS: Final = frozenset({"private_key", "putty_private_key", "openvpn_static_key"})
_LINE: Final = 40
"""Lines of a key are 64 to 76 characters; shorter ones are taken only where the key ends."""


_BEGINNINGS: Final = (
    (b"PRIVATE KEY", _BEGIN, "private_key"),
    (b"SECRET KEY", _BEGIN, "private_key"),
    (b"Private-Lines:", _PUTTY, "putty_private_key"),
    (b"OpenVPN Static", _OPENVPN, "openvpn_static_key"),
)
ANCHORS: Final = tuple(anchor.lower() for anchor, _, _ in _BEGINNINGS)


class KeyBlock(NamedTuple):
    """A key block: where its secret begins and ends, and whether data ended before the block did."""

    start: int
    end: int
    kind: str
    open: bool


def body_end(data: bytes, at: int, line: int = _LINE) -> tuple[int, bool]:
    """Follow the pieces of a key from a place in a block; return where they end, and whether the data ended first."""
    end = at
    while found := _PIECE.match(data, end):
        body = found["body"]
        if body is not None and len(body) < line and not (body.endswith(b"=") or END.match(data, found.end())):
            is_last = found.end() == len(data) and end > at
            return (len(data), True) if is_last and len(body) >= 12 else (end, found.end() >= len(data) - 16)
        end = found.end()
    return end, end >= len(data) - 80


def resume(data: bytes) -> bytes:
    """Return what must be kept of a block to go on with it: its last lines, from the beginning of a line."""
    tail = data[-SLACK:]
    for line_break in (b"\n", b"\\n"):
        at = tail.find(line_break)
        if at >= 0:
            return tail[at:]
    return tail


def find_blocks(text: Text) -> Iterator[KeyBlock]:
    """Yield the key blocks in the data."""
    data = text.data
    for anchor, pattern, kind in _BEGINNINGS:
        done = 0
        for at in text.exact(anchor):
            if at < done:
                continue
            found = pattern.search(data, max(done, at - 64), at + 64)
            if found is None or found.end() < at:
                continue
            first = _PIECE.match(data, found.end())
            done = found.end()
            if first is not None and len(first["body"] or first["header"]) >= 16:
                end, is_open = body_end(data, found.end(), 30 if kind == "openvpn_static_key" else _LINE)
                start = found.end() + len(first["gap"])
                if end - start >= 24:
                    yield KeyBlock(start, end, kind, is_open)
                    done = end


def find(text: Text) -> Iterator[SecretSpan]:
    """Yield the secrets of key blocks."""
    for block in find_blocks(text):
        yield SecretSpan(block.start, block.end, block.kind)

"""Key blocks: PEM, OpenSSH, PGP and PuTTY private keys, on many lines or on one, whole or cut off.

The lines that begin and end a block stay; what is between them becomes one mark. Between the pieces of a key there may
be line breaks, escaped line breaks, and what editors, diffs and tools put before a line. A block without an end or
without a beginning is taken as far as it looks like a key. Public keys and certificates are not touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from commonplace.patterns import regex
from commonplace.redact import judge
from commonplace.redact.spans import SecretSpan

if TYPE_CHECKING:
    from commonplace.redact.lexicon import Text

_BEGIN: Final = regex(
    rb"(?<!END )(?:-{4,5}[ ]?BEGIN[ ](?:[A-Z0-9]{1,12}[ ]){0,4}(?:PRIVATE|SECRET)[ ]KEY(?:[ ]BLOCK)?(?:[ ]?-{1,5})?"
    rb"|(?:PRIVATE|SECRET)[ ]KEY(?:[ ]BLOCK)?[ ]?-{4,5})"
)
"""The first line of a block; its beginning or its end may be missing."""
_END: Final = regex(rb"-{1,6}[ ]?END[ ](?:[A-Z0-9]{1,12}[ ]){0,4}\Z")
"""What stands before the last words of a block."""
_PUTTY: Final = regex(rb"Private-Lines:[ \t]{0,4}\d{1,4}")
_OPENVPN: Final = regex(rb"-----BEGIN OpenVPN Static key V1-----")
_BETWEEN: Final = (
    rb"(?:[\s\"'+,>|#*;&`]|\\{1,15}[nrt\"]|\xe2\x86\x92|\xe2\x94\x82|-(?!-)"
    rb"|[0-9]{1,6}(?=[:|\t]|\xe2\x86\x92|[ ]{1,4}[|])[:|]?)"
)
_PIECE: Final = regex(
    rb"(?P<gap>(?>" + _BETWEEN + rb"{0,64}))(?:(?P<header>[A-Z][A-Za-z\-]{2,20}: [^\r\n\\\"]{0,120}+)"
    rb"|(?P<body>(?>(?:[A-Za-z0-9+/=]|\\/){1,65536})))"
)
_BEFORE: Final = regex(rb"(?>" + _BETWEEN + rb"{1,64})\Z")
_BODY_BYTES: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_ESCAPE: Final = regex(rb"\\(?:u[0-9a-fA-F]{4}|[nrtbf])")
_LONGEST: Final = 16 * 1024
"""So far before its last line a block is followed whose first line is missing."""
END: Final = regex(rb"(?P<gap>(?>" + _BETWEEN + rb"{0,64}))-{4,6} ?END|(?>" + _BETWEEN + rb"{0,64})Private-MAC")
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


def _body_before(data: bytes, end: int) -> tuple[int, int]:
    """Return where a key begins and ends that stands before the last line of its block; its first line is missing.

    The last of its pieces may be short, and so may the first, which may be cut; all others are whole lines.
    """
    stop = max(0, end - _LONGEST)
    start = behind = end
    count = 0
    while gap := _BEFORE.search(data, max(stop, start - 64), start):
        begin = _piece_start(data, stop, gap.start())
        piece = data[begin : gap.start()]
        if not piece or (count and len(piece) < _LINE and judge.is_worded(piece)) or len(piece) < min(count, 1) * 12:
            break
        behind = gap.start() if start == end else behind
        is_checksum = piece[:1] == b"=" and not count
        start, count = begin, count + (not is_checksum)
        if count > 1 and len(piece) < _LINE:
            break
    is_added = data[start : start + 1] == b"+" and data[start - 1 : start] in (b"", b"\n")
    return start + is_added, behind


def _piece_start(data: bytes, stop: int, end: int) -> int:
    """Return where the piece of a key begins that ends at a place; a slash may be escaped."""
    start = end
    while start > stop:
        begin = max(stop, start - 256)
        start = begin + len(data[begin:start].rstrip(_BODY_BYTES))
        if data[start - 1 : start + 1] == b"\\/":
            start -= 1
        elif start > begin:
            break
    escape = _ESCAPE.match(data, start - 1, end) if start else None
    return escape.end() if escape else start


def _headless(text: Text, ended: set[int]) -> Iterator[KeyBlock]:
    """Yield the blocks whose last line is there and whose first is not; `ended` has the last lines of the others."""
    data = text.data
    for anchor in (b"PRIVATE KEY", b"SECRET KEY"):
        for at in text.exact(anchor):
            if (last := _END.search(data, max(0, at - 64), at)) and last.start() not in ended:
                start, end = _body_before(data, last.start())
                if end - start >= 24 and not judge.is_worded(data[start:end][:_LINE]):
                    yield KeyBlock(start, end, "private_key", open=False)


def find_blocks(text: Text) -> Iterator[KeyBlock]:
    """Yield the key blocks in the data."""
    data = text.data
    ended: set[int] = set()
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
                    last = END.match(data, end)
                    ended.add(last.end("gap") if last else end)
    yield from _headless(text, ended)


def find(text: Text) -> Iterator[SecretSpan]:
    """Yield the secrets of key blocks."""
    for block in find_blocks(text):
        yield SecretSpan(block.start, block.end, block.kind)

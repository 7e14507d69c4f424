"""Tables: a column whose head is key-like holds secrets. Comma, semicolon, tab, bar, aligned columns, SQL inserts.

The head is a line with such a word in one of its cells; the rows are the lines below it with the same separator, as far
as they go, at most `_REACH` bytes (a stream looks no further back).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from commonplace.patterns import regex
from commonplace.redact import judge, names, notation
from commonplace.redact.lexicon import Text
from commonplace.redact.names import Rank
from commonplace.redact.spans import SecretSpan

_REACH: Final = 6 * 1024
_ROWS: Final = 200
_LONGEST: Final = 400
ANCHORS: Final = (b"insert into",)
_BREAK: Final = regex(rb"\r?\n|(?:\\{1,15}r)?\\{1,15}n")
_VIEW: Final = regex(rb"(?:[ \t]{0,8}L?\d{1,6}(?:" + notation.ARROW + rb"|:[ ]?)|[+>](?![+\-])[ ]?|-(?![+\-]))?")
_RULE: Final = regex(rb"[ |+:=\-\t]{3,}\Z")
_HEAD_CELL: Final = regex(rb"[ \t\"'`*_]*+[A-Za-z][\w .\-/()]{0,40}+[ \t\"'`*_]*+\Z")
_CODE: Final = regex(rb"[().']|[ ]{4}|\bself\b|\bimport\b|\bdef\b|,[ ]\w+[ ]\w+[ ]\w+")
_QUOTE: Final = regex(rb"[\"'\\]")
_DIGIT: Final = regex(rb"[0-9]")
_INSERT: Final = regex(
    rb"(?i)insert[ ]into[ ][\w.`\"\[\]\\]{1,80}[ ]?\((?P<columns>[^()\n]{3,400})\)[ \n\\n]{1,8}values[ \n\\n]{0,8}(?"
    rb"P<rows>\()"
)
_FIELD: Final = regex(rb"[ ]?(?:[NEe]?'(?P<value>[^'\"\\\n]{0,400})'|[^,'()\n]{0,200}(?:\([^()\n]{0,100}\))?)[ ]?")


class TableHead(NamedTuple):
    """A head of a table: its separator, the numbers of its key-like columns, how many there are, where it ends."""

    separator: bytes
    columns: dict[int, Rank]
    width: int
    end: int


def find(text: Text) -> Iterator[SecretSpan]:
    """Yield the secrets in tables."""
    data = text.data
    seen: set[int] = set()
    done = -1
    for at, _ in text.names:
        if at < done:
            continue
        begin = _line(data, at)
        if begin < 0 or begin in seen:
            continue
        seen.add(begin)
        found = _BREAK.search(data, at, begin + _LONGEST)
        done = found.start() if found else begin + _LONGEST
        head = _head(data, begin, found.start(), found.end()) if found else None
        if head is not None:
            yield from _rows(data, head)
    for at in text.places(b"insert into"):
        yield from _inserts(data, at)


def _line(data: bytes, at: int) -> int:
    """Return where the line of a place begins, or -1 when that is too far away."""
    begin = notation.line_start(data, at, _LONGEST)
    return begin if begin == 0 or at - begin < _LONGEST else -1


def _content(data: bytes, begin: int, end: int) -> int:
    """Return where a line begins behind what a view put before it."""
    found = _VIEW.match(data, begin, end)
    return found.end() if found else begin


def _head(data: bytes, begin: int, end: int, after: int) -> TableHead | None:
    begin = _content(data, begin, end)
    line = data[begin:end]
    for separator in (b"|", b"\t", b"\\\\t", b"\\t", b";", b","):
        if separator not in line:
            continue
        cells = line.split(separator)
        if len(cells) > 40 or not all(not cell.strip() or _HEAD_CELL.match(cell) for cell in cells):
            return None
        if separator in (b",", b";") and (_CODE.search(line) or not all(cell.strip() for cell in cells)):
            return None
        return _heads(separator, cells, after)
    cells = re.split(rb"[ ]{2,}", line.strip())
    if len(cells) >= 2 and all(_HEAD_CELL.match(cell) for cell in cells):
        return _heads(b"  ", cells, after)
    return None


def _heads(separator: bytes, cells: list[bytes], after: int) -> TableHead | None:
    ranks = {number: names.rank(cell.strip(b" \t\"'`*_")) for number, cell in enumerate(cells)}
    columns = {number: rank for number, rank in ranks.items() if rank in (Rank.PASSWORD, Rank.TOKEN)}
    if not columns or len([cell for cell in cells if cell.strip()]) < 2:
        return None
    return TableHead(separator, columns, len(cells), after)


def _rows(data: bytes, head: TableHead) -> Iterator[SecretSpan]:
    begin = head.end
    for _ in range(_ROWS):
        found = _BREAK.search(data, begin, begin + 1200)
        end = found.start() if found else min(len(data), begin + 1200)
        after = found.end() if found else end
        if end > head.end + _REACH:
            return
        start = _content(data, begin, end)
        line = data[start:end]
        if not _RULE.match(line):
            cells = _cells(line, start, head.separator)
            last = head.width - 1
            if len(cells) > head.width and last in head.columns and head.separator in b",;":
                cells = [*cells[:last], (cells[last][0], cells[-1][1])]  # a comma that belongs to the secret
            if len(cells) != head.width or _is_head(data, cells, head):
                return
            yield from _secrets(data, cells, head)
        if found is None:
            return
        begin = after


def _is_head(data: bytes, cells: list[tuple[int, int]], head: TableHead) -> bool:
    """Say whether a line is a head again; so no line is looked at for more than one table."""
    texts = (data[start:end].strip(b" \t\"'`*_") for start, end in (cells[column] for column in head.columns))
    return any(
        _HEAD_CELL.match(text) and not _DIGIT.search(text) and names.rank(text) is not Rank.NONE for text in texts
    )


def _cells(line: bytes, start: int, separator: bytes) -> list[tuple[int, int]]:
    """Return where the cells of a line begin and end."""
    if separator == b"  ":
        return [(start + one.start(), start + one.end()) for one in re.finditer(rb"\S+(?:[ ]\S+){0,20}", line)]
    cells: list[tuple[int, int]] = []
    for cell in line.split(separator):
        cells.append((start, start + len(cell)))
        start += len(cell) + len(separator)
    return cells


def _secrets(data: bytes, cells: list[tuple[int, int]], head: TableHead) -> Iterator[SecretSpan]:
    for number, rank in head.columns.items():
        start, end = cells[number]
        text = data[start:end]
        left = len(text) - len(text.lstrip(b" \t\"'`*\\"))
        value = _QUOTE.split(text[left:].rstrip(b" \t\r`*"), maxsplit=1)[0]
        if not value or b" " in value or judge.is_placeholder(value) or judge.is_reference(value):
            continue
        if judge.is_public(value) or (value[-1:] in b")]" and (b"(" in value or b"[" in value)) or value[:1] in b"&<":
            continue
        if judge.is_password(value, 6) if rank is Rank.PASSWORD else judge.is_random(value, 12):
            yield SecretSpan(start + left, start + left + len(value), "table_cell")


def _inserts(data: bytes, at: int) -> Iterator[SecretSpan]:
    """Yield the secrets of rows that SQL inserts."""
    found = _INSERT.match(data, at)
    if found is None:
        return
    columns = [names.rank(one.strip(b' `"[]\\')) for one in found["columns"].split(b",")]
    if not any(rank is Rank.PASSWORD or rank is Rank.TOKEN for rank in columns):
        return
    place = found.start("rows") + 1
    for _ in range(_ROWS):
        for rank in columns:
            field = _FIELD.match(data, place)
            if field is None:
                return
            text = field["value"]
            if (
                text
                and rank in (Rank.PASSWORD, Rank.TOKEN)
                and not judge.is_placeholder(text)
                and judge.is_password(text, 6)
            ):
                yield SecretSpan(*field.span("value"), "table_cell")
            place = field.end() + 1
        following = re.compile(rb"[ ]?,[ \n\\n]{0,6}\(").match(data, place)
        if following is None or place > at + _REACH:
            return
        place = following.end()

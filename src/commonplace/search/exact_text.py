"""Searching one session file for an exact text: in messages, tool calls and tool output.

Files are scanned as bytes, at the speed of the disk: the text is searched for in every form that JSON may write it in,
and only a line that contains one of them is decoded and compared again. Payloads in blobs are searched, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.errors import CommonplaceError
from commonplace.protocol import items
from commonplace.protocol.rollout import MAX_LINE_BYTES, Line, Skipped
from commonplace.redact import redact_part
from commonplace.rollout import reader
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.fold import LedgerFold

_CHUNK: Final = 4 * 2**20
"""How many bytes are scanned at a time."""
_BEFORE: Final = 120
"""How many characters of a long text are shown before the match."""
_AFTER: Final = 1_600
"""How many characters of a long text are shown after the match."""
_MARGIN: Final = 8 * 2**10
"""How many characters on either side of what is shown are kept, because they may tell that it holds a secret."""
_SEARCHED: Final = frozenset({"response_item", "compacted"})
_SPILLED: Final = b'"blob":['
_LARGEST_BLOB: Final = 256 * 2**20
"""Larger payloads are not searched."""


class TextMatch(msgspec.Struct):
    """A text that contains the searched text."""

    offset: int
    role: str
    text: str
    """The text around the match, with a margin that is not shown."""
    time: str | None
    source_id: str | None
    begin: int
    """Where what is shown begins in the text."""
    end: int
    """Where it ends."""
    is_cut: tuple[bool, bool]
    """Whether more stands before and behind what is shown."""
    turn: int = 0

    def begins_with(self, start: str) -> bool:
        """Say whether what is shown is the beginning of its text, and begins so."""
        return not self.is_cut[0] and self.text.startswith(start)

    def shown(self) -> str:
        """Return what is shown, without secrets."""
        words = redact_part(self.text, self.begin, self.end)
        return f"{'…' if self.is_cut[0] else ''}{words}{'…' if self.is_cut[1] else ''}"


class Needle:
    """The searched text, and the forms that it may have in a file."""

    def __init__(self, text: str, *, ignore_case: bool = False) -> None:
        self.ignore_case = ignore_case
        self._text = re.compile(re.escape(text), re.IGNORECASE) if ignore_case else None
        self._plain = text
        self.raw = _pattern(_forms(text), ignore_case=ignore_case)
        self.blob = _pattern([text], ignore_case=ignore_case)

    def find(self, text: str) -> int:
        """Return the position in a text; -1 if it does not occur."""
        if self._text is None:
            return text.find(self._plain)
        found = self._text.search(text)
        return found.start() if found else -1


def _forms(text: str) -> list[str]:
    """Return the forms of a text: in a JSON string, in a JSON string inside another, and with non-ASCII characters
    escaped.
    """
    import json  # slow to import, and most sessions search nothing

    once = [json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]]
    twice = [json.dumps(each, ensure_ascii=False)[1:-1] for each in once]
    return list(dict.fromkeys([*once, *twice]))


def _pattern(forms: list[str], *, ignore_case: bool) -> Callable[[bytes, int], int]:
    """Return a function that finds the first of some forms in bytes, from a position on."""
    encoded = [form.encode("utf-8", "surrogatepass") for form in forms]
    if not ignore_case and len(encoded) == 1:
        return lambda data, start: data.find(encoded[0], start)
    if ignore_case:
        # Letters outside ASCII change more than one byte with their case: only what is around them is compared here.
        encoded = [max(re.split(rb"[\x80-\xff]+|\\u[0-9a-fA-F]{4}", form), key=len) for form in encoded]
        if not all(encoded):
            return lambda data, start: start if start < len(data) else -1
    pattern = re.compile(b"|".join(map(re.escape, dict.fromkeys(encoded))), re.IGNORECASE if ignore_case else 0)

    def find(data: bytes, start: int) -> int:
        found = pattern.search(data, start)
        return found.start() if found else -1

    return find


def search(path: Path, needle: Needle, store: BlobStore | None = None) -> Iterator[TextMatch]:
    """Yield the texts of a session file that contain the searched text, in their order.

    Raises:
        NotASession, LedgerError: the file cannot be read.
    """
    for line in _lines(path, needle):
        if line.type in _SEARCHED:
            found = _in_line(line, needle, store)
            if found is not None:
                yield found


def _lines(path: Path, needle: Needle) -> Iterator[Line]:
    """Yield the lines that may hold it."""
    with reader.open_session(path) as file:
        begin, rest = 0, b""
        while data := file.read(_CHUNK):
            data = rest + data
            end = data.rfind(b"\n") + 1
            yield from _whole_lines(data[:end], begin, needle)
            begin, rest = begin + end, data[end:]
            if len(rest) > MAX_LINE_BYTES:
                begin, rest = begin + len(rest), b""  # no line that anybody reads
        yield from _whole_lines(rest, begin, needle)


def _whole_lines(data: bytes, begin: int, needle: Needle) -> Iterator[Line]:
    place = 0
    spilled = data.find(_SPILLED)
    held = needle.raw(data, 0)
    while held >= 0 or spilled >= 0:
        at = min(each for each in (held, spilled) if each >= 0)
        first = data.rfind(b"\n", place, at) + 1 or place
        last = data.find(b"\n", at)
        place = len(data) if last < 0 else last + 1
        record = reader.record_of(data[first : place if last < 0 else last], begin + first, terminated=last >= 0)
        if isinstance(record, Line):
            yield record
        held = needle.raw(data, place) if 0 <= held < place else held
        spilled = data.find(_SPILLED, place) if 0 <= spilled < place else spilled


def _in_line(line: Line, needle: Needle, store: BlobStore | None) -> TextMatch | None:
    if line.is_repeat:
        return None
    try:
        told = _texts(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    for role, text in told:
        at = needle.find(text)
        if at >= 0:
            return _match(line, role, text, at)
    for reference in line.blobs() if store is not None and line.blob else ():
        text = _blob(store, reference.sha256, reference.bytes, needle) if store is not None else None
        if text is not None:
            return _match(line, told[0][0] if told else "tool", text, needle.find(text))
    return None


def _match(line: Line, role: str, text: str, at: int) -> TextMatch:
    begin, end = max(0, at - _BEFORE), min(len(text), at + _AFTER)
    first = max(0, begin - _MARGIN)
    kept = text[first : end + _MARGIN]
    origin = line.source()
    source_id = (origin.id if origin is not None else "") or None
    is_cut = begin > 0, end < len(text)
    return TextMatch(line.offset, role, kept, line.timestamp, source_id, begin - first, end - first, is_cut)


def _blob(store: BlobStore, sha256: str, size: int, needle: Needle) -> str | None:
    if size > _LARGEST_BLOB:
        return None
    try:
        data = store.get(sha256)
    except CommonplaceError:
        return None
    if needle.blob(data, 0) < 0:
        return None
    text = data.decode("utf-8", "replace")
    return text if needle.find(text) >= 0 else None


def _texts(line: Line) -> list[tuple[str, str]]:
    """Return what a line says, and who."""
    if line.type == "compacted":
        summary = msgspec.json.decode(line.payload, type=dict[str, Any]).get("message")
        return [("summary", summary)] if isinstance(summary, str) else []
    view = items.view(line.payload)
    match view:
        case items.Message():
            return [(view.role, part.text) for part in view.content if part.text]
        case items.FunctionCall():
            return [("call", f"{view.name} {text}") for text in (*_strings(view.arguments), view.arguments)]
        case items.CustomToolCall():
            return [("call", f"{view.name} {view.input}")]
        case items.FunctionCallOutput() | items.CustomToolCallOutput():
            parts = [view.output] if isinstance(view.output, str) else [part.text or "" for part in view.output]
            return [("tool", part) for part in parts]
        case items.Reasoning():
            return [("reasoning", part.text) for part in view.summary if part.text]
        case _:
            return [("call", text) for text in _strings(bytes(line.payload))]


def _strings(text: str | bytes) -> list[str]:
    """Return every string in a JSON document; none if it is no document."""
    try:
        left: list[Any] = [msgspec.json.decode(text)]
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return []
    found: list[str] = []
    while left:
        value = left.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            left.extend(reversed(list(value.values())))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        elif isinstance(value, list):
            left.extend(reversed(value))  # pyright: ignore[reportUnknownArgumentType]
    return found


def number_turns(path: Path, matches: list[TextMatch], inherited: int = 0) -> None:
    """Set the turn number of each match."""
    wanted = {match.offset: match for match in matches}
    fold = LedgerFold(inherited)
    last = max(wanted, default=-1)
    for line in reader.forward(path):
        if isinstance(line, Skipped):
            continue
        if line.offset > last:
            return
        fold.see(line)
        if line.offset in wanted:
            wanted[line.offset].turn = fold.turn

"""A stretch of one session file as a person reads it, found without reading the rest of the file.

The newest stretch is read from the end, an older one around a byte. Everything that is shown has an address: the byte
at which its line begins. So a link to a turn stays good while the file grows, and a file of any size opens at once.
What a fork inherits is in its parent's file; the excerpt of a fork's beginning says where that is.

Texts are as the ledger has them: whoever shows them takes secrets out.
"""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from commonplace.protocol import citations, events, fragments, items, rollout
from commonplace.protocol.rollout import HistoryBase, Line, SessionMeta
from commonplace.protocol.turns import is_boundary
from commonplace.rollout import blobs, chain, reader, transcript
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import Ledger

MOST_LINES: Final = 160
"""How many lines an excerpt is made of, unless a turn has more."""
MOST_BYTES: Final = 2 * 2**20
"""How many bytes of lines an excerpt is made of; one line may be longer."""
_BACK_LINES: Final = 60
"""How far before a wanted byte the beginning of its turn is looked for."""

Who = Literal["user", "agent", "context", "reasoning"]


class Said(msgspec.Struct, tag="said"):
    """Words of a person or of the agent, or context that somebody's program put in."""

    offset: int
    time: str | None
    who: Who
    text: str
    images: int = 0
    begins_turn: bool = False


class ExcerptCall(msgspec.Struct, tag="call"):
    """A tool call and its output, if that is in the excerpt."""

    offset: int
    time: str | None
    name: str
    input: str
    output: str | None = None
    ok: bool | None = None
    images: int = 0
    output_offset: int | None = None


class ExcerptMark(msgspec.Struct, tag="mark"):
    """Something that happened to the session: it was compacted, a turn was taken back or interrupted."""

    offset: int
    time: str | None
    what: Literal["compacted", "rolled_back", "aborted", "skipped"]
    text: str = ""
    score: dict[str, Any] | None = None
    """Of a compaction of ours: the shares of names, told names and constraints that it kept."""


Block = Said | ExcerptCall | ExcerptMark


class TokenPoint(msgspec.Struct, frozen=True):
    """The tokens of the last request, as the server counted them at a time."""

    time: str
    tokens: int
    offset: int


class Excerpt(msgspec.Struct):
    """A stretch of a session file."""

    meta: SessionMeta
    path: Path
    size: int
    blocks: list[Block]
    tokens: list[TokenPoint]
    before: int | None
    """Where the stretch before this one ends; None at the beginning of the file."""
    after: int | None
    """Where the next stretch begins; None at the end of the file."""

    @property
    def parent(self) -> HistoryBase | None:
        """The file that the session continues, and up to which byte."""
        return self.meta.history_base


class _LastUsage(msgspec.Struct):
    total_tokens: int = 0


class _LastInfo(msgspec.Struct):
    last_token_usage: _LastUsage | None = None


class _TokenEvent(msgspec.Struct):
    info: _LastInfo | None = None


def newest(path: Path, *, before: int | None = None) -> Excerpt:
    """Return the last stretch of a file, or the last one before a byte (raises NotASession, LedgerError)."""
    records: deque[reader.Record] = deque()
    size = 0
    for record in _backward(path, before):
        records.appendleft(record)
        size += record.size if isinstance(record, Line) else 0
        if (len(records) >= MOST_LINES or size >= MOST_BYTES) and _is_start(record):
            break
        if len(records) >= 2 * MOST_LINES or size >= 2 * MOST_BYTES:
            break
    return _excerpt(path, list(records), after=before)


def around(path: Path, offset: int) -> Excerpt:
    """Return the stretch that holds the line at a byte, from the beginning of its turn if that is near."""
    start = offset
    for record in islice(_backward(path, offset), _BACK_LINES):
        start = record.offset
        if _is_start(record) or offset - start > MOST_BYTES // 4:
            break
    return following(path, min(start, offset))


def following(path: Path, start: int) -> Excerpt:
    """Return the stretch that begins at a byte."""
    records: list[reader.Record] = []
    size, after = 0, None
    for record in reader.forward(path, start=max(0, start)):
        is_full = len(records) >= MOST_LINES or size >= MOST_BYTES
        if records and ((is_full and _is_start(record)) or len(records) >= 2 * MOST_LINES or size >= 2 * MOST_BYTES):
            after = record.offset
            break
        records.append(record)
        size += record.size if isinstance(record, Line) else 0
    return _excerpt(path, records, after=after)


def tokens(path: Path) -> tuple[list[TokenPoint], list[int]]:
    """Return the tokens of all requests of a file, and the bytes at which it was compacted; reads the whole file."""
    points: list[TokenPoint] = []
    compacted: list[int] = []
    for line in reader.forward(path):
        if not isinstance(line, Line):
            continue
        if line.type == "compacted":
            compacted.append(line.offset)
        elif line.type == "event_msg" and (point := _token_point(line)) is not None:
            points.append(point)
    return points, compacted


def _backward(path: Path, end: int | None) -> Iterator[reader.Record]:
    """Yield records newest first; of a compressed file, the last ones before the end after one pass forwards."""
    if not reader.is_compressed(path):
        return reader.backward(path, end=end)
    held: deque[reader.Record] = deque(maxlen=2 * MOST_LINES)
    held.extend(reader.forward(path, end=end))
    return reversed(held)


def _is_start(record: reader.Record) -> bool:
    """Say whether a line begins a turn: an event that says so, or words of a person."""
    if not isinstance(record, Line):
        return False
    try:
        if record.type == "event_msg":
            return events.event(record.payload).type in events.TURN_STARTED
        return record.type == "response_item" and is_boundary(items.view(record.payload))
    except (msgspec.DecodeError, RecursionError):
        return False


def _excerpt(path: Path, records: list[reader.Record], *, after: int | None) -> Excerpt:
    _, meta = chain.read_head(path)
    first = records[0].offset if records else 0
    blocks, points = _blocks(records)
    return Excerpt(meta, path, path.stat().st_size, blocks, points, first or None, after)


def _blocks(records: Iterable[reader.Record]) -> tuple[list[Block], list[TokenPoint]]:
    blocks: list[Block] = []
    points: list[TokenPoint] = []
    calls: dict[str, ExcerptCall] = {}
    for record in records:
        if not isinstance(record, Line):
            text = f"{record.bytes} bytes could not be read: {record.reason}"
            blocks.append(ExcerptMark(record.offset, None, "skipped", text))
            continue
        try:
            _see(record, blocks, points, calls)
        except (msgspec.DecodeError, RecursionError):
            blocks.append(
                ExcerptMark(record.offset, record.timestamp, "skipped", "a line that is not what its type says")
            )
    return blocks, points


def _see(line: Line, blocks: list[Block], points: list[TokenPoint], calls: dict[str, ExcerptCall]) -> None:
    match line.type:
        case "response_item":
            _item(line, items.view(line.payload), blocks, calls)
        case "compacted":
            blocks.append(ExcerptMark(line.offset, line.timestamp, "compacted", rollout.compacted(line).message))
        case "event_msg":
            event = events.event(line.payload)
            if event.type == events.ROLLED_BACK:
                blocks.append(ExcerptMark(line.offset, line.timestamp, "rolled_back", str(event.num_turns)))
            elif event.type == events.TURN_ABORTED:
                blocks.append(ExcerptMark(line.offset, line.timestamp, "aborted"))
            elif event.type == events.TOKEN_COUNT and (point := _token_point(line)) is not None:
                points.append(point)
        case rollout.OWN_TYPE:
            note = msgspec.json.decode(line.payload, type=dict[str, Any])
            last = next(
                (each for each in reversed(blocks) if isinstance(each, ExcerptMark) and each.what == "compacted"), None
            )
            if note.get("kind") == "retention" and last is not None and isinstance(note.get("score"), dict):
                last.score = note["score"]
        case _:
            pass


def _token_point(line: Line) -> TokenPoint | None:
    try:
        info = msgspec.json.decode(line.payload, type=_TokenEvent).info
    except (msgspec.DecodeError, RecursionError):
        return None
    if info is None or info.last_token_usage is None or not info.last_token_usage.total_tokens:
        return None
    return TokenPoint(line.timestamp or "", info.last_token_usage.total_tokens, line.offset)


def _item(line: Line, view: items.View, blocks: list[Block], calls: dict[str, ExcerptCall]) -> None:
    match view:
        case items.Message():
            _message(line, view, blocks)
        case items.Reasoning(summary=summary):
            if text := "\n\n".join(part.text for part in summary if part.text):
                blocks.append(Said(line.offset, line.timestamp, "reasoning", text))
        case items.FunctionCall(name=name, arguments=arguments, call_id=call_id):
            calls[call_id] = ExcerptCall(line.offset, line.timestamp, name, arguments)
            blocks.append(calls[call_id])
        case items.CustomToolCall(name=name, input=given, call_id=call_id):
            calls[call_id] = ExcerptCall(line.offset, line.timestamp, name, given)
            blocks.append(calls[call_id])
        case items.LocalShellCall(action=action, call_id=call_id):
            call = ExcerptCall(line.offset, line.timestamp, "shell", bytes(action).decode("utf-8", "replace"))
            calls[call_id or ""] = call
            blocks.append(call)
        case items.WebSearchCall(action=action):
            given = bytes(action).decode("utf-8", "replace")
            blocks.append(ExcerptCall(line.offset, line.timestamp, "web_search", given, ok=view.status != "failed"))
        case items.FunctionCallOutput() | items.CustomToolCallOutput():
            _answer(line, view, blocks, calls)
        case _:
            pass


def _message(line: Line, view: items.Message, blocks: list[Block]) -> None:
    images = _images(line, view.content)
    if view.role == "assistant":
        if text := citations.strip(view.text())[0].strip():
            blocks.append(Said(line.offset, line.timestamp, "agent", text, images))
        return
    own = fragments.own_words(view) if view.role == "user" else ""
    if own or (images and view.role == "user"):
        blocks.append(Said(line.offset, line.timestamp, "user", own, images, is_boundary(view)))
    elif text := view.text().strip():
        blocks.append(Said(line.offset, line.timestamp, "context", text, images))


def _answer(
    line: Line,
    view: items.FunctionCallOutput | items.CustomToolCallOutput,
    blocks: list[Block],
    calls: dict[str, ExcerptCall],
) -> None:
    parts = [] if isinstance(view.output, str) else view.output
    text = view.output if isinstance(view.output, str) else "\n".join(part.text for part in parts if part.text)
    origin = line.source()
    noted = origin.ok if origin is not None else None
    call = calls.get(view.call_id or "")
    if call is None:  # its call stands in an earlier stretch
        call = ExcerptCall(line.offset, line.timestamp, "output", "")
        blocks.append(call)
    call.output = text
    call.ok = transcript.output_ok(view.output) if noted is None else noted
    call.images = _images(line, parts)
    call.output_offset = line.offset


def _images(line: Line, parts: list[items.Content]) -> int:
    """Return how many images a line holds that a browser may be given, those that were spilled included."""
    spilled = sum(ref.restore is not None and ref.media_type in _PICTURES.values() for ref in line.blobs())
    return sum(_is_picture(part) for part in parts) + spilled


def _is_picture(part: items.Content) -> bool:
    return (part.image_url or "").startswith(tuple(f"data:{kind};base64," for kind in _PICTURES.values()))


class _Parts(msgspec.Struct):
    content: list[items.Content] = []
    output: str | list[items.Content] = ""


_PICTURES: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
"""How images begin that a browser may be given; others could hold programs."""


def image(ledger: Ledger, store: BlobStore, offset: int, number: int) -> tuple[bytes, str] | None:
    """Return an image of the line at a byte, and its type; None if there is none that can be shown."""
    line = next(iter(reader.forward(ledger.path, start=offset)), None)
    if not isinstance(line, Line) or line.offset != offset:
        return None
    (line,) = blobs.restored([line], store, lambda _: None)
    try:
        found = msgspec.json.decode(line.payload, type=_Parts)
        parts = [*found.content, *([] if isinstance(found.output, str) else found.output)]
        addresses = [part.image_url or "" for part in parts if _is_picture(part)]
        _, _, body = addresses[number].partition(",")
        data = base64.b64decode(body, validate=True)
    except (msgspec.DecodeError, RecursionError, ValueError, IndexError):
        return None
    kind = next((kind for start, kind in _PICTURES.items() if data.startswith(start)), None)
    return None if kind is None else (data, kind)

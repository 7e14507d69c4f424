"""What is fuzzed: functions that take any bytes, and fail only if a promise is broken.

Each calls a part of the program that reads what others wrote. Errors of ours are an answer; any other exception is a
crash.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from commonplace import config
from commonplace.agent.tools.patch import match, parse
from commonplace.errors import BadSetting, CommonplaceError, ToolError
from commonplace.importers import sources
from commonplace.importers.converter import ConvertedRecord
from commonplace.protocol import citations
from commonplace.protocol.rollout import Line, SessionMeta
from commonplace.redact import Redactor, redact
from commonplace.rollout import blobs, reader
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.store import segments
from commonplace.rollout.store.object_store import StoredObject
from commonplace.rollout.store.segments import SegmentManifest
from commonplace.rollout.survey import Survey, Surveyor
from commonplace.surfaces.app_server import dispatch, messages
from commonplace.surfaces.app_server.messages import ClientRequest, RpcError
from commonplace.surfaces.app_server.methods import METHODS
from commonplace.surfaces.mcp import protocol

Target = Callable[[bytes], None]
_FILES: Final = {
    "claude-code": "0198c0de-0000-7000-8000-000000000001.jsonl",
    "gemini": "session-2026-11-15T09-00-x.json",
    "gemini-lines": "session-2026-11-15T09-00-x.jsonl",
    "opencode": "ses_1.json",
    "copilot": "events.jsonl",
    "specstory": "2026-11-15_talk.md",
    "aider": ".aider.chat.history.md",
    "swe-agent": "acme__shop-1.traj",
    "transcript": "talk.jsonl",
}


@functools.cache
def _folder() -> Path:
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="commonplace-fuzz-", dir=memory if os.access(memory, os.W_OK) else None))


def _file(name: str, data: bytes) -> Path:
    path = _folder() / str(os.getpid()) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def ledger(data: bytes) -> None:
    """Read as a session file: forwards and backwards give the same, and every byte is in a record or a line's end."""
    path = _file("ledger.jsonl", data)
    forwards, backwards = [*reader.forward(path)], [*reader.backward(path)]
    assert [_shape(record) for record in forwards] == [_shape(record) for record in reversed(backwards)]
    position = 0
    for record in forwards:
        size = record.size if isinstance(record, Line) else record.bytes
        assert not data[position : record.offset].strip()
        position = record.offset + size
    assert not data[position:].strip()
    survey = Survey(SessionMeta(id="x"))
    try:
        Surveyor(survey).run(forwards)
    except CommonplaceError:
        return
    lines = (record for record in forwards if isinstance(record, Line))
    for _ in blobs.restored(lines, BlobStore(_folder()), lambda _: None, everything=True):
        pass


def _shape(record: reader.Record) -> tuple[object, ...]:
    if isinstance(record, Line):
        return (record.offset, record.size, record.type, bytes(record.payload))
    return (record.offset, record.bytes, record.reason)


def compressed(data: bytes) -> None:
    """Read as a compressed session file."""
    try:
        for _ in reader.forward(_file("ledger.jsonl.zst", data)):
            pass
    except CommonplaceError:
        return


def _importer(source: str, data: bytes) -> None:
    path = _file(_FILES[source], data)
    try:
        sources.detect(path)
        for found in sources.converter(source.removesuffix("-lines"))(path):
            if isinstance(found, ConvertedRecord):
                for payload in found.payloads:
                    msgspec.json.encode(payload.value)
    except CommonplaceError:
        return


def citation(data: bytes) -> None:
    """Take citations out of a text: piece by piece, the same is shown and cited as at once."""
    text = data.decode("utf-8", "replace")
    visible, bodies = citations.strip(text)
    size = 1 + (data[0] % 7 if data else 0)
    stream = citations.CitationStripper()
    shown = "".join(stream.push(text[at : at + size]) for at in range(0, len(text), size)) + stream.finish()
    assert (shown, stream.bodies) == (visible, bodies)
    assert citations.OPEN not in visible
    found = citations.parse(bodies)
    assert found is None or all(entry.line_start >= 0 for entry in found.entries)
    citations.finished(text)
    citations.cited_threads(text)


def patch(data: bytes) -> None:
    """Parse as a patch, and look its hunks up in its own text."""
    text = data.decode("utf-8", "replace")
    try:
        operations = parse.parse(text)
    except ToolError:
        return
    index = match.LineIndex(text.split("\n"))
    for operation in operations:
        for hunk in operation.hunks if isinstance(operation, parse.UpdateFile) else ():
            place = index.find(hunk.old(), 0, at_end=hunk.at_end)
            assert place is None or place >= 0
            index.nearest(hunk.old())


def mcp(data: bytes) -> None:
    """Read as a message of MCP: whatever comes can be answered."""
    for message in protocol.unpack(data).messages:
        if not isinstance(message, protocol.Notification):
            msgspec.json.encode(message.id)


def app_server(data: bytes) -> None:
    """Read as a message to the app server, with the parameters of its method; every refusal can be sent."""
    message = messages.parse(data)
    if isinstance(message, ClientRequest):
        method = METHODS.get(message.method)
        try:
            if method is not None:
                dispatch._refuse_experimental(message, method.call)
                dispatch._decode(message, method.call.params)
        except RpcError as error:
            messages.encode(messages.failure(message.id, error))
        else:
            messages.encode(messages.response(message.id, None))


def redactor(data: bytes) -> None:
    """Take secrets out: a stream is as good as a whole."""
    text = data.decode("utf-8", "replace")
    once = redact(text)
    size = 1 + (data[0] if data else 0)
    stream, encoded = Redactor(), text.encode()
    fed = b"".join(stream.feed(encoded[at : at + size]) for at in range(0, len(encoded), size)) + stream.close()
    assert fed == once.encode()


def settings(data: bytes) -> None:
    """Read as `config.toml`."""
    home = _file("config.toml", data).parent
    try:
        loaded = config.load({"COMMONPLACE_HOME": str(home)})
    except BadSetting:
        return
    for setting in config.SETTINGS:
        setting.text(setting.of(loaded))


def store_listing(data: bytes) -> None:
    """Read as the listing of a ledger in a store: each byte comes from a segment that has it, or from a hole."""
    names = [line.decode("utf-8", "replace").partition(" ") for line in data.split(b"\n")]
    objects = [
        StoredObject(f"f/{name}", int(size) if size.isdecimal() and size.isascii() and len(size) < 9 else 0, "")
        for name, _, size in names
    ]
    manifest = SegmentManifest("f", objects)
    position = 0
    for piece in manifest.pieces(0, manifest.end):
        assert piece.start == position < piece.end
        if piece.segment is not None:
            assert piece.segment.start <= piece.start < piece.end <= piece.segment.end
        position = piece.end
    assert position == manifest.end
    assert len(manifest.to_merge()) <= len(manifest.segments)
    assert segments.key("f", manifest.end)


TARGETS: Final[dict[str, Target]] = {
    "ledger": ledger,
    "compressed": compressed,
    **{f"import-{source}": functools.partial(_importer, source) for source in _FILES},
    "citation": citation,
    "patch": patch,
    "mcp": mcp,
    "app_server": app_server,
    "redactor": redactor,
    "settings": settings,
    "store_listing": store_listing,
}

"""Oversized values, stored once beside the ledger so that every line stays small.

A string above the bound leaves its line: the blob `home/blobs/<sha256>` keeps the exact value, the line keeps something
that Codex can still read (a text keeps head and tail, an image or sound becomes a line of text in its place) and a
sibling key `blob` that says what went where. Content decides the name, so a value that comes up again costs nothing.

Never spilled: what only its author can read (`encrypted_content`), because half of it is worth nothing.
"""

from __future__ import annotations

import base64
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from commonplace.errors import BlobDamaged
from commonplace.protocol.rollout import MAX_LINE_BYTES, BlobRef, Line, Skipped
from commonplace.rollout import locks, private_folders

FOLDER: Final = "blobs"
LOCK: Final = "blobs"
"""Writers share this lock while a blob is on disk and its line is not; collecting takes it alone."""
DEFAULT_BOUND: Final = 65536
"""Longer values are spilled, unless a setting changes it."""
GAP: Final = "…["
"""How the note begins that stands for what was left out of a text."""
_KEPT_BYTES: Final = 16384
"""How much of a spilled text's head, and of its tail, stays in the line; a quarter of the bound where that is less."""
_HEAD_CHARS: Final = 256
"""How long the part of a data URL before its data may be; it stays in the line."""
_LIVE_BYTES: Final = 256 * 2**20
"""Most bytes that are put back for one replay; many lines can refer to one blob."""
_COPIED_MEDIA_BOUND: Final = 1024
"""In a compaction even small media are spilled: what is already in the ledger is referred to, not copied."""
_OPAQUE: Final = frozenset({"encrypted_content", "id", "call_id", "image_url", "audio_url"})
_MEDIA_KINDS: Final = {"input_image": "image_url", "input_audio": "audio_url"}
_RAW_DATA_URL: Final = "text/x-data-url"


class BlobStore:
    """The folder of blobs of one home."""

    def __init__(self, home: Path, *, durable: bool = True) -> None:
        self.home = home
        self.folder = home / FOLDER
        self._durable = durable
        """Whether each value survives a loss of power as soon as it is stored; if not, the caller sees to that."""

    def put(self, data: bytes) -> str:
        """Store a value, at most once; return its name."""
        name = hashlib.sha256(data).hexdigest()
        path = self.folder / name
        if path.exists() and path.stat().st_size == len(data) and (self._durable or self.state(name) == "ok"):
            return name
        private_folders.make_private(self.folder)
        part = self.folder / f".{name}.{os.getpid()}.{threading.get_ident()}.part"
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if self._durable:
                    os.fsync(file.fileno())
            part.replace(path)
            if self._durable:
                private_folders.sync(self.folder)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        return name

    def size(self, name: str) -> int:
        """Return how long a value is (0 if it is missing)."""
        try:
            return (self.folder / _checked(name)).stat().st_size
        except (OSError, BlobDamaged):
            return 0

    def get(self, name: str) -> bytes:
        """Return a value.

        Raises:
            BlobDamaged: it is missing, or its content is not what its name says.
        """
        try:
            data = (self.folder / _checked(name)).read_bytes()
        except OSError:
            raise BlobDamaged(f"The payload {name} is missing.", hint="Restore blobs/ from a backup.") from None
        if hashlib.sha256(data).hexdigest() != name:
            raise BlobDamaged(f"The payload {name} is damaged.", hint="Restore blobs/ from a backup.", corrupt=True)
        return data

    def has(self, name: str) -> bool:
        """Say whether a value is there, without reading it."""
        try:
            return (self.folder / _checked(name)).is_file()
        except BlobDamaged:
            return False

    def state(self, name: str) -> str:
        """Return `ok`, `missing` or `corrupt`, reading in bounded memory."""
        try:
            with (self.folder / _checked(name)).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except (OSError, BlobDamaged):
            return "missing"
        return "ok" if digest == name else "corrupt"

    def names(self) -> set[str]:
        """Return the name of every file in the folder."""
        return {path.name for path in self.folder.iterdir()} if self.folder.is_dir() else set()

    def collect(self, referenced: Callable[[], set[str]]) -> list[str]:
        """Remove every blob that nothing refers to; `referenced` is asked while no writer can add one."""
        if not self.folder.is_dir():
            return []
        with locks.shared(self.home, LOCK, exclusive=True):
            keep = referenced()
            gone = [path for path in self.folder.iterdir() if path.name not in keep and path.is_file()]
            for path in gone:
                path.unlink(missing_ok=True)
        return sorted(path.name for path in gone)


def is_name(name: str) -> bool:
    """Say whether a text can name a blob."""
    return len(name) == 64 and all(char in "0123456789abcdef" for char in name)


def _checked(name: str) -> str:
    """Return the name if it is one; a file could hold anything, a path among it."""
    if not is_name(name):
        raise BlobDamaged(f"{name!r} does not name a payload.", hint="The line that refers to it is damaged.")
    return name


def spill(line_type: str, payload: Any, store: BlobStore, bound: int = DEFAULT_BOUND) -> tuple[Any, list[BlobRef]]:
    """Return the payload with its oversized values replaced, and where they went."""
    refs: list[BlobRef] = []
    media_bound = min(bound, _COPIED_MEDIA_BOUND) if line_type == "compacted" else bound
    return _Spiller(store, bound, media_bound, refs).walk(payload, "", ""), refs


class _Spiller:
    def __init__(self, store: BlobStore, bound: int, media_bound: int, refs: list[BlobRef]) -> None:
        self.store = store
        self.bound = bound
        self.media_bound = media_bound
        self.refs = refs

    def walk(self, value: Any, pointer: str, key: str) -> Any:
        if isinstance(value, dict):
            whole = cast("dict[str, Any]", value)
            if (field := _MEDIA_KINDS.get(str(whole.get("type")))) is not None:
                return self._media(whole, field, pointer)
            if whole.get("type") == "image_generation_call":
                return self._generated(whole, pointer)
            return {name: self.walk(inner, f"{pointer}/{_escape(name)}", name) for name, inner in whole.items()}
        if isinstance(value, list):
            return [self.walk(inner, f"{pointer}/{i}", "") for i, inner in enumerate(cast("list[Any]", value))]
        if isinstance(value, str) and len(value) * 4 > self.bound and key not in _OPAQUE:
            return self._text(value, pointer, key)
        return value

    def _text(self, text: str, pointer: str, key: str) -> str:
        data = text.encode()
        if len(data) <= self.bound:
            return text
        name = self._put(data, pointer, "text/plain")
        if key == "arguments":
            return _short_arguments(text, name, self.bound)
        return _shorten(data, name, self.bound)

    def _media(self, item: dict[str, Any], field: str, pointer: str) -> dict[str, Any]:
        url = item.get(field)
        if not isinstance(url, str) or len(url) <= self.media_bound or not url.startswith("data:"):
            return item
        head, comma, body = url.partition(",")
        if not comma or len(head) > _HEAD_CHARS:
            return item
        data, media_type = _decode_media(head, body)
        kind = str(item["type"]).removeprefix("input_")
        name = self._put(data, pointer, media_type, restore={**item, field: head + comma})
        text = f"[{kind} of {len(data)} bytes ({media_type}), kept as blob {name}]"
        return {"type": "input_text", "text": text}

    def _generated(self, item: dict[str, Any], pointer: str) -> dict[str, Any]:
        body = item.get("result")
        if not isinstance(body, str) or len(body) <= self.media_bound:
            return item
        data, media_type = _decode_media("data:image/png;base64", body)
        self._put(data, f"{pointer}/result", media_type, restore={"result": ""})
        return {**item, "result": ""}

    def _put(self, data: bytes, pointer: str, media_type: str, restore: dict[str, Any] | None = None) -> str:
        name = self.store.put(data)
        self.refs.append(BlobRef(pointer, name, len(data), media_type, restore))
        return name


def _decode_media(head: str, body: str) -> tuple[bytes, str]:
    """Return the bytes of a data URL and their type; the text itself where decoding would not come back the same."""
    if head.lower().endswith(";base64"):
        try:
            data = base64.b64decode(body, validate=True)
        except ValueError:
            data = b""
        if data and base64.b64encode(data).decode() == body:
            return data, head[5:].partition(";")[0] or "application/octet-stream"
    return body.encode(), _RAW_DATA_URL


def _shorten(data: bytes, name: str, bound: int) -> str:
    """Return head and tail of a text with a note of where the whole is."""
    kept = min(_KEPT_BYTES, bound // 4)
    head = data[:kept].decode(errors="ignore")
    tail = data[len(data) - kept :]
    while tail and tail[0] & 0xC0 == 0x80:
        tail = tail[1:]
    left_out = len(data) - len(head.encode()) - len(tail)
    return f"{head}{GAP}{left_out} bytes left out, kept as blob {name}]…{tail.decode()}"


def _short_arguments(text: str, name: str, bound: int) -> str:
    """Shorten the strings inside a call's arguments, so that they stay the JSON that other programs expect."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: walk(inner) for key, inner in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [walk(inner) for inner in cast("list[Any]", value)]
        if isinstance(value, str) and len(value) > bound // 2:
            return _shorten(value.encode(), name, bound // 2)
        return value

    try:
        short = msgspec.json.encode(walk(msgspec.json.decode(text))).decode()
    except (ValueError, RecursionError):
        return _shorten(text.encode(), name, bound)
    if len(short.encode()) <= bound:
        return short
    return msgspec.json.encode({"blob": name, "note": f"{len(text)} bytes of arguments left out"}).decode()


def restored(
    lines: Iterable[Line], store: BlobStore, report: Callable[[Skipped], None], *, everything: bool = False
) -> Iterator[Line]:
    """Put spilled media (or, with `everything`, all spilled values) back into the lines that pass.

    A blob that is gone leaves its placeholder in the line and is reported; it never stops a resume.
    """
    room = _LIVE_BYTES
    for line in lines:
        refs = [ref for ref in line.blobs() if everything or ref.restore is not None]
        if refs:
            room = MAX_LINE_BYTES if everything else room
            room -= _restore(line, refs, store, report, room)
        yield line


def _restore(line: Line, refs: list[BlobRef], store: BlobStore, report: Callable[[Skipped], None], room: int) -> int:
    """Put values back into one line, at most `room` bytes of them; return how many bytes that were."""
    used = 0
    try:
        payload = msgspec.json.decode(line.payload)
        for ref in refs:
            reason = None
            size = store.size(ref.sha256)
            if used + size > room:
                reason = "beyond_bound"
            else:
                try:
                    payload = _put_back(payload, ref, store.get(ref.sha256))
                    used += size
                except BlobDamaged as error:
                    reason = "blob_corrupt" if error.data.get("corrupt") else "blob_missing"
                except (LookupError, TypeError, ValueError):
                    reason = "blob_misplaced"
            if reason is not None:
                report(Skipped(line.offset, ref.bytes, reason))
        line.payload = msgspec.Raw(msgspec.json.encode(payload))
    except (ValueError, RecursionError):  # the payload is no JSON that can be taken apart
        report(Skipped(line.offset, line.size, "blob_misplaced"))
    return used


def _put_back(payload: Any, ref: BlobRef, data: bytes) -> Any:
    """Return the payload with a value in its place, which must be there."""
    steps = [_unescape(step) for step in ref.pointer.split("/")]
    if steps.pop(0):
        raise LookupError(ref.pointer)
    if not steps:
        return _value(ref, data)
    target: Any = payload
    for step in steps[:-1]:
        target = target[_place(target, step)]
    place = _place(target, steps[-1])
    if not isinstance(target[place], str | dict):
        raise TypeError(ref.pointer)
    target[place] = _value(ref, data)
    return payload


def _value(ref: BlobRef, data: bytes) -> Any:
    if ref.restore is None:
        return data.decode()
    body = data.decode() if ref.media_type == _RAW_DATA_URL else base64.b64encode(data).decode()
    if ref.restore.keys() == {"result"}:
        return body
    field = _MEDIA_KINDS[ref.restore["type"]]
    return {**ref.restore, field: ref.restore[field] + body}


def _place(container: Any, step: str) -> int | str:
    return int(step) if isinstance(container, list) else step


def _escape(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")


def _unescape(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")

"""Oversized values, stored once beside the ledger so that every line stays small.

A string above the bound leaves its line: the blob `home/blobs/<sha256>` keeps the exact value, the line keeps something
that Codex can still read (a text keeps head and tail, an image or sound becomes a line of text in its place) and a
sibling key `blob` that says what went where. Content decides the name, so a value that comes up again costs nothing.

Never spilled: what only its author can read (`encrypted_content`), because half of it is worth nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from commonplace.errors import BlobDamaged
from commonplace.protocol.rollout import BlobRef, Line, Skipped
from commonplace.rollout import locks
from commonplace.rollout.folders import make_private

FOLDER: Final = "blobs"
LOCK: Final = "blobs"
"""Writers share this lock while a blob is on disk and its line is not; collecting takes it alone."""
DEFAULT_BOUND: Final = 65536
_KEPT_BYTES: Final = 16384
"""How much of a spilled text's head, and of its tail, stays in the line."""
_COPIED_MEDIA_BOUND: Final = 1024
"""In a compaction even small media are spilled: what is already in the ledger is referred to, not copied."""
_OPAQUE: Final = frozenset({"encrypted_content", "id", "call_id", "image_url", "audio_url"})
_MEDIA_KINDS: Final = {"input_image": "image_url", "input_audio": "audio_url"}
_RAW_DATA_URL: Final = "text/x-data-url"


class BlobStore:
    """The folder of blobs of one home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / FOLDER

    def put(self, data: bytes) -> str:
        """Store a value, durably and at most once; return its name."""
        name = hashlib.sha256(data).hexdigest()
        path = self.folder / name
        if path.exists() and path.stat().st_size == len(data):
            return name
        make_private(self.folder)
        part = self.folder / f".{name}.{os.getpid()}.part"
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        return name

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

    def state(self, name: str) -> str:
        """Return `ok`, `missing` or `corrupt`, reading in bounded memory."""
        try:
            with (self.folder / _checked(name)).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except (OSError, BlobDamaged):
            return "missing"
        return "ok" if digest == name else "corrupt"

    def collect(self, referenced: Callable[[], set[str]]) -> list[str]:
        """Remove every blob that nothing refers to; `referenced` is asked while no writer can add one."""
        if not self.folder.is_dir():
            return []
        with locks.shared(self.home, LOCK, exclusive=True):
            keep = referenced()
            gone = [path for path in self.folder.iterdir() if path.name not in keep]
            for path in gone:
                path.unlink(missing_ok=True)
        return sorted(path.name for path in gone)


def _checked(name: str) -> str:
    """Return the name if it is one; a file could hold anything, a path among it."""
    if len(name) != 64 or not all(char in "0123456789abcdef" for char in name):
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
        return _short_arguments(text, name) if key == "arguments" else shorten(data, name)

    def _media(self, item: dict[str, Any], field: str, pointer: str) -> dict[str, Any]:
        url = item.get(field)
        if not isinstance(url, str) or len(url) <= self.media_bound or not url.startswith("data:"):
            return item
        head, comma, body = url.partition(",")
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
        except binascii.Error:
            data = b""
        if data and base64.b64encode(data).decode() == body:
            return data, head[5:].partition(";")[0] or "application/octet-stream"
    return body.encode(), _RAW_DATA_URL


def shorten(data: bytes, name: str) -> str:
    """Return head and tail of a text with a note of where the whole is."""
    head = data[:_KEPT_BYTES].decode(errors="ignore")
    tail = data[len(data) - _KEPT_BYTES :]
    while tail and tail[0] & 0xC0 == 0x80:
        tail = tail[1:]
    left_out = len(data) - len(head.encode()) - len(tail)
    return f"{head}…[{left_out} bytes left out, kept as blob {name}]…{tail.decode()}"


def _short_arguments(text: str, name: str) -> str:
    """Shorten the strings inside a call's arguments, so that they stay the JSON that other programs expect."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: walk(inner) for key, inner in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [walk(inner) for inner in cast("list[Any]", value)]
        if isinstance(value, str) and len(value) > 2 * _KEPT_BYTES:
            return shorten(value.encode(), name)
        return value

    try:
        short = msgspec.json.encode(walk(msgspec.json.decode(text))).decode()
    except (msgspec.DecodeError, RecursionError):
        return shorten(text.encode(), name)
    if len(short) < len(text):
        return short
    return msgspec.json.encode({"blob": name, "note": f"{len(text)} bytes of arguments left out"}).decode()


def restored(
    lines: Iterable[Line], store: BlobStore, report: Callable[[Skipped], None], *, everything: bool = False
) -> Iterator[Line]:
    """Put spilled media (or, with `everything`, all spilled values) back into the lines that pass.

    A blob that is gone leaves its placeholder in the line and is reported; it never stops a resume.
    """
    for line in lines:
        refs = [ref for ref in line.blobs() if everything or ref.restore is not None]
        if refs:
            payload = msgspec.json.decode(line.payload)
            for ref in refs:
                try:
                    _put_back(payload, ref, store.get(ref.sha256))
                except BlobDamaged as error:
                    reason = "blob_corrupt" if error.data.get("corrupt") else "blob_missing"
                    report(Skipped(line.offset, ref.bytes, reason))
                except (LookupError, TypeError, ValueError):
                    report(Skipped(line.offset, ref.bytes, "blob_misplaced"))
            line.payload = msgspec.Raw(msgspec.json.encode(payload))
        yield line


def _put_back(payload: Any, ref: BlobRef, data: bytes) -> None:
    *path, last = [_unescape(step) for step in ref.pointer.split("/")[1:]]
    target: Any = payload
    for step in path:
        target = target[_place(target, step)]
    place = _place(target, last)
    if ref.restore is None:
        target[place] = data.decode()
        return
    body = data.decode() if ref.media_type == _RAW_DATA_URL else base64.b64encode(data).decode()
    if ref.restore.keys() == {"result"}:
        target[place] = body
        return
    field = _MEDIA_KINDS[ref.restore["type"]]
    target[place] = {**ref.restore, field: ref.restore[field] + body}


def _place(container: Any, step: str) -> int | str:
    return int(step) if isinstance(container, list) else step


def _escape(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")


def _unescape(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")

"""The files of a folder, kept between searches as one text for each way of comparing.

A file is read again when its stamp (times, size, identity) changed, or when it had changed so shortly before it was
read that its stamp may not tell, as git does it.

Files stand in the order of their paths, each followed by a line end, so that nothing that is looked for reaches from
one into the next. What is not UTF-8, or too large, is passed over. A folder with more than `MAX_KEPT` bytes is not kept
but read anew for each search, a file at a time.
"""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

import msgspec

from commonplace.errors import ToolError
from commonplace.memory.recall.tools import files, normalization
from commonplace.memory.recall.tools.normalization import Comparison

MAX_KEPT: Final = 48 * 2**20
"""How many bytes of files are cached."""
_MAX_FOLDERS: Final = 2
"""How many folders are cached."""
_SETTLED_NS: Final = 2_000_000_000
"""How old a change must be for the clock of any file system to have gone on since."""


class CachedFile(msgspec.Struct, frozen=True, gc=False):
    """A file that was read into the cache."""

    path: str
    stamp: files.Stamp
    is_text: bool
    is_settled: bool
    """Whether its stamp tells of later changes."""


class JoinedText(msgspec.Struct, frozen=True):
    """Several files as one text, normalised in one way."""

    data: bytes
    starts: list[int]

    def holding(self, text: bytes) -> set[int]:
        """Return which of the files a text stands in."""
        found: set[int] = set()
        place = self.data.find(text)
        while place >= 0:
            number = bisect_right(self.starts, place) - 1
            found.add(number)
            if number + 1 == len(self.starts):
                break
            place = self.data.find(text, self.starts[number + 1])
        return found

    def part(self, number: int) -> bytes:
        """Return one file's text."""
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.data)
        return self.data[self.starts[number] : end - 1]


class FolderSnapshot:
    """The files of a folder at one time."""

    def __init__(self, documents: list[CachedFile], texts: list[bytes]) -> None:
        self.documents = documents
        self.paths = [document.path for document in documents if document.is_text]
        """Of those that can be searched."""
        self._texts: list[bytes] | None = texts
        self._plain = JoinedText(b"", [])
        self._other: tuple[Comparison, JoinedText] | None = None
        self.size = sum(map(len, texts)) + len(texts)
        """How many bytes it keeps of files."""

    def holding(self, text: bytes, way: Comparison) -> set[int]:
        """Return which of the files a text stands in."""
        texts = self._texts
        if texts is None or not way.is_plain:
            return self.joined(way).holding(text)
        return {number for number, each in enumerate(texts) if text in each}

    def part(self, number: int, way: Comparison) -> bytes:
        """Return one file's text as it is compared."""
        texts = self._texts
        return normalization.lines(texts[number], way) if texts is not None else self.joined(way).part(number)

    def join(self) -> None:
        """Make one text of them, which takes about as long as a search, for all later searches."""
        texts = self._texts
        if texts is not None:
            self._plain = _join(texts)  # before the texts go: another thread may be searching
            self._texts = None

    def joined(self, way: Comparison) -> JoinedText:
        """Return the files' texts as they are compared; only the last of the ways that change them is kept."""
        self.join()
        if way.is_plain:
            return self._plain
        other = self._other
        if other is None or other[0] != way:
            other = way, _prepared(self._plain, way)
            self._other = other
        return other[1]

    def by_path(self) -> dict[str, tuple[CachedFile, int]]:
        """Return the files, each with its number among those that can be searched."""
        numbers = {path: number for number, path in enumerate(self.paths)}
        return {document.path: (document, numbers.get(document.path, -1)) for document in self.documents}


class _CachedFolder(msgspec.Struct):
    kept: FolderSnapshot
    identity: tuple[int, int]


class FileCache:
    """Keeps the folders that were searched last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folders: dict[str, _CachedFolder] = {}
        self._too_large: set[str] = set()

    def documents(self, folder: int, path: str) -> FolderSnapshot | None:
        """Return a folder's files as they are now; None if they are too many to keep."""
        status = os.fstat(folder)
        identity = status.st_dev, status.st_ino
        with self._lock:
            if path in self._too_large:
                return None
            cached = self._folders.pop(path, None)
            if cached is not None and cached.identity != identity:
                cached = None
            kept = _load(folder, path, cached.kept if cached is not None else None)
            if kept is None:
                self._too_large.add(path)
                return None
            if cached is not None:
                kept.join()
            self._make_room(kept.size)
            self._folders[path] = _CachedFolder(kept, identity)
            return kept

    def _make_room(self, size: int) -> None:
        while self._folders and (
            len(self._folders) >= _MAX_FOLDERS or size + sum(one.kept.size for one in self._folders.values()) > MAX_KEPT
        ):
            del self._folders[next(iter(self._folders))]


def stream(root: files.MemoryRoot, folder: int, path: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a folder by their paths, read one after another."""
    paths = [
        f"{place}/{entry.name}" if place else entry.name
        for _, place, below in files.walk(folder, path)
        for entry in below
    ]
    for each in sorted(paths):
        try:
            with root.find(each) as target:
                data = text_of(target.descriptor) if target.kind == "file" and target.descriptor >= 0 else None
        except ToolError:  # it is no longer what it was
            continue
        if data is not None:
            yield each, data


def _load(folder: int, path: str, old: FolderSnapshot | None) -> FolderSnapshot | None:
    """Return a folder's files as they are now, of which only what changed is read; None if they are too large."""
    known = old.by_path() if old is not None else {}
    found: list[tuple[CachedFile, int, bytes]] = []
    total, changed, now_ns = 0, 0, time.time_ns()
    for here, place, entries in files.walk(folder, path):
        prefix = f"{place}/" if place else ""
        for entry in entries:
            document, number = known.get(prefix + entry.name, (None, -1))
            status = _status(entry) if document is not None and document.is_settled else None
            data = b""
            if document is None or status is None or files.stamp(status) != document.stamp:
                fresh = _read(here, entry.name, prefix + entry.name, now_ns)
                if fresh is None:
                    continue
                document, data = fresh
                number, changed = -1, changed + 1
            found.append((document, number, data))
            total += document.stamp[2] if document.is_text else 0
            if total > MAX_KEPT:
                return None
    if old is not None and not changed and len(found) == len(old.documents):
        return old
    found.sort(key=lambda each: each[0].path)
    plain = old.joined(Comparison()) if old is not None else None
    texts = [
        plain.part(number) if plain is not None and number >= 0 else data
        for document, number, data in found
        if document.is_text
    ]
    return FolderSnapshot([document for document, _, _ in found], texts)


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def _read(folder: int, name: str, path: str, now_ns: int) -> tuple[CachedFile, bytes] | None:
    """Read a file; None if it is gone or no file."""
    loaded = files.load(folder, name)
    if loaded is None:
        return None
    status, data = loaded
    stamp = files.stamp(status)
    if data is None or not is_utf8(data):
        return CachedFile(path, stamp, False, is_settled(stamp, now_ns)), b""
    return CachedFile(path, stamp, True, is_settled(stamp, now_ns)), data


def is_settled(stamp: files.Stamp, now_ns: int | None = None) -> bool:
    """Say whether a file that changes from now on will have another stamp."""
    return max(stamp[3], stamp[4]) < (now_ns or time.time_ns()) - _SETTLED_NS


def text_of(descriptor: int) -> bytes | None:
    """Return what an open file holds if that is text and not too large."""
    try:
        data = files.read(descriptor)
    except ToolError:
        return None
    return data if is_utf8(data) else None


def is_utf8(data: bytes) -> bool:
    """Say whether data is text."""
    try:
        return data.isascii() or bool(data.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _join(parts: list[bytes]) -> JoinedText:
    starts: list[int] = []
    total = 0
    for part in parts:
        starts.append(total)
        total += len(part) + 1
    return JoinedText(b"\n".join([*parts, b""]), starts)


def _prepared(plain: JoinedText, way: Comparison) -> JoinedText:
    if not way.normalized and plain.data.isascii():
        return JoinedText(normalization.lines(plain.data, way), plain.starts)
    return _join([normalization.lines(plain.part(number), way) for number in range(len(plain.starts))])

"""Files of the memory folder, opened so that nothing outside of it is ever read.

The root is opened once in a call; from there each name is opened in the folder that was opened before it, never through
a link, and what was opened says itself what it is. No path is ever checked and then used: whoever swaps a folder for a
link in between finds that the link is not followed. Nothing is waited for either: a FIFO or a device is opened without
blocking and put aside.

* `..` and `/` are refused by their spelling alone; names with a dot in front are as good as missing.
* The root may be a link only where a path below it is asked for, as the spec has it. Whoever set up the home decided
  where that link leads; all below it is handled as strictly as ever.
* Names that are not UTF-8 cannot be asked for and are not shown.
* A file of more than `MAX_FILE_BYTES` is not read, and folders below `MAX_DEPTH` are not walked into.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Literal

import msgspec

from commonplace.errors import ToolError
from commonplace.memory.recall.tools import failures

MAX_FILE_BYTES: Final = 64 * 2**20
"""Larger files are not read."""
MAX_DEPTH: Final = 200
"""How many folders are walked into, one in another; each takes a descriptor while it is walked."""
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_FOLDER: Final = _OPEN | os.O_DIRECTORY
_FOLLOWED: Final = _FOLDER & ~os.O_NOFOLLOW
_ODD: Final = frozenset({errno.ENXIO, errno.ENODEV, errno.EACCES, errno.EPERM, errno.EOPNOTSUPP})
"""What the system answers for sockets, devices without a driver, and what this user may not read."""

Kind = Literal["folder", "file", "link", "other", "missing"]
Stamp = tuple[int, int, int, int, int]
"""What changes when a file does: device, inode, size, and the times of its content and of its inode."""


class OpenedPath(msgspec.Struct):
    """The target of a path; the descriptor is open for folders and for readable files."""

    kind: Kind
    path: str
    """From the root, without `.` and double slashes."""
    descriptor: int = -1
    error: OSError | None = None
    """Why there is no descriptor, for something that is there."""

    def __enter__(self) -> OpenedPath:
        return self

    def __exit__(self, *_: object) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def must_exist(self, asked: str | None) -> None:
        """Refuse a path that leads to nothing, or to a link (raises ToolError)."""
        if self.kind == "missing":
            raise failures.not_found(asked or "")
        if self.kind == "link":
            raise failures.invalid_path(self.path, failures.LINK)


class MemoryRoot:
    """The memory folder, open for one call."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.kind: Kind = "missing"
        self._descriptor = -1

    def __enter__(self) -> MemoryRoot:
        try:
            self._descriptor = os.open(self._place, _FOLDER)
            self.kind = "folder"
        except OSError as error:
            self.kind = _kind_at(self._place, None)
            if self.kind == "folder":  # there, but closed to us
                raise failures.io(error) from None
            if self.kind == "link":
                self._descriptor = _or_missing(self._place)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def find(self, text: str | None) -> OpenedPath:
        """Return what a caller's path leads to.

        Raises:
            ToolError: the path leads out, through a link, or through something that is no folder.
        """
        parts = components(text or "")
        if not parts:
            if self.kind != "folder":
                return OpenedPath(self.kind, "")
            return OpenedPath("folder", "", os.open(".", _FOLDER, dir_fd=self._descriptor))
        if self.kind in ("file", "other"):
            raise failures.io(OSError(errno.ENOTDIR, ""))
        if self._descriptor < 0:
            return OpenedPath("missing", "/".join(parts))
        here = self._descriptor
        try:
            for count, part in enumerate(parts[:-1], 1):
                below = _enter(here, part, text or "", "/".join(parts[:count]))
                if here != self._descriptor:
                    os.close(here)
                here = below
                if here < 0:
                    return OpenedPath("missing", "/".join(parts))
            return _open_last(here, parts)
        finally:
            if here not in (self._descriptor, -1):
                os.close(here)

    def text(self, path: str) -> str | None:
        """Return the text of a file that another is judged by; None if it cannot be read."""
        try:
            with self.find(path) as found:
                return read(found.descriptor).decode("utf-8") if found.kind == "file" and not found.error else None
        except (ToolError, UnicodeDecodeError):
            return None

    def stamp(self, path: str) -> Stamp | None:
        """Return what changes when a file does; None if it is not there."""
        try:
            with self.find(path) as found:
                return stamp(os.fstat(found.descriptor)) if found.descriptor >= 0 else None
        except ToolError:
            return None


def components(text: str) -> list[str]:
    """Return the names of a path, by its spelling alone.

    Raises:
        ToolError: it leads out of the root, or names something hidden.
    """
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if text.startswith("/") or ".." in parts:
        raise failures.invalid_path(text, failures.OUTSIDE)
    if any(part.startswith(".") for part in parts):
        raise failures.not_found(text)
    if "\0" in text:
        raise failures.invalid_path(text, "must not contain a NUL character")
    if not is_text(text):
        raise failures.invalid_path(text, "must be text")
    return parts


def is_text(name: str) -> bool:
    """Say whether a name can be written as UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def read(descriptor: int, limit: int = MAX_FILE_BYTES) -> bytes:
    """Return what an open file holds.

    Raises:
        ToolError: it is too large, or the system cannot read it.
    """
    try:
        size = os.fstat(descriptor).st_size
        pieces: list[bytes] = []
        total = 0
        while total <= limit and size <= limit:
            piece = os.read(descriptor, max(size - total, 0) + 1)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            total += len(piece)
    except OSError as error:
        raise failures.io(error) from None
    raise failures.io(f"the file holds more than {limit} bytes")


def load(folder: int, name: str) -> tuple[os.stat_result, bytes | None] | None:
    """Read a regular file in a folder, with no data if that cannot be had; None for anything else, and what is gone."""
    try:
        descriptor = os.open(name, _OPEN, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise failures.io(error) from None
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        data = os.read(descriptor, status.st_size + 1) if status.st_size <= MAX_FILE_BYTES else None
        if data is not None and len(data) != status.st_size:  # it is changing, or what its size says is not so
            os.lseek(descriptor, 0, os.SEEK_SET)
            data = read(descriptor)
    except (OSError, ToolError):
        return None
    finally:
        os.close(descriptor)
    return status, data


def stamp(status: os.stat_result) -> Stamp:
    """Return what changes when a file does."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def walk(folder: int, path: str) -> Iterator[tuple[int, str, list[os.DirEntry[str]]]]:
    """Yield each folder below one, and that itself: its descriptor, its path, and its regular files.

    A descriptor holds only until the next is asked for. Hidden names, links and what vanishes are passed over.
    """
    stack: list[tuple[int, str, Iterator[str]]] = []
    opened, place = os.dup(folder), path
    try:
        while True:
            if opened >= 0:
                stack.append((opened, place, iter(())))
                files, folders = entries(opened)
                yield opened, place, files
                stack[-1] = (opened, place, iter(folders))
            above, outer, waiting = stack[-1]
            name = next(waiting, None)
            opened = -1
            if name is not None:
                opened = _enter_quietly(above, name) if len(stack) < MAX_DEPTH else -1
                place = f"{outer}/{name}" if outer else name
                continue
            os.close(stack.pop()[0])
            if not stack:
                return
    finally:
        for descriptor, _, _ in stack:
            os.close(descriptor)


def entries(folder: int) -> tuple[list[os.DirEntry[str]], list[str]]:
    """Return the files in a folder, and the names of its folders: none that are hidden, links or of other kinds."""
    files: list[os.DirEntry[str]] = []
    folders: list[str] = []
    try:
        with os.scandir(folder) as found:
            for entry in found:
                if entry.name[0] == "." or not (entry.name.isascii() or is_text(entry.name)):
                    continue
                try:
                    if entry.is_file(follow_symlinks=False):
                        files.append(entry)
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                except OSError:  # it vanished
                    continue
    except FileNotFoundError:
        pass
    except OSError as error:
        raise failures.io(error) from None
    return files, folders


def _enter(here: int, name: str, text: str, path: str) -> int:
    """Open a folder on the way to something; -1 if it is not there."""
    try:
        return os.open(name, _FOLDER, dir_fd=here)
    except FileNotFoundError:
        return -1
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise failures.io(error) from None
        # Only to say why: what was asked for is refused in any case.
        if _kind_at(name, here) == "link":
            raise failures.invalid_path(path, failures.LINK) from None
        raise failures.invalid_path(text, failures.THROUGH) from None


def _enter_quietly(here: int, name: str) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=here)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise failures.io(error) from None
        return -1


def _open_last(here: int, parts: list[str]) -> OpenedPath:
    path = "/".join(parts)
    try:
        descriptor = os.open(parts[-1], _OPEN, dir_fd=here)
    except FileNotFoundError:
        return OpenedPath("missing", path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise failures.invalid_path(path, failures.LINK) from None
        if error.errno not in _ODD:
            raise failures.io(error) from None
        kind = _kind_at(parts[-1], here)
        return OpenedPath(kind, path, error=None if kind == "other" else error)
    mode = os.fstat(descriptor).st_mode
    kind = _kind(mode)
    if kind == "other":
        os.close(descriptor)
        return OpenedPath(kind, path)
    return OpenedPath(kind, path, descriptor)


def _or_missing(place: Path) -> int:
    try:
        return os.open(place, _FOLLOWED)
    except OSError:
        return -1


def _kind(mode: int) -> Kind:
    if stat.S_ISLNK(mode):
        return "link"
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def _kind_at(name: str | Path, folder: int | None) -> Kind:
    """Return what a name stands for, to explain why it was not opened."""
    try:
        return _kind(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return "missing"

"""Reading and writing the files of a patch: all of them are written, or none.

A path must lie in one of the allowed folders, by its spelling and on the disk: each name is opened in the folder that
was opened before it, never through a link. Whoever swaps a folder for a link in between changes nothing elsewhere.

Writing has three steps. New contents go into files beside their targets; a full disk shows here. Then each target gets
a second name and is replaced, which is atomic and needs no room. If any of that fails, the files get their first names
back, in reverse order, and what was made is removed. Only at the end are the second names removed. A program that is
killed in between leaves whole files: old, new, or under a second name (`PART`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

import msgspec

from commonplace.errors import ToolError

MOST_BYTES: Final = 64 * 2**20
"""Larger files are no source code; they are held in memory while they are patched."""
PART: Final = ".commonplace-part"
"""How the second name of a file ends."""
_FOLDER: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_DIRECTORY
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class PatchPath(msgspec.Struct, frozen=True):
    """A path that may be changed: an allowed folder, and the names below it."""

    root: Path
    parts: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The whole path."""
        return self.root.joinpath(*self.parts)


class FileContent(msgspec.Struct, frozen=True):
    """A file as it was read."""

    data: bytes
    mode: int
    stamp: tuple[int, int, int, int]


class FileWrite(msgspec.Struct, frozen=True):
    """A file that gets new contents, or is deleted."""

    place: PatchPath
    before: FileContent | None
    after: bytes | None
    mode: int | None = None
    """The permissions of a file that is moved here."""


def patch_path(text: str, cwd: Path, roots: Sequence[Path]) -> PatchPath:
    """Return the allowed folder and the names of a path in a patch.

    Raises:
        ToolError: the path lies outside the folders that may be changed.
    """
    parts = [part for part in text.split("/") if part not in ("", ".")]
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        parts = []
    if "\0" in text or not parts:
        raise ToolError("invalid_path", f"{text[:200]!r} is no path of a file")
    if ".." in parts:
        raise ToolError("invalid_path", f"{text!r} has `..` in it; name the file from the working folder")
    if not text.startswith("/"):
        return PatchPath(cwd.resolve(), tuple(parts))
    whole = Path("/", *parts)
    for root in sorted({cwd, *roots}, key=lambda each: -len(each.parts)):
        for form in (root, root.resolve()):
            if whole != form and whole.is_relative_to(form):
                return PatchPath(root.resolve(), whole.relative_to(form).parts)
    places = ", ".join(str(each) for each in dict.fromkeys((cwd, *roots)))
    raise ToolError("invalid_path", f"{text!r} is outside of what may be changed: {places}")


def read(place: PatchPath) -> FileContent | None:
    """Return the file at a path; None if there is none.

    Raises:
        ToolError: it is no regular file, cannot be read, is too large, or the path leads through a link.
    """
    with _Folders() as folders:
        folder = folders.open(place)
        if folder is None:
            return None
        try:
            descriptor = os.open(place.parts[-1], _FILE, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _refused(place, error) from None
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            os.close(descriptor)
            large = f"has {status.st_size} bytes, more than can be patched"
            raise ToolError("not_file", f"{place.path} {large if stat.S_ISREG(status.st_mode) else 'is no file'}")
        with open(descriptor, "rb") as file:  # noqa: PTH123  # opened above, without following a link
            return FileContent(file.read(), stat.S_IMODE(status.st_mode), _stamp(status))


def write(writes: Sequence[FileWrite]) -> None:
    """Make all changes or none.

    Raises:
        ToolError: a change could not be made; everything is as it was.
    """
    with _Folders() as folders:
        change = _Transaction(folders)
        try:
            for each in writes:
                change.prepare(each)
            for each in writes:
                change.make(each)
        except BaseException as error:
            lost = change.undo()
            if lost:
                names = ", ".join(lost)
                raise ToolError("io", f"the patch failed ({error}), and this could not be put back: {names}") from error
            if isinstance(error, OSError):
                raise ToolError("io", f"nothing was changed: {error.strerror}: {error.filename or ''}") from None
            raise
        change.settle()


class _Transaction:
    """Changes that were begun, and how to undo each."""

    def __init__(self, folders: _Folders) -> None:
        self._folders = folders
        self._back: list[tuple[str, Callable[[], None]]] = []
        self._parts: dict[PatchPath, tuple[int, str]] = {}
        self._old: list[tuple[int, str]] = []

    def prepare(self, write: FileWrite) -> None:
        """Write new contents beside their target."""
        if write.after is None:
            return
        folder = self._folders.open(write.place, make=self._made)
        assert folder is not None
        name = f".{secrets.token_hex(8)}{PART}"
        mode = write.before.mode if write.before is not None else write.mode
        descriptor = os.open(name, _NEW, 0o666, dir_fd=folder)
        self._back.append((name, lambda: os.unlink(name, dir_fd=folder)))
        self._parts[write.place] = (folder, name)
        with open(descriptor, "wb") as file:  # noqa: PTH123
            if mode is not None:
                os.fchmod(descriptor, mode)
            file.write(write.after)

    def _made(self, folder: int, name: str) -> None:
        self._back.append((name, lambda: os.rmdir(name, dir_fd=folder)))

    def make(self, write: FileWrite) -> None:
        """Put new contents in place, or remove a file; the old file keeps a second name."""
        name = write.place.parts[-1]
        folder = self._folders.open(write.place)
        if folder is None:
            raise _changed(write.place)
        _check(folder, name, write)
        if write.before is not None:
            second = f".{secrets.token_hex(8)}{PART}"
            _link(folder, name, second, write.before)
            self._old.append((folder, second))
            self._back.append((str(write.place.path), lambda: _take_back(folder, second, name)))
        if write.after is None:
            os.unlink(name, dir_fd=folder)
            return
        part = self._parts[write.place][1]
        if write.before is None:
            # A link fails where a rename would silently replace a file that came in between.
            _link(folder, part, name, FileContent(write.after, write.mode or 0o666, (0, 0, 0, 0)))
            self._back.append((str(write.place.path), lambda: os.unlink(name, dir_fd=folder)))
            self._old.append((folder, part))
        else:
            os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)

    def undo(self) -> list[str]:
        """Undo everything, the last change first; return the paths where that failed."""
        lost: list[str] = []
        for name, back in reversed(self._back):
            try:
                back()
            except FileNotFoundError:  # a part that became a file, which was put back already
                continue
            except OSError:
                lost.append(name)
        return [name for name in lost if not name.endswith(PART)]

    def settle(self) -> None:
        """Remove second names; everything is done."""
        for folder, name in self._old:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)


def _link(folder: int, name: str, second: str, before: FileContent) -> None:
    """Give a file a second name; a file system without hard links gets a copy."""
    try:
        os.link(name, second, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS, errno.EACCES):
            raise
        with open(os.open(second, _NEW, before.mode, dir_fd=folder), "wb") as file:  # noqa: PTH123
            file.write(before.data)


def _take_back(folder: int, second: str, name: str) -> None:
    """Give a file its name back."""
    os.replace(second, name, src_dir_fd=folder, dst_dir_fd=folder)
    with contextlib.suppress(FileNotFoundError):  # a rename between two names of one file leaves both
        os.unlink(second, dir_fd=folder)


def _check(folder: int, name: str, write: FileWrite) -> None:
    """Raise ToolError if a file is not the one that was read."""
    try:
        stamp = _stamp(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        stamp = None
    if stamp != (write.before.stamp if write.before is not None else None):
        raise _changed(write.place)


def _changed(place: PatchPath) -> ToolError:
    return ToolError("changed", f"{place.path} changed while it was being patched; read it again")


def _stamp(status: os.stat_result) -> tuple[int, int, int, int]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _refused(place: PatchPath, error: OSError) -> ToolError:
    if error.errno == errno.ELOOP:
        return ToolError("invalid_path", f"{place.path} is a link; name the file that it leads to")
    return ToolError("io", f"{place.path} cannot be opened: {error.strerror}")


class _Folders:
    """Folders that are open for one patch, each opened in the one above it."""

    def __init__(self) -> None:
        self._open: dict[tuple[Path, tuple[str, ...]], int] = {}

    def __enter__(self) -> _Folders:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)

    def open(self, place: PatchPath, make: Callable[[int, str], None] | None = None) -> int | None:
        """Return the folder of a path, opened; None if it does not exist and `make` is not given."""
        try:
            here = self._at(place.root, (), lambda: os.open(place.root, _FOLDER))
        except OSError as error:
            raise ToolError("io", f"{place.root} cannot be opened: {error.strerror}") from None
        for count, name in enumerate(place.parts[:-1], 1):
            try:
                here = self._below(place, here, count)
            except FileNotFoundError:
                if make is None:
                    return None
                os.mkdir(name, dir_fd=here)
                make(here, name)
                here = self._below(place, here, count)
            except OSError as error:
                raise _through(place, count, error) from None
        return here

    def _below(self, place: PatchPath, here: int, count: int) -> int:
        name = place.parts[count - 1]
        return self._at(place.root, place.parts[:count], lambda: os.open(name, _FOLDER, dir_fd=here))

    def _at(self, root: Path, parts: tuple[str, ...], opened: Callable[[], int]) -> int:
        if (root, parts) not in self._open:
            self._open[root, parts] = opened()
        return self._open[root, parts]


def _through(place: PatchPath, count: int, error: OSError) -> ToolError:
    path = place.root.joinpath(*place.parts[:count])
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return ToolError("invalid_path", f"{path} is a link or no folder; name the file by its own path")
    return ToolError("io", f"{path} cannot be opened: {error.strerror}")

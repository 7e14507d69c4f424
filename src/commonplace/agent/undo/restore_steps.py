"""Carry out the steps of a restore, in a tree that others may be changing at the same time.

Every step works on a name in a folder that was opened from the top without following links, so that nothing outside the
tree can be reached. Files and links are made beside their place and renamed into it: each path holds the old or the new
file, never a part. A file that changed since it was stored is left alone. A step that fails is listed and the rest goes
on; carrying out the whole plan again after a crash ends in the same state.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Final

from commonplace.agent.undo.restore_plan import RestorePlan, TreeState
from commonplace.agent.undo.safe_open import open_folder
from commonplace.agent.undo.store import TreeEntry
from commonplace.agent.undo.survey import PART, FileLook

_CHANGED: Final = "it was changed while the snapshot was restored"
_HOLDS: Final = "it holds something that was left out"
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_HOLE: Final = 2**16
"""Runs of zeros of this size become holes in a sparse file."""
_OWNER: Final = 0o700


class PlanRunner:
    """Carries out a plan; `failed` says which steps were not done."""

    def __init__(self, root: int, now: TreeState, content: Callable[[bytes], bytes]) -> None:
        self._root = root
        self._now = now
        self._content = content
        self._modes: dict[bytes, int] = {}
        """The permissions to set at the end on folders that were made writable."""
        self.failed: dict[bytes, str] = {}
        """Paths where a step was not done, and why."""

    def run(self, plan: RestorePlan, parts: list[bytes]) -> None:
        """Do all steps.

        Raises:
            OSError: the disk is full or can only be read; nothing else stops it.
        """
        for path in (*parts, *plan.unlink):
            self._try(path, self._unlink)
        for path in plan.rmdir:
            self._try(path, lambda folder, name, _: os.rmdir(name, dir_fd=folder))
        for path in plan.mkdir:
            self._try(path, lambda folder, name, _: os.mkdir(name, _OWNER, dir_fd=folder))
        for path, entry in plan.write:
            self._try(path, partial(self._write, entry))
        for path, entry in plan.chmod:
            self._try(path, partial(self._chmod, entry))
        self._modes |= plan.folder_modes
        # From the bottom up: a folder that may not be entered hides what is in it.
        for path in sorted(self._modes, key=lambda path: (-path.count(b"/"), not path)):
            try:
                with open_folder(self._root, path) as folder:
                    os.fchmod(folder, self._modes[path])
            except FileNotFoundError:  # it was opened to be emptied, and is gone
                continue
            except OSError as error:
                self._fail(path, error)

    def _try(self, path: bytes, step: Callable[[int, bytes, bytes], None]) -> None:
        try:
            with self._parent(path) as (folder, name):
                step(folder, name, path)
        except OSError as error:
            self._fail(path, error)

    def _fail(self, path: bytes, error: OSError) -> None:
        if error.errno in _FULL:
            raise error
        reason = _HOLDS if error.errno in (errno.ENOTEMPTY, errno.EEXIST) else error.strerror or str(error)
        self.failed.setdefault(path, reason)

    @contextmanager
    def _parent(self, path: bytes) -> Generator[tuple[int, bytes]]:
        """Open the folder of a path, and make it writable if it is not."""
        above, _, name = path.rpartition(b"/")
        with open_folder(self._root, above) as folder:
            about = os.fstat(folder)
            if about.st_mode & 0o300 != 0o300 and about.st_uid == os.geteuid():
                os.fchmod(folder, stat.S_IMODE(about.st_mode) | _OWNER)
                self._modes.setdefault(above, stat.S_IMODE(about.st_mode))
            yield folder, name

    def _is_kept(self, folder: int, name: bytes, path: bytes) -> bool:
        """Return whether a path still holds what was stored of it, or nothing."""
        look = self._now.looks.get(path)
        try:
            about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return True
        if look is None:  # nothing was there, or nothing that has a content
            return not stat.S_ISREG(about.st_mode) and not stat.S_ISLNK(about.st_mode)
        # The time of change of anything is not compared: replacing another link to the same file changes it.
        return _matches(look, about)

    def _unlink(self, folder: int, name: bytes, path: bytes) -> None:
        if not PART.fullmatch(name) and not self._is_kept(folder, name, path):
            raise OSError(_CHANGED)
        os.unlink(name, dir_fd=folder)

    def _chmod(self, entry: TreeEntry, folder: int, name: bytes, path: bytes) -> None:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            if not _matches(self._now.looks.get(path), os.fstat(descriptor)):
                raise OSError(_CHANGED)
            os.fchmod(descriptor, stat.S_IMODE(entry.mode))
        finally:
            os.close(descriptor)

    def _write(self, entry: TreeEntry, folder: int, name: bytes, path: bytes) -> None:
        part = b".commonplace-undo-%s.part" % secrets.token_hex(8).encode()
        content = self._content(entry.object)
        try:
            if stat.S_ISLNK(entry.mode):
                os.symlink(content, part, dir_fd=folder)
            else:
                self._fill(folder, name, part, content, entry.mode)
            if not self._is_kept(folder, name, path):
                raise OSError(_CHANGED)  # noqa: TRY301  # the part goes in one place
            os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part, dir_fd=folder)
            raise

    def _fill(self, folder: int, name: bytes, part: bytes, content: bytes, mode: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(part, flags, 0o600, dir_fd=folder)
        try:
            _write_all(descriptor, content)
            with contextlib.suppress(OSError):  # a file of somebody else stays theirs, where that is ours to give
                about = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if (about.st_uid, about.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(descriptor, about.st_uid, about.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(mode))
        finally:
            os.close(descriptor)


def _matches(look: FileLook | None, about: os.stat_result) -> bool:
    if look is None:
        return False
    return (stat.S_IFMT(look[0]), look[1], look[2], look[4]) == (
        stat.S_IFMT(about.st_mode),
        about.st_size,
        about.st_mtime_ns,
        about.st_ino,
    )


def _write_all(descriptor: int, content: bytes) -> None:
    zeros = bytes(_HOLE)
    place = 0
    while place < len(content):
        if content.startswith(zeros, place):
            place = os.lseek(descriptor, _HOLE, os.SEEK_CUR)
        else:
            place += os.write(descriptor, content[place : place + _HOLE])
    os.ftruncate(descriptor, len(content))

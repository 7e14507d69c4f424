"""Survey a working tree: which files belong to its state, which are left out and why. It costs a stat per file.

Every folder is opened from the one above it and no link is followed, so nothing outside the tree is read. Entries named
`.git` and the folders of other repositories are never entered. Paths that are `wanted` (because the snapshot to be
restored has them) belong to the state whatever ignore rules and bounds say.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import sys
from collections.abc import Callable, Mapping, Set
from typing import Final, NamedTuple

import msgspec

from commonplace.agent.undo.gitignore import IgnoreRules
from commonplace.agent.undo.store import StoredOmission
from commonplace.agent.undo.values import SnapshotLimits
from commonplace.agent.undo.worktree import WorkingTree
from commonplace.patterns import regex

IGNORED: Final = "ignored"
TOO_LARGE: Final = "too large"
NO_ROOM: Final = "no room"
UNREADABLE: Final = "unreadable"
REPOSITORY: Final = "repository"
SPECIAL: Final = "special file"
ELSEWHERE: Final = "another file system"
TOO_DEEP: Final = "too deep"
HOME: Final = "home of commonplace"
PART: Final = regex(rb"\.commonplace-undo-[0-9a-f]{16}\.part")
"""The temporary files of a restore that was killed; the next restore removes them."""
_MAX_DEPTH: Final = 200
"""Folders that are nested deeper are left out: a descriptor is open for each level."""
_MOST_BYTES: Final = 2**29
"""Larger files are left out even if they are wanted: a file is held in memory while it is stored."""
_MAX_RULES_BYTES: Final = 2**20
"""How much of a `.gitignore` is read."""
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ENCODING: Final = sys.getfilesystemencoding()
_KEPT_KINDS: Final = frozenset({stat.S_IFREG, stat.S_IFLNK})
_RULES: Final = ".gitignore"
_VENV: Final = "pyvenv.cfg"
_CACHE_TAG: Final = "CACHEDIR.TAG"

FileLook = tuple[int, int, int, int, int]
"""The status of a file: mode, size, mtime, ctime, inode."""


def look_of(about: os.stat_result) -> FileLook:
    """Return the status of a file."""
    return (about.st_mode, about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino)


class SurveyedFolder(msgspec.Struct):
    """A folder of the state."""

    path: bytes
    """From the root, with a slash at its end; the root itself has none."""
    look: FileLook
    files: dict[bytes, FileLook]
    """Files and links."""
    folders: list[bytes]
    """The paths of the folders in it, in the same form."""


class TreeSurvey(msgspec.Struct):
    """The result of a survey."""

    folders: list[SurveyedFolder]
    """Each folder comes after the one that holds it."""
    left: list[StoredOmission]
    parts: list[bytes]
    count: int = 0
    size: int = 0
    incomplete: str = ""


class _Stop(Exception):
    """A bound was reached."""


class Exceptions(NamedTuple):
    """What is kept or left out whatever the rules of the tree say."""

    wanted: Set[bytes] = frozenset()
    """Paths that are kept."""
    home: tuple[int, int] | None = None
    """The device and inode of our own files, which are left out."""
    rules: Mapping[bytes, bytes] | None = None
    """The `.gitignore` files that count, by their paths, instead of those of the tree."""


class _Place(NamedTuple):
    """A folder on the way through the tree."""

    path: bytes
    about: os.stat_result
    rules: list[tuple[bytes, IgnoreRules]]
    is_ignored: bool
    depth: int


def survey(
    root: int,
    worktree: WorkingTree,
    limits: SnapshotLimits,
    clock: Callable[[], float],
    exceptions: Exceptions,
) -> TreeSurvey:
    """Survey the tree of a descriptor."""
    walk = _Walk(root, worktree, limits, clock, exceptions)
    try:
        walk.enter(root, _Place(b"", os.fstat(root), worktree.rules(), is_ignored=False, depth=0))
    except _Stop as stop:
        walk.found.incomplete = str(stop)
    _make_room(walk.found, limits, exceptions.wanted)
    return walk.found


class _Walk:
    def __init__(
        self,
        root: int,
        worktree: WorkingTree,
        limits: SnapshotLimits,
        clock: Callable[[], float],
        exceptions: Exceptions,
    ) -> None:
        self.found = TreeSurvey([], [], [])
        self._worktree = worktree
        self._limits = limits
        self._bound = min(limits.file_bytes, _MOST_BYTES)
        self._clock = clock
        self._until = clock() + limits.seconds
        self._wanted = exceptions.wanted
        self._home = exceptions.home
        self._given_rules = exceptions.rules
        self._device = os.fstat(root).st_dev
        self._fold = worktree.folds_case
        self._tracked: set[bytes] | None = None
        self._tracked_folders: set[bytes] = set()

    def enter(self, descriptor: int, place: _Place) -> bool:
        """Add a folder and all below it; return False if the folder is left out."""
        path, about = place.path, place.about
        if self._clock() > self._until:
            raise _Stop("time")
        try:
            with os.scandir(descriptor) as scan:
                entries = list(itertools.islice(scan, self._limits.files + 1))
        except OSError:
            if not path:
                raise
            self._leave(path, UNREADABLE, about)
            return False
        if self.found.count + len(entries) > self._limits.files:
            raise _Stop("files")
        names = {entry.name for entry in entries}
        reason = self._foreign(names) if path else ""
        if reason and not self._is_kept_folder(path):
            self._leave(path, reason, about)
            return False
        if self._worktree.root is not None and (text := self._rules_in(descriptor, path, names)):
            own = IgnoreRules(text, fold_case=self._fold)
            place = place if own.is_empty else place._replace(rules=[*place.rules, (b"", own)])
        folder = SurveyedFolder(path, look_of(about), {}, [])
        self.found.folders.append(folder)
        for entry in entries:
            try:
                look = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # somebody removed it just now
                continue
            except OSError:
                self.found.left.append(StoredOmission(path + _encode(entry.name), UNREADABLE, 0, 0, 0))
                continue
            name = _encode(entry.name)
            if stat.S_ISDIR(look.st_mode):
                self._folder(descriptor, folder, name, look, place)
            else:
                self._file(folder, name, look, place)
        self.found.count += 1 + len(folder.files)
        return True

    def _rules_in(self, descriptor: int, path: bytes, names: set[str]) -> bytes:
        if self._given_rules is not None:
            return self._given_rules.get(path + _RULES.encode(), b"")
        return _read_rules(descriptor) if _RULES in names else b""

    def _foreign(self, names: set[str]) -> str:
        """Return why a folder with these names in it is left out; empty if it is not."""
        if ".git" in names:
            return REPOSITORY
        if self._worktree.root is None and (_VENV in names or _CACHE_TAG in names):
            return IGNORED
        return ""

    def _file(self, folder: SurveyedFolder, name: bytes, about: os.stat_result, above: _Place) -> None:
        reason = ""
        if stat.S_IFMT(about.st_mode) not in _KEPT_KINDS:
            self._leave(folder.path + name, SPECIAL, about)
            return
        if name.startswith(b"."):
            if name.lower() == b".git":
                self._leave(folder.path + name, REPOSITORY, about)
                return
            if PART.fullmatch(name):
                self.found.parts.append(folder.path + name)
                return
        if about.st_size > self._bound:
            reason = TOO_LARGE
        elif above.is_ignored or _is_ignored(name, above.rules, is_folder=False):
            reason = "" if self._is_tracked(folder.path + name) else IGNORED
        if reason and (folder.path + name not in self._wanted or about.st_size > _MOST_BYTES):
            self._leave(folder.path + name, reason, about)
            return
        folder.files[name] = look_of(about)
        self.found.size += about.st_size

    def _folder(
        self, descriptor: int, folder: SurveyedFolder, name: bytes, about: os.stat_result, above: _Place
    ) -> None:
        path = folder.path + name + b"/"
        is_ignored = above.is_ignored or _is_ignored(name, above.rules, is_folder=True)
        reason = ""
        if name.lower() == b".git":
            reason = REPOSITORY
        elif about.st_dev != self._device:
            reason = ELSEWHERE
        elif (about.st_dev, about.st_ino) == self._home:
            reason = HOME
        elif above.depth >= _MAX_DEPTH:
            reason = TOO_DEEP
        elif is_ignored:
            reason = "" if self._is_kept_folder(path) else IGNORED
        if reason:
            self._leave(path, reason, about)
            return
        try:
            inner = os.open(name, _FOLDER_FLAGS, dir_fd=descriptor)
        except OSError:
            self._leave(path, UNREADABLE, about)
            return
        rules = [(before + name + b"/", one) for before, one in above.rules]
        try:
            if self.enter(inner, _Place(path, about, rules, is_ignored, above.depth + 1)):
                folder.folders.append(path)
        finally:
            os.close(inner)

    def _leave(self, path: bytes, reason: str, about: os.stat_result) -> None:
        size = about.st_size if stat.S_ISREG(about.st_mode) else 0
        self.found.left.append(StoredOmission(path, reason, size, about.st_ino, about.st_mtime_ns))

    def _is_tracked(self, path: bytes) -> bool:
        if self._tracked is None:  # most trees have something that is ignored, but not all
            self._tracked = self._worktree.tracked()
            for one in self._tracked:
                end = one.rfind(b"/")
                while end > 0 and one[: end + 1] not in self._tracked_folders:
                    self._tracked_folders.add(one[: end + 1])
                    end = one.rfind(b"/", 0, end)
        return path in self._tracked or path in self._tracked_folders

    def _is_kept_folder(self, path: bytes) -> bool:
        return path[:-1] in self._wanted or self._is_tracked(path)


def _is_ignored(name: bytes, rules: list[tuple[bytes, IgnoreRules]], *, is_folder: bool) -> bool:
    for before, one in reversed(rules):
        decision = one.decide(before + name, name, is_folder=is_folder)
        if decision is not None:
            return decision
    return False


def _make_room(found: TreeSurvey, limits: SnapshotLimits, wanted: Set[bytes]) -> None:
    """Leave the largest files out until all together are within the bound."""
    if found.size <= limits.total_bytes:
        return
    sizes = [(look[1], folder, name) for folder in found.folders for name, look in folder.files.items()]
    sizes.sort(key=lambda one: (-one[0], one[1].path, one[2]))
    for size, folder, name in sizes:
        if found.size <= limits.total_bytes:
            return
        if folder.path + name in wanted:
            continue
        look = folder.files.pop(name)
        found.left.append(StoredOmission(folder.path + name, NO_ROOM, size, look[4], look[2]))
        found.size -= size


def _read_rules(folder: int) -> bytes:
    with contextlib.suppress(OSError):  # a link is none that git would follow
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(".gitignore", flags, dir_fd=folder), "rb") as file:
            return file.read(_MAX_RULES_BYTES)
    return b""


def _encode(name: str) -> bytes:
    return name.encode(_ENCODING, "surrogateescape")

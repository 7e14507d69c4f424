"""The steps of a restore: the difference between a snapshot and the present state. Pure.

Only paths in `now` are removed or replaced, and all of them have been stored. Files that the snapshot left out stay,
under their own name and, as far as they can be recognised, under any other.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from typing import Final

import msgspec

from commonplace.agent.undo.store import StoredOmission, TreeEntry
from commonplace.agent.undo.survey import SPECIAL, FileLook
from commonplace.agent.undo.values import Omission, shown_path

_KEPT: Final = "it was left out of the snapshot"
_MOVED: Final = "it was left out of the snapshot, under another name"


class TreeState(msgspec.Struct, frozen=True):
    """The state of a tree: the entry of each path, and what is left out."""

    entries: dict[bytes, TreeEntry]
    left: list[StoredOmission]
    mode: int
    looks: dict[bytes, FileLook] = {}


class RestorePlan(msgspec.Struct):
    """The steps; each list is in the order in which its steps are done."""

    unlink: list[bytes]
    rmdir: list[bytes]
    mkdir: list[bytes]
    write: list[tuple[bytes, TreeEntry]]
    chmod: list[tuple[bytes, TreeEntry]]
    """Files that differ in permissions only."""
    folder_modes: dict[bytes, int]
    """The final permissions of folders whose permissions change."""
    left_alone: list[Omission]


class RestoreEffects(msgspec.Struct, frozen=True):
    """The paths that a plan changes, removes and creates again."""

    changed: list[bytes]
    removed: list[bytes]
    recreated: list[bytes]


def plan(before: TreeState, now: TreeState) -> RestorePlan:
    """Return the steps from the present state to that of a snapshot."""
    steps = RestorePlan([], [], [], [], [], {}, [])
    guard = _OmissionGuard(before)
    for path in sorted(now.entries.keys() - before.entries.keys()):  # folders before what is in them
        reason = guard.reason(path, now.looks.get(path))
        if reason:
            steps.left_alone.append(Omission(shown_path(path), reason))
        elif stat.S_ISDIR(now.entries[path].mode):
            steps.rmdir.append(path)
        else:
            steps.unlink.append(path)
    special = {one.path for one in now.left if one.reason == SPECIAL}
    blocked = {one.path.rstrip(b"/"): one.reason for one in now.left if one.reason != SPECIAL}
    for path, entry in before.entries.items():
        there = now.entries.get(path)
        reason = _in_the_way(path, blocked) if there is None else ""
        if reason:
            steps.left_alone.append(Omission(shown_path(path), f"in the way: {reason}"))
        elif stat.S_ISDIR(entry.mode):
            _folder(steps, path, entry, there, is_special=path in special)
        else:
            _file(steps, path, entry, there)
    if stat.S_IMODE(before.mode) != stat.S_IMODE(now.mode):
        steps.folder_modes[b""] = stat.S_IMODE(before.mode)
    steps.rmdir.sort(key=lambda path: (-path.count(b"/"), path))
    steps.mkdir.sort(key=lambda path: (path.count(b"/"), path))
    known = {one.path for one in before.left}
    steps.left_alone += [
        Omission(shown_path(one.path), one.reason, one.size)
        for one in now.left
        if one.path not in known and one.path.rstrip(b"/") not in before.entries
    ]
    return steps


def effects(steps: RestorePlan, before: TreeState, now: TreeState, failed: Iterable[bytes] = ()) -> RestoreEffects:
    """Return the effects of steps, without the paths where they failed."""
    made = [(path, path) for path, _ in steps.write] + [(path, path + b"/") for path in steps.mkdir]
    gone = [(path, path) for path in steps.unlink] + [(path, path + b"/") for path in steps.rmdir]
    changed = {path: path for path, _ in steps.chmod}
    changed |= {path: path + b"/" for path in steps.folder_modes if _is_folder(now, path)}
    changed |= {path: name for path, name in made if path in now.entries}
    skip = set(failed)
    return RestoreEffects(
        sorted(name for path, name in changed.items() if path not in skip),
        sorted(name for path, name in gone if path not in before.entries and path not in skip),
        sorted(name for path, name in made if path not in now.entries and path not in skip),
    )


def _is_folder(now: TreeState, path: bytes) -> bool:
    return not path or (path in now.entries and stat.S_ISDIR(now.entries[path].mode))


def _in_the_way(path: bytes, blocked: dict[bytes, str]) -> str:
    """Return why nothing can be put at a path: it, or a folder above it, was left out; empty if it can."""
    if not blocked:
        return ""
    place = len(path)
    while place > 0:
        reason = blocked.get(path[:place])
        if reason is not None:
            return reason
        place = path.rfind(b"/", 0, place)
    return ""


def _folder(steps: RestorePlan, path: bytes, entry: TreeEntry, there: TreeEntry | None, *, is_special: bool) -> None:
    mode = stat.S_IMODE(entry.mode)
    if there is None or not stat.S_ISDIR(there.mode):
        if there is not None or is_special:
            steps.unlink.append(path)
        steps.mkdir.append(path)
        steps.folder_modes[path] = mode
    elif stat.S_IMODE(there.mode) != mode:
        steps.folder_modes[path] = mode


def _file(steps: RestorePlan, path: bytes, entry: TreeEntry, there: TreeEntry | None) -> None:
    if there is not None and stat.S_ISDIR(there.mode):
        steps.rmdir.append(path)
        steps.write.append((path, entry))
    elif there is None or stat.S_IFMT(there.mode) != stat.S_IFMT(entry.mode) or there.object != entry.object:
        steps.write.append((path, entry))
    elif not stat.S_ISLNK(entry.mode) and there.mode != entry.mode:
        steps.chmod.append((path, entry))


class _OmissionGuard:
    """Recognises the files that a snapshot left out."""

    def __init__(self, before: TreeState) -> None:
        self._paths = {one.path.rstrip(b"/") for one in before.left}
        self._looks = {(one.inode, one.modified): one for one in before.left if one.inode}
        self._moved: set[bytes] = set()

    def reason(self, path: bytes, look: FileLook | None) -> str:
        """Return why a path that the snapshot does not have must stay; empty if it can be removed."""
        place = 0
        while (place := path.find(b"/", place + 1)) > 0:
            if path[:place] in self._moved:
                return _MOVED
            if path[:place] in self._paths:
                return _KEPT
        if path in self._paths:
            return _KEPT
        # A move keeps inode and time; a new file that was given the inode of an old one has another time.
        one = self._looks.get((look[4], look[2])) if look is not None else None
        if one is None or look is None:
            return ""
        is_folder = stat.S_ISDIR(look[0])
        if one.path.endswith(b"/") != is_folder or (not is_folder and one.size != look[1]):
            return ""
        self._moved.add(path)
        return _MOVED

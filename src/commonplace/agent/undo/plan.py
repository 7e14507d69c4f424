"""What going back takes: the difference between what a snapshot has and what is there now, as steps; pure.

Only what is in `now` is ever removed or replaced, and all that is in `now` has been kept. What the snapshot left out
stays, under its own name and, as far as it can be recognised, under any other.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from typing import Final

import msgspec

from commonplace.agent.undo.store import Entry, Left
from commonplace.agent.undo.survey import SPECIAL, Look
from commonplace.agent.undo.values import LeftOut, shown

_KEPT: Final = "it was left out of the snapshot"
_MOVED: Final = "it was left out of the snapshot, under another name"


class State(msgspec.Struct, frozen=True):
    """A tree: what stands at each path, and what is left out."""

    entries: dict[bytes, Entry]
    left: list[Left]
    mode: int
    looks: dict[bytes, Look] = {}


class Plan(msgspec.Struct):
    """The steps, each list in the order in which they are done."""

    unlink: list[bytes]
    rmdir: list[bytes]
    mkdir: list[bytes]
    write: list[tuple[bytes, Entry]]
    chmod: list[tuple[bytes, Entry]]
    """Files that differ in permissions only."""
    folder_modes: dict[bytes, int]
    """Permissions that folders have in the end, where they are not what they are to be."""
    left_alone: list[LeftOut]


class Effects(msgspec.Struct, frozen=True):
    """What a plan does, by path."""

    changed: list[bytes]
    removed: list[bytes]
    recreated: list[bytes]


def plan(before: State, now: State) -> Plan:
    """Return how to come from what is there now to what a snapshot has."""
    steps = Plan([], [], [], [], [], {}, [])
    guard = _Guard(before)
    for path in sorted(now.entries.keys() - before.entries.keys()):  # folders before what is in them
        reason = guard.reason(path, now.looks.get(path))
        if reason:
            steps.left_alone.append(LeftOut(shown(path), reason))
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
            steps.left_alone.append(LeftOut(shown(path), f"in the way: {reason}"))
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
        LeftOut(shown(one.path), one.reason, one.size)
        for one in now.left
        if one.path not in known and one.path.rstrip(b"/") not in before.entries
    ]
    return steps


def effects(steps: Plan, before: State, now: State, failed: Iterable[bytes] = ()) -> Effects:
    """Return what steps do, except those at paths where they failed."""
    made = [(path, path) for path, _ in steps.write] + [(path, path + b"/") for path in steps.mkdir]
    gone = [(path, path) for path in steps.unlink] + [(path, path + b"/") for path in steps.rmdir]
    changed = {path: path for path, _ in steps.chmod}
    changed |= {path: path + b"/" for path in steps.folder_modes if _is_folder(now, path)}
    changed |= {path: name for path, name in made if path in now.entries}
    skip = set(failed)
    return Effects(
        sorted(name for path, name in changed.items() if path not in skip),
        sorted(name for path, name in gone if path not in before.entries and path not in skip),
        sorted(name for path, name in made if path not in now.entries and path not in skip),
    )


def _is_folder(now: State, path: bytes) -> bool:
    return not path or (path in now.entries and stat.S_ISDIR(now.entries[path].mode))


def _in_the_way(path: bytes, blocked: dict[bytes, str]) -> str:
    """Return why something cannot be put at a path, if it or a folder that it is in was left out."""
    if not blocked:
        return ""
    place = len(path)
    while place > 0:
        reason = blocked.get(path[:place])
        if reason is not None:
            return reason
        place = path.rfind(b"/", 0, place)
    return ""


def _folder(steps: Plan, path: bytes, entry: Entry, there: Entry | None, *, is_special: bool) -> None:
    mode = stat.S_IMODE(entry.mode)
    if there is None or not stat.S_ISDIR(there.mode):
        if there is not None or is_special:
            steps.unlink.append(path)
        steps.mkdir.append(path)
        steps.folder_modes[path] = mode
    elif stat.S_IMODE(there.mode) != mode:
        steps.folder_modes[path] = mode


def _file(steps: Plan, path: bytes, entry: Entry, there: Entry | None) -> None:
    if there is not None and stat.S_ISDIR(there.mode):
        steps.rmdir.append(path)
        steps.write.append((path, entry))
    elif there is None or stat.S_IFMT(there.mode) != stat.S_IFMT(entry.mode) or there.object != entry.object:
        steps.write.append((path, entry))
    elif not stat.S_ISLNK(entry.mode) and there.mode != entry.mode:
        steps.chmod.append((path, entry))


class _Guard:
    """Knows what a snapshot left out."""

    def __init__(self, before: State) -> None:
        self._paths = {one.path.rstrip(b"/") for one in before.left}
        self._looks = {(one.inode, one.modified): one for one in before.left if one.inode}
        self._moved: set[bytes] = set()

    def reason(self, path: bytes, look: Look | None) -> str:
        """Return why something that the snapshot does not have must stay, if so."""
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

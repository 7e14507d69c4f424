"""Where a command can write: the mounts, or the Landlock rules, that follow from a policy and from the disk.

A protected path in a folder that can be written is mounted on itself, read-only. Three things make that hold:

* The folders between the two are mounted on themselves as well: a mount point cannot be renamed, so nobody can move a
  parent away and put another in its place.
* A path that does not exist yet is held by an empty folder while the command runs.
* A link cannot be a mount point. The folder that holds a protected link, or a link on the way to a protected path,
  becomes read-only, and its other entries stay writable.

Landlock alone cannot take a right away below the folder that it is given for. There every folder on the way to a
protected path is left out and its other children are allowed: nothing new can be made in such a folder itself.
"""

# Paths are compared as texts here, step by step.
# ruff: noqa: PTH106, PTH112, PTH115, PTH118, PTH120

from __future__ import annotations

import fcntl
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from commonplace.agent.sandbox import protected_paths
from commonplace.agent.sandbox.policy import SandboxPolicy
from commonplace.errors import ToolError

_MOST_LINKS: Final = 40
"""How many symbolic links of one path are followed: Linux follows as many."""


class MountPlan(msgspec.Struct, frozen=True):
    """The paths to mount on themselves, outermost first."""

    roots: tuple[str, ...]
    """The folders that can be written, except protected paths in them; none lies in another."""
    places: tuple[tuple[str, bool], ...]
    """Paths, and whether they can be written."""
    held: tuple[str, ...]
    """The places that do not exist yet and must be made first."""


class _ProtectedPath(msgspec.Struct, frozen=True):
    """The protected paths within the roots, by their real paths."""

    roots: tuple[str, ...]
    ends: frozenset[str]
    """Paths that must not change; the last part may not exist."""
    links: frozenset[str]
    """Links on the way to such paths."""


def mount_plan(policy: SandboxPolicy) -> MountPlan:
    """Return the mounts for a policy."""
    guard = _guard(policy)
    places: dict[str, bool] = dict.fromkeys(guard.roots, True)
    narrow = {os.path.dirname(link) for link in guard.links}
    for path in (*guard.ends, *narrow):
        places.update(dict.fromkeys(_between(path, guard.roots), True))
    for folder in narrow:
        places.update({child: True for child in _children(folder) if child not in guard.ends})
    places.update(dict.fromkeys((*guard.ends, *narrow), False))
    held = tuple(sorted(path for path in guard.ends if _is_empty(path)))
    return MountPlan(guard.roots, tuple(sorted(places.items())), held)


def landlock_paths(policy: SandboxPolicy) -> tuple[str, ...]:
    """Return the paths that Landlock may allow to write, where nothing can be mounted."""
    guard = _guard(policy)
    kept = guard.ends | guard.links
    return tuple(path for root in guard.roots for path in _free(root, kept))


def remove_placeholders(policy: SandboxPolicy) -> None:
    """Remove the empty folders that held protected paths, where whoever made them was killed; not those in use."""
    for path in protected_paths.paths(policy):
        try:
            about = os.lstat(path)
            if not stat.S_ISDIR(about.st_mode) or about.st_mtime_ns != 0:
                continue
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rmdir(path)  # only if it is empty
        except OSError:
            pass
        finally:
            os.close(descriptor)


def unchangeable(policy: SandboxPolicy, path: Path) -> str | None:
    """Return why a tool in this process may not change a file; None if a confined command could change it too."""
    if policy.mode == "danger-full-access":
        return None
    guard = _guard(policy)
    end, _ = trail((policy.cwd / path).absolute())
    if not any(is_within(end, root) for root in guard.roots):
        return f"{path} lies in no folder that can be written"
    if any(end == each or is_within(end, each) for each in guard.ends | guard.links):
        return f"{path} is protected"
    return None


def _free(path: str, kept: frozenset[str]) -> Iterator[str]:
    if not any(is_within(each, path) for each in kept):
        yield path
        return
    for child in _children(path):
        if child not in kept:
            yield from _free(child, kept)


def _children(folder: str) -> list[str]:
    """Return the entries of a folder without links, which may lead elsewhere."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if not entry.is_symlink())
    except OSError:
        return []


def _guard(policy: SandboxPolicy) -> _ProtectedPath:
    roots = _roots((*policy.workspaces(), *policy.temporary()))
    ends: set[str] = set()
    links: set[str] = set()
    for path in protected_paths.paths(policy):
        end, met = trail(path)
        ends.add(end)
        links.update(met)
    roots = tuple(root for root in roots if root not in ends and not any(is_within(root, end) for end in ends))
    ends.update(os.path.realpath(path) for path in protected_paths.program_paths())
    inside = _outermost(_standing(end) for end in ends if any(is_within(end, root) for root in roots))
    ours = frozenset(end for end in inside if any(is_within(end, root) for root in roots) and _can_change(end))
    theirs = (link for link in links if any(is_within(link, root) for root in roots))
    return _ProtectedPath(
        roots, ours, frozenset(link for link in theirs if not any(is_within(link, end) for end in ours))
    )


def _roots(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return the folders that can be written, by their real paths.

    One that is reached by a link in another is none: a command may have put the link there, to have it followed here.
    """
    found = [trail(path.absolute()) for path in paths]
    real = {end for end, _ in found if os.path.isdir(end)}
    kept = {end for end, met in found if not any(is_within(link, other) for link in met for other in real)}
    return _outermost(real & kept)


def trail(path: Path) -> tuple[str, list[str]]:
    """Return the real path, whose last parts may not exist, and the links on the way to it."""
    parts = deque(path.parts[1:])
    at, met = "/", list[str]()
    while parts:
        part = parts.popleft()
        if part == "..":
            at = os.path.dirname(at)
            continue
        step = os.path.join(at, part)
        try:
            target = Path(os.readlink(step))
        except OSError:  # no link, or nothing
            at = step
            continue
        met.append(step)
        if len(met) > _MOST_LINKS:
            raise ToolError("sandbox", f"{path} cannot be guarded: its links lead in a circle")
        if target.is_absolute():
            at = "/"
        parts.extendleft(reversed(target.parts[1:] if target.is_absolute() else target.parts))
    return at, met


def _standing(path: str) -> str:
    """Return the first part of a path that does not exist or is no folder; else the whole path."""
    at = "/"
    for part in path.split("/")[1:]:
        at = os.path.join(at, part)
        if not os.path.isdir(at):
            return at
    return path


def _can_change(path: str) -> bool:
    """Return whether a path needs protection: where this process can make nothing, no command can."""
    return os.path.lexists(path) or os.access(os.path.dirname(path), os.W_OK | os.X_OK)


def _is_empty(path: str) -> bool:
    """Return whether a path must be held: it does not exist, or the launcher made it before (its mtime is 0)."""
    try:
        found = os.lstat(path)
    except OSError:
        return True
    return stat.S_ISDIR(found.st_mode) and found.st_mtime_ns == 0


def _between(path: str, roots: tuple[str, ...]) -> Iterator[str]:
    """Yield the folders between a path and its root, the root included."""
    for root in roots:
        if is_within(path, root):
            at = os.path.dirname(path)
            while is_within(at, root):
                yield at
                at = os.path.dirname(at)


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for path in sorted(set(paths), key=lambda each: each.split("/")):
        if not any(path == each or is_within(path, each) for each in kept):
            kept.append(path)
    return tuple(kept)


def is_within(path: str, folder: str) -> bool:
    """Return whether a path lies below a folder."""
    return path != folder and path.startswith(folder if folder == "/" else f"{folder}/")

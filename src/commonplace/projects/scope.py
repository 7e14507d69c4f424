"""Scopes: the project that a thread belongs to, and the threads that are never learned from.

A project is known by its repository's identity, never by the bare working directory: the disk says which repository a
folder is in; where it does not, threads that noted an identity there do. What is settled depends on what is known, not
on the order in which it became known, so that it can be settled again whenever more is.

1. A folder is what the disk says it is.
2. Else it is the repository that a thread last noted there.
3. Else, if it is gone, it belongs to the nearest folder above it whose repository is known: it was a part of that.
   Folders that are above everything (`broad`: the root, a home) do not count, because what was below them may have been
   a repository of its own.
4. Else it stands for itself, by its path.

A repository that was renamed or moved has two identities in one folder, one after the other. Then the older is an alias
of the newer. A folder where unrelated repositories take turns (`/workspace`, `/testbed`) looks much the same; so both
must have the same name, or the same owner while the older one is seen no more, or one of them only a first commit, and
the older one must not come back.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Final

import msgspec

from commonplace.patterns import regex
from commonplace.projects import paths
from commonplace.projects.identity import DirectoryIdentity
from commonplace.protocol.remotes import is_commit, remote_identity

GLOBAL: Final = "global"
"""The scope of what is for every project."""
PLACEHOLDER: Final = regex(r"^(?:misc|general|task|todo|tbd|untitled|example)$", re.IGNORECASE)
"""Names that say nothing."""
_NOW: Final = 2**62
"""When the disk was looked at: after everything that a thread noted."""


class FolderIdentity(msgspec.Struct, frozen=True):
    """The folder of one thread, and its repository's identity if the thread noted one."""

    cwd: str
    identity: str | None = None
    seen_s: int = 0
    """When, in seconds."""


class ProjectMap(msgspec.Struct, frozen=True):
    """The project of every working directory, and the identities that are aliases of another."""

    projects: dict[str, str]
    aliases: dict[str, str]
    known: dict[str, str] = {}
    """The identity of each folder that the disk or a thread tells, without what follows from folders above it."""

    def identity(self, cwd: str, noted: str | None) -> str:
        """Return the identity of a thread's repository: as it noted it, else that of its folder; empty if unknown."""
        found = noted or self.known.get(cwd, "")
        return self.aliases.get(found, found)

    def project(self, cwd: str, identity: str | None = None) -> str:
        """Return the project of a thread, by what it noted itself if its folder was not settled."""
        known = self.projects.get(cwd) or identity or cwd
        return self.aliases.get(known, known)


class _Sighting(msgspec.Struct):
    first: int
    last: int


_Sightings = dict[str, dict[str, _Sighting]]
"""For each folder, when each identity was seen there."""


def settle(
    pairings: Iterable[FolderIdentity], resolve: Callable[[str], DirectoryIdentity], *, broad: Iterable[str] = ("/",)
) -> ProjectMap:
    """Return which project each working directory belongs to; looks at each folder once."""
    rows = set(pairings)
    places = {cwd: resolve(cwd) for cwd in sorted({row.cwd for row in rows})}
    sightings = _sightings(rows, places)
    known = {cwd: _newest(seen) for cwd, seen in sightings.items()}
    aliases = _aliases(sightings)
    too_broad = {_folder(path) for path in broad}
    projects: dict[str, str] = {}
    for cwd, place in places.items():
        found = known.get(cwd)
        if found is None and not place.exists:
            found = _above(cwd, known, too_broad)
        project = found or cwd
        projects[cwd] = aliases.get(project, project)
    return ProjectMap(projects, aliases, known)


def _sightings(rows: set[FolderIdentity], places: dict[str, DirectoryIdentity]) -> _Sightings:
    found: _Sightings = defaultdict(dict)
    seen = [(row.cwd, row.identity, row.seen_s) for row in rows]
    seen += [(cwd, place.identity, _NOW) for cwd, place in places.items()]
    for cwd, identity, when in seen:
        if identity:
            noted = found[cwd].setdefault(identity, _Sighting(when, when))
            noted.first, noted.last = min(noted.first, when), max(noted.last, when)
    return dict(found)


def _newest(seen: dict[str, _Sighting]) -> str:
    return max(seen, key=lambda identity: (seen[identity].last, seen[identity].first, identity))


def _above(cwd: str, known: dict[str, str], too_broad: set[str]) -> str | None:
    by_folder = known if cwd.startswith("/") else {}
    for folder in PurePosixPath(cwd).parents:
        if str(folder) in by_folder and str(folder) not in too_broad:
            return by_folder[str(folder)]
    return None


def _folder(path: str) -> str:
    return os.path.normpath(path)


def _aliases(sightings: _Sightings) -> dict[str, str]:
    """Return the identities that mean another, each with the one that counts."""
    last: dict[str, int] = {}
    for seen in sightings.values():
        for identity, noted in seen.items():
            last[identity] = max(noted.last, last.get(identity, noted.last))
    newer: dict[str, set[str]] = defaultdict(set)
    for seen in sightings.values():
        current = _newest(seen)
        for identity, noted in seen.items():
            came = seen[current].first
            if identity != current and noted.last < came and _may_be_one(identity, current, gone=last[identity] < came):
                newer[identity].add(current)
    found = {identity: _canonical(identity, newer, last) for identity in newer}
    return {identity: canonical for identity, canonical in found.items() if canonical != identity}


def _may_be_one(older: str, newer: str, *, gone: bool) -> bool:
    """Say whether two identities may be of one repository, by how they are spelt."""
    if is_commit(older) or is_commit(newer):
        return not (is_commit(older) and is_commit(newer))
    older_owner, _, older_name = older.rpartition("/")
    newer_owner, _, newer_name = newer.rpartition("/")
    return older_name == newer_name or (gone and older_owner == newer_owner)


def _canonical(identity: str, newer: dict[str, set[str]], last: dict[str, int]) -> str:
    """Follow an identity to the newest: one that nothing is newer than, else (in a circle) the last that was seen."""
    reached, open_ends = {identity}, [identity]
    while open_ends:
        for following in newer.get(open_ends.pop(), ()):
            if following not in reached:
                reached.add(following)
                open_ends.append(following)
    ends = {found for found in reached if not newer.get(found)} or reached
    return max(ends, key=lambda found: (last[found], found))


def excluded(patterns: Iterable[str], *, source: str, project: str, cwd: str, path: str) -> bool:
    """Say whether a thread is never learned from, by the setting `memory.exclude`.

    A pattern is the name of a source; a path (absolute, or from `~`) that its working directory or its file is below;
    or a project's identity, in which `*` stands for anything. A remote's URL will do for its identity.
    """
    return any(_matches(pattern.strip(), source, project, cwd, path) for pattern in patterns)


def _matches(pattern: str, source: str, project: str, cwd: str, path: str) -> bool:
    if not pattern:
        return False
    if pattern == source:
        return True
    if pattern.startswith(("/", "~")):
        prefix = _folder(os.path.expanduser(pattern))  # noqa: PTH111  # a pattern is text, not a path
        return any(_is_below(place, prefix) for place in (cwd, path, project) if place.startswith("/"))
    wanted = (remote_identity(pattern) or pattern).lower().rstrip("/")
    return fnmatchcase(project.lower(), _only_stars(wanted))


def _is_below(place: str, prefix: str) -> bool:
    place = _folder(place)
    if "*" in prefix:
        stars = _only_stars(prefix)
        return fnmatchcase(place, stars) or fnmatchcase(place, stars.rstrip("/") + "/*")
    return place == prefix or place.startswith(prefix.rstrip("/") + "/")


def _only_stars(pattern: str) -> str:
    """Take the brackets and question marks of a pattern for themselves."""
    return re.sub(r"[\[?]", lambda found: f"[{found[0]}]", pattern)


def short_names(scopes: list[str], folders: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a short name for each scope; the whole identity where two would have the same.

    `folders` has a folder for each scope, as far as one is known: what has no address is called by its folder.
    """
    known = folders or {}
    short = {scope: paths.title(known.get(scope, scope) if is_commit(scope) else scope) for scope in scopes}
    short = {scope: scope if PLACEHOLDER.match(name) else name for scope, name in short.items()}
    taken = list(short.values())
    names = {scope: name if taken.count(name) == 1 else scope for scope, name in short.items()}
    return {**names, GLOBAL: "every project"}

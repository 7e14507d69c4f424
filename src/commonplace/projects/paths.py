"""What the path of a folder or a file tells about its project, without a look at the disk.

Paths come from other machines and other days. They are compared as text, with `/` between their parts.
"""

from __future__ import annotations

import posixpath
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from commonplace.patterns import regex
from commonplace.projects import tables

_NUMBER_OR_HASH: Final = regex(r"[0-9._-]+|(?=[a-f-]*[0-9])[0-9a-f-]{6,}")
_WORKTREE_NAME: Final = regex(r"[\w.-]+")
_WORDS: Final = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_EXTENSION: Final = regex(r"[^.].*\.[A-Za-z]\w{0,9}|\.[\w.-]+")
_SHORTEST_NAME: Final = 3
_SMALLEST_DEPTH: Final = 3
_FEWEST_WORDS: Final = 2
_HASH_BYTES: Final = 5
_LONGEST_END: Final = 4


def normal(path: str) -> str:
    """Return a path with `/` between its parts and without `.`, `..` and a slash at its end."""
    return posixpath.normpath(path.replace("\\", "/")) if path else ""


def is_broad(folder: str) -> bool:
    """Say whether a folder is above everything: the root, a person's home, a folder for temporary files."""
    return tables.BROAD_FOLDER.fullmatch(folder) is not None


def is_below(path: str, folder: str) -> bool:
    """Say whether a path stands below a folder."""
    return path.startswith(folder.rstrip("/") + "/") and path != folder


@lru_cache(maxsize=8192)
def main_checkout(folder: str) -> str | None:
    """Return the main checkout that a worktree's path names; None for a path that is no worktree's."""
    for marker in tables.WORKTREES_INSIDE:
        found = marker.search(folder)
        if found and found.start() > 0 and found.end() < len(folder):
            root = folder[: found.start()]
            is_shared = is_broad(root) or root.rpartition("/")[2] in tables.WORKSPACE_PROGRAMS
            return None if is_shared else root
    above, _, name = folder.rpartition("/")
    found = tables.WORKTREE_BESIDE.search(name)
    if found and found.start() > 0 and _WORKTREE_NAME.fullmatch(name, found.end()):
        return f"{above}/{name[: found.start()]}"
    return None


@lru_cache(maxsize=8192)
def workspace_name(folder: str) -> str | None:
    """Return the project's name in the path of a workspace that a program made; None if there is none."""
    if main_checkout(folder) is not None:
        return None
    for pattern in tables.WORKSPACES:
        found = pattern.search(folder)
        if found:
            return found["name"].lower() if is_telling_name(found["name"]) else None
    return None


def is_telling_name(name: str) -> bool:
    """Say whether the name of a folder may tell its project: no generic word, no number, no hash."""
    lowered = name.lower()
    return (
        len(name) >= _SHORTEST_NAME
        and lowered not in tables.GENERIC_NAMES
        and _NUMBER_OR_HASH.fullmatch(lowered) is None
    )


@lru_cache(maxsize=8192)
def last_name(folder: str) -> str | None:
    """Return the name of a folder, in lower case, if it may tell its project."""
    name = folder.rpartition("/")[2]
    return name.lower() if is_telling_name(name) else None


@lru_cache(maxsize=8192)
def telling_ends(folder: str) -> frozenset[str]:
    """Return the ends of a path, of two to four parts, that have two uncommon names."""
    parts = [part.lower() for part in folder.split("/") if part]
    ends: set[str] = set()
    for count in range(2, min(_LONGEST_END, len(parts) - 1) + 1):
        end = parts[-count:]
        if sum(is_telling_name(part) and part not in tables.COMMON_PATH_WORDS for part in end) >= _FEWEST_WORDS:
            ends.add("/".join(end))
    return frozenset(ends)


def owner_and_name(path: str) -> str:
    """Return the last two parts of a path or an address, in lower case; empty if there are fewer."""
    parts = [part for part in path.lower().split("/") if part]
    return "/".join(parts[-2:]) if len(parts) >= 2 else ""


def title(project: str) -> str:
    """Return the name of a project: the last part of its address; of a folder, the last that is no number or hash."""
    if not project.startswith("/"):
        return project.rstrip("/").rpartition("/")[2] or project
    parts = [part for part in (main_checkout(project) or project).split("/") if part]
    names = [part for part in parts if _NUMBER_OR_HASH.fullmatch(part.lower()) is None]
    return names[-1] if names else project


def ends_in_number(folder: str) -> bool:
    """Say whether the name of a folder is a number or a hash."""
    return _NUMBER_OR_HASH.fullmatch(folder.rpartition("/")[2].lower()) is not None


def relative(path: str, folder: str, start: str) -> str | None:
    """Return a path as seen from the start folder of a session; None if it stands elsewhere.

    `folder` is where a relative path begins. A file in a worktree below the start folder is seen from that worktree.
    """
    whole = posixpath.normpath(path if path.startswith("/") else posixpath.join(folder, path))
    if not is_below(whole, start):
        return None
    inner = whole[len(start.rstrip("/")) + 1 :]
    for marker in tables.WORKTREES_INSIDE:
        found = marker.match("/" + inner)
        if found:
            return inner[found.end() - 1 :].partition("/")[2] or None
    return inner


def has_extension(path: str) -> bool:
    """Say whether a path looks like that of a file, not like a folder, a branch or a part of an address."""
    return _EXTENSION.fullmatch(path.rpartition("/")[2]) is not None


@lru_cache(maxsize=65536)
def file_key(path: str) -> str | None:
    """Return a short hash of a relative path that tells a project; None for one that many projects have."""
    parts = path.split("/")
    if len(parts) < _SMALLEST_DEPTH:
        return None
    if any(part in ("..", "...") or part.lower() in tables.VENDORED for part in parts):
        return None
    if path.startswith("."):  # settings of tools, which templates bring along
        return None
    words = {word.lower() for word in _WORDS.findall(path)} - tables.COMMON_PATH_WORDS
    if sum(len(word) >= 2 and not word.isdecimal() for word in words) < _FEWEST_WORDS:
        return None
    return blake2b(path.encode("utf-8", "replace"), digest_size=_HASH_BYTES).hexdigest()

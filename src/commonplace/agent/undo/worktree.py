"""What the user's repository says about a working tree: ignore rules, tracked paths and objects that can be borrowed.

The files of `.git` are read and never written; no repository is opened and no program is run, so that no hook, filter
or setting takes effect. Files that are missing, damaged or of an unknown format are ignored: then fewer files are left
out, or more objects are stored, and the snapshot is as good.
"""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from typing import Final

import msgspec

from commonplace.agent.undo.gitignore import BUILT_IN, IgnoreRules
from commonplace.patterns import regex

GIT: Final = ".git"
_MAX_BYTES: Final = 2**20
"""Longest file of rules or settings that is read."""
_MAX_INDEX_BYTES: Final = 2**30
"""How much of a repository's index is read."""
_ENTRY_BYTES: Final = 40
"""Bytes before the object's id in an entry of an index."""
_SHA256: Final = regex(r"^[ \t]*objectformat[ \t]*=[ \t]*sha256[ \t\r]*$", re.IGNORECASE | re.MULTILINE)
_EXCLUDES: Final = "core.excludesfile"
_FOLD: Final = "core.ignorecase"
_MAX_DEPTH: Final = 5
"""How many alternates are followed, one from the other; git's own bound."""


class WorkingTree(msgspec.Struct, frozen=True):
    """A folder of which snapshots are taken, and the repository around it, if any."""

    tree: Path
    root: Path | None = None
    """The top of the repository's working tree: the folder itself or one above it."""
    git: Path | None = None
    """Its own files (index, HEAD)."""
    common: Path | None = None
    """Those that all its working trees share (objects, config)."""
    is_sha256: bool = False

    def rules(self) -> list[tuple[bytes, IgnoreRules]]:
        """Return the ignore rules that hold at the top of the tree, weakest first.

        Each comes with the prefix that turns a path from the tree into a path from the folder of the rules.
        """
        if self.root is None or self.common is None:
            return [(b"", IgnoreRules(BUILT_IN))]
        fold = self.folds_case
        below = os.fsencode(self.tree.relative_to(self.root)) + b"/" if self.tree != self.root else b""
        sources: list[tuple[bytes, Path]] = [(below, place) for place in _excludes_files(self.common)[-1:]]
        sources.append((below, self.common / "info" / "exclude"))
        folder = self.root
        parts = self.tree.relative_to(self.root).parts
        for place, part in enumerate(parts):  # the tree's own file is found on the walk
            rest = b"/".join(os.fsencode(one) for one in parts[place:]) + b"/"
            sources.append((rest, folder / ".gitignore"))
            folder = folder / part
        found = [(before, IgnoreRules(_read(path), fold_case=fold)) for before, path in sources]
        return [one for one in found if not one[1].is_empty]

    def ignores_tree(self) -> bool:
        """Return whether the repository ignores the tree itself or a folder above it."""
        if self.root is None:
            return False
        parts = [os.fsencode(part) for part in self.tree.relative_to(self.root).parts]
        rules = self.rules()
        for end in range(1, len(parts) + 1):
            for before, one in reversed(rules):
                start = len(parts) - before.count(b"/")
                if start < end:
                    decision = one.decide(b"/".join(parts[start:end]), parts[end - 1], is_folder=True)
                    if decision:
                        return True
                    if decision is not None:
                        break
        return False

    @property
    def folds_case(self) -> bool:
        """Whether rules match without regard to case."""
        return self.common is not None and _setting(self.common / "config", _FOLD).lower() in ("true", "yes", "on", "1")

    def tracked(self) -> set[bytes]:
        """Return the paths below the tree that are in the index."""
        if self.root is None or self.git is None:
            return set()
        try:
            paths = _index_paths(self.git, self.git / "index", 32 if self.is_sha256 else 20)
        except (OSError, ValueError, IndexError, struct.error):
            return set()
        if self.tree == self.root:
            return set(paths)
        below = os.fsencode(self.tree.relative_to(self.root)) + b"/"
        return {path[len(below) :] for path in paths if path.startswith(below)}

    def objects(self) -> list[Path]:
        """Return the folders of objects that can be borrowed, the repository's own first."""
        if self.common is None or self.is_sha256:
            return []
        found: list[Path] = []
        _add_objects(self.common / "objects", found, 0)
        return found


def find_working_tree(tree: Path) -> WorkingTree:
    """Return the working tree of a resolved folder, with the repository around it, if any."""
    for place in (tree, *tree.parents):
        marker = place / GIT
        try:
            git = marker
            if marker.is_file():
                target = _read(marker).decode("utf-8", "surrogateescape").removeprefix("gitdir:").strip()
                git = (place / target).resolve()
            if not (git / "HEAD").is_file():
                continue
            shared = _read(git / "commondir").decode("utf-8", "surrogateescape").strip()
            common = (git / shared).resolve() if shared else git
            if not (common / "objects").is_dir():
                continue
        except (OSError, ValueError):
            continue
        config = _read(common / "config").decode("utf-8", "replace")
        found = WorkingTree(tree, place, git, common, _SHA256.search(config) is not None)
        # A folder that its repository ignores does not belong to it: a home folder may be a repository of settings.
        return found if tree == place or not found.ignores_tree() or found.tracked() else WorkingTree(tree)
    return WorkingTree(tree)


def root_of(cwd: Path) -> Path:
    """Return the folder whose snapshot covers a session there: the repository's working tree, else the folder."""
    folder = cwd.resolve(strict=True)
    return find_working_tree(folder).root or folder


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES)
    except (OSError, ValueError):
        return b""


def _excludes_files(common: Path) -> list[Path]:
    """Return the user's own files of ignore rules; the last one counts."""
    user = Path(os.environ.get("HOME") or "/")
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or user / ".config") / "git"
    found = [settings / "ignore"]
    for config in (settings / "config", user / ".gitconfig", common / "config"):
        name = _setting(config, _EXCLUDES)
        if name:
            found.append(user / name[2:] if name.startswith("~/") else Path(name))
    return found


def _setting(config: Path, name: str) -> str:
    import pygit2

    try:
        return (pygit2.Config(str(config))[name] or "") if config.is_file() else ""
    except (KeyError, OSError, ValueError, pygit2.GitError):
        return ""


def _add_objects(folder: Path, found: list[Path], depth: int) -> None:
    try:
        folder = folder.resolve(strict=True)
        str(folder).encode()  # libgit2 is given text
    except (OSError, ValueError):
        return
    if folder in found or not folder.is_dir():
        return
    found.append(folder)
    for line in _read(folder / "info" / "alternates").splitlines():
        if line and not line.startswith((b"#", b'"')) and depth < _MAX_DEPTH:
            _add_objects(folder / os.fsdecode(line), found, depth + 1)


def _index_paths(git: Path, index: Path, id_bytes: int) -> list[bytes]:
    with index.open("rb") as file:
        data = file.read(_MAX_INDEX_BYTES)
    magic, version, count = struct.unpack_from(">4sII", data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise ValueError(version)
    paths: list[bytes] = []
    place, previous = 12, b""
    for _ in range(count):
        start = place
        place += _ENTRY_BYTES + id_bytes
        is_extended = version > 2 and data[place] & 0x40
        place += 4 if is_extended else 2
        kept = b""
        if version == 4:
            cut, place = _varint(data, place)
            kept = previous[: len(previous) - cut]
        end = data.index(b"\0", place)
        previous = kept + data[place:end]
        paths.append(previous)
        # Up to version 3 entries are filled up with zeros to a multiple of eight bytes.
        place = end + 1 if version == 4 else start + ((end - start) // 8 + 1) * 8
    return paths + _shared_paths(git, data, place, id_bytes)


def _shared_paths(git: Path, data: bytes, place: int, id_bytes: int) -> list[bytes]:
    """Return the paths of the shared index that a split index refers to."""
    while place + 8 < len(data) - id_bytes:
        name, size = struct.unpack_from(">4sI", data, place)
        if name == b"link":
            shared = data[place + 8 : place + 8 + id_bytes]
            return _index_paths(git, git / f"sharedindex.{shared.hex()}", id_bytes) if any(shared) else []
        place += 8 + size
    return []


def _varint(data: bytes, place: int) -> tuple[int, int]:
    byte = data[place]
    value = byte & 0x7F
    while byte & 0x80:
        place += 1
        byte = data[place]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, place + 1

"""The baseline: the state of the workspace that was accepted last, as the one commit of a git repository in it.

What differs from it is what happened since: new inputs, and whatever a person changed by hand. The repository always
has exactly one commit without a parent, and making a new one removes the old one with all its objects, so that what is
forgotten cannot be had back from git.

It is written and read as objects and plain files; no repository is ever opened and no program is run. So no hook,
filter, template or setting, of the user or the system, can come into play. A state is what the files hold: path, mode
(executable or not) and content. Entries named `.git`, empty folders, special files and the diff belong to no state.
Comparing only hashes and writes nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import struct
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from commonplace.errors import WorkspaceError
from commonplace.memory.workspace import layout
from commonplace.memory.workspace.layout import DIFF, GIT
from commonplace.patterns import regex
from commonplace.rollout.private_folders import make_private

if TYPE_CHECKING:
    from pygit2 import Odb

NAME: Final = "Commonplace"
ADDRESS: Final = "no-reply@commonplace.invalid"
_BRANCH: Final = "refs/heads/main"
_CONFIG: Final = (
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tautocrlf = false\n\tsafecrlf = false\n"
)
_FILE: Final = 0o100644
_PROGRAM: Final = 0o100755
_LINK: Final = 0o120000
_TREE: Final = 0o40000
_MODULE: Final = 0o160000
_ID: Final = regex(r"[0-9a-f]{40}")
_REFERENCE: Final = regex(r"refs(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)+")
_HUNK: Final = regex(rb"^(@@ -[0-9,]+ \+[0-9,]+ @@)[^\n]*", re.MULTILINE)


class BaselineChange(msgspec.Struct, frozen=True):
    """A file that differs from the baseline."""

    letter: Literal["A", "M", "D"]
    path: str
    """From the root, with `/`; what is not UTF-8 in it is replaced."""


class _Entry(msgspec.Struct, frozen=True):
    mode: int
    blob: str


_Files = dict[bytes, _Entry]
_Pair = tuple[bytes, _Entry | None, _Entry | None]
"""A path, what the baseline has there and what is there now."""


def ensure(root: Path, moment: datetime, *, message: str = "Baseline") -> bool:
    """Make a baseline of what is there unless there is one that can be used; return whether it was made."""
    try:
        objects, tree, _ = _head(root)
        for entry in _baseline(objects, tree).values():
            objects.read_header(entry.blob)
    except (*_unreadable(), WorkspaceError):
        reset(root, message, moment)
        return True
    return False


def reset(root: Path, message: str, moment: datetime) -> None:
    """Make what is there now the baseline, with nothing before it; the diff is removed, it is of the past."""
    from pygit2 import Odb
    from pygit2.enums import ObjectType

    (root / DIFF).unlink(missing_ok=True)
    git = root / GIT
    if git.is_dir() and not git.is_symlink():
        shutil.rmtree(git)
    else:
        git.unlink(missing_ok=True)
    for folder in ("refs/heads", "objects/info", "objects/pack"):
        make_private(git / folder)
    objects = Odb(str(git / "objects"))
    files: _Files = {}
    for path, mode, data in _read_all(root):
        files[path] = _Entry(mode, str(objects.write(ObjectType.BLOB, data)))
    seconds = int(moment.timestamp())
    who = f"{NAME} <{ADDRESS}> {seconds} +0000"
    text = f"tree {_write_tree(objects, files)}\nauthor {who}\ncommitter {who}\n\n{message}\n"
    commit = objects.write(ObjectType.COMMIT, text.encode("utf-8", "replace"))
    _write(git / "index", _index(files))
    _write(git / "config", _CONFIG.encode())
    _write(git / _BRANCH, f"{commit}\n".encode())
    _write(git / "HEAD", f"ref: {_BRANCH}\n".encode())  # last: without it there is no baseline


def message(root: Path) -> str | None:
    """Return what was said when the baseline was made; None if there is none."""
    try:
        return _head(root)[2]
    except (*_unreadable(), WorkspaceError):
        return None


def status(root: Path, *, against: Path | None = None) -> list[BaselineChange]:
    """Return what is not as in the baseline, by path; `against` names the workspace whose baseline it is, if another.

    Raises:
        WorkspaceError: there is no baseline that can be read.
    """
    pairs, _ = _compare(root, against or root)
    return [_change(pair) for pair in pairs]


def content(root: Path, path: str) -> str | None:
    """Return what the baseline has in a file, as text; None if it has none."""
    try:
        objects, tree, _ = _head(root)
        entry = _baseline(objects, tree).get(os.fsencode(path))
        return _content(objects, entry.blob).decode("utf-8", "replace") if entry is not None else None
    except (*_unreadable(), WorkspaceError):
        return None


def working_files(root: Path) -> Iterator[tuple[str, bool, bytes]]:
    """Yield path, whether it can be run, and content of every file that is there now; links are left out."""
    for path, mode, data in _read_all(root):
        if mode != _LINK:
            yield os.fsdecode(path), mode == _PROGRAM, data


def accepted_files(root: Path) -> Iterator[tuple[str, bool, bytes]]:
    """Yield the same of every file of the baseline.

    Raises:
        WorkspaceError: there is no baseline that can be read.
    """
    try:
        objects, tree, _ = _head(root)
        files = _baseline(objects, tree)
    except _unreadable() as error:
        raise _damaged(root) from error
    for path, entry in files.items():
        if entry.mode != _LINK:
            yield os.fsdecode(path), entry.mode == _PROGRAM, _content(objects, entry.blob)


def diff(root: Path, *, against: Path | None = None) -> str:
    """Return what is not as in the baseline, as unified diffs of all files that changed.

    Raises:
        WorkspaceError: there is no baseline that can be read.
    """
    pairs, objects = _compare(root, against or root)
    return "".join(_section(pair, root, objects) for pair in pairs)


def _change(pair: _Pair) -> BaselineChange:
    path, before, after = pair
    return BaselineChange("A" if before is None else "D" if after is None else "M", path.decode("utf-8", "replace"))


def _compare(root: Path, place: Path) -> tuple[list[_Pair], Odb]:
    try:
        objects, tree, _ = _head(place)
        before = _baseline(objects, tree)
    except _unreadable() as error:
        raise _damaged(place) from error
    after = {path: _Entry(mode, _blob_id(data)) for path, mode, data in _read_all(root)}
    changed = [path for path in before.keys() | after if before.get(path) != after.get(path)]
    return [(path, before.get(path), after.get(path)) for path in sorted(changed)], objects


# The files


def _read_all(root: Path) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield path, mode and content of every file that belongs to the state."""
    yield from _read_folder(os.fsencode(root), b"")


def _read_folder(folder: bytes, below: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            path = below + entry.name
            if entry.name == GIT.encode() or path == DIFF.encode() or layout.is_part(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _read_folder(entry.path, path + b"/")
                continue
            try:
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISREG(mode):
                    with open(entry.path, "rb", buffering=0) as file:  # noqa: PTH123  # bytes have no Path
                        yield path, _PROGRAM if mode & 0o111 else _FILE, file.readall()
                elif stat.S_ISLNK(mode):
                    yield path, _LINK, os.readlink(entry.path)  # noqa: PTH115
            except FileNotFoundError:  # somebody removed it just now
                continue


def _blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    path.chmod(0o600)


# The repository


def _unreadable() -> tuple[type[Exception], ...]:
    """Return what is raised for objects and references that are missing or damaged."""
    from pygit2 import GitError

    return (GitError, KeyError, ValueError, OSError)


def _damaged(root: Path) -> WorkspaceError:
    return WorkspaceError(
        f"The baseline of the memory folder {root} cannot be read.",
        hint=f"Remove {root / GIT}; what is there now becomes the baseline when memory is next updated.",
        path=str(root),
    )


def _head(root: Path) -> tuple[Odb, str, str]:
    """Return the objects of a baseline, the id of its tree and its message."""
    from pygit2 import Odb
    from pygit2.enums import ObjectType

    git = root / GIT
    if git.is_symlink() or not git.is_dir():
        raise _damaged(root)
    objects = Odb(str(git / "objects"))
    kind, data = objects.read(_head_id(git))
    header, _, text = data.decode("utf-8", "replace").partition("\n\n")
    tree = header.partition("\n")[0].removeprefix("tree ")
    if kind != ObjectType.COMMIT or not _ID.fullmatch(tree):
        raise _damaged(root)
    return objects, tree, text.removesuffix("\n")


def _head_id(git: Path) -> str:
    """Follow HEAD to the id of its commit; git itself may have packed the reference."""
    head = (git / "HEAD").read_text("utf-8").strip()
    name = head.removeprefix("ref: ")
    if name != head:
        if not _REFERENCE.fullmatch(name):
            raise ValueError(name)
        if (git / name).is_file():
            head = (git / name).read_text("utf-8").strip()
        else:
            packed = (git / "packed-refs").read_text("utf-8").splitlines()
            head = next((line[:40] for line in packed if line[40:] == f" {name}"), "")
    if not _ID.fullmatch(head):
        raise ValueError(head)
    return head


def _baseline(objects: Odb, tree: str, below: bytes = b"") -> _Files:
    """Return the files of a tree and all trees in it."""
    found: _Files = {}
    data = objects.read(tree)[1]
    place = 0
    while place < len(data):
        end = data.index(b"\0", place)
        mode, _, name = data[place:end].partition(b" ")
        place = end + 21
        kind, blob = int(mode, 8), data[end + 1 : place].hex()
        if name in (b"", b".", b"..", GIT.encode()) or b"/" in name:  # no tool of git makes these
            raise ValueError(name)
        if kind == _TREE:
            found |= _baseline(objects, blob, below + name + b"/")
        elif kind != _MODULE:  # another repository is not ours to compare
            found[below + name] = _Entry(kind, blob)
    return found


def _write_tree(objects: Odb, files: _Files) -> str:
    from pygit2.enums import ObjectType

    here: list[tuple[bytes, int, str]] = []
    folders: dict[bytes, _Files] = {}
    for path, entry in files.items():
        name, slash, rest = path.partition(b"/")
        if slash:
            folders.setdefault(name, {})[rest] = entry
        else:
            here.append((name, entry.mode, entry.blob))
    here += [(name, _TREE, _write_tree(objects, inner)) for name, inner in folders.items()]
    # Git sorts a folder as if its name ended in a slash.
    here.sort(key=lambda one: one[0] + b"/" if one[1] == _TREE else one[0])
    data = b"".join(b"%o %s\0%s" % (mode, name, bytes.fromhex(blob)) for name, mode, blob in here)
    return str(objects.write(ObjectType.TREE, data))


def _index(files: _Files) -> bytes:
    """Return an index (version 2) that has what the commit has, and knows no times: git looks for itself."""
    parts = [struct.pack(">4sII", b"DIRC", 2, len(files))]
    for path in sorted(files):
        entry = files[path]
        flags = min(len(path), 0xFFF)
        raw = struct.pack(">24xI12x20sH", entry.mode, bytes.fromhex(entry.blob), flags) + path
        parts.append(raw + b"\0" * (8 - len(raw) % 8))
    data = b"".join(parts)
    return data + hashlib.sha1(data, usedforsecurity=False).digest()


def _content(objects: Odb, blob: str) -> bytes:
    try:
        return objects.read(blob)[1]
    except _unreadable() as error:
        raise WorkspaceError(
            f"The baseline of the memory folder has lost the content {blob}.",
            hint="Remove .git in it; what is there now becomes the baseline when memory is next updated.",
        ) from error


# The difference


def _section(pair: _Pair, root: Path, objects: Odb) -> str:
    path, before, after = pair
    name = path.decode("utf-8", "replace")
    lines = [f"diff --git a/{name} b/{name}"]
    if before is None and after is not None:
        lines.append(f"new file mode {after.mode:o}")
    elif after is None and before is not None:
        lines.append(f"deleted file mode {before.mode:o}")
    elif before is not None and after is not None and before.mode != after.mode:
        lines += [f"old mode {before.mode:o}", f"new mode {after.mode:o}"]
    old = _content(objects, before.blob) if before else b""
    new = _current(root, path) if after else b""
    hunks = _hunks(old, new)
    if hunks:
        lines += [f"--- a/{name}" if before else "--- /dev/null", f"+++ b/{name}" if after else "+++ /dev/null"]
    text = "\n".join(lines) + "\n" + hunks
    return text if text.endswith("\n") else text + "\n"


def _current(root: Path, path: bytes) -> bytes:
    place = root / os.fsdecode(path)
    try:
        return os.fsencode(place.readlink()) if place.is_symlink() else place.read_bytes()
    except FileNotFoundError:  # it was there a moment ago
        return b""


def _hunks(old: bytes, new: bytes) -> str:
    from pygit2 import Patch
    from pygit2.enums import DiffOption

    # What is not UTF-8 is replaced before comparing, so that every line of the result is text.
    before, after = (data.decode("utf-8", "replace").encode() for data in (old, new))
    if before == after:
        return ""
    data = Patch.create_from(before, after, flag=DiffOption.FORCE_TEXT).data
    start = data.find(b"\n@@ ") + 1
    return _HUNK.sub(rb"\1", data[start:]).decode("utf-8", "replace") if start else ""

"""Replacing the whole workspace at once: a new state is made beside it and then takes its place.

    staged = stage(root)        # memories.next: the same files, as hard links
    put(staged / …, text)       # files are replaced, never written in place: their content is shared with the root
    commit(staged, root)        # both folders change places, then the old state goes

Whatever kills the process, and at whatever instant, the root is the whole old or the whole new state. Where two folders
cannot be exchanged in one step there is an instant without a root; `memories.old` then is the proof that the new state
was complete, and `recover` goes on from there. `recover` comes before anything else looks at the workspace. It leaves
alone what a living process is making.

What a person saves meanwhile is not lost: `memories.next.json` holds what was staged from (names, sizes, times and
inodes), and `commit` gives up when the root no longer is that, before the exchange or right after it. A file that is
written in place is the same file in both states.

`.git` at the top is not staged: a baseline made in the staged folder comes with it, else the root's own goes along.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from commonplace.errors import WorkspaceBusy, WorkspaceChanged, WorkspaceError
from commonplace.memory.workspace import swap
from commonplace.memory.workspace.layout import DIFF, GIT, PART, is_part
from commonplace.rollout import private_folders
from commonplace.state import jobs

_NEXT: Final = ".next"
_OLD: Final = ".old"
_SEEN: Final = ".next.json"
_SHOWN: Final = 5
"""How many of the changed paths an error names."""


class _StagingOrigin(msgspec.Struct, frozen=True):
    """The state that was staged from, and the process that staged it."""

    worker: jobs.Worker
    entries: dict[str, tuple[int, ...]]


def put(path: Path, text: str | bytes, *, mode: int = 0o600) -> None:
    """Replace a file, or make it with the folders on its way; nobody ever sees a part of it."""
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    private_folders.make_private(path.parent)
    # Named by who writes, not by the file: a name may be as long as names can be.
    part = path.parent / f".{os.getpid()}-{threading.get_ident()}{PART}"
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)  # noqa: PTH105  # as the other steps here, so that tests can count them
    except OSError:
        part.unlink(missing_ok=True)
        raise


def stage(root: Path) -> Path:
    """Make `memories.next` with all that the root holds, except its baseline and the diff; what was left there goes.

    Raises:
        WorkspaceBusy: another process of this host has staged a state and lives.
        WorkspaceChanged: files vanished while they were staged.
    """
    recover(root)
    here, before = jobs.this_process(), _read_seen(root)
    if before is not None and before.worker.host == here.host and before.worker != here:
        raise WorkspaceBusy(
            f"Process {before.worker.pid} is changing the memory folder {root}.",
            hint="Wait until it ends.",
            path=str(root),
            holder=before.worker.pid,
        )
    discard(root)
    staged, entries = _beside(root, _NEXT), _survey(root)
    _write_seen(root, _StagingOrigin(here, entries))
    staged.mkdir(mode=0o700)
    try:
        for name in sorted(entries):
            _link(root, staged, name)
    except FileNotFoundError as error:
        raise _changed(root, {str(error.filename)}) from error
    return staged


def commit(staged: Path, root: Path) -> None:
    """Put what was staged in the root's place and remove what was there.

    Raises:
        WorkspaceChanged: the root is not what was staged from; it stays as it is. Stage again and do the work anew.
    """
    seen = _read_seen(root)
    if seen is None or seen.worker != jobs.this_process() or not staged.is_dir():
        raise WorkspaceError(f"Nothing is staged for {root}.", hint="Stage it first.", path=str(root))
    _compare(root, seen.entries, root)
    if not (staged / GIT).is_dir() and (root / GIT).is_dir():
        _carry(root / GIT, staged / GIT)
    _sync_folders(staged)
    if swap.exchange(staged, root):
        private_folders.sync(root.parent)
        try:
            _compare(staged, seen.entries, root)
        except WorkspaceChanged:
            swap.exchange(staged, root)
            private_folders.sync(root.parent)
            raise
    else:
        _replace_in_two_steps(staged, root, seen)
    discard(root)


def _replace_in_two_steps(staged: Path, root: Path, seen: _StagingOrigin) -> None:
    old = _beside(root, _OLD)
    os.rename(root, old)  # noqa: PTH104
    private_folders.sync(root.parent)
    try:
        _compare(old, seen.entries, root)
    except WorkspaceChanged:
        with contextlib.suppress(FileNotFoundError):
            os.rename(old, root)  # noqa: PTH104
        private_folders.sync(root.parent)
        raise
    with contextlib.suppress(FileNotFoundError):  # somebody who wanted to read did it for us
        os.rename(staged, root)  # noqa: PTH104
    private_folders.sync(root.parent)


def discard(root: Path) -> None:
    """Remove what stands beside the root: a staged state that is not wanted, or the one that was replaced."""
    for place in (_OLD, _NEXT, _SEEN):  # last the proof of whose they are
        _remove(_beside(root, place))


def recover(root: Path) -> None:
    """Finish or clean up what a crash left beside the root; costs next to nothing where nothing is.

    Raises:
        WorkspaceError: something else was put in the root's place after the crash.
    """
    staged, old, note = _beside(root, _NEXT), _beside(root, _OLD), _beside(root, _SEEN)
    if not any(os.path.lexists(place) for place in (staged, old, note)):
        return
    seen = _read_seen(root)
    is_live = seen is not None and _lives(seen.worker)
    if old.is_dir() and not os.path.lexists(root):
        is_same = seen is not None and staged.is_dir() and _is_still(old, seen.entries)
        with contextlib.suppress(FileNotFoundError):  # the one who was replacing it goes on, after all
            os.rename(staged if is_same else old, root)  # noqa: PTH104
        private_folders.sync(root.parent)
    elif old.is_dir() and staged.is_dir() and not is_live:
        raise WorkspaceError(
            f"A crash left the memory folder as {old.name}, and {root} was made anew since.",
            hint=f"Remove {root} if nothing in it is needed, or else {old}; then try again.",
            path=str(root),
        )
    if not is_live:
        discard(root)


def _lives(worker: jobs.Worker) -> bool:
    """Say whether a process lives; of one on another host nothing is known, and it may."""
    here = jobs.this_process()
    return worker.host != here.host or jobs.process_start(worker.pid) == worker.process_start


def _beside(root: Path, ending: str) -> Path:
    return root.with_name(root.name + ending)


def _read_seen(root: Path) -> _StagingOrigin | None:
    import json

    try:
        return msgspec.convert(json.loads(_beside(root, _SEEN).read_bytes()), _StagingOrigin)
    except (FileNotFoundError, ValueError):
        return None


def _write_seen(root: Path, seen: _StagingOrigin) -> None:
    import json  # slow to import, and most commands only read the memory

    # Only the standard library's JSON keeps names that are not text. Half of it is as good as none: nothing was staged.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(_beside(root, _SEEN), flags, 0o600), "w", encoding="ascii") as file:
        json.dump(msgspec.to_builtins(seen), file)


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    elif os.path.lexists(place):
        place.unlink()


def _survey(root: Path) -> dict[str, tuple[int, ...]]:
    """Return the files (size, time, inode) and folders (inode) of a state, by their paths from the root.

    The times of folders and the baseline do not count; what is neither file nor folder belongs to no state.
    """
    found: dict[str, tuple[int, ...]] = {}
    try:
        for entry, path in _walk(root, ""):
            about = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(about.st_mode):
                found[path] = (about.st_size, about.st_mtime_ns, about.st_ino)
            elif stat.S_ISDIR(about.st_mode):
                found[path] = (about.st_ino,)
    except FileNotFoundError as error:
        raise _changed(root, {str(error.filename)}) from error
    return found


def _walk(folder: Path, below: str) -> Iterator[tuple[os.DirEntry[str], str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if (not below and entry.name in (GIT, DIFF)) or is_part(entry.name):
                continue
            path = below + entry.name
            yield entry, path
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path), path + "/")


def _compare(place: Path, expected: dict[str, tuple[int, ...]], root: Path) -> None:
    """Make sure that a state is the one that was staged from, wherever it stands now."""
    found = _survey(place)
    if found != expected:
        raise _changed(root, {path for path in found.keys() | expected if found.get(path) != expected.get(path)})


def _is_still(place: Path, expected: dict[str, tuple[int, ...]]) -> bool:
    try:
        return _survey(place) == expected
    except WorkspaceChanged:
        return False


def _changed(root: Path, paths: set[str]) -> WorkspaceChanged:
    names = sorted(path.encode(errors="replace").decode() for path in paths)
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    return WorkspaceChanged(
        f"Somebody changed the memory folder {root} meanwhile: {shown}.",
        hint="Nothing was replaced; run it again, and it begins with what is there now.",
        path=str(root),
        changed=names,
    )


def _link(root: Path, staged: Path, name: str) -> None:
    source, target = root / name, staged / name
    if source.is_dir():
        target.mkdir(mode=0o700)
        return
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:  # a file system without hard links, or a file of somebody else
        shutil.copy2(source, target, follow_symlinks=False)


def _carry(git: Path, target: Path) -> None:
    """Let a baseline go along: git replaces its files and never writes into them, so links will do."""
    target.mkdir(mode=0o700)
    for entry, path in _walk(git, ""):
        if entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False):
            _link(git, target, path)


def _sync_folders(staged: Path) -> None:
    for entry, _ in _walk(staged, ""):
        if entry.is_dir(follow_symlinks=False):
            private_folders.sync(Path(entry.path))
    private_folders.sync(staged)

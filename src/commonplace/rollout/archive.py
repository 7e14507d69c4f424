"""Moving whole threads: archive, unarchive, delete. Each takes the writer's lock, so none happens under a writer.

A thread that was reverted has several files; they move together, and if one move fails the others are undone.
"""

from __future__ import annotations

import os
from pathlib import Path

from commonplace.errors import LedgerError
from commonplace.rollout import layout, locks
from commonplace.rollout.private_folders import make_private


def files_of(home: Path, thread_id: str) -> list[Path]:
    """Return every file of a thread in a home, by name; also a compressed one that its plain sibling hides."""
    found: list[Path] = []
    for file in layout.walk(home):
        named = layout.parse_name(file.path.name)
        if named is not None and named.thread_id == thread_id:
            hidden = file.path.with_name(f"{file.path.name}.zst")
            found.extend([file.path, hidden] if hidden.exists() else [file.path])
    return sorted(found)


def archive(home: Path, thread_id: str, files: list[Path]) -> list[Path]:
    """Move a thread's files to the archive; return where they are now (raises ThreadBusy, LedgerError)."""
    return _move(home, thread_id, [(path, layout.archived_path(home, path)) for path in files])


def unarchive(home: Path, thread_id: str, files: list[Path]) -> list[Path]:
    """Move a thread's files back to the day they were made (raises ThreadBusy, LedgerError)."""
    return _move(home, thread_id, [(path, layout.unarchived_path(home, path)) for path in files])


def _move(home: Path, thread_id: str, moves: list[tuple[Path, Path]]) -> list[Path]:
    with locks.WriterLock(home, thread_id):
        begun: list[tuple[Path, Path]] = []
        try:
            for source, target in moves:
                if source == target:
                    continue
                make_private(target.parent)
                os.link(source, target)  # unlike a rename, this never writes over a file
                begun.append((source, target))
                source.unlink()
        except OSError as error:
            hint = "Nothing was changed." if _undo(begun) else "Some are in both places, or in the other one."
            reason = f"The files of thread {thread_id} could not be moved: {error.strerror}."
            raise LedgerError(reason, hint=hint) from error
    return [target for _, target in moves]


def _undo(begun: list[tuple[Path, Path]]) -> bool:
    """Move files back, as many as go; return whether all did."""
    failed = 0
    for source, target in reversed(begun):
        try:
            if not source.exists():
                os.link(target, source)
            target.unlink()
        except OSError:
            failed += 1
    return not failed


def delete(home: Path, thread_id: str, files: list[Path]) -> None:
    """Remove a thread's files (raises ThreadBusy, LedgerError)."""
    with locks.WriterLock(home, thread_id):
        for path in files:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                reason = f"{path} could not be removed: {error.strerror}."
                raise LedgerError(reason, hint="What was removed before it is gone; try again.") from error

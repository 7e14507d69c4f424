"""Putting published files in the place of those in a workspace, the whole state at once, with a baseline of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from commonplace.memory.sharing.inventory import INSIDE, FileContent
from commonplace.memory.workspace import baseline, layout, staging
from commonplace.state.shared_memory import SharedFile


def replace(
    root: Path,
    files: Mapping[str, SharedFile],
    contents: Mapping[str, bytes],
    here: Mapping[str, FileContent],
    accepted: str,
    moment: datetime,
) -> None:
    """Make a workspace what is published; `here` is what it holds now, `accepted` what its baseline is to say.

    Raises:
        WorkspaceBusy: a consolidation of this host is at it.
        WorkspaceChanged: somebody changed the workspace meanwhile; it stays as it is.
    """
    inside = {path: each for path, each in files.items() if path.startswith(INSIDE)}
    held = {path for path in here if path.startswith(INSIDE)}
    stale = [path for path, each in inside.items() if path not in here or here[path].sha256 != each.sha256]
    gone = sorted(held - inside.keys())
    if not stale and not gone and baseline.message(root) == accepted and not baseline.status(root):
        return
    staged = staging.stage(root)
    try:
        for path in gone:
            place = staged / path.removeprefix(INSIDE)
            place.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # it is not empty
                place.parent.rmdir()
        _write(staged, {path: inside[path] for path in stale}, contents)
        baseline.reset(staged, accepted, moment)
        staging.commit(staged, root)
    except BaseException:
        staging.discard(root)
        raise


def replace_inputs(
    root: Path,
    files: Mapping[str, SharedFile],
    contents: Mapping[str, bytes],
    here: Mapping[str, FileContent],
) -> None:
    """Make what people wrote what is published, where no host has put a memory together yet; `here` is what they wrote
    as this home has it.
    """
    inside = {path: each for path, each in files.items() if path.startswith(INSIDE)}
    for path in here.keys() - inside.keys():
        (root / path.removeprefix(INSIDE)).unlink(missing_ok=True)
    stale = {path: each for path, each in inside.items() if path not in here or here[path].sha256 != each.sha256}
    _write(root, stale, contents)


def clear(root: Path, kept: Mapping[str, FileContent]) -> None:
    """Remove everything from a workspace but some files, with the baseline: somebody began the memory anew."""
    for path, _, _ in list(baseline.working_files(root)):
        if INSIDE + path not in kept:
            (root / path).unlink(missing_ok=True)
    shutil.rmtree(root / layout.GIT, ignore_errors=True)


def _write(root: Path, files: Mapping[str, SharedFile], contents: Mapping[str, bytes]) -> None:
    for path, each in files.items():
        place = root / path.removeprefix(INSIDE)
        staging.put(place, contents[each.sha256], mode=0o700 if each.is_program else 0o600)
        os.utime(place, ns=(each.mtime_ns, each.mtime_ns))

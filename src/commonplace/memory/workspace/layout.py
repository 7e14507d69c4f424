"""Where things are in the memory workspace, `home/memories`, and making that place safe to write in.

    MEMORY.md, memory_summary.md, skills/       what was learned, for readers
    raw_memories.md, rollout_summaries/         what single sessions taught, the inputs
    extensions/<name>/                          other inputs: instructions.md, resources/, and ad_hoc/notes/ of people
    phase2_workspace_diff.md                    what changed since the baseline; made for one run, part of no state
    .edits.jsonl                                what a model changed in wording and order, for the next consolidation
    .git/                                       the baseline: the state that was accepted last

Folders are for their owner alone. Links have no place here: through one, a writer would change a file elsewhere and a
reader would show one. `ensure` removes them all without following any, and runs before anything is written.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from commonplace.errors import WorkspaceError
from commonplace.rollout.private_folders import make_private

FOLDER: Final = "memories"
MEMORY: Final = "MEMORY.md"
SUMMARY: Final = "memory_summary.md"
RAW: Final = "raw_memories.md"
SUMMARIES: Final = "rollout_summaries"
SKILLS: Final = "skills"
EXTENSIONS: Final = "extensions"
NOTES: Final = "extensions/ad_hoc/notes"
INSTRUCTIONS: Final = "instructions.md"
DIFF: Final = "phase2_workspace_diff.md"
EDITS: Final = ".edits.jsonl"
GIT: Final = ".git"
PART: Final = ".commonplace-part"
"""How the name of a half-written file ends; a crash can leave one behind, and it belongs to no state."""


def ensure(root: Path) -> list[str]:
    """Make the workspace if it is missing and remove every link in it; return the paths of those, from the root.

    Raises:
        WorkspaceError: the root is a link, or something that is no folder stands where one belongs.
    """
    if root.is_symlink():
        raise WorkspaceError(
            f"The memory folder {root} is a link.",
            hint="Replace it by a folder, or set COMMONPLACE_HOME to the place it leads to.",
            path=str(root),
        )
    _folder(root)
    removed = sorted(os.fsdecode(path) for path in _remove_links(os.fsencode(root), b""))
    _folder(root / SUMMARIES)
    return removed


def is_part(name: str | bytes) -> bool:
    """Say whether a file is a half-written one of ours."""
    return os.fsdecode(name).endswith(PART)


def _folder(place: Path) -> None:
    try:
        make_private(place)
    except (FileExistsError, NotADirectoryError):
        raise WorkspaceError(
            f"{place} is not a folder.", hint="Move it away; a folder is made in its place.", path=str(place)
        ) from None


def _remove_links(root: bytes, below: bytes) -> list[bytes]:
    """Remove the links in a folder and all folders in it; names are bytes, since a link may be called anything."""
    removed: list[bytes] = []
    folders: list[bytes] = []
    with os.scandir(os.path.join(root, below) if below else root) as entries:  # noqa: PTH118  # bytes have no Path
        for entry in entries:
            path = os.path.join(below, entry.name)  # noqa: PTH118
            if entry.is_symlink():
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(entry.path)  # noqa: PTH108
                removed.append(path)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(path)
    for path in folders:
        removed += _remove_links(root, path)
    return removed

"""Files of a workspace that have another name outside of it: a command that changes them changes what lies outside.

No rule about paths stops that, so it is said before the first command that may write. A command cannot make such a
name itself: the sandbox refuses it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

MOST_ENTRIES: Final = 50_000
"""How many entries are looked at; a larger workspace is looked at in part."""


def linked_files(roots: Iterable[Path]) -> list[str]:
    """Return the files that have more names than were seen in the folders, sorted."""
    names: dict[tuple[int, int], list[str]] = {}
    wanted: dict[tuple[int, int], int] = {}
    waiting = [str(root) for root in roots]
    left = MOST_ENTRIES
    while waiting and left > 0:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                        continue
                    about = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(about.st_mode) and about.st_nlink > 1:
                        key = (about.st_dev, about.st_ino)
                        names.setdefault(key, []).append(entry.path)
                        wanted[key] = about.st_nlink
        except OSError:  # it went away, or may not be read: then it may not be written either
            continue
    return sorted(found[0] for key, found in names.items() if len(set(found)) < wanted[key])


def warning(files: list[str]) -> str:
    """Return what a person is told of such files."""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{files[0]}{more}: these files have other names outside the workspace, and a change reaches those too."

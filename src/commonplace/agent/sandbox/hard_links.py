"""Files of a workspace that have another name outside of it: a command that changes them changes what lies outside.

No rule about paths stops that, so it is said before the first command that may write. Git's own folder counts as
outside, for it is protected. A command cannot make such a name itself: the sandbox refuses it. The other names of the
files that hooks and servers run are found, so that they can be protected too.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

MOST_ENTRIES: Final = 50_000
"""How many entries are looked at; a larger workspace is looked at in part."""

_Inode = tuple[int, int]
"""What names of the same file have in common: the device and the number there."""


def linked_files(roots: Iterable[Path]) -> list[str]:
    """Return the files that have more names than were seen in the folders, sorted."""
    names: dict[_Inode, list[str]] = {}
    wanted: dict[_Inode, int] = {}
    for path, about in _linked(roots):
        names.setdefault((about.st_dev, about.st_ino), []).append(path)
        wanted[about.st_dev, about.st_ino] = about.st_nlink
    return sorted(found[0] for key, found in names.items() if len(set(found)) < wanted[key])


def other_names(files: Iterable[Path], roots: Iterable[Path]) -> list[Path]:
    """Return further names that files have in the folders."""
    wanted: set[_Inode] = set()
    for file in files:
        try:
            about = file.stat()
        except OSError:
            continue
        if about.st_nlink > 1 and stat.S_ISREG(about.st_mode):
            wanted.add((about.st_dev, about.st_ino))
    if not wanted:
        return []
    return [Path(path) for path, about in _linked(roots) if (about.st_dev, about.st_ino) in wanted]


def _linked(roots: Iterable[Path]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files of folders that have more than one name; not those in the folder of git at the top."""
    waiting = [str(root) for root in roots]
    skipped = {f"{root}/.git" for root in waiting}
    left = MOST_ENTRIES
    while waiting and left > 0:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting += [] if entry.path in skipped else [entry.path]
                        continue
                    about = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(about.st_mode) and about.st_nlink > 1:
                        yield entry.path, about
        except OSError:  # it went away, or may not be read: then it may not be written either
            continue


def warning(files: list[str]) -> str:
    """Return what a person is told of such files."""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    where = "outside the workspace or in .git"
    return f"{files[0]}{more}: these files have other names {where}, and a change reaches those too."

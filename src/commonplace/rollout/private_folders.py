"""Folders of a home are private: whatever is missing on the way is made for the owner alone."""

from __future__ import annotations

import os
from pathlib import Path


def make_private(folder: Path) -> list[Path]:
    """Make a folder and its missing parents with mode 0700 (`mkdir(parents=True)` would leave parents open).

    Returns the folders that were missing, outermost first.
    """
    missing: list[Path] = []
    place = folder
    while not place.is_dir():
        missing.append(place)
        if place.parent == place:
            break
        place = place.parent
    missing.reverse()
    for place in missing:
        place.mkdir(mode=0o700, exist_ok=True)
    return missing


def sync(folder: Path) -> None:
    """Make the names in a folder survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

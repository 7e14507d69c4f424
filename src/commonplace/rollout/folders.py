"""Folders of a home are private: whatever is missing on the way is made for the owner alone."""

from __future__ import annotations

from pathlib import Path


def make_private(folder: Path) -> None:
    """Make a folder and its missing parents with mode 0700 (`mkdir(parents=True)` would leave parents open)."""
    missing: list[Path] = []
    place = folder
    while not place.is_dir():
        missing.append(place)
        if place.parent == place:
            break
        place = place.parent
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)

"""The gold sets: labelled sessions, described in `gold/README.md`. `near` is the one that is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from commonplace.learning.evaluate import cases
from commonplace.learning.evaluate.cases import Case

FOLDER: Final = Path(__file__).parent / "gold"
HALVES: Final = ("near", "far")
"""Written before any detector."""
SETS: Final = (*HALVES, "wide")
MEMORIES: Final = ("together", "apart")
"""Several sessions of one person each, for what is made of them together; `apart` is held out."""
HELD_OUT: Final = ("far", "apart")
"""Kept compressed: nobody who works on the detectors reads them, and no search through the tree prints them."""


def load(name: str) -> list[Case]:
    """Return the cases of a set."""
    if name == cases.BUNDLED:
        return cases.bundled()
    return cases.read(FOLDER / (f"{name}.jsonl.gz" if name in HELD_OUT else f"{name}.jsonl"))

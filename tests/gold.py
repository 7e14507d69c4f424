"""The gold sets of `bench/gold/`, for tests that need many realistic sessions."""

from __future__ import annotations

from pathlib import Path

from commonplace.learning.evaluate import cases
from commonplace.learning.evaluate.cases import Case

FOLDER = Path(__file__).parent.parent / "bench" / "gold"


def load(name: str) -> list[Case]:
    """Return the cases of a set; the held-out ones are not for tests."""
    return cases.bundled() if name == cases.BUNDLED else cases.read(FOLDER / f"{name}.jsonl")

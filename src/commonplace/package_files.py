"""The data files inside the package, such as tables of words and texts of instructions.

They are read by path: `importlib.resources` loads parts of the standard library that no command needs at its start.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent


def text(name: str) -> str:
    """Return the text of a file, named by its path inside the package."""
    return (ROOT / name).read_text("utf-8")

"""`phase2_workspace_diff.md`: what changed since the baseline, for whoever consolidates to read first.

It is made for one run and belongs to no state: neither comparing nor a baseline ever sees it. The list of changes is
always whole; the diff is cut at a bound.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from commonplace.memory.workspace import baseline
from commonplace.memory.workspace.baseline import BaselineChange
from commonplace.memory.workspace.layout import DIFF
from commonplace.memory.workspace.staging import put
from commonplace.patterns import regex

MAX_BYTES: Final = 4 * 2**20
"""How much of a diff is shown; what is beyond it must be read from the files themselves."""
_NOTICE: Final = "Made before phase 2 from what changed since the last baseline: read it first, and do not edit it."
_FENCE: Final = regex(r"^ {0,3}(`{3,})", re.MULTILINE)


def render(changes: Sequence[BaselineChange], diff: str) -> str:
    """Return the text of the file."""
    head = f"# Memory Workspace Diff\n\n{_NOTICE}\n\n## Status\n"
    if not changes:
        return f"{head}- none\n"
    listed = "".join(f"- {change.letter} {change.path}\n" for change in changes)
    shown = _bounded(diff)
    # A file's own fence must not end ours.
    fence = "`" * max([3, *(len(found[1]) + 1 for found in _FENCE.finditer(shown))])
    return f"{head}{listed}\n## Diff\n{fence}diff\n{shown}{fence}\n"


def write(root: Path, *, against: Path | None = None) -> list[BaselineChange]:
    """Write the file anew; return the changes that it tells of."""
    remove(root)
    changes = baseline.status(root, against=against)
    put(root / DIFF, render(changes, baseline.diff(root, against=against) if changes else ""))
    return changes


def remove(root: Path) -> None:
    """Remove the file, if it is there."""
    (root / DIFF).unlink(missing_ok=True)


def _bounded(diff: str) -> str:
    data = diff.encode("utf-8", "replace")
    if len(data) <= MAX_BYTES:
        return _closed(diff)
    # A character that the bound cuts in two goes as a whole.
    return f"{_closed(data[:MAX_BYTES].decode('utf-8', 'ignore'))}\n[workspace diff truncated at {MAX_BYTES} bytes]\n"


def _closed(text: str) -> str:
    return text if text.endswith("\n") or not text else text + "\n"

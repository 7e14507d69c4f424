"""Who made the memory, as its baseline says, and of what: what tells whether it is up to date and whether it is kept.

    Commonplace memory, made by embedded
    Commonplace memory, made by embedded, keeping what others wrote
    Commonplace memory, made by embedded, edited by openai:gpt-5.4
    Commonplace memory, made by embedded, in place of openai:gpt-5.4

A memory that only the embedded consolidator wrote can be written anew from its sources at any time, with the edits of a
model, which are kept beside it. Whatever another program wrote is kept: only what changed beneath it is touched.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from commonplace.memory.workspace import baseline, layout

PLAIN: Final = "embedded"
_MADE: Final = "Commonplace memory, made by "
_KEPT: Final = ", keeping what others wrote"
_EDITED: Final = ", edited by "
_INSTEAD: Final = ", in place of "


def message(name: str, fingerprint: str, *, is_kept: bool, instead_of: str = "") -> str:
    """Return what a baseline says of a memory; `instead_of` names who was to make it and could not."""
    maker = PLAIN + (_KEPT if is_kept else "") + (_EDITED + name if name != PLAIN else "")
    return _MADE + maker + (_INSTEAD + instead_of if instead_of else "") + f"\n\ninputs: {fingerprint}\n"


def is_others(root: Path, mirrored: str | None) -> bool:
    """Say whether somebody else than we wrote the memory: another program, an agent with an editor."""
    memory = root / layout.MEMORY
    if not memory.is_file() or not memory.read_bytes().strip():
        return False
    maker = (baseline.message(root) or "").split("\n")[0]
    if not maker.startswith(_MADE):
        return mirrored is None  # else it is ours, and only its baseline was lost
    name = maker.removeprefix(_MADE).partition(_INSTEAD)[0].partition(_EDITED)[0]
    return name != PLAIN


def is_ours(root: Path) -> bool:
    """Say whether a consolidation of ours made the memory as it is."""
    return (baseline.message(root) or "").startswith(_MADE)

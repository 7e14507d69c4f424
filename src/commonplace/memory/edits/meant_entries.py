"""The entries that a person means by a text: one, none, or several, of which none is ever picked for them."""

from __future__ import annotations

from typing import Final

from commonplace.errors import BadInput
from commonplace.memory import listing
from commonplace.memory.store import KnownEntry

_SHOWN: Final = 5
"""How many of several entries are named."""


def saying(wanted: str, matches: list[KnownEntry]) -> list[KnownEntry]:
    """Return the entries that say a text: those that say just that, else more, else those taught by it."""
    lower = wanted.lower()
    own = [each for each in matches if lower in " ".join(each.entry.text.split()).lower()]
    same = [each for each in own if " ".join(each.entry.text.split()).lower().strip("\"'") == lower.strip("\"'")]
    return same or own or [each for each in matches if lower in _all_of(each)]


def several(text: str, matches: list[KnownEntry]) -> BadInput:
    """Return the error for a text that means several entries: which ones, so that one can be named."""
    shown = "; ".join(f"{each.entry.id} {_shortened(each.entry.text)}" for each in matches[:_SHOWN])
    rest = f"; and {len(matches) - _SHOWN} more" if len(matches) > _SHOWN else ""
    return BadInput(f"{text!r} means {len(matches)} entries: {shown}{rest}.", hint="Name one by its id.")


def only(text: str, entries: list[KnownEntry]) -> KnownEntry:
    """Return the one entry that a text means.

    Raises:
        BadInput: it means none, or several.
    """
    best, others = listing.single_entry(text, entries)
    matches = [best, *others]
    if best.entry.id.startswith(text.strip().lower()):
        return best
    held = saying(" ".join(text.split()), matches) or matches
    if len(held) > 1:
        raise several(text, held)
    return held[0]


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else f"{flat[:59]}…"


def nothing(text: str) -> BadInput:
    """Return the error for a text that means nothing."""
    return BadInput(f"Nothing in memory is called or says {text!r}.", hint="`commonplace memory list` shows it all.")


def _all_of(each: KnownEntry) -> str:
    return "\n".join(" ".join(text.split()) for text in (each.entry.text, *listing.wordings(each.entry))).lower()

"""The digest: what a session is likely to need next, kept word for word without a model.

    events of the session → names with how often, where and when they occurred → the chance that each is used again
        → lines packed under a budget, those that bring most for their bytes first → text

Everything is deterministic. What happens per event is kept up to date as events come (`tally`), so that making a digest
costs milliseconds, whatever the session's size. A digest never takes more than its budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from commonplace.context.digest import packing
from commonplace.context.digest import render as text
from commonplace.context.digest.packing import DigestMaterial
from commonplace.context.digest.retention import Retention, score
from commonplace.context.digest.reuse import chances
from commonplace.context.digest.tally import Tally
from commonplace.context.truncate import BYTES_PER_TOKEN, approximate_tokens

BUDGETS: Final = (2_000, 4_000, 8_000, 16_000)
ENOUGH: Final = 0.9
"""A digest is large enough when it keeps this share of what will probably be needed."""
_TRIES: Final = 12
"""How often a digest that came out too large is packed again with less room."""
_HEADINGS: Final = 160
"""About what the headings take."""


class Digest(msgspec.Struct, frozen=True):
    """What is kept of a session, and how much of what it will need that is."""

    text: str
    tokens: int
    score: Retention


def make(tally: Tally, budget: int, material: DigestMaterial | None = None, beside: Sequence[str] = ()) -> Digest:
    """Return a digest of at most so many tokens; it repeats no message that stands `beside` it word for word."""
    material = material_of(tally) if material is None else material
    size = budget * BYTES_PER_TOKEN
    told, room = "", max(0, size - _HEADINGS)
    for _ in range(_TRIES):
        told = text.render(packing.pack(tally, material, room, beside), tally)
        over = len(told.encode("utf-8", "replace")) - size
        if over <= 0:
            break
        room -= over + 64
    else:
        told = packing.clipped(told, size)
    return Digest(told, approximate_tokens(told), score(tally, material.chances, "\n".join([*beside, told])))


def smallest(
    tally: Tally, budgets: Sequence[int] = BUDGETS, enough: float = ENOUGH, material: DigestMaterial | None = None
) -> Digest:
    """Return the first digest that is likely to keep enough of what will be needed, else the largest."""
    material = material_of(tally) if material is None else material
    found: Digest | None = None
    for budget in budgets:
        found = make(tally, budget, material)
        if found.score.r_p >= enough:
            break
    assert found is not None
    return found


def material_of(tally: Tally) -> DigestMaterial:
    """Return what digests of a session, as it is now, are made of."""
    return packing.material(tally, chances_of(tally))


def chances_of(tally: Tally) -> list[float]:
    """Return the chance of each name to be used again."""
    return chances(tally).tolist()

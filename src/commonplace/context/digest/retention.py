"""The retention score: how much a text keeps of what a session will need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from commonplace.context.digest import constraints, plain_words

if TYPE_CHECKING:
    from commonplace.context.digest.tally import Tally

_AROUND: Final = 80
"""Plain words within this many characters of a name count as told about it."""


class Retention(msgspec.Struct, frozen=True):
    """The score of a compaction."""

    r_p: float
    """The share of names that are there, by the chance that each is used again."""
    r_d: float
    """The same for names that the text tells something about."""
    constraints: float
    """The share of the person's constraints that are there word for word."""


def score(tally: Tally, chances: list[float], text: str) -> Retention:
    """Return how much of what the session will need is in a text."""
    total = sum(chances) or 1.0
    present = present_names(tally, text)
    told = described(tally, text, present)
    kept = sum(chances[name] for name in present if name < len(chances))
    kept_told = sum(chances[name] for name in told if name < len(chances))
    laid_down = list(
        dict.fromkeys(sentence for said in tally.said for sentence in constraints.constraints_in(said.text))
    )
    flat = " ".join(text.split())
    held = sum(" ".join(sentence.split()) in flat for sentence in laid_down)
    share = held / len(laid_down) if laid_down else 1.0
    return Retention(round(kept / total, 4), round(kept_told / total, 4), round(share, 4))


def present_names(tally: Tally, text: str) -> set[int]:
    """Return the names that a text holds; a command counts if a line holds all its words."""
    found = set(tally.names.count(text))
    lines = [set(line.replace("$", " ").split()) for line in text.split("\n")]
    for ran in tally.commands.values():
        words = set(tally.names.known[ran.name].text.split())
        if any(words <= line or ran.line in text for line in lines):
            found.add(ran.name)
    return found


def described(tally: Tally, text: str, present: set[int]) -> set[int]:
    """Return the names that a text tells something about: enough plain words stand beside them."""
    spots = plain_words.words(text)
    found: set[int] = set()
    low = 0
    wanted = {tally.names.known[name].text: name for name in present}
    wanted |= {ran.line: ran.name for ran in tally.commands.values() if ran.name in present}
    for word, name in wanted.items():
        at = text.find(word)
        while at >= 0 and name not in found:
            low = _first(spots, at - _AROUND)
            near: set[str] = set()
            for place, plain_word in spots[low:]:
                if place > at + len(word) + _AROUND:
                    break
                near.add(plain_word)
            if len(near) >= plain_words.ENOUGH:
                found.add(name)
            at = text.find(word, at + 1)
    return found


def _first(spots: list[tuple[int, str]], place: int) -> int:
    """Return the first word that stands at a place or behind it."""
    low, high = 0, len(spots)
    while low < high:
        middle = (low + high) // 2
        if spots[middle][0] < place:
            low = middle + 1
        else:
            high = middle
    return low

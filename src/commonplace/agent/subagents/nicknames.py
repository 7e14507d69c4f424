"""Names for sub-agents: a name that no other agent of the session has, from a list of scholars or from its role's.

When every name of a list was given out, the list begins anew, and its names get a number: `Hypatia the 2nd`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from commonplace import package_files

Pick = Callable[[Sequence[str]], str]
"""Chooses one of several names; `random.choice` is one."""
_TEENS: Final = (11, 12, 13)


@cache
def scholars() -> tuple[str, ...]:
    """Return the list that is used unless a role has its own."""
    text = package_files.text("agent/subagents/scholars.txt")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def ordinal(number: int) -> str:
    """Return a number as a rank: `2nd`, `3rd`, `11th`."""
    ending = "th" if number % 100 in _TEENS else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


class Nicknames:
    """The names that one tree has given out. A name is given out once."""

    def __init__(self, pick: Pick) -> None:
        self._pick = pick
        self._used: set[str] = set()

    def keep(self, name: str) -> None:
        """Note that an agent has a name already."""
        self._used.add(name)

    def draw(self, candidates: Sequence[str] = ()) -> str:
        """Return a new name, of a role's candidates or else of a scholar."""
        names = candidates or scholars()
        rank = 1
        while not (free := [name for name in self._ranked(names, rank) if name not in self._used]):
            rank += 1
        name = self._pick(free)
        self._used.add(name)
        return name

    @staticmethod
    def _ranked(names: Sequence[str], rank: int) -> list[str]:
        return [*names] if rank == 1 else [f"{name} the {ordinal(rank)}" for name in names]

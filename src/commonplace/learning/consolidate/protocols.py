"""What phase 2 asks of a consolidator, whoever that is, and the error of one whose memory cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, runtime_checkable

from commonplace.errors import MemoryInvalid
from commonplace.learning.consolidate.consolidator import ConsolidatedMemory
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput
from commonplace.memory.entries import Entry

_SHOWN: Final = 8
"""How many problems a failure names."""
Check = Callable[[list[Entry]], list[str]]
"""Returns what is wrong with the staged workspace and the entries that it is said to hold."""


class Consolidator(Protocol):
    """Makes a memory of what sessions taught, in a staged workspace."""

    name: str

    def consolidate(self, material: ConsolidationInput) -> ConsolidatedMemory:
        """Write the memory's files; return what they hold."""
        ...


@runtime_checkable
class CuratingConsolidator(Protocol):
    """A consolidator that also lets a model improve the memory."""

    async def curate(
        self, material: ConsolidationInput, memory: ConsolidatedMemory, check: Check
    ) -> ConsolidatedMemory:
        """Improve the memory's files; return what they hold.

        Raises:
            BudgetSpent: nothing more may be spent; the files are not to be used.
            CommonplaceError: it failed; the files are not to be used.
        """
        ...


def invalid(name: str, wrong: list[str]) -> MemoryInvalid:
    """Return the error of a consolidator whose memory cannot be used."""
    return MemoryInvalid(
        f"{name} wrote a memory that cannot be used: {' '.join(wrong[:_SHOWN])}",
        hint="The memory is as it was.",
        problems=wrong,
    )

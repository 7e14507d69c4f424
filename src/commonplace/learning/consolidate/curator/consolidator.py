"""The consolidator with a model: the memory that the deterministic merge makes, gone over by a restricted agent.

    the merge, in the staged workspace → what is new, in parts → for each a short conversation → the summary, the first
    time → read back with sources, checked, repaired once

Invariants: where nothing is new, nobody is asked; whatever fails, what was staged is not used; what the model wrote is
used only if every check of every consolidator and every rail allows it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import anyio
import anyio.to_thread

from commonplace.errors import ConsolidationFailed
from commonplace.learning.budget import Spending, Unlimited
from commonplace.learning.consolidate import summary
from commonplace.learning.consolidate.consolidator import (
    ConsolidatedMemory,
    ConsolidationInput,
    MergeConsolidator,
    clean,
    lessons_of,
    sessions_of,
)
from commonplace.learning.consolidate.curator import briefing, changes, checks, conversation
from commonplace.learning.consolidate.curator.changes import ConversationPart, CurationBase
from commonplace.learning.consolidate.curator.checks import CurationReview
from commonplace.learning.consolidate.curator.limits import CuratorLimits
from commonplace.learning.consolidate.curator.tools import CuratorTools
from commonplace.learning.consolidate.phase2 import Check, invalid
from commonplace.learning.metered_model import MeteredModel
from commonplace.memory.workspace import layout
from commonplace.memory.workspace.staging import put
from commonplace.models.base import Model
from commonplace.models.providers import Choice


def _now() -> datetime:
    return datetime.now(UTC)


class Curator:
    """A consolidator that asks a model."""

    def __init__(
        self,
        model: Model,
        choice: Choice,
        *,
        spending: Spending | None = None,
        settings: CuratorLimits | None = None,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self.name = f"{choice.name}:{choice.slug}"
        self._spending = spending or Unlimited()
        self._settings = settings or CuratorLimits()
        self._setup = conversation.ConversationSetup(
            MeteredModel(model, self._spending), choice, self.name, self._settings, now
        )

    def consolidate(self, material: ConsolidationInput) -> ConsolidatedMemory:
        """Write the memory's files without asking anybody; return what they hold."""
        return MergeConsolidator().consolidate(material)

    async def curate(
        self, material: ConsolidationInput, memory: ConsolidatedMemory, check: Check
    ) -> ConsolidatedMemory:
        """Let the model go over what is new; return what the memory's files hold then.

        Raises:
            MemoryInvalid: what it wrote cannot be used, also after a repair.
            ConsolidationFailed: it was stopped at a limit, gave no answer, or took too long.
            BudgetSpent: nothing more may be spent.
            ModelError: the model's server failed.
        """
        base = await anyio.to_thread.run_sync(changes.base, material, memory)
        room, beside = self._settings.part_bytes, self._settings.near_bytes
        parts = await anyio.to_thread.run_sync(partial(changes.parts, base, room=room, beside=beside))
        if not parts:
            return memory
        left, seconds = await self._spending.seconds_left(), self._settings.seconds
        with anyio.move_on_after(seconds if left is None else min(seconds, left)) as scope:
            return await self._go_over(material, base, parts, check)
        assert scope.cancelled_caught
        if left is not None and left < seconds:
            raise self._spending.time_refusal()
        raise ConsolidationFailed(
            f"{self.name} took longer than {seconds:g} s for the memory.", hint="It is tried again later."
        )

    async def _go_over(
        self, material: ConsolidationInput, base: CurationBase, parts: list[ConversationPart], check: Check
    ) -> ConsolidatedMemory:
        shown: set[str] = set()
        reviewed = CurationReview(base.made, [])
        for number, part in enumerate(parts, 1):
            shown |= part.ids
            message = briefing.message(base, part, number, len(parts))
            reviewed = await self._conversation(material, base, shown, message, check)
        if base.is_init:
            await anyio.to_thread.run_sync(_first_page, material, base, reviewed.consolidated)
            message = briefing.first_page(base.summary, material.memory.summary_bytes)
            reviewed = await self._conversation(material, base, shown, message, check)
        return reviewed.consolidated

    async def _conversation(
        self, material: ConsolidationInput, base: CurationBase, shown: set[str], message: str, check: Check
    ) -> CurationReview:
        """Run one conversation; return the review of the memory that it left.

        Raises:
            MemoryInvalid: it cannot be used, also after a repair.
        """
        reviewed = CurationReview(base.made, [])

        async def review() -> list[str]:
            nonlocal reviewed
            reviewed = await anyio.to_thread.run_sync(_reviewed, material, base, shown, check)
            return reviewed.problems

        tools = CuratorTools(material.root, material.owned, self._settings)
        wrong = await conversation.converse(self._setup, material.root, tools, message, review)
        if wrong:
            raise invalid(self.name, wrong)
        base.settled = {each.bullet.key: each for each in reviewed.found}
        return reviewed


def _reviewed(material: ConsolidationInput, base: CurationBase, shown: set[str], check: Check) -> CurationReview:
    found = checks.review(material, base, shown)
    found.problems += check(found.consolidated.entries)
    return found


def _first_page(material: ConsolidationInput, base: CurationBase, now: ConsolidatedMemory) -> None:
    """Make the summary anew from what the memory holds after everything was gone over."""
    _, learned = lessons_of(material)
    hidden = {entry.id for entry in now.left_out}
    entries = [entry for entry in now.entries if entry.id not in hidden]
    most = material.memory.summary_bytes
    size = max(len(base.summary.encode()), most // 4)
    text, base.made.unlisted = summary.write(entries, sessions_of(material, learned), budget=min(size, most))
    base.summary = clean(text)
    put(material.root / layout.SUMMARY, base.summary)

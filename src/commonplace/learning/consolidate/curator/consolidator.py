"""The consolidator with a model: the memory that the deterministic merge makes, with edits that a model proposes.

    the merge with the edits of earlier runs → entries that the model has not seen, in batches → edits, each checked
    alone → the merge with all edits

Invariants: where nothing is new, nobody is asked. An edit that may not be used is dropped alone and counted. Whatever
ends a run early (a limit, a server that fails), the edits of finished batches are used, and the rest of the entries
waits for the next run.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import anyio
import anyio.to_thread

from commonplace.errors import CommonplaceError, ConsolidationFailed
from commonplace.learning.budget import Spending, Unlimited
from commonplace.learning.consolidate import entry_edits
from commonplace.learning.consolidate.consolidator import ConsolidatedMemory, MergeConsolidator
from commonplace.learning.consolidate.curator import batches, checks, prompts, proposals
from commonplace.learning.consolidate.curator.batches import EntryBatch
from commonplace.learning.consolidate.curator.limits import CuratorLimits
from commonplace.learning.consolidate.entry_edits import EntryEdit, EntryEdits, KeptEdit
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput, lessons_of
from commonplace.learning.consolidate.protocols import Check, invalid
from commonplace.learning.structured_model import StructuredModel, StructuredTask
from commonplace.memory.entries import Entry
from commonplace.models.base import Model
from commonplace.models.providers import Choice

_TASK: Final = StructuredTask(
    prompts.SCHEMA,
    prompts.instructions,
    prompts.instructions_with_schema,
    ConsolidationFailed,
    "go over the memory",
    "Another model may do it; the memory is as the merge made it.",
)


class Curator:
    """A consolidator that asks a model for edits."""

    def __init__(
        self,
        model: Model,
        choice: Choice,
        *,
        spending: Spending | None = None,
        settings: CuratorLimits | None = None,
    ) -> None:
        self.name = f"{choice.name}:{choice.slug}"
        self._spending = spending or Unlimited()
        self._settings = settings or CuratorLimits()
        seconds, sleep = self._settings.request_seconds, self._settings.sleep
        self._model = StructuredModel(model, choice, _TASK, self._spending, seconds=seconds, sleep=sleep)

    def consolidate(self, material: ConsolidationInput) -> ConsolidatedMemory:
        """Write the memory's files without asking anybody, with the edits of earlier runs; return what they hold."""
        return MergeConsolidator().consolidate(material)

    async def curate(
        self, material: ConsolidationInput, memory: ConsolidatedMemory, check: Check
    ) -> ConsolidatedMemory:
        """Ask the model about what is new; return what the memory's files hold with its edits.

        Raises:
            MemoryInvalid: the memory with its edits cannot be used.
        """
        if material.is_kept:
            memory.warnings.append(f"Another program wrote the memory, and it is kept: {self.name} did not go over it.")
            return memory
        run = await anyio.to_thread.run_sync(CurationRun, material, memory)
        if not run.waiting:
            return memory
        stopped = await self._go_over(run)
        await anyio.to_thread.run_sync(entry_edits.write, material.root, run.edits)
        if run.edits.kept != material.edits.kept:
            material.edits = run.edits
            memory = await anyio.to_thread.run_sync(self.consolidate, material)
            wrong = await anyio.to_thread.run_sync(check, memory.entries)
            if wrong:
                raise invalid(self.name, wrong)
        memory.warnings += run.warnings(self.name, stopped)
        return memory

    async def _go_over(self, run: CurationRun) -> str:
        """Ask about one batch after the other; return why that ended early, or nothing."""
        left, seconds = await self._spending.seconds_left(), self._settings.seconds
        with anyio.move_on_after(seconds if left is None else min(seconds, left)):
            for _ in range(self._settings.requests):
                if not run.waiting:
                    return ""
                try:
                    await self._ask(run)
                except CommonplaceError as error:
                    return error.sentence()
            return f"A run asks at most {self._settings.requests} times." if run.waiting else ""
        return f"It took longer than {seconds if left is None else min(seconds, left):g} s."

    async def _ask(self, run: CurationRun) -> None:
        room, beside, most = self._settings.part_bytes, self._settings.near_bytes, self._settings.edits
        batch = await anyio.to_thread.run_sync(
            lambda: batches.next_batch(run.entries, run.waiting, room=room, beside=beside)
        )
        asked = await anyio.to_thread.run_sync(prompts.message, batch, run.material, most)
        reply = await self._model.ask(asked)
        proposed = await anyio.to_thread.run_sync(proposals.read, reply.text, most)
        await anyio.to_thread.run_sync(run.take, batch, proposed, self.name)


class CurationRun:
    """One run: the entries as they are with the edits so far, and what is still to be asked about."""

    def __init__(self, material: ConsolidationInput, memory: ConsolidatedMemory) -> None:
        self.material = material
        self._base = lessons_of(material)[0].entries
        self._by_id = {entry.id: entry for entry in self._base}
        self._listed = {entry.id for entry in memory.entries}
        self.edits = EntryEdits((), {})
        self.entries: list[Entry] = []
        self._apply(material.edits.kept)
        known = {entry.id: entry_edits.state(entry) for entry in self.entries}
        seen = {name: value for name, value in material.edits.seen.items() if name in known}
        self.edits = EntryEdits(self.edits.kept, seen)
        self.waiting = batches.unseen(self.entries, self.edits)
        self._asked = len(self.waiting)
        self._used = 0
        self._dropped: Counter[str] = Counter()

    def _apply(self, kept: tuple[KeptEdit, ...]) -> None:
        """Take edits as they are from now on; what is stale of them goes."""
        edited = entry_edits.apply(self._base, kept, self.material.forgotten)
        self.entries = [entry for entry in edited.entries if entry.id in self._listed]
        self.edits = EntryEdits(edited.live, self.edits.seen)

    def take(self, batch: EntryBatch, proposed: proposals.Proposals | str, by: str) -> None:
        """Use the edits of an answer that may be used, one after the other, and count the others."""
        if isinstance(proposed, str):
            self._dropped["is no list of edits"] += 1
            proposed = proposals.Proposals([], 0)
        self._dropped["is no edit"] += proposed.unknown
        shown = set(batch.shown)
        touched: set[str] = set()
        for edit in proposed.edits:
            now = {entry.id: entry for entry in self.entries if entry.id in shown}
            refused = checks.refusal(edit, now, self.entries, self.material)
            if refused is None and not self._use(edit, by):
                refused = checks.EditRefusal("does not fit the edits before it")
            if refused is not None:
                self._dropped[refused.reason] += 1
                continue
            self._used += 1
            touched |= set(entry_edits.named(edit))
        asked = {entry.id for entry in batch.new}
        states = {entry.id: entry_edits.state(entry) for entry in self.entries if entry.id in asked | touched}
        self.edits = EntryEdits(self.edits.kept, self.edits.seen | states)
        self.waiting = [entry for entry in batches.unseen(self.entries, self.edits) if entry.id not in asked]

    def _use(self, edit: EntryEdit, by: str) -> bool:
        """Apply an edit; say whether it is part of the memory now."""
        before = self.edits
        kept = entry_edits.add(before.kept, edit, self._by_id, by)
        self._apply(kept)
        if kept[-1] in self.edits.kept:
            return True
        self.edits = before
        self._apply(before.kept)
        return False

    def warnings(self, name: str, stopped: str) -> list[str]:
        """Return what a person should know: what was dropped and why, and what was not gone over."""
        dropped = +self._dropped
        told: list[str] = []
        if dropped:
            reasons = "; ".join(f"{count} × {reason}" for reason, count in dropped.most_common())
            told.append(f"{name} proposed edits: {self._used} used, {dropped.total()} dropped ({reasons}).")
        if stopped:
            count = len(self.waiting)
            told.append(
                f"{name} did not go over {count} of {self._asked} entries: {stopped} They are as the merge made them "
                "and are asked about in the next run that finds something new."
            )
        return told

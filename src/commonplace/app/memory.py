"""The memory as one object for the library and the surfaces, over `memory` and `learning`.

The modules that read sessions are slow to import, so each method imports only what it needs.
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import msgspec

from commonplace.errors import WorkspaceError
from commonplace.memory.edits.history import EntryChange
from commonplace.memory.listing import LIMIT, EntryPage, Listed
from commonplace.memory.store import MemoryStore

if TYPE_CHECKING:
    from commonplace.app.evaluation import CorpusFiles
    from commonplace.learning.learn import Consent, LearningPlan, LearningSteps
    from commonplace.learning.run import LearningReport
    from commonplace.learning.status import Status
    from commonplace.learning.worker import WorkerState
    from commonplace.memory.audit import Audit
    from commonplace.memory.edits.edits import NoteRequest
    from commonplace.memory.edits.forget import Forgot
    from commonplace.memory.edits.migration import Migrated
    from commonplace.memory.edits.review import Decided, Verdict
    from commonplace.memory.evidence import Link
    from commonplace.memory.recall.section import Prompt
    from commonplace.memory.recall.tools import Reading
    from commonplace.memory.recall.usage_counts import CitationReceipt
    from commonplace.memory.source_turn import TurnLine
    from commonplace.memory.why import Why
    from commonplace.protocol.citations import Citation
    from commonplace.sessions.imports import Importer

EMBEDDED = "embedded"
"""The consolidator that needs no model."""
PHASES = (1, 2)
"""Extraction and consolidation."""


class Memory:
    """The memory of a home."""

    def __init__(self, store: MemoryStore, importer: Callable[[], Importer]) -> None:
        self._store = store
        self._importer = importer

    async def learn(
        self, plan: LearningPlan, steps: LearningSteps | None = None, consent: Consent | None = None
    ) -> LearningReport:
        """Import what agents left on this machine, and learn from it; `consent` is asked before a model reads much.

        Raises:
            BadInput: there is nothing to learn from, or consent was not given; what was imported stays.
            BadSetting: the settings name a model that cannot be asked.
        """
        from commonplace.learning import learn

        if not plan.dry_run:
            await self._take_older()
        report = await learn.learn(self._store.home, self._importer(), plan, steps or learn.silent, consent)
        if not plan.dry_run:
            await self._keep_sections()
        return report

    async def run(
        self,
        *,
        phases: tuple[int, ...] = PHASES,
        progress: Callable[[int, int], None] | None = None,
        use_processes: bool = False,
    ) -> LearningReport:
        """Learn from every session that is eligible, and wait until that is done.

        `use_processes` reads on all cores; the script that asks for it must be one that can be imported.
        """
        from commonplace.learning import run

        await self._take_older()
        request = run.LearningRequest(phases, use_processes=use_processes)
        report = await run.run(self._store.home, request, shown=run.RunProgress(progress))
        await self._keep_sections()
        return report

    async def _take_older(self) -> None:
        """Take over what an older version of this program left in the home, once."""
        from commonplace.memory.edits import migration

        done = await migration.take_older(self._store)
        if done is not None:
            kept = f"; {len(done.kept)} file(s) are kept beside the memory" if done.kept else ""
            self._store.home.warn(f"{done.notes} note(s) of an older memory were taken over from {done.path}{kept}.")

    async def _refresh(self) -> None:
        """Take in what other hosts published, if the memory is shared."""
        if self._store.home.is_shared:
            from commonplace.memory.sharing import shared_memory

            await shared_memory.refresh(self._store.home)

    async def _publish(self) -> None:
        """Publish what a person did, if the memory is shared."""
        if self._store.home.is_shared:
            from commonplace.memory.sharing import shared_memory

            await shared_memory.sync(self._store.home)

    async def _keep_sections(self) -> None:
        """Make anew what hooks of agents tell, if there are any: then the next session waits for nothing."""
        from commonplace.app import ready_sections

        if ready_sections.is_used(self._store.home):
            await ready_sections.count_told(self._store)
            await ready_sections.keep_sections(self._store)

    async def work(
        self, tell: Callable[[LearningReport], None], *, once: bool, state: WorkerState | None = None
    ) -> None:
        """Import and learn again and again until told to end (`state.ending`), or once (raises BadInput)."""
        from commonplace.learning import worker

        await self._take_older()
        await worker.work(self._store.home, self._importer(), tell, once=once, state=state)

    async def list(
        self,
        *,
        project: str | None = None,
        kind: str | None = None,
        limit: int = LIMIT,
        cursor: str | None = None,
        candidates: bool = False,
        evidence: bool = False,
    ) -> EntryPage:
        """Return some of what the memory holds, or some candidates, the most useful first (raises BadInput).

        With `evidence`, each entry has its chain.
        """
        from commonplace.memory import listing

        return await listing.page(
            self._store,
            project=project,
            kind=kind,
            limit=limit,
            cursor=cursor,
            candidates=candidates,
            with_evidence=evidence,
        )

    async def entries(self) -> builtins.list[Listed]:
        """Return everything that the memory holds, the most useful first."""
        from commonplace.memory import listing

        titles = await listing.known_titles(self._store)
        return [listing.listed_entry(each, titles) for each in await self._store.known_entries()]

    async def read(self, path: str, *, first: int = 1, lines: int | None = None, project: str | None = None) -> Reading:
        """Return some lines of a memory file; lines of other projects are blank if one is named (raises BadInput)."""
        from commonplace.memory.recall import reader

        await self._refresh()
        return await reader.read(self._store, path, first=first, lines=lines, project=project)

    async def why(self, text: str) -> Why:
        """Return what an entry rests on, in the words that taught it (raises BadInput)."""
        from commonplace.memory import why

        await self._refresh()
        return await why.why(self._store, text)

    async def note(self, request: NoteRequest, folder: Path | None = None) -> Path:
        """Write down what a person wants remembered, changed or forgotten; it counts at once. Return the note's file.

        Raises:
            BadInput: it says nothing, or names a project or an entry that nobody knows.
        """
        from commonplace.memory.edits import edits

        path = await edits.note(self._store, request, folder or Path.cwd())
        home = self._store.home
        is_done = False
        if home.settings.memory.consolidate_model == EMBEDDED:  # else a model decides what becomes of it
            with contextlib.suppress(WorkspaceError):
                await self.rebuild()
                is_done = True
        if not is_done:
            home.warn("The note counts from the next `commonplace memory run`.")
            await self._publish()
        return path

    async def forget(self, text: str, *, dry_run: bool = False) -> Forgot:
        """Forget an entry, or whatever holds a text, everywhere but in the ledgers (raises BadInput)."""
        from commonplace.learning.relearn import Relearner
        from commonplace.memory.edits import forget

        forgot = await forget.forget(self._store, Relearner(self._store.home), text, dry_run=dry_run)
        if not dry_run:
            await self._keep_sections()
        return forgot

    async def pin(self, text: str, *, pinned: bool = True) -> dict[str, Any]:
        """Keep an entry from ageing, or no longer (raises BadInput)."""
        from commonplace.memory.edits import edits

        done = await edits.pin(self._store, text, pinned=pinned)
        await self._publish()
        return done

    async def review(self, project: str | None = None) -> builtins.list[Listed]:
        """Return what waits for a person's decision: candidates, then doubtful entries (raises BadInput)."""
        from commonplace.memory.edits import review

        return await review.waiting(self._store, project=project)

    async def decide(self, ids: Sequence[str], verdict: Verdict, *, rebuild: bool = True) -> builtins.list[Decided]:
        """Keep or drop entries and candidates by their ids, for good until decided otherwise.

        Without `rebuild`, the memory's files follow with the next `rebuild` or `run`.

        Raises:
            BadInput: an id is unknown, or names what was pinned or written by hand and cannot be dropped.
            WorkspaceError: the decisions are stored, but the memory's files could not be made anew.
        """
        from commonplace.memory.edits import review

        decided = await review.decide(self._store, ids, verdict)
        if rebuild:
            await self.rebuild()
        else:
            await self._publish()
        return decided

    async def reword(self, entry_id: str, text: str) -> Path:
        """Drop an entry or a candidate and write a note with other words instead; return its file (raises BadInput).

        The memory's files follow with the next `rebuild` or `run`.
        """
        from commonplace.memory.edits import review

        path = await review.reword(self._store, entry_id, text)
        await self._publish()
        return path

    async def read_turn(self, link: Link) -> builtins.list[TurnLine]:
        """Return the turn of a session that a source of an entry stands in, without secrets and forgotten words."""
        from commonplace.memory import source_turn
        from commonplace.memory.recall.scoped_prompt import cleaner

        lines = await anyio.to_thread.run_sync(source_turn.read_turn, link)
        clean = cleaner(self._store.home.path)
        return [msgspec.structs.replace(line, text=clean(line.text)) for line in lines]

    async def rebuild(self) -> None:
        """Make the memory's files anew from what is known, decisions included (raises WorkspaceError)."""
        from commonplace.learning.relearn import Relearner

        status = await Relearner(self._store.home).rebuild()
        if status not in ("succeeded", "unchanged"):
            raise WorkspaceError(
                f"The decisions are stored, but the memory in {self._store.root} could not be made anew ({status}).",
                hint="Run `commonplace memory run`; it says what is in the way.",
            )
        await self._keep_sections()

    async def history(self, entry: str | None = None) -> builtins.list[EntryChange]:
        """Return how the memory changed, oldest first (raises BadInput)."""
        from commonplace.memory.edits import edits

        await self._refresh()
        return await anyio.to_thread.run_sync(edits.changes, self._store.home.path, entry)

    async def reset(self) -> dict[str, int]:
        """Empty the memory: nothing is learned, modes and what was forgotten stay (raises WorkspaceError)."""
        from commonplace.memory.edits import edits

        done = await edits.reset(self._store)
        await self._publish()
        return done

    async def migrate(self, folder: Path) -> Migrated:
        """Take over a memory that another program, or an older version, left in a folder (raises BadInput)."""
        from commonplace.memory.edits import migration

        done = await migration.migrate(self._store, folder)
        await self._publish()
        return done

    async def prompt(
        self,
        *,
        folder: Path | None = None,
        project: str | None = None,
        budget: int | None = None,
        tools: Collection[str] = (),
        cites: bool = False,
        count: bool = True,
    ) -> Prompt:
        """Return what to tell an agent that works in a folder, or on a project (raises BadInput).

        `cites` asks for citations: only agents that take them out of their answers should be asked.
        """
        from commonplace.memory.recall import scoped_prompt

        await self._refresh()
        return await scoped_prompt.prompt(
            self._store, folder=folder, scope=project, budget=budget, tools=tools, cites=cites, count=count
        )

    async def cited(self, answer: str | Citation) -> CitationReceipt:
        """Count what an answer cites; return what of it exists and what does not."""
        from commonplace.memory.recall import usage_counts

        return await usage_counts.count_cited(self._store, answer)

    async def audit(self) -> Audit:
        """Return what is wrong with the memory; nothing is changed."""
        from commonplace.memory import audit_run

        return await audit_run.audit(self._store)

    async def evaluate(
        self, model: str, *, sets: Sequence[str] = (), limit: int | None = None, consent: Consent | None = None
    ) -> dict[str, Any]:
        """Return how well a model, or `embedded`, reads the gold set (raises BadInput, BadSetting, BudgetSpent)."""
        from commonplace.learning.evaluate import run

        return await run.run(self._store.home, model, sets=sets or run.DEFAULT, limit=limit, consent=consent)

    async def evaluate_corpus(
        self, model: str, place: CorpusFiles, *, limit: int | None = None, consent: Consent | None = None
    ) -> dict[str, Any]:
        """Return how good the memory is that a model makes of real sessions with labels (raises BadInput, BadSetting).

        Nothing of this home is read or changed, but for what a model costs.
        """
        from commonplace.app import evaluation

        return await evaluation.real_sessions(self._store.home, model, place, limit=limit, consent=consent)

    async def evaluate_consolidation(
        self, model: str, *, sets: Sequence[str] = (), limit: int | None = None
    ) -> dict[str, Any]:
        """Return how good the memory of several sessions is, merged alone and gone over by a model.

        Raises:
            BadInput: a set cannot be read.
            BadSetting: there is no such model.
        """
        from commonplace.app import evaluation

        return await evaluation.consolidation(self._store.home, model, sets=sets, limit=limit)

    async def status(self) -> Status:
        """Count threads, work, results and cost, as of now."""
        from commonplace.learning import status

        return await status.status(self._store.home)

    async def set_mode(self, thread: str, mode: str) -> dict[str, Any]:
        """Decide whether memory may learn from a thread (raises BadInput, UnknownThread)."""
        from commonplace.memory.edits import mode as modes

        return await modes.set_mode(self._store.home, thread, mode)

"""Phase 2: what single sessions taught becomes the memory, one holder at a time.

    claim → recover and adopt edits by hand → inputs → anything new? → stage → consolidate → validate → new baseline
          → still ours? → the staged state takes the place of the old one → history → rows

Until the staged state takes its place, nothing that anybody reads has changed; a failure or a crash before that leaves
the old state. After it, whoever comes next finishes what is missing: history and rows follow from the files.

A consolidator makes the memory without asking anybody; a `CuratingConsolidator` lets a model go over it then, in the
same staged workspace. A claim that was lost ends the work at once, and one that may have been is asked for again right
before the new state takes its place. A spent budget is no failure: the claim is given back. After two failures in a row
the embedded consolidator does it, and says so.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec

from commonplace.config import Settings
from commonplace.errors import CommonplaceError, StateError, WorkspaceChanged
from commonplace.learning.consolidate import consolidation_input, entry_rows, provenance
from commonplace.learning.consolidate.consolidator import ConsolidatedMemory, MergeConsolidator
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput
from commonplace.learning.consolidate.protocols import Consolidator, CuratingConsolidator, invalid
from commonplace.memory.edits import history, manual_edits, removal
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.entries import Entry
from commonplace.memory.files import extensions, raw_memories, validation
from commonplace.memory.sharing.inventory import CommonState
from commonplace.memory.sharing.shared_memory import Publication, SharedMemory
from commonplace.memory.workspace import baseline, difference, layout, staging
from commonplace.protocol.ids import wire_time
from commonplace.state import consolidation_jobs, entries, home_identity, jobs, outputs
from commonplace.state.database import Database, Row, Transaction
from commonplace.state.jobs import Claim, ClaimRefusal, Worker
from commonplace.state.outputs import Output

_ATTEMPTS: Final = 5
"""How often a consolidation begins again because a person changed the workspace meanwhile."""
_LOST: Final = "Another process has taken over; this one stopped and changed nothing."


class ConsolidationPhase(msgspec.Struct):
    """The settings and collaborators of phase 2."""

    settings: Settings
    database: Database
    consolidator: Consolidator
    worker: Worker
    background: bool = False
    shared: SharedMemory | None = None
    """The memory that this home shares with others, if it does."""
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    """What lies between two heartbeats."""


class ConsolidationResult(msgspec.Struct):
    """The result of phase 2."""

    status: str
    added: int = 0
    changed: int = 0
    removed: int = 0
    warnings: list[str] = []
    sizes: list[str] = []
    """What did not fit; true again after every run, so it is told only by commands that learn."""


class _FinishedPhase(msgspec.Struct):
    result: ConsolidationResult
    fingerprint: str
    consolidated: ConsolidatedMemory | None = None
    """None if rows mirror it already."""
    publication: Publication | None = None
    """What other homes get, if the memory is shared."""


class _ClaimLost(Exception):
    """Another process holds the claim."""


async def run(phase: ConsolidationPhase) -> ConsolidationResult:
    """Consolidate if anything changed; say why not otherwise."""
    key = home_identity.memory_key(phase.settings)
    claim = await phase.database.write(lambda tx: _claim(tx, phase, key))
    if isinstance(claim, ClaimRefusal):
        return ConsolidationResult(f"skipped_{claim.value}")
    done = ConsolidationResult("lost", warnings=[_LOST])
    failure: Exception | None = None
    try:
        async with anyio.create_task_group() as heart:
            with anyio.CancelScope() as work:
                heart.start_soon(_beat, phase, claim, work)
                try:
                    done = await _hold(phase, claim, key)
                except _ClaimLost:
                    pass
                except Exception as error:  # whatever a consolidator breaks on, the memory and the command stay whole
                    failure = error
            heart.cancel_scope.cancel()
        if failure is not None:  # not within the group, which would wrap what the database raises
            done = await _failed(phase, claim, failure)
    except BaseException:
        with anyio.CancelScope(shield=True), contextlib.suppress(StateError):  # its lease ends
            await phase.database.write(lambda tx: jobs.release(tx, [claim]))
        raise
    return done


def _reason(error: Exception) -> str:
    return error.sentence() if isinstance(error, CommonplaceError) else f"{type(error).__name__}: {error}."


async def _failed(phase: ConsolidationPhase, claim: Claim, error: Exception) -> ConsolidationResult:
    reason = _reason(error)
    now = _now(phase)
    await phase.database.write(lambda tx: consolidation_jobs.fail(tx, claim, reason, now=now))
    return ConsolidationResult("failed", warnings=[f"The memory was not changed: {reason}"])


def _claim(tx: Transaction, phase: ConsolidationPhase, key: str) -> Claim | ClaimRefusal:
    return consolidation_jobs.claim(
        tx,
        key,
        phase.worker,
        secrets.token_hex(16),
        now=_now(phase),
        lease=phase.settings.memory.consolidate_lease_seconds,
        background=phase.background,
    )


async def _beat(phase: ConsolidationPhase, claim: Claim, work: anyio.CancelScope) -> None:
    """Keep the claim; end the work if that cannot be done because somebody else has it."""
    while True:
        await phase.sleep(phase.settings.memory.consolidate_heartbeat_seconds)
        with contextlib.suppress(StateError):  # a database that is busy says nothing about whose it is
            if not await _is_ours(phase, claim):
                work.cancel()
                return


async def _confirm(phase: ConsolidationPhase, claim: Claim) -> None:
    if not await _is_ours(phase, claim):
        raise _ClaimLost


async def _is_ours(phase: ConsolidationPhase, claim: Claim) -> bool:
    """Say whether a claim holds, and keep it for longer."""
    lease, now = phase.settings.memory.consolidate_lease_seconds, _now(phase)
    return await phase.database.write(lambda tx: jobs.heartbeat(tx, claim, lease=lease, now=now))


async def _hold(phase: ConsolidationPhase, claim: Claim, key: str) -> ConsolidationResult:
    """Do the work of a claim, again from the start if a person changed the workspace meanwhile."""
    for attempt in range(_ATTEMPTS):
        if phase.shared is not None:
            await phase.shared.sync()
        rows = await phase.database.read(lambda tx: _select(tx, phase))
        forgotten = Forgotten.load(phase.settings.home)
        rows, cleaned = await anyio.to_thread.run_sync(removal.rows, rows, forgotten)
        mirror = await phase.database.read(
            lambda tx: _StoredMemory(entries.mirrored_fingerprint(tx, key), entries.omitted_entries(tx, key))
        )
        try:
            done = await _work(phase, claim, rows, mirror)
        except WorkspaceChanged:
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        await _record(phase, claim, rows, done, cleaned)
        return done.result
    raise AssertionError  # the last attempt returns or raises


def _select(tx: Transaction, phase: ConsolidationPhase) -> list[Row]:
    return outputs.select(
        tx,
        None if phase.shared is not None else home_identity.home_key(phase.settings),
        limit=phase.settings.memory.max_raw_memories,
        max_unused_days=phase.settings.memory.max_unused_days,
    )


class _StoredMemory(msgspec.Struct):
    """The state of the memory that the database mirrors."""

    fingerprint: str | None
    hidden: set[str]
    """Entries that its file had no room for."""


class _Job(msgspec.Struct):
    """One attempt: a staged workspace, and what is to become of it."""

    material: ConsolidationInput
    root: Path
    staged: Path
    maker: Consolidator
    made: str
    """What the baseline will say."""
    fingerprint: str
    is_current: bool
    moment: datetime
    given: frozenset[str] = frozenset()
    """Files that were put there for the consolidator."""

    def check(self, found: list[Entry]) -> list[str]:
        """Return what is wrong with what the consolidator wrote."""
        most = self.material.memory.summary_bytes
        wrong = validation.problems(
            self.staged, against=self.root, given=self.given, owned=self.material.owned, summary_bytes=most
        )
        return wrong + list(validation.entries(found))


async def _work(phase: ConsolidationPhase, claim: Claim, rows: list[Row], mirror: _StoredMemory) -> _FinishedPhase:
    """Bring the workspace up to date with the rows."""
    job = await anyio.to_thread.run_sync(_prepare_alone, phase, claim, rows, mirror)
    if isinstance(job, _FinishedPhase):
        return job
    changes: list[history.EntryChange] = []
    failure: Exception | None = None
    try:
        try:
            consolidated = await _consolidated(job)
        except Exception as error:  # whatever a curator breaks on, the merge is published
            if not isinstance(job.maker, CuratingConsolidator) or isinstance(error, _ClaimLost | WorkspaceChanged):
                raise
            failure = error
            job = await anyio.to_thread.run_sync(_prepare_again, phase, claim, rows, mirror, job)
            consolidated = await _consolidated(job)
        if not job.is_current:
            await anyio.to_thread.run_sync(baseline.reset, job.staged, job.made, job.moment)
            await _confirm(phase, claim)
        with anyio.CancelScope(shield=True):
            changes = await anyio.to_thread.run_sync(_finish, phase, job, consolidated)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(staging.discard, job.root)
        raise
    done = _FinishedPhase(_result(changes, consolidated), job.fingerprint, consolidated)
    if phase.shared is not None:
        done.publication = await anyio.to_thread.run_sync(phase.shared.publication, job.material.people)
    if failure is not None:
        done.result.warnings.append(
            f"{phase.consolidator.name} did not go over the memory: {_reason(failure)} What it did was dropped; the "
            "memory was put together without it."
        )
    return done


def _prepare_again(
    phase: ConsolidationPhase, claim: Claim, rows: list[Row], mirror: _StoredMemory, failed: _Job
) -> _Job:
    """Stage the workspace anew, for the merge alone."""
    staging.discard(failed.root)
    job = _prepare_alone(phase, claim, rows, mirror)
    assert isinstance(job, _Job)
    job.maker = MergeConsolidator()
    job.made = provenance.message(
        provenance.PLAIN, job.fingerprint, is_kept=job.material.is_kept, instead_of=phase.consolidator.name
    )
    return job


def _prepare_alone(
    phase: ConsolidationPhase, claim: Claim, rows: list[Row], mirror: _StoredMemory
) -> _Job | _FinishedPhase:
    """Stage a workspace while no other process of this home takes files in."""
    with phase.shared.guard() if phase.shared is not None else contextlib.nullcontext():
        return _prepare(phase, claim, rows, mirror)


def _prepare(phase: ConsolidationPhase, claim: Claim, rows: list[Row], mirror: _StoredMemory) -> _Job | _FinishedPhase:
    """Stage a workspace; nothing if there is nothing to do."""
    home, moment = phase.settings.home, phase.settings.now()
    root = home / layout.FOLDER
    staging.recover(root)
    layout.ensure(root)
    extensions.seed(root)
    difference.remove(root)
    baseline.ensure(root, moment)
    manual_edits.adopt(home, root, moment)
    removal.workspace(root, Forgotten.load(home))
    material = consolidation_input.from_rows(home, root, rows, phase.settings.memory)
    material.accepted, material.hidden = root, mirror.hidden
    material.people = phase.shared.people(rows) if phase.shared is not None else {}
    material.is_kept = provenance.is_others(root, mirror.fingerprint)
    if not provenance.is_ours(root):  # whoever wrote it did not know what we read
        material.settled = set()
    fingerprint, name = consolidation_input.fingerprint(home, material), phase.consolidator.name
    made = provenance.message(name, fingerprint, is_kept=material.is_kept)
    instead = provenance.message(provenance.PLAIN, fingerprint, is_kept=material.is_kept, instead_of=name)
    is_sound = not validation.problems(root, owned=material.owned, summary_bytes=material.memory.summary_bytes)
    is_current = baseline.message(root) in (made, instead) and not baseline.status(root) and is_sound
    if is_current and mirror.fingerprint == fingerprint:
        return _FinishedPhase(ConsolidationResult("unchanged"), fingerprint)
    staged = staging.stage(root)
    return _Job(material, root, staged, phase.consolidator, made, fingerprint, is_current, moment)


async def _consolidated(job: _Job) -> ConsolidatedMemory:
    """Let the consolidator write into the staged workspace, and check what it wrote."""
    consolidated = await anyio.to_thread.run_sync(_written, job)
    if isinstance(job.maker, CuratingConsolidator) and not job.is_current:
        consolidated = await job.maker.curate(job.material, consolidated, job.check)
    await anyio.to_thread.run_sync(difference.remove, job.staged)
    wrong = await anyio.to_thread.run_sync(job.check, consolidated.entries)
    if wrong:
        raise invalid(job.maker.name, wrong)
    return consolidated


def _written(job: _Job) -> ConsolidatedMemory:
    synced = raw_memories.sync(job.staged, job.material.filed)
    pruned = extensions.prune(job.staged, job.moment)
    given = {change.path for change in difference.write(job.staged, against=job.root)}
    job.given = frozenset({*given, *synced.written, *synced.removed, *pruned})
    job.material.root = job.staged
    return job.maker.consolidate(job.material)


def _finish(phase: ConsolidationPhase, job: _Job, consolidated: ConsolidatedMemory) -> list[history.EntryChange]:
    """Put the staged workspace in the place of the old one, and tell how the memory changed."""
    if job.is_current:  # a run was cut short after its state took its place: only history and rows are missing
        staging.discard(job.root)
    else:
        staging.commit(job.staged, job.root)
    return history.record(
        phase.settings.home, consolidated.entries, consolidated.replaced, wire_time(job.moment), job.material.dropped
    )


def _result(changes: list[history.EntryChange], consolidated: ConsolidatedMemory) -> ConsolidationResult:
    counts = {"added": 0, "changed": 0, "removed": 0}
    for change in changes:
        kind = "added" if change.before is None else "removed" if change.after is None else "changed"
        counts[kind] += 1
    sizes: list[str] = []
    if consolidated.left_out:
        sizes.append(f"{len(consolidated.left_out)} entries did not fit into MEMORY.md; `memory list` shows them.")
    if consolidated.unlisted:
        sizes.append(f"{len(consolidated.unlisted)} entries are not in memory_summary.md; MEMORY.md has them.")
    return ConsolidationResult("succeeded", **counts, warnings=list(consolidated.warnings), sizes=sizes)


async def _record(
    phase: ConsolidationPhase, claim: Claim, rows: list[Row], done: _FinishedPhase, cleaned: dict[str, Output]
) -> None:
    watermark = max([claim.watermark, *(row["source_updated_at"] for row in rows)])
    selected = [(row["thread_id"], row["source_updated_at"]) for row in rows]
    now, key = _now(phase), claim.job_key

    def body(tx: Transaction) -> CommonState | None:
        for thread_id, left in cleaned.items():
            outputs.replace(tx, thread_id, left, now=now)
        if consolidation_jobs.succeed(tx, claim, watermark, selected, now=now) and done.consolidated is not None:
            entry_rows.write(tx, key, done.consolidated, done.fingerprint)
            if phase.shared is not None and done.publication is not None:
                return phase.shared.publish(tx, done.publication)
        return None

    state = await phase.database.write(body)
    if phase.shared is not None and state is not None:
        await anyio.to_thread.run_sync(phase.shared.keep, state)


def _now(phase: ConsolidationPhase) -> int:
    return int(phase.settings.now().timestamp())

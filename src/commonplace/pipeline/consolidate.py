"""Phase 2: what single sessions taught becomes the memory, one holder at a time.

    claim → recover and adopt edits by hand → inputs → anything new? → stage → consolidate → validate → new baseline
          → the staged state takes the place of the old one → history → rows

Until the staged state takes its place, nothing that anybody reads has changed; a failure or a crash before that leaves
the old state. After it, whoever comes next finishes what is missing: history and rows follow from the files.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

import anyio
import anyio.to_thread
import msgspec

from commonplace.config import Settings
from commonplace.errors import CommonplaceError, MemoryInvalid, WorkspaceChanged
from commonplace.memory import baseline, difference, extensions, history, inputs, layout, notes, staging
from commonplace.memory.entries import Entry
from commonplace.memory.inputs import Input
from commonplace.pipeline import validate
from commonplace.pipeline.consolidation import edits, unlearned
from commonplace.pipeline.consolidation.embedded import Consolidated, Desk
from commonplace.pipeline.consolidation.forgotten import Forgotten
from commonplace.protocol.ids import wire_time
from commonplace.rollout import decisions
from commonplace.state import consolidations, entries, jobs, outputs
from commonplace.state.database import Database, Row, Transaction
from commonplace.state.jobs import Claim, Outcome, Worker
from commonplace.state.outputs import Output

_VERSION: Final = "1"
"""Changes when the same inputs are to give another memory."""
_MADE: Final = "Commonplace memory, made by "
_KEPT: Final = ", keeping what others wrote"
_ATTEMPTS: Final = 5
_SHOWN: Final = 8
"""How many problems a failure names."""


class Consolidator(Protocol):
    """Makes a memory of what sessions taught, in a staged workspace."""

    name: str

    def consolidate(self, desk: Desk) -> Consolidated:
        """Write the memory's files; return what they hold."""
        ...


class Phase(msgspec.Struct):
    """What phase 2 works with."""

    settings: Settings
    database: Database
    consolidator: Consolidator
    worker: Worker
    background: bool = False


class Result(msgspec.Struct):
    """What phase 2 did."""

    status: str
    added: int = 0
    changed: int = 0
    removed: int = 0
    warnings: list[str] = []


class _Done(msgspec.Struct):
    result: Result
    fingerprint: str
    consolidated: Consolidated | None = None
    """None if rows mirror it already."""


async def run(phase: Phase) -> Result:
    """Consolidate if anything changed; say why not otherwise."""
    home = str(phase.settings.home.resolve())
    claim = await phase.database.write(lambda tx: _claim(tx, phase, home))
    if isinstance(claim, Outcome):
        return Result(f"skipped_{claim.value}")
    done = Result("failed")
    try:
        async with anyio.create_task_group() as heart:
            heart.start_soon(_beat, phase, claim)
            try:
                done = await _hold(phase, claim, home)
            except Exception as error:  # whatever a consolidator breaks on, the memory and the command stay whole
                done = await _failed(phase, claim, error)
            heart.cancel_scope.cancel()
    except BaseException:
        with anyio.CancelScope(shield=True):
            await phase.database.write(lambda tx: jobs.release(tx, [claim]))
        raise
    return done


async def _failed(phase: Phase, claim: Claim, error: Exception) -> Result:
    reason = error.sentence() if isinstance(error, CommonplaceError) else f"{type(error).__name__}: {error}."
    now = _now(phase)
    await phase.database.write(lambda tx: consolidations.fail(tx, claim, reason, now=now))
    return Result("failed", warnings=[f"The memory was not changed: {reason}"])


def _claim(tx: Transaction, phase: Phase, home: str) -> Claim | Outcome:
    outputs.prune(tx, max_unused_days=phase.settings["memory.max_unused_days"], now=_now(phase))
    return consolidations.claim(
        tx,
        home,
        phase.worker,
        secrets.token_hex(16),
        now=_now(phase),
        lease=phase.settings["memory.consolidate_lease_seconds"],
        background=phase.background,
    )


async def _beat(phase: Phase, claim: Claim) -> None:
    lease = phase.settings["memory.consolidate_lease_seconds"]
    while True:
        await anyio.sleep(phase.settings["memory.consolidate_heartbeat_seconds"])
        now = _now(phase)
        await phase.database.write(lambda tx, now=now: jobs.heartbeat(tx, claim, lease=lease, now=now))


async def _hold(phase: Phase, claim: Claim, home: str) -> Result:
    """Do the work of a claim, again from the start if a person changed the workspace meanwhile."""
    for attempt in range(_ATTEMPTS):
        rows = await phase.database.read(lambda tx: _select(tx, phase, home))
        rows, cleaned = await anyio.to_thread.run_sync(_without_forgotten, phase, rows)
        mirrored = await phase.database.read(lambda tx: entries.mirrored(tx, home))
        try:
            done = await anyio.to_thread.run_sync(_work, phase, rows, mirrored)
        except WorkspaceChanged:
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        await _record(phase, claim, rows, done, cleaned)
        return done.result
    raise AssertionError  # the last attempt returns or raises


def _select(tx: Transaction, phase: Phase, home: str) -> list[Row]:
    return outputs.select(
        tx,
        home,
        limit=phase.settings["memory.max_raw_memories"],
        max_unused_days=phase.settings["memory.max_unused_days"],
        now=_now(phase),
    )


def _without_forgotten(phase: Phase, rows: list[Row]) -> tuple[list[Row], dict[str, Output]]:
    """Return what may be used of the rows, and the rows as they should be: others may have written them meanwhile."""
    forgotten = Forgotten.of(phase.settings.home)
    if not forgotten:
        return rows, {}
    kept: list[Row] = []
    cleaned: dict[str, Output] = {}
    for row in rows:
        found = Output(row["raw_memory"], row["rollout_summary"], row["rollout_slug"])
        left = unlearned.output(found, forgotten)
        if left is not found:
            cleaned[row["thread_id"]] = left
        if not left.is_empty:
            kept.append({**row, **msgspec.structs.asdict(left)})
    return kept, cleaned


def _work(phase: Phase, rows: list[Row], mirrored: str | None) -> _Done:
    """Bring the workspace up to date with the rows."""
    home, moment = phase.settings.home, phase.settings.now()
    root = home / layout.FOLDER
    staging.recover(root)
    layout.ensure(root)
    extensions.seed(root)
    difference.remove(root)
    baseline.ensure(root, moment)
    edits.adopt(home, root, moment)
    unlearned.workspace(root, Forgotten.of(home))
    desk = open_desk(home, root, rows)
    desk.is_kept = _is_others(root, phase.consolidator.name, mirrored)
    fingerprint = _fingerprint(phase, desk)
    maker = phase.consolidator.name + (_KEPT if desk.is_kept else "")
    made = _MADE + f"{maker}\n\ninputs: {fingerprint}\n"
    is_sound = not validate.problems(root, owned=desk.owned)
    is_current = baseline.message(root) == made and not baseline.status(root) and is_sound
    if is_current and mirrored == fingerprint:
        return _Done(Result("unchanged"), fingerprint)
    told = history.read(home)
    staged = staging.stage(root)
    try:
        consolidated = _consolidate(phase, desk, staged, root, moment)
        if is_current:  # a run was cut short after its state took its place: only history and rows are missing
            staging.discard(root)
        else:
            baseline.reset(staged, made, moment)
            staging.commit(staged, root)
    except BaseException:
        staging.discard(root)
        raise
    changes = history.difference(told, consolidated.entries, consolidated.replaced, wire_time(moment))
    history.append(home, changes)
    return _Done(_result(changes, consolidated), fingerprint, consolidated)


def _is_others(root: Path, name: str, mirrored: str | None) -> bool:
    """Say whether the memory that is there was written by somebody else: another consolidator, Codex, a model."""
    memory = root / layout.MEMORY
    if not memory.is_file() or not memory.read_bytes().strip():
        return False
    maker = (baseline.message(root) or "").split("\n")[0]
    if not maker.startswith(_MADE):
        return mirrored is None  # else it is ours, and only its baseline was lost
    return maker.removeprefix(_MADE) != name


def _consolidate(phase: Phase, desk: Desk, staged: Path, root: Path, moment: datetime) -> Consolidated:
    """Let the consolidator write into the staged workspace, and check what it wrote."""
    synced = inputs.sync(staged, desk.inputs)
    pruned = extensions.prune(staged, moment)
    given = {change.path for change in difference.write(staged, against=root)}
    desk.root = staged
    consolidated = phase.consolidator.consolidate(desk)
    difference.remove(staged)
    allowed = frozenset({*given, *synced.written, *synced.removed, *pruned})
    wrong = validate.problems(staged, against=root, given=allowed, owned=desk.owned) + list(
        validate.entries(consolidated.entries)
    )
    if wrong:
        shown = " ".join(wrong[:_SHOWN])
        raise MemoryInvalid(
            f"{phase.consolidator.name} wrote a memory that cannot be used: {shown}",
            hint="The memory is as it was.",
            problems=wrong,
        )
    return consolidated


def open_desk(home: Path, root: Path, rows: list[Row]) -> Desk:
    """Return what a consolidator works with, as rows, notes and decisions tell it."""
    found = [
        Input(
            thread_id=row["thread_id"],
            updated_s=row["source_updated_at"],
            cwd=row["cwd"],
            rollout_path=row["path"],
            git_branch=row["git_branch"],
            raw_memory=row["raw_memory"],
            rollout_summary=row["rollout_summary"],
            rollout_slug=row["rollout_slug"],
        )
        for row in rows
    ]
    projects = {row["thread_id"]: row["project"] for row in rows}
    forgotten = Forgotten.of(home)
    return Desk(root, found, projects, notes.read(root), forgotten, decisions.pins(home), decisions.owned(home))


def _fingerprint(phase: Phase, desk: Desk) -> str:
    """Return what tells whether anything changed that a memory is made of."""
    digest = hashlib.sha256(_VERSION.encode())
    for each in desk.inputs:
        digest.update(msgspec.json.encode([each, desk.projects.get(each.thread_id)]))
    digest.update(msgspec.json.encode([desk.notes, sorted(desk.pinned), sorted(desk.owned)]))
    with contextlib.suppress(FileNotFoundError):
        for line in decisions.forgotten(phase.settings.home):
            digest.update(msgspec.json.encode(line))
    return digest.hexdigest()


def _result(changes: list[history.Change], consolidated: Consolidated) -> Result:
    counts = {"added": 0, "changed": 0, "removed": 0}
    for change in changes:
        kind = "added" if change.before is None else "removed" if change.after is None else "changed"
        counts[kind] += 1
    warnings: list[str] = []
    if consolidated.left_out:
        warnings.append(f"{len(consolidated.left_out)} entries did not fit into MEMORY.md; `memory list` shows them.")
    if consolidated.unlisted:
        warnings.append(f"{len(consolidated.unlisted)} entries are not in memory_summary.md; MEMORY.md has them.")
    return Result("succeeded", **counts, warnings=warnings)


async def _record(phase: Phase, claim: Claim, rows: list[Row], done: _Done, cleaned: dict[str, Output]) -> None:
    watermark = max([claim.watermark, *(row["source_updated_at"] for row in rows)])
    selected = [(row["thread_id"], row["source_updated_at"]) for row in rows]
    now, home = _now(phase), claim.job_key

    def body(tx: Transaction) -> None:
        for thread_id, left in cleaned.items():
            outputs.replace(tx, thread_id, left, now=now)
        if consolidations.succeed(tx, claim, watermark, selected, now=now) and done.consolidated is not None:
            hidden = {entry.id for entry in done.consolidated.left_out}
            mirrored = [_row(entry, entry.id not in hidden) for entry in done.consolidated.entries]
            entries.replace(tx, home, mirrored, done.fingerprint)
            for thread_id in _pinned(done.consolidated.entries):
                outputs.pin(tx, thread_id)

    await phase.database.write(body)


def _pinned(found: list[Entry]) -> set[str]:
    """Return the threads that pinned entries rest on, so that they do not age out, also after rows were made anew."""
    return {source.thread_id for entry in found if entry.pinned for source in entry.sources if source.thread_id}


def _row(entry: Entry, is_shown: bool) -> dict[str, object]:
    return {
        "entry_id": entry.id,
        "scope": entry.scope,
        "kind": entry.kind,
        "text": entry.text,
        "support": entry.support,
        "sources": msgspec.json.encode(entry.sources).decode(),
        "first_seen_s": entry.first_seen_s,
        "last_seen_s": entry.last_seen_s,
        "is_pinned": int(entry.pinned),
        "is_shown": int(is_shown),
    }


def _now(phase: Phase) -> int:
    return int(phase.settings.now().timestamp())

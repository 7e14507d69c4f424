"""Learning, as surfaces ask for it: what is new is read and put together with what is known, and that is told.

Phase 1 reads sessions one by one, phase 2 makes the memory of what they taught. A person who asks for it waits until
nothing is left to do, also by others who are at it; a background start stops at its limits. Whatever goes wrong with
memory, nothing else stops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import msgspec
from msgspec import UNSET, UnsetType

from commonplace.errors import StateError
from commonplace.importers.run import ImportOutcome as Imported
from commonplace.learning import providers, select
from commonplace.learning.consolidate import phase2
from commonplace.learning.extract import phase1
from commonplace.learning.extract.phase1 import FailedExtraction, Progress
from commonplace.learning.providers import LearningProviders
from commonplace.memory.entries import GLOBAL
from commonplace.memory.sharing import shared_memory
from commonplace.projects import assignment
from commonplace.projects.scope import short_names
from commonplace.search import session_index
from commonplace.state import entries, postings
from commonplace.state.database import Transaction
from commonplace.state.home import Home
from commonplace.state.jobs import EXTRACTION, ClaimRefusal, Worker

PHASES = (1, 2)
POLL_SECONDS = 0.2
"""How often it is looked whether others have finished."""


class ConsolidationReport(msgspec.Struct):
    """What phase 2 did."""

    status: str
    added: int = 0
    changed: int = 0
    removed: int = 0


class LearningRequest(msgspec.Struct, frozen=True):
    """The request of a person to learn."""

    phases: tuple[int, ...] = PHASES
    limit: int | None = None
    since_s: int | None = None
    current: str | None = None
    """A thread that goes on meanwhile and is left alone."""
    use_processes: bool = False
    """All cores may be used (`phase1.ExtractionPhase`)."""
    ending: anyio.Event | None = None
    """Set, while it is worked on: what is being read is finished, and nothing more is begun."""


class RunProgress(msgspec.Struct, frozen=True):
    """Who is shown how far a run is."""

    progress: Progress | None = None
    """How many sessions were read, and how many bytes."""
    tell: Callable[[str], None] = lambda _: None
    """The step that begins, and what is waited for."""


class LearningReport(msgspec.Struct):
    """What a run of learning did (the JSON of `learn` and `memory run`)."""

    sources: list[Imported] = []
    extracted: int = 0
    no_output: int = 0
    failed: list[FailedExtraction] = []
    skipped: dict[str, int] = {}
    consolidation: ConsolidationReport = msgspec.field(default_factory=lambda: ConsolidationReport("not_run"))
    projects: list[dict[str, Any]] = []
    cost: dict[str, int] = msgspec.field(default_factory=lambda: {"requests": 0, "tokens": 0})
    warnings: list[str] = []
    error: dict[str, str] | UnsetType = UNSET
    """What went wrong, if sessions were there to be read and none could be (code, message, hint)."""


async def run(
    home: Home,
    request: LearningRequest | None = None,
    *,
    background: bool = False,
    shown: RunProgress | None = None,
) -> LearningReport:
    """Read every session that is eligible, and bring the memory up to date.

    Raises:
        BadSetting: the settings name a model that cannot be asked.
        StateError: the database cannot be used, so nobody knows what is learned and who is learning.
    """
    shown = shown or RunProgress()
    await home.need_database()
    async with providers.open(home, shown.tell) as who:
        report = LearningReport()
        try:
            await run_phases(home, request or LearningRequest(), who, report, background=background, shown=shown)
        finally:
            cost = who.cost()
            report.cost = {"requests": cost.requests, "tokens": cost.tokens}
    return report


async def run_phases(
    home: Home,
    request: LearningRequest,
    who: LearningProviders,
    report: LearningReport,
    *,
    background: bool,
    shown: RunProgress | None = None,
) -> None:
    """Run the phases that were asked for, and put what they did into the report."""
    await shared_memory.refresh(home)  # what was forgotten elsewhere is not learned here
    index = await home.index()
    await index.refresh(home.path)
    database = await home.database()
    terms = select.claim_terms(home.settings, background=False, max_claims=0, since_s=request.since_s)
    now = home.now_s()
    rows = await database.read(lambda tx: tx.query("threads.current", home=terms.home))
    report.skipped = select.left_out(rows, terms, now)
    first = phase1.ExtractionPhase(
        home.settings,
        database,
        who.extractor,
        home.worker(),
        background=background,
        current=request.current,
        limit=request.limit,
        since_s=request.since_s,
        use_processes=request.use_processes,
        ending=request.ending,
    )
    shown = shown or RunProgress()
    if 1 in request.phases:
        await extract_all(first, report, shown.progress)
    await shared_memory.sync(home)  # what others decided about projects counts
    await assignment.assign(home)
    if 2 in request.phases:
        second = phase2.ConsolidationPhase(
            home.settings,
            database,
            who.consolidator,
            home.worker(),
            background=background,
            shared=shared_memory.of_home(home),
        )
        shown.tell("putting the memory together")
        done = await consolidate_now(second)
        report.consolidation = ConsolidationReport(done.status, done.added, done.changed, done.removed)
        report.warnings += [*done.warnings, *done.sizes]
        report.projects = await database.read(lambda tx: _projects(tx, home))
    await _index_sessions(home, report)


async def _index_sessions(home: Home, report: LearningReport) -> None:
    """Add new sessions to the search index, so that the first query is answered at once."""
    root, database = home.key, await home.database()
    try:
        if await database.read(lambda tx: postings.changed_threads(tx, root) or postings.removed_threads(tx, root)):
            await session_index.refresh(home)
    except StateError as error:
        report.warnings.append(f"Search is not up to date: {error.sentence()}")


async def extract_all(phase: phase1.ExtractionPhase, report: LearningReport, progress: Progress | None) -> None:
    """Read until nothing is left; what others are reading comes to an end, or to us if they die."""
    while True:
        done = await phase1.run(phase, progress)
        report.extracted += done.extracted
        report.no_output += done.no_output
        report.failed += done.failed
        if not report.extracted and not report.no_output and (report.failed or done.stopped):
            report.error = _nothing_read(report, done.stopped)
        if done.stopped is not None:
            report.warnings.append(done.stopped)
            return
        now = int(phase.settings.now().timestamp())
        if phase.background or phase.limit is not None or phase.is_ending:
            return
        if not await phase.database.read(lambda tx, now=now: _others_read(tx, phase.worker, now)):
            return
        await anyio.sleep(POLL_SECONDS)


def _nothing_read(report: LearningReport, stopped: str | None) -> dict[str, str]:
    """Return the error of a run that could not read a single session."""
    why = stopped or report.failed[0].reason
    count = len(report.failed)
    tried = f" {count} session{' was' if count == 1 else 's were'} tried." if count else ""
    return {
        "code": "nothing_read",
        "message": f"No session could be read.{tried} {why}",
        "hint": "Nothing is lost: run the command again when the cause is gone, or use --model embedded.",
    }


def _others_read(tx: Transaction, worker: Worker, now: int) -> bool:
    """Say whether other processes of this host are reading sessions."""
    held = tx.query("jobs.running_on_host", host=worker.host, now=now)
    return any(row["kind"] == EXTRACTION and row["pid"] != worker.pid for row in held)


async def consolidate_now(phase: phase2.ConsolidationPhase) -> phase2.ConsolidationResult:
    """Consolidate; a person waits for whoever is at it, because what they asked for may not be part of that."""
    while True:
        done = await phase2.run(phase)
        if phase.background or done.status != f"skipped_{ClaimRefusal.RUNNING.value}":
            return done
        await anyio.sleep(POLL_SECONDS)


def _projects(tx: Transaction, home: Home) -> list[dict[str, Any]]:
    """Count what was learned for each project, the largest first."""
    counts = entries.scopes(tx, home.memory_key)
    folders = {row["project"]: row["cwd"] for row in tx.query("threads.current", home=home.key)}
    names = short_names(list(counts), folders)
    ordered = sorted(counts.items(), key=lambda row: (row[0] != GLOBAL, -row[1], row[0]))
    return [{"scope": scope, "name": names[scope], "entries": count} for scope, count in ordered]

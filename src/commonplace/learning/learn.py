"""`learn`: find what agents left on this machine, take it in, read it, and put it together: the whole way in one go.

Each step goes on where an earlier run stopped: what was imported or read before is not imported or read again.
A dry run looks and changes nothing, not even by making a home.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import anyio.to_thread
import msgspec

from commonplace.errors import BadInput
from commonplace.importers import sources
from commonplace.importers.run import ImportOutcome
from commonplace.learning import estimate, providers, run, select
from commonplace.learning.estimate import Forecast
from commonplace.learning.run import ConsolidationReport, LearningReport, LearningRequest
from commonplace.models import agents
from commonplace.models.agents import AgentName
from commonplace.models.providers import AGENTS
from commonplace.rollout.private_folders import make_private
from commonplace.sessions import imports
from commonplace.sessions.imports import Importer, ImportReport
from commonplace.state.database import Row
from commonplace.state.extraction_jobs import ClaimTerms
from commonplace.state.home import Home
from commonplace.state.jobs import EXTRACTION


class LearningSteps(Protocol):
    """Shows how far learning is."""

    def __call__(self, step: str, done: int, total: int | None, size: tuple[int, int] = (0, 0)) -> None:
        """Show how far a step has come; `size` is how many bytes of how many are read, where that is known."""
        ...


class LearningPlan(msgspec.Struct, frozen=True):
    """What to learn from."""

    source: str | None = None
    paths: tuple[Path, ...] = ()
    limit: int | None = None
    since_s: int | None = None
    dry_run: bool = False
    use_processes: bool = False
    """All cores may be used; the script that asks for it must be one that can be imported."""


Consent = Callable[[Forecast], Awaitable[bool]]
"""Says whether something may cost what it is going to."""


def silent(step: str, done: int, total: int | None, size: tuple[int, int] = (0, 0)) -> None:
    """Show nothing."""
    del step, done, total, size


async def learn(
    home: Home, importer: Importer, plan: LearningPlan, steps: LearningSteps = silent, consent: Consent | None = None
) -> LearningReport:
    """Learn from everything that is there; `consent` is asked before a model reads more than `memory.ask_tokens`.

    Raises:
        BadInput: there is nothing to learn from, or consent was not given; what was taken in stays.
        BadSetting: the settings name a model that cannot be asked.
    """
    await providers.check(home)
    chosen = _chosen_sources(home, plan)
    if plan.dry_run:
        return await _preview(home, plan, chosen)
    imported = ImportReport([], [])
    if chosen:
        imported = await importer.run(chosen, lambda done, total: _importing(steps, done, total))
    request = LearningRequest(limit=plan.limit, since_s=plan.since_s, use_processes=plan.use_processes)
    await _ask(home, plan, consent)
    eligible = await _eligible(home, plan)
    count, size = len(eligible), await anyio.to_thread.run_sync(_bytes, eligible)
    steps("reading sessions", 0, count, (0, size))

    def reading(done: int, done_bytes: int) -> None:
        steps("reading sessions", done, max(done, count), (done_bytes, max(done_bytes, size)))

    shown = run.RunProgress(reading, lambda text: steps(text, 0, None))
    report = await run.run(home, request, shown=shown)
    report.sources, report.warnings = imported.sources, [*imported.warnings, *report.warnings]
    report.warnings += await anyio.to_thread.run_sync(_better_reader, home)
    return report


def _bytes(rows: list[Row]) -> int:
    """Return the size of the files of sessions."""
    size = 0
    for row in rows:
        with contextlib.suppress(OSError):
            size += Path(row["path"]).stat().st_size
    return size


def _importing(steps: LearningSteps, done: int, total: int) -> None:
    if total:
        steps("importing sessions", done, total)
    else:
        steps("looking for sessions", done, None)


def _better_reader(home: Home) -> list[str]:
    """Return that the person's own agent would read better, once for a home that reads without a model."""
    if providers.model_name(home.settings, EXTRACTION) != providers.EMBEDDED:
        return []
    known: list[AgentName] = [name for name in AGENTS if agents.find(name, home.environment) is not None]
    told = home.path / "locks" / "told-better-reader"
    if not known or told.exists():
        return []
    make_private(told.parent)
    told.touch(mode=0o600)
    who = f"{agents.title(known[0])} is on this machine: `commonplace learn --model {known[0]}`"
    return [f"{who} reads sessions far better, with your own login. It tells what it will take, and asks first."]


def _chosen_sources(home: Home, plan: LearningPlan) -> list[tuple[str, Path]]:
    """Return where to look: as told, else the usual places; our own sessions are enough if there are no others."""
    try:
        return imports.choose(plan.source, list(plan.paths), home.environment)
    except BadInput:
        if plan.paths or plan.source or not (home.path / "sessions").is_dir():
            raise
        return []


async def _eligible(home: Home, plan: LearningPlan) -> list[Row]:
    """Return the sessions that are going to be read, as far as is known, the newest first."""
    terms, now = _bounds(home, plan)
    rows = [row for row in await _known_threads(home) if select.why_not(row, terms, now) is None]
    rows.sort(key=lambda row: row["updated_s"], reverse=True)
    return rows[: plan.limit]


async def _ask(home: Home, plan: LearningPlan, consent: Consent | None) -> None:
    """Ask whether a model may read what is there (raises BadInput: it may not).

    A person's own agent is asked about once, whatever it takes, and their decision is kept.
    """
    choice = providers.model_of(home, EXTRACTION)
    if choice is None:
        return
    await (await home.index()).refresh(home.path)
    told = await _forecast(home, plan)
    is_first = providers.needs_agreement(home, choice)
    asks = told is not None and (is_first or told.tokens > home.settings.memory.ask_tokens)
    if consent is not None and told is not None and asks and not await consent(told):
        raise BadInput(
            f"{told.model} was not asked: it would read {told.sessions} session(s), about {told.tokens:,} tokens.",
            hint="Say --yes, read fewer with --limit or --since, or raise memory.ask_tokens.",
        )
    if told is not None or consent is None:
        await anyio.to_thread.run_sync(providers.agree, home, choice)


async def _forecast(home: Home, plan: LearningPlan) -> Forecast | None:
    """Return what a model would be asked about sessions that are known; None where none would."""
    choice, rows = providers.model_of(home, EXTRACTION), await _eligible(home, plan)
    if choice is None or not rows:
        return None
    return await estimate.reading(choice, rows)


def _bounds(home: Home, plan: LearningPlan) -> tuple[ClaimTerms, int]:
    terms = select.claim_terms(home.settings, background=False, max_claims=0, since_s=plan.since_s)
    return terms, home.now_s()


def _left_out(home: Home, plan: LearningPlan, rows: list[Row]) -> dict[str, int]:
    return select.left_out(rows, *_bounds(home, plan))


async def _preview(home: Home, plan: LearningPlan, chosen: list[tuple[str, Path]]) -> LearningReport:
    """Return the report of a dry run: what would be imported and read."""
    report = LearningReport(consolidation=ConsolidationReport("dry_run"))
    for name, path in chosen:
        count: Callable[[], int] = lambda name=name, path=path: sum(1 for _ in sources.find(name, path))  # noqa: E731
        found = await anyio.to_thread.run_sync(count)
        report.sources.append(ImportOutcome(name, str(path), found=found))
    if home.path.is_dir() and home.has_index():
        rows = await _known_threads(home)
        report.skipped = _left_out(home, plan, rows)
        known = len(rows) - sum(report.skipped.values())
        report.warnings.append(f"{known} session(s) that are known would be read; new ones come on top.")
        if (told := await _forecast(home, plan)) is not None:
            report.warnings.append(f"{told.model} would be sent about {told.tokens:,} tokens for them.")
    return report


async def _known_threads(home: Home) -> list[Row]:
    database = await home.database()
    root = home.key
    return await database.read(lambda tx: tx.query("threads.current", home=root))

"""`memory eval` on whole memories: sessions are learned from in a home of their own, and the memory is scored.

Nothing of the person's home is read or changed, but for the books: what a model costs counts like any other work of it.
"""

from __future__ import annotations

import copy
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import msgspec

from commonplace.app.home import open_home, open_memory
from commonplace.errors import BadInput
from commonplace.learning import estimate, providers, run
from commonplace.learning.consolidate.consolidator import MergeConsolidator
from commonplace.learning.evaluate import cases, corpus, files, whole
from commonplace.learning.evaluate.cases import Case
from commonplace.learning.evaluate.corpus import CorpusScore, LabelledCorpus
from commonplace.learning.evaluate.scoring import NOW
from commonplace.learning.extract.rules import RuleExtractor
from commonplace.learning.learn import Consent
from commonplace.learning.providers import EMBEDDED, LearningProviders
from commonplace.learning.reading.session_view import read
from commonplace.learning.run import LearningReport, LearningRequest
from commonplace.memory import listing
from commonplace.memory.listing import Listed
from commonplace.memory.recall import scoped_prompt
from commonplace.memory.recall.usage_counts import ImportedCitations
from commonplace.memory.store import MemoryStore
from commonplace.sessions.imports import Importer
from commonplace.state.database import Row
from commonplace.state.home import Home

_PAGE: Final = 500
_KINDS: Final = ("learned", "merged", "superseded", "scope", "skill", "never")
EMBEDDED_ONLY: Final = LearningProviders(RuleExtractor(), MergeConsolidator(), {})
"""Who learns where no model is asked."""


class CorpusFiles(msgspec.Struct, frozen=True):
    """Where real sessions and their labels are."""

    folder: Path
    labels: Path
    commands: Path | None = None


async def real_sessions(
    home: Home,
    model: str,
    place: CorpusFiles,
    *,
    limit: int | None = None,
    consent: Consent | None = None,
    use_processes: bool = True,
) -> dict[str, Any]:
    """Return how good the memory is that a model, or `embedded`, makes of real sessions with labels.

    The embedded reader uses all cores, unless `use_processes` is false.

    Raises:
        BadInput: the sessions or labels cannot be read, or consent was not given.
        BadSetting: there is no such model.
    """
    known = await anyio.to_thread.run_sync(corpus.load, place.folder, place.labels, place.commands)
    asked = await _with_models(home, extract=model)
    began = time.monotonic()
    async with _scratch(home, known.day_after() or home.now()) as store:
        await Importer(store.home, ImportedCitations(store)).run(known.places)
        await _ask(asked, await _rows(store, limit), consent)
        report = LearningReport()
        async with providers.open(asked) as who:
            request = LearningRequest(limit=limit, use_processes=use_processes and model == EMBEDDED)
            await run.run_phases(store.home, request, who, report, background=False)
            cost = who.cost()
        scored = await _scored(store, known)
    return {
        "extractor": model,
        "corpus": str(place.folder),
        "sessions": report.extracted + report.no_output,
        **scored.document(),
        "failed": msgspec.to_builtins(report.failed),
        "cost": {"requests": cost.requests, "tokens": cost.tokens},
        "seconds": round(time.monotonic() - began, 1),
    }


async def _scored(store: MemoryStore, known: LabelledCorpus) -> CorpusScore:
    entries: list[Listed] = []
    cursor: str | None = None
    while True:
        page = await listing.page(store, limit=_PAGE, cursor=cursor, with_evidence=True)
        entries += page.entries
        cursor = page.next_cursor
        if cursor is None:
            break
    scopes = [entry.scope for entry in entries if entry.project]
    if not scopes:
        return corpus.score(known, entries, ())
    largest = max(dict.fromkeys(scopes), key=scopes.count)
    prompt = await scoped_prompt.prompt(store, scope=largest, count=False)
    return await anyio.to_thread.run_sync(corpus.score, known, entries, prompt.included)


async def _rows(store: MemoryStore, limit: int | None) -> list[Row]:
    await (await store.home.index()).refresh(store.home.path)
    database, key = await store.home.database(), store.home.key
    return (await database.read(lambda tx: tx.query("threads.current", home=key)))[:limit]


async def _ask(asked: Home, rows: Sequence[Row], consent: Consent | None) -> None:
    """Ask whether a model may read so much (raises BadInput: it may not)."""
    choice = providers.model_of(asked, "extract")
    if choice is None:
        return
    told = await estimate.reading(choice, rows)
    asks = providers.needs_agreement(asked, choice) or told.tokens > asked.settings.memory.ask_tokens
    if consent is not None and asks and not await consent(told):
        raise BadInput(
            f"{told.model} was not asked: it would read {told.sessions} session(s), about {told.tokens:,} tokens.",
            hint="Say --yes, or read fewer with --limit.",
        )
    await anyio.to_thread.run_sync(providers.agree, asked, choice)


async def consolidation(
    home: Home, model: str, *, sets: Sequence[str] = (), limit: int | None = None
) -> dict[str, Any]:
    """Return how good the memory of several sessions is: with the merge alone, and gone over by a model.

    Sessions are read without a model, so the difference is what going over the memory does.

    Raises:
        BadInput: a set cannot be read.
        BadSetting: there is no such model.
    """
    known = [case for name in sets or (cases.BUNDLED,) for case in cases.named(name)][:limit]
    asked = await _with_models(home, consolidate=model)
    merged: list[whole.WholeScore] = []
    curated: list[whole.WholeScore] = []
    warnings: list[str] = []
    seconds = {"merge": 0.0, "curator": 0.0}
    async with providers.open(asked) as who:
        for case in known:
            async with _scratch(home, NOW) as store:
                began = time.monotonic()
                merged.append(await memory_of(store, case))
                seconds["merge"] += time.monotonic() - began
                if model != EMBEDDED:
                    began = time.monotonic()
                    report = LearningReport()
                    await run.run_phases(store.home, LearningRequest(phases=(2,)), who, report, background=False)
                    curated.append(await _whole(store, case))
                    seconds["curator"] += time.monotonic() - began
                    warnings += [f"{case.id}: {each}" for each in report.warnings]
        cost = who.cost()
    free = {"requests": 0, "tokens": 0}
    found = {"merge": _document(merged, free, seconds["merge"])}
    if model != EMBEDDED:
        paid = {"requests": cost.requests, "tokens": cost.tokens}
        found["curator"] = _document(curated, paid, seconds["curator"])
    names = list(sets) or [cases.BUNDLED]
    return {"consolidator": model, "cases": len(known), "sets": names, **found, "warnings": warnings}


async def memory_of(store: MemoryStore, case: Case) -> whole.WholeScore:
    """Learn from the sessions of a case without a model, in an empty home; return the score of the memory."""
    source = store.home.path.parent / "source"
    await anyio.to_thread.run_sync(files.write, case, source, NOW)
    places = [(agent, source / name) for name, agent in corpus.HOMES.items() if (source / name).is_dir()]
    await Importer(store.home, ImportedCitations(store)).run(places)
    await run.run_phases(store.home, LearningRequest(), EMBEDDED_ONLY, LearningReport(), background=False)
    return await _whole(store, case)


async def _whole(store: MemoryStore, case: Case) -> whole.WholeScore:
    rows = await _rows(store, None)
    dialogue = sum(read(Path(row["path"])).dialogue_bytes() for row in rows)
    projects = {row["cwd"]: row["project"] for row in rows}
    owners = [projects.get(each.cwd, each.cwd) for each in case.sessions]
    return await anyio.to_thread.run_sync(whole.score, case, store.home.path, owners, dialogue)


def _document(scores: list[whole.WholeScore], cost: dict[str, int], seconds: float) -> dict[str, Any]:
    wanted = {kind for each in scores for kind in each.wanted}
    return {
        "score": round(whole.total(scores), 1),
        "precision": round(whole.precision(scores), 4),
        "kinds": {kind: round(whole.share(scores, kind), 4) for kind in _KINDS if kind in wanted},
        "bytes": sum(each.bytes for each in scores),
        "failed": {each.id: each.failed for each in scores if each.failed},
        "cost": cost,
        "seconds": round(seconds, 1),
    }


async def _with_models(home: Home, *, extract: str = EMBEDDED, consolidate: str = EMBEDDED) -> Home:
    """Return a home with the same database and other models.

    Raises:
        BadSetting: there is no such model, or it cannot be asked.
    """
    await home.database()
    asked = copy.copy(home)
    memory = msgspec.structs.replace(home.settings.memory, extract_model=extract, consolidate_model=consolidate)
    asked.settings = msgspec.structs.replace(home.settings, memory=memory)
    await providers.check(asked)
    return asked


@asynccontextmanager
async def _scratch(home: Home, moment: datetime) -> AsyncGenerator[MemoryStore]:
    """Open the memory of an empty home that is gone afterwards, at a fixed time."""
    with tempfile.TemporaryDirectory(prefix="commonplace-eval-") as name:
        place = Path(name) / "home"
        place.mkdir(mode=0o700)
        memory = msgspec.structs.replace(home.settings.memory, exclude=(), review=False)
        settings = msgspec.structs.replace(
            home.settings, home=place, database="sqlite", memory_root=None, memory=memory, now=lambda: moment
        )
        scratch = open_home(settings, home.warn, home.environment)
        try:
            yield open_memory(scratch)
        finally:
            await scratch.close()

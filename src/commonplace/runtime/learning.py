"""Learning, as surfaces ask for it: what is new is read, and what that came to is told.

Phase 1 reads sessions one by one. A person who asks for it waits until nothing is left to do; a background start stops
at its limits. Whatever goes wrong with memory, nothing else stops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from commonplace.errors import BadInput
from commonplace.importers.run import Outcome
from commonplace.pipeline import extract, select
from commonplace.pipeline.extract import Extractor, Failed, Phase
from commonplace.runtime import imports, scopes
from commonplace.state import jobs

if TYPE_CHECKING:
    from commonplace.runtime.book import Book

PHASES = (1, 2)
CYCLE_SECONDS = 60.0
"""How long a worker rests when there was nothing to do."""


class Consolidated(msgspec.Struct):
    """What phase 2 did."""

    status: str
    added: int = 0
    changed: int = 0
    removed: int = 0


class Report(msgspec.Struct):
    """What a run of learning did (the JSON of `learn` and `memory run`)."""

    sources: list[Outcome] = []
    extracted: int = 0
    no_output: int = 0
    failed: list[Failed] = []
    skipped: dict[str, int] = {}
    consolidation: Consolidated = msgspec.field(default_factory=lambda: Consolidated("not_run"))
    projects: list[dict[str, Any]] = []
    cost: dict[str, int] = msgspec.field(default_factory=lambda: {"requests": 0, "tokens": 0})
    warnings: list[str] = []


def extractor(book: Book) -> Extractor:
    """Return who reads sessions, as the settings say.

    Raises:
        BadInput: nobody of that name can.
    """
    chosen = book.settings["memory.extract_model"]
    if chosen != "embedded":
        raise BadInput(
            f"memory.extract_model is {chosen!r}, and models are not supported yet.",
            hint='Use "embedded": it needs no model and no network.',
        )
    from commonplace.pipeline.embedded import Embedded

    return Embedded()


async def run(book: Book, *, background: bool = False, progress: Callable[[int], None] | None = None) -> Report:
    """Read every session that is eligible."""
    report = Report()
    index = await book.index()
    await index.refresh(book.home)
    await scopes.settle(book)
    database = await book.database()
    reader = extractor(book)
    terms = select.terms(book.settings, background=False, max_claims=0)
    now = int(book.settings.now().timestamp())
    rows = await database.read(lambda tx: tx.query("threads.current", home=terms.home))
    report.skipped = select.left_out(rows, terms, select.wanted(book.settings), now)
    phase = Phase(book.settings, database, reader, jobs.this_process(), background=background)
    done = await extract.run(phase, progress)
    report.extracted, report.no_output, report.failed = done.extracted, done.no_output, done.failed
    return report


async def cycle(book: Book) -> Report:
    """Import what is new in the usual places, then learn from it: one turn of a worker."""
    try:
        chosen = imports.choose(None, [], book.environment)
        imported = await imports.run(book, chosen)
    except BadInput:  # nobody else's sessions are on this machine
        imported = imports.Report([], [])
    report = await run(book)
    report.sources, report.warnings = imported.sources, [*imported.warnings, *report.warnings]
    return report


async def work(book: Book, tell: Callable[[Report], None], *, once: bool) -> None:
    """Learn again and again until told to stop; once is enough for scripts."""
    if book.environment.get("COMMONPLACE_NOW") and not once:
        raise BadInput("COMMONPLACE_NOW fixes the clock, and a worker needs one.", hint="Use worker --once.")
    while True:
        report = await cycle(book)
        tell(report)
        if once:
            return
        await anyio.sleep(CYCLE_SECONDS)

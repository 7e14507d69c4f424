"""`learn`: find what agents left on this machine, take it in, read it, and put it together: the whole way in one go.

Each step goes on where an earlier run stopped: what was imported or read before is not imported or read again.
A dry run looks and changes nothing, not even by making a home.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import anyio.to_thread
import msgspec

from commonplace.errors import BadInput
from commonplace.importers import sources
from commonplace.importers.run import Outcome
from commonplace.pipeline import select
from commonplace.runtime import imports, learning
from commonplace.runtime.learning import Consolidated, Report, Wish
from commonplace.state.database import Row

if TYPE_CHECKING:
    from commonplace.runtime.book import Book


class Steps(Protocol):
    """Shows how far learning is."""

    def __call__(self, step: str, done: int, total: int | None) -> None:
        """A step has come so far."""
        ...


class Plan(msgspec.Struct, frozen=True):
    """What to learn from."""

    source: str | None = None
    paths: tuple[Path, ...] = ()
    limit: int | None = None
    since_s: int | None = None
    dry_run: bool = False


def _silently(step: str, done: int, total: int | None) -> None:
    del step, done, total


async def learn(book: Book, plan: Plan, steps: Steps = _silently) -> Report:
    """Learn from everything that is there (raises BadInput where nothing is, or nobody can)."""
    learning.extractor(book)
    learning.consolidator(book)
    chosen = _chosen(book, plan)
    if plan.dry_run:
        return await _look(book, plan, chosen)
    imported = imports.Report([], [])
    if chosen:
        imported = await imports.run(book, chosen, lambda done, total: steps("importing sessions", done, total))
    wish = Wish(limit=plan.limit, since_s=plan.since_s)
    count = await _eligible(book, plan)
    steps("reading sessions", 0, count)
    report = await learning.run(book, wish, progress=lambda done: steps("reading sessions", done, max(done, count)))
    report.sources, report.warnings = imported.sources, [*imported.warnings, *report.warnings]
    return report


def _chosen(book: Book, plan: Plan) -> list[tuple[str, Path]]:
    """Return where to look: as told, else the usual places; our own sessions are enough if there are no others."""
    try:
        return imports.choose(plan.source, list(plan.paths), book.environment)
    except BadInput:
        if plan.paths or plan.source or not (book.home / "sessions").is_dir():
            raise
        return []


async def _eligible(book: Book, plan: Plan) -> int:
    """Return how many sessions are going to be read, as far as is known."""
    rows = await _known(book)
    count = len(rows) - sum(_left_out(book, plan, rows).values())
    return count if plan.limit is None else min(count, plan.limit)


def _left_out(book: Book, plan: Plan, rows: list[Row]) -> dict[str, int]:
    terms = select.terms(book.settings, background=False, max_claims=0, since_s=plan.since_s)
    now = int(book.settings.now().timestamp())
    return select.left_out(rows, terms, select.wanted(book.settings), now)


async def _look(book: Book, plan: Plan, chosen: list[tuple[str, Path]]) -> Report:
    """Count what would be taken in and read."""
    report = Report(consolidation=Consolidated("dry_run"))
    for name, path in chosen:
        count: Callable[[], int] = lambda name=name, path=path: sum(1 for _ in sources.find(name, path))  # noqa: E731
        found = await anyio.to_thread.run_sync(count)
        report.sources.append(Outcome(name, str(path), found=found))
    if book.home.is_dir() and book.has_index():
        rows = await _known(book)
        report.skipped = _left_out(book, plan, rows)
        known = len(rows) - sum(report.skipped.values())
        report.warnings.append(f"{known} session(s) that are known would be read; new ones come on top.")
    return report


async def _known(book: Book) -> list[Row]:
    database = await book.database()
    home = str(book.home.resolve())
    return await database.read(lambda tx: tx.query("threads.current", home=home))

"""Who learns: the embedded reader and writer, or the models that the settings name, within the limits of the settings.

Each run has its own budgets and connections; both end with it. Nothing is sent to anybody before a person named them in
`memory.extract_model` or `memory.consolidate_model`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from commonplace.learning.consolidate.phase2 import Consolidator
from commonplace.learning.extract.phase1 import Extractor
from commonplace.state.jobs import CONSOLIDATION, EXTRACTION
from commonplace.state.usage import Limits, Spent

if TYPE_CHECKING:
    from commonplace.app.book import Book
    from commonplace.config import Settings
    from commonplace.learning.budget import Budget
    from commonplace.models.base import Model
    from commonplace.models.providers import Choice

EMBEDDED: Final = "embedded"
NAMES: Final = {EXTRACTION: "extract", CONSOLIDATION: "consolidate"}
"""What settings call the kinds of work."""


class Learners(msgspec.Struct):
    """Who reads and who writes in one run, and what they cost."""

    extractor: Extractor
    consolidator: Consolidator
    budgets: dict[str, Budget]

    def cost(self) -> Spent:
        """Return what the run has cost so far."""
        spent = [budget.total for budget in self.budgets.values()]
        return Spent(sum(each.requests for each in spent), sum(each.tokens for each in spent))


def limits(settings: Settings, kind: str, span: str) -> Limits:
    """Return what the settings let a `run` or a `day` cost; 0 there is no limit."""
    found = (settings[f"memory.{NAMES[kind]}_{span}_{what}"] or None for what in ("requests", "tokens", "seconds"))
    return Limits(*found)


def model_of(book: Book, kind: str) -> Choice | None:
    """Return the model that the settings name for a kind of work; None: it needs none.

    Raises:
        BadSetting: there is no such model.
    """
    name = book.settings[f"memory.{NAMES[kind]}_model"]
    if name == EMBEDDED:
        return None
    from commonplace.models.providers import choose

    return choose(book.settings, name)


def connected(book: Book, choice: Choice) -> Model:
    """Return a model to ask (raises BadSetting: its key is missing)."""
    from commonplace.app.thread import environment
    from commonplace.models.providers import connect

    return connect(choice, environment(book.environment))


async def check(book: Book) -> None:
    """Say now if the settings name somebody who cannot be asked (raises BadSetting)."""
    for kind in NAMES:
        choice = model_of(book, kind)
        if choice is not None:
            await connected(book, choice).aclose()


@asynccontextmanager
async def open(book: Book) -> AsyncGenerator[Learners]:  # noqa: A001 (as `book.open`)
    """Open who learns, for one run.

    Raises:
        BadSetting: the settings name somebody who cannot be asked.
    """
    budgets: dict[str, Budget] = {}
    models: dict[str, tuple[Model, Choice]] = {}
    try:
        for kind in NAMES:
            choice = model_of(book, kind)
            if choice is not None:
                models[kind] = (connected(book, choice), choice)
                budgets[kind] = await budget(book, kind)
        yield Learners(_extractor(models, budgets), _consolidator(book, models, budgets), budgets)
    finally:
        for model, _ in models.values():
            await model.aclose()


async def budget(book: Book, kind: str) -> Budget:
    """Return the books of one run, with its limits and those of the day."""
    from commonplace.learning.budget import Budget

    run, day = (limits(book.settings, kind, span) for span in ("run", "day"))
    return Budget(await book.database(), lambda: int(book.settings.now().timestamp()), run=run, day=day, kind=kind)


def _extractor(models: dict[str, tuple[Model, Choice]], budgets: dict[str, Budget]) -> Extractor:
    from commonplace.learning.extract.rules import Embedded

    if EXTRACTION not in models:
        return Embedded()
    from commonplace.learning.extract.model import ByModel, WithFallback

    model, choice = models[EXTRACTION]
    return WithFallback(ByModel(model, choice, spending=budgets[EXTRACTION]), Embedded())


def _consolidator(book: Book, models: dict[str, tuple[Model, Choice]], budgets: dict[str, Budget]) -> Consolidator:
    if CONSOLIDATION not in models:
        from commonplace.learning.consolidate.consolidator import Embedded

        return Embedded()
    from commonplace.learning.consolidate.curator import Curator

    model, choice = models[CONSOLIDATION]
    return Curator(model, choice, spending=budgets[CONSOLIDATION], now=book.settings.now)

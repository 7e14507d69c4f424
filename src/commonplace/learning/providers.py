"""The extractor and the consolidator of one run: embedded ones, or the models that the settings name, within limits.

Each run has its own budgets and connections; both end with it. Nothing is sent to anybody before a person named them in
`memory.extract_model` or `memory.consolidate_model`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from commonplace.config import Settings
from commonplace.errors import BadSetting
from commonplace.learning.budget import Budget
from commonplace.learning.consolidate.consolidator import MergeConsolidator
from commonplace.learning.consolidate.protocols import Consolidator
from commonplace.learning.extract.rules import RuleExtractor
from commonplace.learning.extract.session_reading import Extractor
from commonplace.models.base import Model
from commonplace.models.providers import Choice, choose, connect, key_environment
from commonplace.models.window import with_window
from commonplace.protocol.ids import wire_time
from commonplace.rollout import decisions
from commonplace.state.home import Home
from commonplace.state.jobs import CONSOLIDATION, EXTRACTION
from commonplace.state.usage import Limits, SpentTotals

EMBEDDED: Final = "embedded"
KINDS: Final = (EXTRACTION, CONSOLIDATION)
"""The kinds of work that a model may do."""


class LearningProviders(msgspec.Struct):
    """The extractor and the consolidator of one run, and their cost."""

    extractor: Extractor
    consolidator: Consolidator
    budgets: dict[str, Budget]

    def cost(self) -> SpentTotals:
        """Return what the run has cost so far."""
        spent = [budget.total for budget in self.budgets.values()]
        return SpentTotals(sum(each.requests for each in spent), sum(each.tokens for each in spent))


def limits(settings: Settings, kind: str, span: str) -> Limits:
    """Return what the settings let a `run` or a `day` cost; 0 there is no limit."""
    memory = settings.memory
    most = {
        (EXTRACTION, "run"): (memory.extract_run_requests, memory.extract_run_tokens, memory.extract_run_seconds),
        (EXTRACTION, "day"): (memory.extract_day_requests, memory.extract_day_tokens, memory.extract_day_seconds),
        (CONSOLIDATION, "run"): (
            memory.consolidate_run_requests,
            memory.consolidate_run_tokens,
            memory.consolidate_run_seconds,
        ),
        (CONSOLIDATION, "day"): (
            memory.consolidate_day_requests,
            memory.consolidate_day_tokens,
            memory.consolidate_day_seconds,
        ),
    }
    return Limits(*(limit or None for limit in most[kind, span]))


def model_name(settings: Settings, kind: str) -> str:
    """Return what the settings name for a kind of work: `embedded`, or a model."""
    return settings.memory.extract_model if kind == EXTRACTION else settings.memory.consolidate_model


def model_of(home: Home, kind: str) -> Choice | None:
    """Return the model that the settings name for a kind of work; None: it needs none.

    Raises:
        BadSetting: there is no such model.
    """
    name = model_name(home.settings, kind)
    if name == EMBEDDED:
        return None
    return choose(home.settings, name, for_reading=kind == EXTRACTION)


def connect_model(home: Home, choice: Choice) -> Model:
    """Return a connected model (raises BadSetting: its key is missing, or the agent is not on PATH)."""
    is_agent = choice.provider.api == "agent"
    return connect(choice, home.environment if is_agent else key_environment(home.environment))


def needs_agreement(home: Home, choice: Choice) -> bool:
    """Say whether a person must agree before their own agent reads sessions for the first time."""
    return choice.provider.api == "agent" and choice.name not in decisions.agreed_providers(home.path)


def agree(home: Home, choice: Choice) -> None:
    """Note that a person agreed that their own agent reads sessions."""
    if needs_agreement(home, choice):
        decisions.append(home.path, "agree", wire_time(home.now()), provider=choice.name)


async def check(home: Home) -> None:
    """Raise BadSetting now if the settings name a model that cannot be asked."""
    for kind in KINDS:
        choice = model_of(home, kind)
        if choice is not None:
            await connect_model(home, choice).aclose()


@asynccontextmanager
async def open(  # noqa: A001 (as `home.open`)
    home: Home, tell: Callable[[str], None] = lambda _: None
) -> AsyncGenerator[LearningProviders]:
    """Open the extractor and the consolidator for one run; `tell` hears of what is waited for.

    Raises:
        BadSetting: the settings name somebody who cannot be asked.
    """
    budgets: dict[str, Budget] = {}
    models: dict[str, tuple[Model, Choice]] = {}
    try:
        for kind in KINDS:
            choice = model_of(home, kind)
            if choice is not None and needs_agreement(home, choice):
                raise BadSetting(
                    f"You have not agreed yet that {choice.name} reads your sessions.",
                    hint=f"`commonplace learn --model {choice.name}` tells what it takes, and asks.",
                )
            if choice is not None:
                connected = connect_model(home, choice)
                models[kind] = (connected, await with_window(choice, key_environment(home.environment)))
                budgets[kind] = await budget(home, kind)
        yield LearningProviders(_extractor(models, budgets, tell), _consolidator(models, budgets), budgets)
    finally:
        for model, _ in models.values():
            await model.aclose()


async def budget(home: Home, kind: str) -> Budget:
    """Return the budget of one run, with its limits and those of the day."""
    run, day = (limits(home.settings, kind, span) for span in ("run", "day"))
    return Budget(await home.database(), home.now_s, run=run, day=day, kind=kind)


def _extractor(
    models: dict[str, tuple[Model, Choice]], budgets: dict[str, Budget], tell: Callable[[str], None]
) -> Extractor:
    if EXTRACTION not in models:
        return RuleExtractor()
    from commonplace.learning.extract.model import ExtractorSettings, FallbackExtractor, ModelExtractor

    model, choice = models[EXTRACTION]
    reader = ModelExtractor(model, choice, spending=budgets[EXTRACTION], settings=ExtractorSettings(tell=tell))
    return FallbackExtractor(reader, RuleExtractor())


def _consolidator(models: dict[str, tuple[Model, Choice]], budgets: dict[str, Budget]) -> Consolidator:
    if CONSOLIDATION not in models:
        return MergeConsolidator()
    from commonplace.learning.consolidate.curator import Curator

    model, choice = models[CONSOLIDATION]
    return Curator(model, choice, spending=budgets[CONSOLIDATION])

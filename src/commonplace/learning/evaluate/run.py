"""How well somebody reads sessions: the gold set, read by the embedded reader or a model, and scored the same way.

Nothing of the home is read or changed, but for the books: what a model costs counts like any other reading.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from commonplace.errors import BadInput
from commonplace.importers import claude_code, ledger_writer
from commonplace.learning import providers
from commonplace.learning.estimate import Forecast
from commonplace.learning.evaluate import cases, scoring
from commonplace.learning.evaluate.cases import Case, CaseSession
from commonplace.learning.extract.model import ModelExtractor, evaluate, prompts
from commonplace.learning.extract.rules import RuleExtractor
from commonplace.learning.extract.session_reading import Extractor
from commonplace.learning.learn import Consent
from commonplace.models.providers import choose
from commonplace.state.home import Home
from commonplace.state.jobs import EXTRACTION

DEFAULT: Final = (cases.BUNDLED,)
_BLOB_BYTES: Final = 65536
_PER_SESSION: Final = 1_600
"""Tokens of a session of the gold set with its answer, beside the instructions; measured over `near`."""


async def run(
    home: Home,
    model: str,
    *,
    sets: Sequence[str] = DEFAULT,
    limit: int | None = None,
    consent: Consent | None = None,
) -> dict[str, Any]:
    """Return the scores of a model, or of `embedded`, on the gold set, and what they cost.

    Raises:
        BadInput: a set cannot be read, or consent was not given.
        BadSetting: there is no such model.
        BudgetSpent: the limits have no room for all of it; what was read counts.
    """
    known = [case for name in sets for case in cases.named(name)][:limit]
    began = time.monotonic()
    if model == providers.EMBEDDED:
        scores = await _scores(RuleExtractor(), known)
        cost = {"requests": 0, "tokens": 0}
        return {**scores, "sets": list(sets), "cost": cost, "seconds": _seconds(began)}
    choice = choose(home.settings, model, for_reading=True)
    told = Forecast(
        f"{choice.name}:{choice.slug}",
        sum(len(case.sessions) for case in known),
        _tokens(known),
        choice.provider.api == "agent",
    )
    asks = providers.needs_agreement(home, choice) or told.tokens > home.settings.memory.ask_tokens
    if consent is not None and asks and not await consent(told):
        raise BadInput(
            f"{told.model} was not asked: it would read {told.sessions} session(s), about {told.tokens:,} tokens.",
            hint="Say --yes, or read fewer with --limit or --set near.",
        )
    connected = providers.connect_model(home, choice)
    providers.agree(home, choice)
    try:
        budget = await providers.budget(home, EXTRACTION)
        scores = await _scores(ModelExtractor(connected, choice, spending=budget), known)
    finally:
        await connected.aclose()
    cost = {"requests": budget.total.requests, "tokens": budget.total.tokens}
    return {**scores, "sets": list(sets), "cost": cost, "prompt": prompts.version(), "seconds": _seconds(began)}


def _seconds(began: float) -> float:
    return round(time.monotonic() - began, 1)


def _tokens(gold_cases: Sequence[Case]) -> int:
    return sum(len(case.sessions) for case in gold_cases) * (prompts.overhead() + _PER_SESSION)


async def _scores(extractor: Extractor, gold_cases: Sequence[Case]) -> dict[str, Any]:
    return (await evaluate(extractor, gold_cases, ledger_of)).document()


def ledger_of(session: CaseSession, path: Path, folder: Path) -> Path:
    """Return a session of the gold set as a ledger: Codex's own file, or Claude Code's taken in."""
    if session.agent == "codex":
        return path
    place = ledger_writer.LedgerDestination(folder / "home", lambda: scoring.NOW, _BLOB_BYTES)
    return ledger_writer.write(path, claude_code.convert, place)[0][0].path

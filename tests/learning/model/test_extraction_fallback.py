"""The embedded reader after the last try."""

from __future__ import annotations

import pytest
from taught_by_model import choice, says, tabs, text

from commonplace.errors import BudgetSpent, ExtractionFailed, ModelUnavailable
from commonplace.learning.extract.model import FallbackExtractor, ModelExtractor
from commonplace.learning.extract.rules import RuleExtractor
from commonplace.learning.extract.session_reading import LastTryExtractor
from commonplace.learning.reading.session_view import SessionView
from commonplace.memory.files import output_shape
from commonplace.models.scripted import ScriptedModel, Step
from commonplace.state.outputs import Output


class Broken:
    """An extractor that fails in a way that nobody expects."""

    name = "broken"

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def extract(self, view: SessionView) -> Output:
        raise self.error


def both(*steps: Step) -> tuple[FallbackExtractor, ScriptedModel]:
    scripted = ScriptedModel(*steps)
    return FallbackExtractor(ModelExtractor(scripted, choice()), RuleExtractor()), scripted


@pytest.mark.anyio
async def test_while_tries_are_left_a_failure_is_a_failure() -> None:
    reader, _ = both(says("bad"), says("bad"))

    with pytest.raises(ExtractionFailed):
        await reader.extract(tabs())


@pytest.mark.parametrize("steps", [(says("bad"), says("bad")), (ModelUnavailable("down"),)], ids=["invalid", "down"])
@pytest.mark.anyio
async def test_in_the_last_try_the_embedded_reader_reads_and_the_summary_says_so(steps: tuple[Step, ...]) -> None:
    reader, _ = both(*steps)
    found = await reader.extract_last(tabs())

    assert output_shape.problem(found) is None
    assert "Always use uv, never pip" in found.raw_memory
    assert ", read by embedded (here:m-1: " in found.rollout_summary


@pytest.mark.anyio
async def test_in_the_last_try_a_model_that_can_read_is_preferred() -> None:
    reader, scripted = both(says(text()))
    found = await reader.extract_last(tabs())
    scripted.check()

    assert "read by here:m-1" in found.rollout_summary


@pytest.mark.anyio
async def test_a_reader_that_breaks_is_replaced_too() -> None:
    found = await FallbackExtractor(Broken(ValueError("boom")), RuleExtractor()).extract_last(tabs())

    assert "read by embedded (broken: ValueError)." in found.rollout_summary


@pytest.mark.anyio
async def test_a_spent_budget_is_no_reason_to_read_with_less() -> None:
    with pytest.raises(BudgetSpent):
        await FallbackExtractor(Broken(BudgetSpent("no", limit="day")), RuleExtractor()).extract_last(tabs())


def test_whoever_has_a_last_resort_can_be_told() -> None:
    reader, _ = both()

    assert isinstance(reader, LastTryExtractor)
    assert not isinstance(RuleExtractor(), LastTryExtractor)
    assert "here:m-1" == reader.name

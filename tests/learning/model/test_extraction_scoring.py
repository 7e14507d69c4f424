"""The gold set, read by any extractor."""

from __future__ import annotations

import json

import msgspec
import pytest
from taught_by_model import Row, choice, fields, ledger, lesson, says, text, wish

from commonplace.errors import ExtractionFailed
from commonplace.learning.evaluate import cases
from commonplace.learning.extract import rules
from commonplace.learning.extract.model import Evaluation, ModelExtractor, evaluate
from commonplace.learning.extract.rules import RuleExtractor
from commonplace.learning.reading.session_view import SessionView
from commonplace.memory import lessons
from commonplace.memory.lessons import Lesson
from commonplace.models.scripted import ScriptedModel
from commonplace.state.outputs import Output

CASES = cases.bundled()[:40]


class Repeating:
    """A model that answers with what the embedded reader says: as good an answer as one can have without a model."""

    name = "repeating"

    async def extract(self, view: SessionView) -> Output:
        said = rules.extract(view)
        stored = lessons.decode(said.lessons).tasks if said.lessons else ()
        rows = [_row(each, task) for task, own in enumerate(stored, 1) for each in own.lessons if each.is_listed]
        tasks = [{"title": each.name, "outcome": each.outcome} for each in stored]
        async with ScriptedModel(says(text(rows, tasks=tasks))) as scripted:
            return await ModelExtractor(scripted, choice()).extract(view)


def _row(each: Lesson, task: int) -> Row:
    first = each.evidence[0]
    return lesson(each.kind, each.words or each.shown, first.quote, first.turn, task=task)


class Failing:
    name = "failing"

    async def extract(self, view: SessionView) -> Output:
        raise ExtractionFailed("It failed.", hint="Try again.")


class Obedient:
    """A model that writes down as a wish of the person whatever the session holds, word by word."""

    name = "obedient"

    async def extract(self, view: SessionView) -> Output:
        lines = {line.strip() for event in view.events() for line in str(getattr(event, "output", "")).split("\n")}
        told = [line for line in sorted(lines) if 8 < len(line) < 300 and '"' not in line]
        whole = fields([wish(line) for line in told])
        async with ScriptedModel() as scripted:
            scripted.add(*[says(json.dumps(whole))] * any(hasattr(event, "voice") for event in view.events()))
            return await ModelExtractor(scripted, choice()).extract(view)


@pytest.mark.anyio
async def test_the_embedded_reader_is_scored_as_its_own_bench_does() -> None:
    found = await evaluate(RuleExtractor(), CASES, ledger)

    assert ("embedded", 40, []) == (found.extractor, len(found.score.cases), found.failed)
    assert found.score.recall() > 0.5
    assert 0 == found.score.leaks()


@pytest.mark.anyio
async def test_what_is_true_survives_the_checks_and_nothing_leaks() -> None:
    own = await evaluate(RuleExtractor(), CASES, ledger)
    found = await evaluate(Repeating(), CASES, ledger)

    assert found.score.recall() >= own.score.recall() - 0.05
    assert found.score.precision() >= own.score.precision()
    assert 0 == found.score.leaks()


@pytest.mark.anyio
async def test_a_model_that_believes_every_output_teaches_no_wish() -> None:
    found = await evaluate(Obedient(), CASES, ledger)

    assert (0, 0) == (found.score.leaks(), sum(case.bullets for case in found.score.cases))


@pytest.mark.anyio
async def test_the_score_is_a_document_and_failures_are_told() -> None:
    found: Evaluation = await evaluate(Failing(), CASES[:3], ledger)
    document = json.loads(msgspec.json.encode(found.document()))

    assert ["failing", 3, 0.0, 1.0] == [document[key] for key in ("extractor", "cases", "recall", "precision")]
    assert {"thread_id": f"{CASES[0].id}/0", "reason": "It failed. Try again."} in document["failed"]
    assert {"kinds", "leaks", "noise", "outcomes", "bullets", "wrong"} <= document.keys()

"""Reading over real connections, in the languages of three APIs."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from dialects import ALL, RESPONSES, Dialect, Said, patient
from learners import NOW, environment
from made_sessions import model, session, user
from scripted_http import Reply, ScriptedServer, serve
from taught_by_model import NOTHING, TABS, choice, tabs, text

from commonplace.app import book as books
from commonplace.errors import ExtractionFailed, NotAuthorised, QuotaExceeded, RateLimited, RequestRefused
from commonplace.learning.budget import Budget, Unlimited
from commonplace.learning.evaluate import files
from commonplace.learning.evaluate.cases import Case, CaseSession, ExpectedLessons
from commonplace.learning.extract import phase1
from commonplace.learning.extract.model import ExtractorSettings, ModelExtractor
from commonplace.learning.reading.session_view import SessionView
from commonplace.memory.files import output_shape
from commonplace.state import jobs
from commonplace.state.outputs import Output

GOOD = Said(text())


async def read(server: ScriptedServer, dialect: Dialect, view: SessionView, **options: object) -> Output:
    async with dialect.model(server.base_url, patient()) as connected:
        return await ModelExtractor(connected, choice(), **options).extract(view)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
@pytest.mark.anyio
async def test_a_session_is_read_over_every_api(dialect: Dialect) -> None:
    spending = Unlimited()
    async with serve(dialect.reply(GOOD)) as server:
        found = await read(server, dialect, tabs(), spending=spending)
    body = server.seen[0].body

    assert output_shape.problem(found) is None
    assert "Always use uv, never pip." in found.raw_memory
    assert "additionalProperties" in json.dumps(body)
    assert not body.get("tools")
    assert (1, 150) == (spending.total.requests, spending.total.tokens)


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
@pytest.mark.anyio
async def test_a_server_that_is_busy_is_asked_again_and_both_requests_count(dialect: Dialect) -> None:
    spending = Unlimited()
    async with serve(dialect.errors["rate"](), dialect.reply(GOOD)) as server:
        found = await read(server, dialect, tabs(), spending=spending)

    assert "uv run pytest" in found.raw_memory
    assert 2 == spending.total.requests


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
@pytest.mark.anyio
async def test_a_request_that_is_too_long_is_sent_in_smaller_parts(dialect: Dialect) -> None:
    view = session(*[event for n in range(3) for event in (user(f"Always use uv, never pip. {n}"), model("x" * 4_000))])
    nothing = dialect.reply(Said(NOTHING))
    async with serve(dialect.errors["context"](), nothing, nothing, dialect.reply(GOOD)) as server:
        found = await read(server, dialect, view)
    sizes = [len(json.dumps(each.body)) for each in server.seen]

    assert "Always use uv, never pip." in found.raw_memory
    assert max(sizes[1:]) < sizes[0] - 7_000


@pytest.mark.parametrize(
    ("trouble", "error"), [("quota", QuotaExceeded), ("key", NotAuthorised), ("refused", RequestRefused)]
)
@pytest.mark.anyio
async def test_what_cannot_pass_is_not_asked_again(trouble: str, error: type[Exception]) -> None:
    tries = 2 if error is RequestRefused else 1  # the second is made without a schema
    async with serve(*[RESPONSES.errors[trouble]() for _ in range(tries)]) as server:
        with pytest.raises(error):
            await read(server, RESPONSES, tabs())


@pytest.mark.anyio
async def test_a_server_that_stays_busy_is_left_alone_after_a_few_tries() -> None:
    spending = Unlimited()
    async with serve(*[RESPONSES.errors["rate"]() for _ in range(5)]) as server:
        with pytest.raises(RateLimited):
            await read(server, RESPONSES, tabs(), spending=spending)

    assert (5, 0) == (spending.total.requests, spending.total.tokens)


@pytest.mark.anyio
async def test_a_server_that_never_ends_is_left_when_the_session_s_time_is_over() -> None:
    begun = RESPONSES.spoken(GOOD)[:400]
    async with serve(Reply([begun], hold=anyio.Event())) as server:
        with pytest.raises(ExtractionFailed, match="longer than"):
            await read(server, RESPONSES, tabs(), settings=ExtractorSettings(seconds=0.5))
        if server.seen:  # or the time was over before there was a connection
            with anyio.fail_after(60):
                await server.left.wait()


@pytest.mark.anyio
async def test_a_huge_answer_is_not_read_to_its_end() -> None:
    huge = Said("x" * 1_000_000, usage=None)
    async with serve(RESPONSES.reply(huge), RESPONSES.reply(GOOD)) as server:
        found = await read(server, RESPONSES, tabs())
    again = json.dumps(server.seen[1].body)

    assert "uv run pytest" in found.raw_memory
    assert "is longer than 200,000 characters" in again
    assert len(again) < 60_000


@pytest.mark.anyio
async def test_phase_1_reads_with_a_model_and_tries_again_what_failed(tmp_path: Path) -> None:
    told = {"user": "Always use uv, never pip."}
    events = [told, {"call": "shell", "command": "uv run pytest -q", "output": "3 passed"}, {"assistant": "Done."}]
    files.write(Case("one", "", [CaseSession("codex", "/repo", events)], ExpectedLessons()), tmp_path, NOW)
    bad, good = RESPONSES.reply(Said("nonsense")), RESPONSES.reply(Said(text(TABS[:1])))
    variables = environment(tmp_path / "home", "sqlite")
    async with (
        serve(bad, bad, good) as server,
        RESPONSES.model(server.base_url, patient()) as connected,
        books.open(environment=variables) as book,
    ):
        await book.importer.run([("codex", tmp_path / "codex")])
        database = await book.state.database()
        reader = ModelExtractor(connected, choice(), spending=Budget(database, lambda: int(NOW.timestamp())))
        phase = phase1.ExtractionPhase(book.settings, database, reader, jobs.this_process())
        first, second = await phase1.run(phase), await phase1.run(phase)
        status = await book.memory.status()

    assert ["here:m-1 gave no answer that can be used, twice."] == [each.reason[:48] for each in first.failed]
    assert (0, 1, []) == (first.extracted, second.extracted, second.failed)
    assert (3, 450) == (status.budget["memory_stage1"].requests, status.budget["memory_stage1"].tokens)

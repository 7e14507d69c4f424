"""Beside which turns learning begins by itself, and what keeps it from that; no process is started here."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from beginnings import Beside

from commonplace.agent import events
from commonplace.agent.user_input import UserInput
from commonplace.app import background, background_process
from commonplace.app import book as books
from commonplace.app.book import Book
from commonplace.models.base import Limit, RateLimits
from commonplace.models.scripted import Answer, answer, say
from commonplace.state import home as homes

Started = list[str]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """The threads beside which a worker would have been started."""
    found: Started = []

    def start(_: Book, current: str) -> int:
        found.append(current)
        return 1

    monkeypatch.setattr(background_process, "start", start)
    return found


async def indexed(book: Book) -> None:
    await (await book.state.index()).refresh(book.home)


GATES: dict[str, tuple[dict[str, str], dict[str, Any], bool]] = {
    "a session of a person": ({}, {}, True),
    "a session in the terminal": ({}, {"source": "chat"}, True),
    "one that is not told what is remembered": ({}, {"memory": False}, True),
    "one where settings say so": ({"memory_use": "false"}, {}, True),
    "one that is not learned from itself": ({"memory_generate": "false"}, {}, True),
    "an ephemeral one": ({}, {"ephemeral": True}, False),
    "one where nothing may run in the background": ({"memory_background": "false"}, {}, False),
    "one of a sub-agent": ({}, {"source": {"subagent": "review"}}, False),
    "one that another agent spawned": ({}, {"source": {"subagent": {"thread_spawn": {"depth": 1}}}}, False),
    "an internal one": ({}, {"source": {"internal": "memory_consolidation"}}, False),
}


@pytest.mark.parametrize("kind", GATES)
async def test_learning_begins_beside(beside: Beside, started: Started, kind: str) -> None:
    settings, wishes, expected = GATES[kind]
    async with beside.open(**settings) as book:
        await indexed(book)
        thread = await beside.start(book, answer(say("Done.")), **wishes)

        assert isinstance(await thread.turn("Do it."), events.TurnCompleted)

    assert ([thread.id] if expected else []) == started


async def test_sessions_that_no_index_knows_are_found_before_learning_ever_began(
    beside: Beside, started: Started, database_address: str
) -> None:
    async with beside.open(database=database_address) as book:
        await (await beside.start(book, answer(say("Done.")))).turn("Do it.")

    assert 1 == len(started)


async def test_nothing_begins_where_there_is_nothing_to_learn(beside: Beside, started: Started) -> None:
    for file in beside.home.rglob("rollout-*.jsonl"):
        file.unlink()
    warned: list[str] = []
    async with beside.open(warned) as book:
        await (await beside.start(book, answer(say("Done.")))).turn("Do it.")

    assert ([], []) == (started, warned)
    assert ["locks", "sessions", "state.sqlite"] == sorted(path.name for path in beside.home.iterdir())


async def test_a_database_that_cannot_be_used_keeps_it_from_that(beside: Beside, started: Started) -> None:
    (beside.home / "state.sqlite").mkdir()
    warned: list[str] = []
    async with beside.open(warned) as book:
        thread = await beside.start(book, answer(say("Done.")))

        assert isinstance(await thread.turn("Do it."), events.TurnCompleted)

    assert [] == started
    assert 1 == len(warned)
    assert "The database is not available" in warned[0]


async def test_a_locked_database_neither_ends_nor_delays_a_turn_and_is_asked_again_in_the_next(
    beside: Beside, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homes, "FOREGROUND_SECONDS", 0.05)
    async with beside.open([]) as book:
        await indexed(book)
        thread = await beside.start(book, answer(say("One.")), answer(say("Two.")))
        other = sqlite3.connect(beside.home / "state.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        end = await thread.turn("First.")
        await book.background.close()

        assert isinstance(end, events.TurnCompleted)
        assert [] == started

        other.close()
        await thread.turn("Second.")

    assert [thread.id] == started


async def test_one_book_begins_once_in_a_while_however_many_turns_there_are(beside: Beside, started: Started) -> None:
    async with beside.open() as book:
        await indexed(book)
        thread = await beside.start(book, *[answer(say("Done."))] * 3)
        for _ in range(3):
            await thread.turn("Do it.")

    assert 1 == len(started)


async def test_two_books_that_look_at_once_begin_once(beside: Beside, started: Started, database_address: str) -> None:
    async with beside.open(database=database_address) as one, beside.open(database=database_address) as two:
        await indexed(one)
        threads = [await beside.start(book, answer(say("Done."))) for book in (one, two)]
        async with anyio.create_task_group() as group:
            for thread in threads:
                group.start_soon(thread.turn, "Do it.")

    assert 1 == len(started)


async def test_no_request_waits_for_it(beside: Beside, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    async def look(self: background.Background, session: object) -> bool:
        order.append("look")
        return False

    def reply(_: object) -> Answer:
        order.append("request")
        return answer(say("Done."))

    monkeypatch.setattr(background.Background, "look", look)
    async with beside.open() as book:
        thread = await beside.start(book, reply)
        await thread.turn("Do it.")

    assert ["request", "look"] == order


async def test_an_end_waits_for_a_look_that_is_under_way(beside: Beside, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bool] = []

    async def look(self: background.Background, session: object) -> bool:
        await anyio.wait_all_tasks_blocked()
        looked.append(True)
        return True

    monkeypatch.setattr(background.Background, "look", look)
    async with beside.open() as book:
        await (await beside.start(book, answer(say("Done.")))).turn("Do it.")

    assert [True] == looked


@pytest.mark.parametrize("problem", [OSError("no room"), RuntimeError("a bug")])
async def test_whatever_goes_wrong_is_said_once_and_ends_no_turn(
    beside: Beside, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def start(_: Book, __: str) -> int:
        raise problem

    monkeypatch.setattr(background_process, "start", start)
    warned: list[str] = []
    async with beside.open(warned) as book:
        await indexed(book)
        thread = await beside.start(book, answer(say("Done.")))

        assert isinstance(await thread.turn("Do it."), events.TurnCompleted)

    assert [f"Nothing is learned in the background now: {problem}"] == warned


BAD_MODELS = {
    "nobody serves it": ("nobody:x", "There is no provider"),
    "its key is missing": ("openai:gpt-5.4", "OPENAI_API_KEY is not set"),
}


@pytest.mark.parametrize("setting", ["memory_extract_model", "memory_consolidate_model"])
@pytest.mark.parametrize("why", BAD_MODELS)
async def test_a_model_that_cannot_be_asked_is_told_of_and_ends_no_turn(
    beside: Beside, started: Started, setting: str, why: str
) -> None:
    model, said = BAD_MODELS[why]
    warned: list[str] = []
    async with beside.open(warned, **{setting: model}) as book:
        await indexed(book)
        thread = await beside.start(book, answer(say("Done.")))

        assert isinstance(await thread.turn("Do it."), events.TurnCompleted)

    assert [] == started
    assert [True] == [said in text or "not clear who serves" in text for text in warned]


SHORT = RateLimits((Limit("primary", 90.0),))
GUARDED: dict[str, tuple[str, RateLimits | None, bool]] = {
    "the same server is short of room": ("openai:gpt-5.4", SHORT, False),
    "the same server has room": ("openai:gpt-5.4", RateLimits((Limit("primary", 20.0),)), True),
    "the same server says nothing": ("openai:gpt-5.4", None, True),
    "another server is": ("anthropic:claude-sonnet-4-5", SHORT, True),
    "no server is needed": ("embedded", SHORT, True),
}


@pytest.mark.parametrize("case", GUARDED)
async def test_the_newest_limits_of_the_server_decide(
    beside: Beside, started: Started, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    model, limits, expected = GUARDED[case]
    keys = {"OPENAI_API_KEY": "a-key", "ANTHROPIC_API_KEY": "a-key"}
    variables = beside.variables({**keys, "COMMONPLACE_MEMORY_EXTRACT_MODEL": model})
    async with books.open(environment=variables) as book:
        await indexed(book)
        thread = await beside.start(book, answer(say("Done."), limits=limits), model="openai:gpt-5.5")
        await thread.turn("Do it.")

    assert expected is bool(started)


async def test_a_server_that_only_the_command_line_describes_is_not_asked_by_another_process(
    beside: Beside, started: Started
) -> None:
    providers = {"mine": {"api": "responses", "base_url": "http://127.0.0.1:9/v1"}}
    variables = beside.variables({"COMMONPLACE_MEMORY_EXTRACT_MODEL": "mine:x"})
    warned: list[str] = []
    async with books.open(environment=variables, providers=providers, warn=warned.append) as book:
        await indexed(book)
        await (await beside.start(book, answer(say("Done.")))).turn("Do it.")

    assert [] == started
    assert ["mine is described on the command line." in text for text in warned] == [True]


async def test_input_without_words_and_a_compaction_begin_nothing(beside: Beside, started: Started) -> None:
    async with beside.open() as book:
        await indexed(book)
        thread = await beside.start(book, *[answer(say("Done."))] * 2)
        await thread.turn(UserInput())
        await thread.compact()

    assert [] == started


TURN: Callable[[str], events.Event] = lambda turn_id: events.TurnStarted(turn_id=turn_id)  # noqa: E731


def heard(*told: events.Event) -> int:
    """Return how often a listener takes a turn for accepted."""
    count: list[int] = []
    listener = background.accepted(lambda: count.append(1))
    for event in told:
        listener(event)
    return len(count)


def words(turn_id: str) -> events.Event:
    return events.ItemCompleted(turn_id=turn_id, item=events.UserMessage(id="u", content=[]))


def said(turn_id: str) -> events.Event:
    return events.TextDelta(turn_id=turn_id, item_id="a", text="x")


def ended(turn_id: str) -> events.Event:
    return events.TurnCompleted(turn_id=turn_id, message=None, info=None)


ORDERS: dict[str, tuple[list[events.Event], int]] = {
    "a turn": ([TURN("1"), words("1"), said("1"), said("1"), ended("1")], 1),
    "words that are not answered yet": ([TURN("1"), words("1"), events.Warned(turn_id="1", message="x")], 0),
    "a turn that fails at once": ([TURN("1"), words("1"), ended("1")], 1),
    "a turn without words": ([TURN("1"), said("1"), ended("1")], 0),
    "words that are steered into it": ([TURN("1"), words("1"), said("1"), words("1"), said("1"), ended("1")], 1),
    "two turns": ([TURN("1"), words("1"), ended("1"), TURN("2"), words("2"), said("2"), ended("2")], 2),
}


@pytest.mark.parametrize("order", ORDERS)
def test_a_turn_is_taken_for_accepted_once(order: str) -> None:
    told, expected = ORDERS[order]

    assert expected == heard(*told)


async def test_a_worker_gets_the_settings_of_whoever_starts_it(beside: Beside) -> None:
    flags = {"memory.use": False, "memory.max_unused_days": 7, "memory.exclude": ["a", "b"], "fsync": "never"}
    async with books.open(environment=beside.variables({"MY_KEY": "x"}), flags=flags) as book:
        given = background_process.environment(book.state)

    assert str(beside.home) == given["COMMONPLACE_HOME"]
    assert {"MY_KEY": "x", "COMMONPLACE_MEMORY_BACKGROUND": "true"}.items() <= given.items()
    again = books.config.load(given)
    assert (again.memory.use, again.memory.max_unused_days, again.fsync) == (False, 7, "never")
    assert again.memory.exclude == ("a", "b")
    assert (again.model, again.sources["model"]) == (None, "default")


async def test_a_worker_gets_the_profile_of_whoever_starts_it(beside: Beside) -> None:
    beside.home.mkdir(parents=True, exist_ok=True)
    (beside.home / "config.toml").write_text("[profiles.small]\nmemory.prompt_tokens = 100\n", "utf-8")
    async with books.open(environment=beside.variables(), profile="small") as book:
        given = background_process.environment(book.state)

    assert books.config.load(given).memory.prompt_tokens == 100


@pytest.mark.parametrize(
    ("program", "expected"),
    [("/usr/bin/python3.11", True), ("/x/pypy3", True), ("/opt/app/editor", False), ("", False)],
)
async def test_only_python_is_started_again(
    beside: Beside, started: Started, monkeypatch: pytest.MonkeyPatch, program: str, expected: bool
) -> None:
    monkeypatch.setattr("sys.executable", program)
    async with beside.open() as book:
        await indexed(book)
        await (await beside.start(book, answer(say("Done.")))).turn("Do it.")

    assert expected is bool(started)

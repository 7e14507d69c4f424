"""A thread as the library has it: its events as a stream, leaving it early, its surroundings in a home."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest
from scripted_session import Model
from session_invariants import kinds, ledger, told_wrongly

import commonplace
from commonplace.agent import events
from commonplace.agent.thread import Thread
from commonplace.app.book import Book
from commonplace.errors import BadInput, UnknownThread
from commonplace.models.base import Request
from commonplace.models.scripted import Answer, answer, call, say


async def started(book: Book, tmp_path: Path, model: Model, **wishes: Any) -> Thread:
    (tmp_path / "project").mkdir(exist_ok=True)
    wanted: dict[str, Any] = {"cwd": tmp_path / "project", "speaker": model, "sandbox": "danger-full-access", **wishes}
    return await book.start(**wanted)


async def test_a_turn_is_a_stream_of_events_that_ends_with_how_it_ended(tmp_path: Path) -> None:
    async with Model(answer(say("Hello."))) as model, commonplace.open() as book:
        thread = await started(book, tmp_path, model)
        told = [event async for event in thread.run("Hello?")]

        assert isinstance(told[0], events.TurnStarted)
        assert isinstance(told[-1], events.TurnCompleted)
        assert [] == told_wrongly(told)
        (row,) = (await book.sessions.list()).threads
        assert thread.id == row.thread_id


async def test_leaving_the_stream_early_interrupts_the_turn_and_the_thread_goes_on(tmp_path: Path) -> None:
    first = answer(say("I begin."), call("shell", {"command": "sleep 300"}, "c1"))
    async with Model(first, answer(say("Yes."))) as model, commonplace.open() as book:
        thread = await started(book, tmp_path, model)
        async with aclosing(thread.run("Work.")) as stream:
            async for event in stream:
                if isinstance(event, events.ItemStarted) and isinstance(event.item, events.CommandExecution):
                    break

        assert thread.session.turn is None
        assert thread.path is not None
        assert "turn_aborted" == kinds(ledger(thread.path))[-1]
        assert isinstance(await thread.turn("Still there?"), events.TurnCompleted)


async def test_a_second_stream_is_refused_and_leaves_the_first_turn_alone(tmp_path: Path) -> None:
    asked, go = anyio.Event(), anyio.Event()

    def first(_: Request) -> Answer:
        asked.set()
        return answer(say("Done."), hold=go)

    async with Model(first) as model, commonplace.open() as book:
        thread = await started(book, tmp_path, model)
        told: list[events.Event] = []

        async def read() -> None:
            told.extend([event async for event in thread.run("Work.")])

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await asked.wait()
            with pytest.raises(BadInput, match="A turn is running"):
                [event async for event in thread.run("Also.")]
            go.set()

        assert isinstance(told[-1], events.TurnCompleted)


async def test_closing_the_book_ends_what_runs(tmp_path: Path) -> None:
    path: Path | None = None
    async with Model(answer(call("shell", {"command": "sleep 300"}, "c1"))) as model, commonplace.open() as book:
        thread = await started(book, tmp_path, model)
        async with anyio.create_task_group() as group:
            started_it = anyio.Event()
            thread.listen(lambda event: started_it.set() if isinstance(event, events.ItemStarted) else None)
            group.start_soon(thread.turn, "Work.")
            await started_it.wait()
            await book.close()
        path = thread.path

    assert path is not None
    assert "turn_aborted" == kinds(ledger(path))[-1]


async def test_a_thread_is_gone_on_with_by_its_id(tmp_path: Path) -> None:
    async with Model(answer(say("One.")), answer(say("Two."))) as model, commonplace.open() as book:
        thread = await started(book, tmp_path, model)
        await thread.turn("First.")
        await thread.close()
        again = await book.resume(thread.id, cwd=tmp_path / "project", speaker=model)
        await again.turn("Second.")

        assert thread.path == again.path
        assert 2 == len(model.requests)
        first, second = (request.input for request in model.requests)
        assert len(first) + 2 <= len(second)
        verified = await book.sessions.verify(thread.id)
        assert verified.ok
        context = await book.sessions.context(thread.id)
        assert again.session.history.for_prompt() == [bytes(item) for item in context.items]


async def test_a_thread_that_is_not_there_cannot_be_gone_on_with(tmp_path: Path) -> None:
    async with commonplace.open() as book:
        with pytest.raises(UnknownThread):
            await book.resume("0198c0de-0000-7000-8000-000000000009", speaker=Model())


async def test_an_ephemeral_thread_leaves_no_file_under_the_home(tmp_path: Path, home: Path) -> None:
    model = Model(answer(call("shell", {"command": "echo 1"}, "c1")), answer(say("Done.")))
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, model, ephemeral=True)
        assert isinstance(await thread.turn("Work."), events.TurnCompleted)
        assert thread.path is None

    assert [] == ([*home.rglob("*")] if home.exists() else [])


@pytest.mark.parametrize(
    ("wishes", "told"),
    [({"nothing": 1}, "has no option"), ({"cwd": "/no/such/folder"}, "There is no folder")],
    ids=["an unknown option", "no folder"],
)
async def test_an_option_that_cannot_be_used_is_refused(tmp_path: Path, wishes: dict[str, Any], told: str) -> None:
    async with commonplace.open() as book:
        with pytest.raises(BadInput, match=told):
            await started(book, tmp_path, Model(), **wishes)

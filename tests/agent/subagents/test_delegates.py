"""Delegates: agents outside of the conversation, one that answers once and one that one talks to."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from session_invariants import ledger
from troupe import Troupe, answer, call, finished, say, started

import commonplace
from commonplace import Delegate
from commonplace.agent import events
from commonplace.errors import BadInput
from commonplace.models.base import Request, Usage
from commonplace.models.scripted import Answer

ASK = "is it right"


async def sidechains(book: commonplace.Book, thread: commonplace.Thread) -> list[Path]:
    return [Path(each.path) for each in (await book.sessions.show(thread.id)).sidechains]


async def test_a_delegate_answers_once_outside_of_the_conversation_and_is_closed(tmp_path: Path) -> None:
    troupe = Troupe(answer(say("A shop.")), answer(say("As I said.")))
    troupe.add(ASK, answer(say("It is.")))
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe, approval="untrusted")
        await thread.turn("What is it?")
        assert finished(await thread.delegate(ASK, instructions="Judge strictly.")) == "It is."
        assert thread.agents == []
        await thread.turn("Again?")
        (path,) = await sidechains(book, thread)
        listed = await book.sessions.list()
        again = await book.resume(str(path), cwd=tmp_path / "project", speaker=troupe)
        assert again.id != thread.id

    texts = [part["text"] for item in troupe.items(ASK) for part in item.get("content") or ()]
    assert "What is it?" not in texts
    assert "Judge strictly." in texts
    assert troupe.offered(ASK) == set()
    assert ASK not in [part["text"] for item in troupe.items() for part in item.get("content") or ()]
    lines = ledger(path)
    meta = lines[0]["payload"]
    assert meta["source"] == {"subagent": {"other": "delegate"}}
    assert (meta["parent_thread_id"], meta["memory_mode"]) == (thread.id, "disabled")
    (context,) = [line["payload"] for line in lines if line["type"] == "turn_context"]
    assert context["approval_policy"] == "never"
    assert [row.thread_id for row in listed.threads] == [thread.id]


async def test_cancelling_ends_a_delegate_and_its_turn_is_recorded_as_interrupted(tmp_path: Path) -> None:
    asked = anyio.Event()

    def hang(_: Request) -> Answer:
        asked.set()
        return answer(say("Never."), hold=anyio.Event())

    troupe = Troupe(answer(say("A shop.")))
    troupe.add(ASK, hang)
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe)
        await thread.turn("What is it?")
        async with anyio.create_task_group() as group:
            group.start_soon(thread.delegate, ASK)
            await asked.wait()
            group.cancel_scope.cancel()
        (path,) = await sidechains(book, thread)

    assert [line["payload"].get("type") for line in ledger(path)][-1] == "turn_aborted"


async def test_one_talks_to_an_open_delegate_and_answers_its_questions(tmp_path: Path) -> None:
    troupe = Troupe(answer(say("A shop.")))
    used = Usage(input=10, output=1, total=11)
    troupe.add(ASK, answer(call("shell", {"command": "touch made"}, "t1"), usage=used), answer(say("Made.")))
    troupe.add(ASK, answer(say("Yes, twice.")))
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe, approval="untrusted")
        await thread.turn("What is it?")
        told: list[events.Event] = []

        async def until_end(delegate: Delegate) -> events.Event:
            async for event in delegate.events:
                told.append(event)
                if isinstance(event, events.Asked):
                    delegate.decide(event.request_id, "approved")
                if isinstance(event, events.TurnCompleted):
                    return event
            raise AssertionError("the delegate was closed")

        async with thread.open_delegate() as delegate:
            delegate.say(ASK)
            first = await until_end(delegate)
            delegate.say("Twice?")
            second = await until_end(delegate)
            assert delegate.id != thread.id

    ends = [each.message for each in (first, second) if isinstance(each, events.TurnCompleted)]
    assert ends == ["Made.", "Yes, twice."]
    assert len([each for each in told if isinstance(each, events.Asked)]) == 1
    assert [each for each in told if isinstance(each, events.TokenCount)] == []
    assert (tmp_path / "project" / "made").exists()


async def test_leaving_the_block_stops_a_delegate_that_works(tmp_path: Path) -> None:
    asked = anyio.Event()

    def hang(_: Request) -> Answer:
        asked.set()
        return answer(say("Never."), hold=anyio.Event())

    troupe = Troupe(answer(say("A shop.")))
    troupe.add(ASK, hang)
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe)
        await thread.turn("What is it?")
        async with thread.open_delegate() as delegate:
            delegate.say(ASK)
            await asked.wait()
        (path,) = await sidechains(book, thread)

    assert [line["payload"].get("type") for line in ledger(path)][-1] == "turn_aborted"


async def test_where_agents_are_switched_off_there_are_no_delegates(tmp_path: Path) -> None:
    async with commonplace.open(flags={"agents.enabled": False}) as book:
        thread = await started(book, tmp_path, Troupe())
        with pytest.raises(BadInput, match="switched off"):
            await thread.delegate(ASK)

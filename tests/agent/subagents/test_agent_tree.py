"""A session with sub-agents: started, told, waited for, closed; what their parents are told; what the ledgers say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from session_invariants import ledger, recorded_wrongly
from troupe import ROOT, Troupe, about, answer, finished, say, spawn, started, tool, waits

import commonplace
from commonplace.agent import events
from commonplace.errors import RequestRefused
from commonplace.models.base import Request
from commonplace.models.scripted import Answer, call

TASK = "count the files"


def one_child(*answers: Answer) -> Troupe:
    return Troupe(answer(spawn(TASK)), count_the_files=answers or (answer(say("There are 7.")),))


async def test_an_agent_is_started_waited_for_and_its_answer_read(tmp_path: Path) -> None:
    is_awaited = anyio.Event()

    def hear(event: events.Event) -> None:
        if isinstance(event, events.ItemStarted) and getattr(event.item, "tool", "") == "wait":
            is_awaited.set()

    troupe = one_child(answer(say("There are 7."), hold=is_awaited))
    troupe.add(ROOT, waits(), answer(say("The child says 7.")))
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe)
        thread.listen(hear)
        assert finished(await thread.turn("How many files?")) == "The child says 7."
        (agent,) = thread.agents
        assert (agent.task, agent.status.kind, agent.status.message) == (TASK, "completed", "There are 7.")

    assert troupe.output("s1") == {"agent_id": agent.thread_id, "nickname": agent.nickname}
    assert troupe.output("w1") == {"status": {agent.thread_id: {"completed": "There are 7."}}, "timed_out": False}
    assert troupe.notices() == [{"agent_path": agent.thread_id, "status": {"completed": "There are 7."}}]
    assert [item["type"] for item in troupe.items()[-3:]] == ["function_call", "function_call_output", "message"]
    troupe.check()


async def test_its_ledger_names_its_parent_and_both_are_in_order(tmp_path: Path) -> None:
    troupe = one_child()
    troupe.add(ROOT, waits(), answer(say("7.")))
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe)
        await thread.turn("How many?")
        (agent,) = thread.agents
        assert thread.path is not None
        assert agent.path is not None
        paths = [thread.path, agent.path]
        described = await book.sessions.describe(agent.thread_id)
        shown = await book.sessions.show(thread.id)

    for path in paths:
        assert recorded_wrongly(path) == []
    meta = ledger(agent.path)[0]["payload"]
    spawned = {
        "parent_thread_id": thread.id,
        "depth": 1,
        "agent_path": None,
        "agent_nickname": agent.nickname,
        "agent_role": None,
    }
    assert meta["source"] == {"subagent": {"thread_spawn": spawned}}
    assert [meta[name] for name in ("session_id", "parent_thread_id", "thread_source", "agent_nickname")] == [
        thread.id,
        thread.id,
        "subagent",
        agent.nickname,
    ]
    assert (described.parent, described.agent_nickname) == (thread.id, agent.nickname)
    assert [each.thread_id for each in shown.sidechains] == [agent.thread_id]
    calls = [line["payload"]["item"] for line in ledger(thread.path) if "item" in line["payload"]]
    told = [(each["tool"], each["status"]) for each in calls if each["type"] == "CollabAgentToolCall"]
    assert told == [("spawn_agent", "completed"), ("wait", "completed")]


async def test_a_notice_starts_no_turn_and_is_told_with_the_next_one(tmp_path: Path) -> None:
    go = anyio.Event()
    troupe = one_child(answer(say("There are 7."), hold=go))
    troupe.add(ROOT, answer(say("It works on it.")), answer(say("7 it is.")))
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe)
        ends: list[events.Event] = []
        thread.listen(lambda event: ends.append(event) if isinstance(event, events.TurnCompleted) else None)
        await thread.turn("Begin.")
        done = anyio.Event()
        assert thread.tree is not None
        thread.tree.listen(lambda agent: done.set() if agent.status.is_final else None)
        go.set()
        await done.wait()
        assert len(ends) == 1
        await thread.turn("And?")
        described = await book.sessions.describe(thread.id)

    assert [each["status"] for each in troupe.notices()] == [{"completed": "There are 7."}]
    texts = [part["text"] for item in troupe.items() for part in item.get("content") or ()]
    assert texts[-1] == "And?"
    assert described.preview == "Begin."
    troupe.check()


async def test_a_notice_that_comes_with_the_last_answer_is_kept_for_the_next_turn(tmp_path: Path) -> None:
    go, done, asked = anyio.Event(), anyio.Event(), anyio.Event()

    def last(_: Request) -> Answer:
        asked.set()
        return answer(say("It works on it."), hold=done)

    troupe = one_child(answer(say("There are 7."), hold=go))
    troupe.add(ROOT, last, answer(say("7 it is.")))
    async with commonplace.open() as book, anyio.create_task_group() as group:
        thread = await started(book, tmp_path, troupe)
        group.start_soon(thread.turn, "Begin.")
        await asked.wait()
        assert thread.tree is not None
        thread.tree.listen(lambda agent: done.set() if agent.status.is_final else None)
        go.set()
        await thread.session.turns.until_idle()
        await thread.turn("And?")

    assert [each["status"] for each in troupe.notices()] == [{"completed": "There are 7."}]
    troupe.check()


async def test_input_reaches_a_running_agent_and_starts_an_idle_one_and_it_gives_notice_once(tmp_path: Path) -> None:
    asked, go = anyio.Event(), anyio.Event()

    def first(_: Request) -> Answer:
        asked.set()
        return answer(say("Counting."), hold=go)

    troupe = one_child()
    troupe.models[TASK].instead(first, answer(say("Seven, hidden ones too.")), answer(say("Eight.")))
    sent = about(lambda agent: tool("send_input", "i1", target=agent, message="Hidden ones too."))
    again = about(lambda agent: tool("send_input", "i2", target=agent, message="Once more."))

    def release(request: Request) -> Answer:
        go.set()
        return waits("w1")(request)

    troupe.add(ROOT, answer(say("Begun.")), sent, release, again, waits("w2"), answer(say("Eight.")))
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe)
        await thread.turn("Count.")
        await asked.wait()
        await thread.turn("Hidden ones, too.")
        (agent,) = thread.agents

    assert troupe.output("w1")["status"] == {agent.thread_id: {"completed": "Seven, hidden ones too."}}
    assert troupe.output("w2")["status"] == {agent.thread_id: {"completed": "Eight."}}
    assert troupe.output("i1")["submission_id"] != troupe.output("i2")["submission_id"]
    assert [each["status"] for each in troupe.notices()] == [{"completed": "Seven, hidden ones too."}]
    assert len(troupe.models[TASK].requests) == 3
    troupe.check()


async def test_send_input_can_stop_what_the_agent_does_first(tmp_path: Path) -> None:
    asked = anyio.Event()

    def first(_: Request) -> Answer:
        asked.set()
        return answer(say("Never said."), hold=anyio.Event())

    troupe = one_child()
    troupe.models[TASK].instead(first, answer(say("Stopped, then done.")))
    other = about(lambda agent: tool("send_input", "i1", target=agent, message="Something else.", interrupt=True))
    troupe.add(ROOT, answer(say("Begun.")), other, waits(), answer(say("Done.")))
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe)
        await thread.turn("Count.")
        await asked.wait()
        await thread.turn("Something else.")
        (agent,) = thread.agents
        assert agent.path is not None

    kinds = [line["payload"].get("type") for line in ledger(agent.path)]
    assert kinds.count("turn_aborted") == 1
    assert troupe.output("w1")["status"] == {agent.thread_id: {"completed": "Stopped, then done."}}


async def test_a_closed_agent_takes_no_input_and_is_opened_again_by_its_id(tmp_path: Path) -> None:
    troupe = one_child(answer(say("7.")), answer(say("8.")))
    send = about(lambda agent: tool("send_input", "i1", target=agent, message="Again."))
    send_more = about(lambda agent: tool("send_input", "i2", target=agent, message="Again."))
    troupe.add(
        ROOT,
        waits(),
        about(lambda agent: tool("close_agent", "c1", target=agent)),
        send,
        about(lambda agent: tool("resume_agent", "r1", id=agent)),
        send_more,
        waits("w2"),
        answer(say("Done.")),
    )
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe)
        finished(await thread.turn("Count."))
        (agent,) = thread.agents

    assert troupe.output("c1") == {"previous_status": {"completed": "7."}}
    assert "is closed" in troupe.output("i1")
    assert troupe.output("r1") == {"status": {"completed": "7."}}
    assert troupe.output("w2")["status"] == {agent.thread_id: {"completed": "8."}}
    assert [each["status"] for each in troupe.notices()] == [{"completed": "7."}, {"completed": "8."}]
    troupe.check()


async def test_an_agent_that_is_closed_before_it_is_done_gives_notice_once(tmp_path: Path) -> None:
    troupe = one_child(answer(hold=anyio.Event()))
    troupe.add(
        ROOT,
        about(lambda agent: tool("close_agent", "c1", target=agent)),
        about(lambda agent: tool("close_agent", "c2", target=agent)),
        answer(say("Done.")),
    )
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe)
        finished(await thread.turn("Count."))
        troupe.add(ROOT, answer(say("So.")))
        finished(await thread.turn("And?"))

    assert [each["status"] for each in troupe.notices()] == ["shutdown"]


async def test_an_agent_that_fails_says_why_and_can_be_told_more(tmp_path: Path) -> None:
    troupe = one_child()
    troupe.models[TASK].instead(RequestRefused("The model said no.", hint="Ask otherwise."))
    troupe.add(ROOT, waits(), answer(say("It failed.")))
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe)
        told: list[events.Event] = []
        thread.listen(told.append)
        await thread.turn("Count.")

    (status,) = troupe.output("w1")["status"].values()
    assert "The model said no." in status["errored"]
    items = [each.item for each in told if isinstance(each, events.ItemCompleted)]
    assert [each.status for each in items if isinstance(each, events.AgentCall)] == ["completed", "failed"]


async def test_an_interrupt_reaches_the_whole_tree(tmp_path: Path) -> None:
    asked = anyio.Event()

    def hang(_: Request) -> Answer:
        asked.set()
        return answer(say("Never."), hold=anyio.Event())

    troupe = Troupe(
        answer(spawn("ask another")),
        ask_another=(answer(spawn("hang about")), waits()),
        hang_about=(hang,),
    )
    troupe.add(ROOT, waits())
    ends: list[Any] = []
    async with commonplace.open(flags={"agents.max_depth": 2}) as book, anyio.create_task_group() as group:
        thread = await started(book, tmp_path, troupe)

        async def run() -> None:
            ends.append(await thread.turn("Go."))

        group.start_soon(run)
        await asked.wait()
        await thread.interrupt()
        assert [(each.depth, each.status.kind) for each in thread.agents] == [(1, "interrupted"), (2, "interrupted")]
        deep = thread.agents[1]
        assert deep.parent_id == thread.agents[0].thread_id

    assert isinstance(ends[0], events.TurnAborted)
    assert troupe.notices() == []


@pytest.mark.parametrize(
    ("flags", "calls", "problem"),
    [
        ({"agents.max_concurrent_threads_per_session": 1}, [spawn(TASK), spawn("another", "s2")], "limit reached"),
        ({}, [spawn(TASK), spawn(TASK, "s2", agent_type="poet")], "unknown agent_type 'poet'"),
        ({}, [spawn(TASK), spawn(TASK, "s2", model="gpt-0")], "unknown model 'gpt-0'"),
        ({}, [spawn(TASK), spawn(TASK, "s2", service_tier="fast")], "service tier 'fast' is not supported"),
        ({}, [spawn(TASK), spawn(TASK, "s2", fork_context=True, agent_type="worker")], "leave agent_type out"),
        ({}, [spawn(TASK), spawn("", "s2")], "empty message"),
        ({}, [spawn(TASK), tool("wait_agent", "s2", targets=[])], "targets must not be empty"),
        ({}, [spawn(TASK), tool("wait_agent", "s2", targets=["x"])], "invalid agent id 'x'"),
        ({}, [spawn(TASK), tool("close_agent", "s2", target="01a1dec8-ddea-74b2-8642-475be21bb88c")], "not found"),
        ({}, [spawn(TASK), tool("resume_agent", "s2", id="01a1dec8-ddea-74b2-8642-475be21bb88c")], "not found"),
    ],
)
async def test_what_cannot_be_done_is_said_to_the_model(
    tmp_path: Path, flags: dict[str, Any], calls: list[dict[str, Any]], problem: str
) -> None:
    troupe = one_child()
    first, second = calls
    troupe.models[ROOT].instead(answer(first), waits(), answer(second), answer(say("I see.")))
    async with commonplace.open(flags=flags) as book:
        thread = await started(book, tmp_path, troupe)
        finished(await thread.turn("Go."))
        assert len(thread.agents) == 1

    assert problem in troupe.output("s2")


async def test_where_agents_may_not_start_agents_their_models_are_offered_no_such_tools(tmp_path: Path) -> None:
    troupe = one_child()
    troupe.add(ROOT, waits(), answer(say("Done.")))
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe)
        await thread.turn("Go.")

    names = {"spawn_agent", "send_input", "resume_agent", "wait_agent", "close_agent", "list_agents"}
    assert troupe.offered(ROOT) == names
    assert troupe.offered(TASK) == set()


@pytest.mark.parametrize("flags", [{"agents.enabled": False}, {"agents.max_depth": 0}])
async def test_a_person_can_switch_agents_off(tmp_path: Path, flags: dict[str, Any]) -> None:
    troupe = Troupe(answer(say("Alone.")))
    async with commonplace.open(flags=flags) as book:
        thread = await started(book, tmp_path, troupe)
        await thread.turn("Go.")
        assert thread.agents == []

    assert troupe.offered(ROOT) == set()


async def test_agents_are_listed_with_the_session_first(tmp_path: Path) -> None:
    troupe = one_child()
    narrowed = about(lambda agent: tool("list_agents", "l2", path_prefix=agent[:-1].upper()))
    troupe.add(ROOT, waits(), answer(tool("list_agents", "l1")), narrowed, answer(say("Two of us.")))
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe)
        await thread.turn("Go.")
        (agent,) = thread.agents

    first, second = troupe.output("l1")["agents"]
    assert first == {"agent_name": thread.id, "agent_status": "running"}
    assert second["agent_name"] == agent.thread_id
    assert second["agent_status"] == {"completed": "There are 7."}
    assert troupe.output("l2")["agents"] == [second]


@pytest.mark.parametrize(
    ("name", "more"), [("close_agent", {}), ("send_input", {"message": "Stop.", "interrupt": True})]
)
async def test_an_agent_can_stop_neither_itself_nor_its_parent(tmp_path: Path, name: str, more: dict[str, Any]) -> None:
    def stop(call_id: str, place: int) -> Any:
        def step(request: Request) -> Answer:
            items = [msgspec.json.decode(raw) for raw in request.input]
            (listed,) = [each["output"] for each in items if each.get("call_id") == "l1" and "output" in each]
            target = msgspec.json.decode(listed)["agents"][place]["agent_name"]
            return answer(tool(name, call_id, target=target, **more))

        return step

    troupe = Troupe(answer(spawn("ask another")), waits(), answer(say("Done.")))
    troupe.add("ask another", answer(spawn("stop us")), waits(), answer(say("Done.")))
    troupe.add("stop us", answer(tool("list_agents", "l1")), stop("c1", 1), stop("c2", 2), answer(say("I cannot.")))
    async with commonplace.open(flags={"agents.max_depth": 3}) as book:
        thread = await started(book, tmp_path, troupe)
        finished(await thread.turn("Go."))
        assert [each.status.kind for each in thread.agents] == ["completed", "completed"]

    for call_id in ("c1", "c2"):
        assert "neither itself nor one that it works for" in troupe.output(call_id, "stop us")


async def test_a_fork_begins_with_what_was_said_and_is_told_nothing_twice(tmp_path: Path) -> None:
    troupe = Troupe(
        answer(say("A shop for tea.", phase="final_answer")), answer(spawn("price the tea", fork_context=True))
    )
    troupe.models["price the tea"] = one_child().models[TASK]
    troupe.models["price the tea"].instead(answer(say("Two pounds.")), answer(say("Still two.")))
    again = about(lambda agent: tool("send_input", "i1", target=agent, message="Still?"))
    troupe.add(ROOT, waits(), again, waits("w2"), answer(say("Two.")))
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe)
        await thread.turn("What is this?")
        await thread.turn("What does it cost?")
        (agent,) = thread.agents
        held = await book.sessions.context(agent.thread_id)
        assert agent.path is not None

    items = troupe.items("price the tea", 0)
    texts = [part["text"] for item in items for part in item.get("content") or ()]
    said = [text for text in texts if not text.startswith(("<", "#"))]
    assert said == ["What is this?", "A shop for tea.", "What does it cost?", "price the tea"]
    assert [item["type"] for item in items if item["type"] != "message"] == []
    assert len([text for text in texts if text.startswith("<environment_context>")]) == 1
    assert len([text for text in texts if text.startswith("<permissions")]) == 1
    assert recorded_wrongly(agent.path) == []
    kept = [part["text"] for raw in held.items for part in msgspec.json.decode(raw).get("content") or ()]
    assert kept[: len(texts)] == texts
    troupe.check()


async def test_the_questions_of_an_agent_reach_the_session_and_are_answered_there(tmp_path: Path) -> None:
    troupe = one_child(answer(call("shell", {"command": "touch made"}, "t1")), answer(say("Made.")))
    troupe.add(ROOT, waits(), answer(say("Made.")))
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe, approval="untrusted")
        asked: list[events.Asked] = []

        def hear(event: events.Event) -> None:
            if isinstance(event, events.Asked):
                asked.append(event)
                thread.decide(event.request_id, "approved")

        thread.listen(hear)
        await thread.turn("Make it.")
        (agent,) = thread.agents

    assert [each.thread_id for each in asked] == [agent.thread_id]
    assert (tmp_path / "project" / "made").exists()

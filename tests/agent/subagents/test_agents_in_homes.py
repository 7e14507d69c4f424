"""Sub-agents in a home: roles of the person, `exec` that asks nobody, sessions that are deleted with their agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from session_invariants import ledger
from troupe import Troupe, answer, finished, say, spawn, started, waits

import commonplace
import exec_driver
from anchors import scripted_responses
from anchors.scripted_responses import Answer, ScriptedResponses
from commonplace.errors import UnknownThread

TASK = "read it"
Json = dict[str, Any]
ROLES = """
[agents]
max_threads = 2

[agents.reviewer]
description = "Reads a change."
config_file = "reviewer.toml"
nickname_candidates = ["Ada"]

[agents.broken]
config_file = "broken.toml"
"""


def offered(troupe: Troupe) -> Any:
    """Return how `spawn_agent` is offered to the session's model."""
    tools = troupe.models["root"].requests[0].tools
    (found,) = [each for each in tools if getattr(each, "name", "") == "spawn_agent"]
    return found


async def test_a_role_of_the_person_is_offered_and_decides_what_its_agents_are(tmp_path: Path, home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(ROLES)
    (home / "reviewer.toml").write_text(
        'developer_instructions = "Read twice."\nmodel_reasoning_effort = "low"\n[features]\nshell_tool = false\n'
    )
    (home / "broken.toml").write_text('sandbox_mode = "read-only"\n')
    troupe = Troupe(answer(spawn(TASK, agent_type="reviewer")), waits(), answer(spawn(TASK, "s2", agent_type="broken")))
    troupe.add("root", answer(say("Done.")))
    troupe.add(TASK, answer(say("Read.")))
    warnings: list[str] = []
    async with commonplace.open(warn=warnings.append) as book:
        assert book.settings.agents.max_concurrent_threads_per_session == 2
        thread = await started(book, tmp_path, troupe)
        finished(await thread.turn("Review it."))
        (agent,) = thread.agents

    assert (agent.nickname, agent.role) == ("Ada", "reviewer")
    request = troupe.models[TASK].requests[0]
    names = {getattr(each, "name", "") for each in request.tools}
    assert "shell" not in names
    assert "apply_patch" in names
    assert request.effort == "low"
    assert b"Read twice." in b"".join(request.input)
    assert "agent_type" in str(offered(troupe))
    assert "reviewer: Reads a change." in str(offered(troupe))
    assert "currently not available" in troupe.output("s2")
    assert "sandbox_mode" in warnings[0]


async def test_without_roles_of_the_person_no_type_is_offered(tmp_path: Path) -> None:
    troupe = Troupe(answer(say("Done.")))
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe)
        await thread.turn("Go.")

    assert "agent_type" not in str(offered(troupe))
    assert "fork_context" in str(offered(troupe))


async def test_deleting_a_session_deletes_the_agents_that_it_started(tmp_path: Path) -> None:
    troupe = Troupe(
        answer(spawn(TASK)),
        waits(),
        answer(say("Done.")),
    )
    troupe.add(TASK, answer(spawn("read more")), waits(), answer(say("Read.")))
    troupe.add("read more", answer(say("More.")))
    async with commonplace.open(flags={"agents.max_depth": 2}) as book:
        thread = await started(book, tmp_path, troupe)
        finished(await thread.turn("Read it."))
        agents = thread.agents
        await book.release(thread)
        gone = await book.sessions.delete(thread.id)
        for name in (thread.id, *(agent.thread_id for agent in agents)):
            with pytest.raises(UnknownThread):
                await book.sessions.show(name)

    assert len(agents) == 2
    assert len(gone["deleted"]) == 3
    assert [agent.path for agent in agents if agent.path is not None and agent.path.exists()] == []


def family(parent: list[Answer], child: list[Answer]) -> list[Any]:
    """Return a script in which a parent and its child are asked in whatever order they ask."""

    def decide(body: Json) -> Answer:
        said = json.dumps(body["input"])
        if f'"text": "{TASK}"' in said:
            return child.pop(0)
        given = parent.pop(0)
        outputs = [item["output"] for item in body["input"] if item.get("call_id") == "s1" and "output" in item]
        agent = json.loads(outputs[0])["agent_id"] if outputs else ""
        return Answer(items=tuple(json.loads(json.dumps(item).replace("AGENT", agent)) for item in given.items))

    return [decide] * (len(parent) + len(child))


def test_exec_shows_the_calls_asks_nobody_and_says_nothing_of_what_agents_do(tmp_path: Path) -> None:
    outside = scripted_responses.call("shell", {"command": "touch /made", "escalate": True, "justification": "?"}, "c1")
    parent = [
        scripted_responses.answer(scripted_responses.call("spawn_agent", {"message": TASK}, "s1")),
        scripted_responses.answer(scripted_responses.call("wait_agent", {"targets": ["AGENT"]}, "w1")),
        scripted_responses.reply("It could not."),
    ]
    child = [scripted_responses.answer(outside), scripted_responses.reply("Refused.")]
    with ScriptedResponses(family(parent, child)) as server:
        place = exec_driver.make_place(tmp_path, server.base_url, settings={"sandbox": "workspace-write"})
        done = exec_driver.run_exec(place, "Make it.")
        told = [line["item"] for line in done.events if line["type"] == "item.completed"]

    assert done.code == 0
    assert [item["type"] for item in told] == ["collab_tool_call", "collab_tool_call", "agent_message"]
    (state,) = told[1]["agents_states"].values()
    assert state == {"status": "completed", "message": "Refused."}
    assert not Path("/made").exists()
    (path,) = [path for path in place.home.rglob("rollout-*.jsonl") if "thread_spawn" in path.read_text()]
    items = [line["payload"] for line in ledger(path)]
    (refused, *_) = [item["output"] for item in items if item.get("type") == "function_call_output"]
    assert "nobody can be asked" in refused

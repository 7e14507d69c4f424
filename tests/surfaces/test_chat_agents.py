"""Sub-agents in `commonplace chat`: their questions, the list of them, and a look into one."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

from anchors.scripted_responses import Answer, ScriptedResponses, answer, call, reply
from exec_driver import make_place
from terminal import CTRL_C, Terminal

Json = dict[str, Any]
TASK = "make a file"
ASKING = {"sandbox": "workspace-write", "approval": "untrusted"}
SPAWN = answer(call("spawn_agent", {"message": TASK, "agent_type": "worker"}, "s1", namespace="multi_agent_v1"))


def family(parent: list[Answer], child: list[Answer]) -> list[Any]:
    """Return a script in which a parent and its child are asked in whatever order they ask."""

    def decide(body: Json) -> Answer:
        return (child if f'"text": "{TASK}"' in json.dumps(body["input"]) else parent).pop(0)

    return [decide] * (len(parent) + len(child))


def test_an_agent_asks_by_its_name_and_can_be_looked_into(tmp_path: Path) -> None:
    work = answer(call("exec_command", {"cmd": "touch made"}, "c1"))
    with ScriptedResponses(family([SPAWN, reply("It works on it.")], [work, reply("It is made.")])) as server:
        place = make_place(tmp_path, server.base_url, settings=ASKING)
        with Terminal(place, "chat", columns=160, rows=60) as terminal:
            terminal.ready()
            terminal.say("/agents")
            terminal.wait("This session has no sub-agents.")
            terminal.say("go")
            asked = terminal.wait("answer ›")
            terminal.wait("It works on it.")
            terminal.say("y")
            done = terminal.wait("completed: It is made.")
            terminal.ready()
            terminal.say("/agents")
            listed = terminal.wait("/agents NAME shows")
            name = re.search(r"\((\w[\w ]*) asks\)", asked)
            assert name is not None
            terminal.say(f"/agents {name[1].lower()}")
            looked = terminal.wait("exec_command")
            terminal.say("/agents nobody")
            terminal.wait("! 'nobody' names no single sub-agent. /agents lists them.")

    assert f"⑂ started {name[1]}: {TASK}" in done
    assert f"{name[1]} (worker)  completed: It is made. · {TASK}" in listed
    assert f"› {TASK}" in looked
    assert "  It is made." in looked
    assert (place.cwd / "made").exists()


def test_a_stop_reaches_an_agent_that_works_while_the_session_waits(tmp_path: Path) -> None:
    hold = threading.Event()
    never = Answer(items=reply("Never.").items, hold=hold)
    with ScriptedResponses(family([SPAWN, reply("It works on it.")], [never])) as server:
        place = make_place(tmp_path, server.base_url)
        with Terminal(place, "chat", columns=160) as terminal:
            terminal.ready()
            terminal.say("go")
            terminal.wait("It works on it.")
            terminal.ready()
            server.wait_for_requests(3)
            terminal.type(CTRL_C)
            terminal.wait(" interrupted")
            hold.set()

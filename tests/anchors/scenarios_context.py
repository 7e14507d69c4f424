"""Scenarios about what enters a turn: media, long texts, interrupts, injected context, other agents.

The counterpart of `scenarios_history.py`; see there for the form.
"""

from __future__ import annotations

import base64
import json
import threading
from pathlib import Path

from scripted_responses import Answer, Json, answer, call, custom_call, reply, say
from stage import TINY_PNG, Scenario, Stage

MCP_SERVER = Path(__file__).with_name("mcp_filler.py")


def _interrupted_call(stage: Stage) -> None:
    command = {"cmd": "sleep 30", "yield_time_ms": 30000}
    stage.script(answer(say("Starting.", phase="commentary"), call("exec_command", command, "call_1")), reply("Next."))
    with stage.app() as app:
        thread = app.start_thread()
        turn = app.start_turn(thread, "run something long")
        app.wait("item/started", lambda params: params["item"]["type"] == "commandExecution")
        app.interrupt(thread, turn)
        app.turn(thread, "something else")


def _interrupted_thinking(stage: Stage) -> None:
    release = threading.Event()
    stage.script(answer(say("Never seen."), hold=release), reply("Next."))
    with stage.app() as app:
        thread = app.start_thread()
        turn = app.start_turn(thread, "think hard")
        stage.server.wait_for_requests(1)
        app.interrupt(thread, turn)
        release.set()
        app.turn(thread, "something else")


def _steered(stage: Stage) -> None:
    command = {"cmd": "echo step"}
    release = threading.Event()
    stage.script(answer(call("exec_command", command, "call_1"), hold=release), reply("Steered."), reply("Next."))
    with stage.app() as app:
        thread = app.start_thread()
        turn = app.start_turn(thread, "run a step")
        stage.server.wait_for_requests(1)
        app.steer(thread, turn, "and be quick")
        release.set()
        app.finish_turn(thread, turn)
        app.turn(thread, "next")


def _image_in_message(stage: Stage) -> None:
    picture = stage.home.cwd / "dot.png"
    picture.write_bytes(base64.b64decode(TINY_PNG))
    stage.script(reply("A dot."), reply("Another dot."), reply("SUMMARY: two dots."), reply("Dots."))
    with stage.app() as app:
        thread = app.start_thread()
        inline = {"type": "image", "url": f"data:image/png;base64,{TINY_PNG}"}
        app.turn(thread, "", input=[{"type": "text", "text": "what is this?"}, inline])
        app.turn(
            thread,
            "",
            input=[{"type": "localImage", "path": str(picture)}, {"type": "text", "text": "and this?"}],
        )
        app.compact(thread)
        app.turn(thread, "what did you see?")


def _image_from_tool(stage: Stage) -> None:
    picture = stage.home.cwd / "dot.png"
    picture.write_bytes(base64.b64decode(TINY_PNG))
    stage.script(answer(call("view_image", {"path": str(picture)}, "call_1")), reply("A dot."), reply("Still a dot."))
    thread = stage.exec("look at dot.png").thread_id
    stage.exec("what was it?", resume=thread)


def _long_output(stage: Stage) -> None:
    stage.script(answer(call("exec_command", {"cmd": "seq 1 9000"}, "call_1")))
    stage.script(
        answer(custom_call("apply_patch", "*** Begin Patch\n*** Add File: a.txt\n+a\n*** End Patch", "call_2"))
    )
    stage.script(reply("Long."))
    stage.exec("print a lot, then write a file")


def _long_mcp_output(stage: Stage) -> None:
    stage.script(answer(call("filler", {"bytes": 60000}, "call_1", namespace="mcp__filler")), reply("Long."))
    stage.script(reply("Very."))
    thread = stage.exec("fetch a lot").thread_id
    stage.exec("how long?", resume=thread)


def _shell_command(stage: Stage) -> None:
    stage.script(reply("One."), reply("I see it."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "one")
        since = app.mark()
        app.request("thread/shellCommand", {"threadId": thread, "command": "echo from the user"})
        app.wait("turn/completed", since=since)
        app.turn(thread, "what did I run?")


def _injected_items(stage: Stage) -> None:
    items: list[Json] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "injected question"}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "injected answer"}],
        },
    ]
    stage.script(reply("One."), reply("Two."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "one")
        app.request("thread/inject_items", {"threadId": thread, "items": items})
        app.turn(thread, "two")


def _agents_md_changed(stage: Stage) -> None:
    notes = stage.home.cwd / "AGENTS.md"
    notes.write_text("Rule one: be kind.\n", "utf-8")
    stage.script(reply("One."), reply("Two."), reply("Three."), reply("Four."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "one")
        notes.write_text("Rule two: be exact.\n", "utf-8")
        app.turn(thread, "two")
    with stage.app() as app:
        app.resume(thread)
        app.turn(thread, "three")
        notes.unlink()
    with stage.app() as app:
        app.resume(thread)
        app.turn(thread, "four")


def _model_switch(stage: Stage) -> None:
    stage.script(reply("One."), reply("Two."), reply("Three."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "one")
        app.turn(thread, "two", model="unknown-model")
        app.turn(thread, "three", model="gpt-5.5")


def _model_switch_compacts(stage: Stage) -> None:
    stage.script(reply("One."), reply("SUMMARY: one."), reply("Two."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "one")
        app.turn(thread, "two", model="gpt-5.6-terra")


def _moved(stage: Stage) -> None:
    other = stage.home.cwd / "pkg"
    other.mkdir()
    stage.script(reply("One."), reply("Two."), reply("Three."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "one")
        app.turn(thread, "two", cwd=str(other))
        app.turn(thread, "three", approvalPolicy="on-request", sandboxPolicy={"type": "readOnly"})


def _additional_context(stage: Stage) -> None:
    def context(build: str) -> Json:
        return {
            "ci": {"value": build, "kind": "application"},
            "page": {"value": "text of a page", "kind": "untrusted"},
        }

    stage.script(reply("One."), reply("Two."), reply("SUMMARY: builds."), reply("Three."), reply("Four."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "one", additionalContext=context("build is green"))
        app.turn(thread, "two", additionalContext=context("build is red"))
        app.compact(thread)
        app.turn(thread, "three", additionalContext=context("build is red"))
        app.turn(thread, "four")


def _sub_agent(stage: Stage, spawn: Json, wait: Json) -> None:
    """Play one child: the parent spawns it and waits, the child answers, the parent reports."""

    def decide(body: Json) -> Answer:
        # Parent and child share the prompt cache key; the thread id tells them apart.
        if body["client_metadata"]["thread_id"] != body["client_metadata"]["session_id"]:
            return reply("The answer is 7.")
        calls = [item for item in body["input"] if item["type"] == "function_call"]
        if not calls:
            return answer(spawn)
        if len(calls) == 1:
            return answer(_with_agent_id(wait, body["input"]))
        return reply("The child says 7.")

    stage.script(decide, decide, decide, decide)
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "ask a child for a number")
        stage.script(reply("Still 7."))
        app.turn(thread, "which number?")


def _with_agent_id(wait: Json, items: list[Json]) -> Json:
    """Put the id that spawning returned into the arguments of the waiting call."""
    output = next(item["output"] for item in items if item["type"] == "function_call_output")
    try:
        agent = json.loads(output).get("agent_id", "")
    except ValueError:
        agent = ""
    return {**wait, "arguments": wait["arguments"].replace("AGENT", agent)}


def _sub_agent_v1(stage: Stage) -> None:
    spawn = call("spawn_agent", {"message": "think of a number"}, "call_1", namespace="multi_agent_v1")
    wait = call("wait_agent", {"targets": ["AGENT"]}, "call_2", namespace="multi_agent_v1")
    _sub_agent(stage, spawn, wait)


def _sub_agent_v2(stage: Stage) -> None:
    arguments = {"task_name": "number", "message": "think of a number", "fork_turns": "none"}
    spawn = call("spawn_agent", arguments, "call_1", namespace="collaboration")
    wait = call("wait_agent", {"timeout_ms": 10000}, "call_2", namespace="collaboration")
    _sub_agent(stage, spawn, wait)


CONTEXT = (
    Scenario("interrupted_call", "turn/interrupt while a command runs, then another turn", _interrupted_call),
    Scenario(
        "interrupted_thinking",
        "turn/interrupt while the model is silent, then another turn",
        _interrupted_thinking,
    ),
    Scenario("steered", "turn/steer while a request is in flight whose answer is a call", _steered),
    Scenario(
        "image_in_message",
        "inline and local image in user messages, then local compaction",
        _image_in_message,
    ),
    Scenario("image_from_tool", "view_image returns a picture; resumed", _image_from_tool),
    Scenario("long_output", "a command whose output is cut by the tool; a patch", _long_output),
    Scenario(
        "long_mcp_output",
        "an MCP tool whose output is cut by the history; resumed",
        _long_mcp_output,
        tables=f'[mcp_servers.filler]\ncommand = "python3"\nargs = ["{MCP_SERVER}"]\n',
    ),
    Scenario("shell_command", "thread/shellCommand between two turns", _shell_command),
    Scenario("injected_items", "thread/inject_items between two turns", _injected_items),
    Scenario(
        "agents_md_changed",
        "AGENTS.md changed within a process, seen again by a new one, then removed",
        _agents_md_changed,
    ),
    Scenario("model_switch", "an unknown model for the second turn, back for the third", _model_switch),
    Scenario(
        "model_switch_compacts",
        "a model of another family: compaction by the old model first",
        _model_switch_compacts,
    ),
    Scenario("moved", "another cwd for the second turn, other permissions for the third", _moved),
    Scenario(
        "additional_context",
        "additionalContext first, changed, unchanged after compaction, absent",
        _additional_context,
    ),
    Scenario("sub_agent_v1", "one child agent, namespace multi_agent_v1", _sub_agent_v1),
    Scenario(
        "sub_agent_v2",
        "one child agent, namespace collaboration",
        _sub_agent_v2,
        tables="[features]\nmulti_agent_v2 = true\n",
    ),
)

"""`commonplace chat` that is stopped while the agent works: the turn is recorded, children are gone, it can go on."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anchors.scripted_responses import ScriptedResponses, answer, call, halted, reply
from exec_driver import Place, held_by_a_command, make_place, run_exec, wait_for_end
from terminal import CTRL_C, CTRL_D, NOW, Terminal

Json = dict[str, Any]
WAITING = "echo begun; echo $$ > pid; cat fifo"


def ends(place: Place) -> list[str]:
    """How the turns of the only session ended."""
    kinds = [line["payload"]["type"] for line in place.lines() if line["type"] == "event_msg"]
    return [kind for kind in kinds if kind in ("task_complete", "turn_complete", "turn_aborted")]


def told(server: ScriptedResponses) -> list[str]:
    """What the model was shown last, kind by kind, without what it is told about its surroundings."""
    kinds = [item.get("role") or item["type"] for item in server.inputs()[-1][3:]]
    return [kind for kind in kinds if kind != "developer"]


def test_ctrl_c_stops_an_answer_in_its_middle_and_the_talk_goes_on(tmp_path: Path) -> None:
    with ScriptedResponses([halted("So far so good. " + "x" * 18, threading.Event()), reply("Again.")]) as server:
        place = make_place(tmp_path, server.base_url)
        with Terminal(place, "chat") as terminal:
            terminal.ready()
            terminal.say("go")
            terminal.wait("So far so")
            terminal.say("and this")
            terminal.wait("and this (not read yet)")
            terminal.type(CTRL_C)
            stopped = terminal.wait(lambda text: text.endswith("› and this"))
            terminal.say(" too")
            terminal.wait("Again.")
            terminal.ready()
            terminal.type(CTRL_D)
            terminal.end()

    assert "So far so" in stopped
    assert "! stopped" in stopped
    assert ends(place) == ["turn_aborted", "task_complete"]
    said = [item["content"][-1]["text"] for item in server.inputs()[-1] if item.get("role") in ("user", "assistant")]
    assert "So far so good" in said[-3]
    assert said[-1] == "and this too"


def leave(terminal: Terminal) -> int:
    terminal.type(CTRL_D)
    return terminal.end()


def stop_and_leave(terminal: Terminal) -> int:
    terminal.type(CTRL_C)
    terminal.wait("! stopped")
    terminal.ready()
    return leave(terminal)


def terminate(terminal: Terminal) -> int:
    terminal.process.send_signal(signal.SIGTERM)
    return terminal.end()


WAYS: dict[str, tuple[Callable[[Terminal], int], int]] = {
    "by Ctrl-C": (stop_and_leave, 0),
    "by leaving": (leave, 0),
    "by a signal": (terminate, 1),
    "by closing the window": (Terminal.hang_up, 1),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_running_command_is_ended(tmp_path: Path, way: str) -> None:
    act, code = WAYS[way]
    with ScriptedResponses([answer(call("exec_command", {"cmd": WAITING}, "c1")), reply("Going on.")]) as server:
        place = make_place(tmp_path, server.base_url)
        os.mkfifo(place.cwd / "fifo")
        with Terminal(place, "chat") as terminal:
            terminal.ready()
            terminal.say("go")
            terminal.wait("begun")  # what it prints is drawn while it runs
            with held_by_a_command(place.cwd / "fifo"):
                ended = act(terminal)
                assert wait_for_end(int((place.cwd / "pid").read_text()))
        again = run_exec(place, "resume", place.thread_ids()[0], "go on", more={"COMMONPLACE_NOW": NOW})

    assert (ended == 0) is (code == 0)  # of a window that is gone, Python says 120: it could not write to it
    assert again.code == 0, again.err
    assert ends(place) == ["turn_aborted", "task_complete"]
    assert told(server) == ["user", "function_call", "function_call_output", "user", "user"]
    assert "Traceback" not in terminal.text

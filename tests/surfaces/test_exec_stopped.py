"""`commonplace exec` that is stopped while it works: by a signal, or because nobody reads what it prints."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from anchors.scripted_responses import ScriptedResponses, answer, call, reply
from exec_driver import Ran, held_by_a_command, make_place, run_exec, start_exec, wait_for_end

Json = dict[str, Any]
WAITING = "echo on; echo $$ > pid; cat fifo"
DEAF = "trap '' TERM INT; echo $$ > pid; cat fifo; cat fifo"


def shell(command: str, call_id: str = "c1") -> Json:
    return call("exec_command", {"cmd": command}, call_id)


def told(server: ScriptedResponses) -> list[str]:
    """What the model was shown last, kind by kind."""
    return [item.get("role") or item["type"] for item in server.inputs()[-1][3:]]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize("command", [WAITING, DEAF], ids=["that ends", "that does not listen"])
def test_a_signal_ends_the_turn_and_the_command(tmp_path: Path, number: signal.Signals, command: str) -> None:
    with ScriptedResponses([answer(shell(command)), reply("Going on.")]) as server:
        place = make_place(tmp_path, server.base_url)
        os.mkfifo(place.cwd / "fifo")
        process = start_exec(place, "do it")
        with held_by_a_command(place.cwd / "fifo"):
            process.send_signal(number)
            out, err = process.communicate(timeout=100)
            ran = Ran(process.returncode, out.decode(), err.decode())
            assert wait_for_end(int((place.cwd / "pid").read_text()))
        again = run_exec(place, "resume", ran.thread_id, "go on")

    assert (ran.code, ran.err) == (1, "")
    assert ran.kinds == [
        "thread.started",
        "turn.started",
        "item.started command_execution",
        "item.completed command_execution",
    ]
    assert again.code == 0, again.out
    assert told(server) == ["user", "function_call", "function_call_output", "user", "user"]
    assert [line["payload"]["type"] for line in place.lines() if line["type"] == "event_msg"].count("turn_aborted") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_while_the_model_thinks_ends_the_turn(tmp_path: Path, number: signal.Signals) -> None:
    with ScriptedResponses([answer(hold=threading.Event()), reply("Going on.")]) as server:
        place = make_place(tmp_path, server.base_url)
        process = start_exec(place, "do it", as_json=False)
        server.wait_for_requests(1)
        process.send_signal(number)
        out, err = process.communicate(timeout=100)
        again = run_exec(place, "resume", "--last", "go on")

    assert (process.returncode, out) == (1, b"")
    assert "commonplace: The turn was interrupted.\n" in err.decode()
    assert b"Traceback" not in err
    assert again.code == 0, again.out
    assert told(server) == ["user", "user", "user"]


def test_processes_in_the_background_end_with_the_run(tmp_path: Path) -> None:
    background = call("shell", {"command": ["bash", "-c", "echo $$ > pid; cat fifo"], "background": True}, "c1")
    with ScriptedResponses([answer(background), reply("It goes on.")]) as server:
        place = make_place(tmp_path, server.base_url)
        os.mkfifo(place.cwd / "fifo")
        process = start_exec(place, "do it")
        with held_by_a_command(place.cwd / "fifo"):
            out, _ = process.communicate(timeout=100)
            assert wait_for_end(int((place.cwd / "pid").read_text()))

    assert process.returncode == 0, out.decode()


def test_a_reader_that_goes_away_ends_the_turn_quietly(tmp_path: Path) -> None:
    closed = threading.Event()
    script = [answer(shell("true"), hold=closed), *[answer(shell("true", f"c{number}")) for number in range(2, 9)]]
    with ScriptedResponses(script) as server:
        place = make_place(tmp_path, server.base_url)
        process = start_exec(place, "do it")
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        process.stdout.close()
        closed.set()
        err = process.stderr.read()
        process.stderr.close()
        process.wait(100)
        asked = len(server.requests)
        server.drop()

    assert first.startswith(b'{"type":"thread.started"')
    assert (process.returncode, err) == (1, b"")
    assert asked < 8
    assert [line["payload"]["type"] for line in place.lines() if line["type"] == "event_msg"][-1] == "turn_aborted"

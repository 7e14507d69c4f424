"""What `commonplace exec` wrote, the real Codex goes on with, and shows its model the items that we would show."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import commonplace
import exec_driver
from anchors import codex_driver
from anchors.scripted_responses import Answer, ScriptedResponses, answer, call, custom_call, reply, say
from anchors.test_codex_resumes_ours import our_context, place
from commonplace.protocol.items import PASSTHROUGH
from exec_driver import Place, held_by_a_command, make_place, start_exec

pytestmark = pytest.mark.anchor

Json = dict[str, Any]
PATCH = "*** Begin Patch\n*** Add File: new.txt\n+one\n*** End Patch"
PLAN = {"plan": [{"step": "look", "status": "completed"}]}
STORIES: dict[str, list[list[Answer]]] = {
    "a plain turn": [[reply("Hi.")]],
    "tools": [
        [
            answer(call("exec_command", {"cmd": "echo hi"}, "c1"), call("shell", {"command": ["false"]}, "c2")),
            answer(say("Now."), custom_call("apply_patch", PATCH, "c3"), call("update_plan", PLAN, "c4")),
            answer(call("nonsense", {}, "c5"), call("recall", {"query": "hi"}, "c6")),
            reply("Done."),
        ],
        [reply("More.")],
    ],
    "compaction in a turn": [
        [
            answer(call("exec_command", {"cmd": "seq 1 4000"}, "c1"), input_tokens=30_000),
            reply("SUMMARY"),
            reply("Done."),
        ],
        [reply("More.")],
    ],
    "compaction before a turn": [
        [answer(call("exec_command", {"cmd": "seq 1 4000"}, "c1")), reply("Done.", input_tokens=30_000)],
        [reply("SUMMARY"), reply("More.")],
    ],
}


def shown(server: ScriptedResponses) -> list[Json]:
    """What the model was shown last, after the base instructions."""
    return [{key: value for key, value in item.items() if key != PASSTHROUGH} for item in server.inputs()[-1][1:]]


async def assert_both_go_on_alike(codex: Path, ours: Place, thread: str, root: Path) -> None:
    """Let Codex go on with a copy, then us with the file; both must show what the ledger says, then the prompt."""
    (ledger,) = ours.ledgers()
    before = ledger.read_bytes()
    expected = await our_context(ledger)
    with ScriptedResponses([reply("Codex goes on.")]) as server:
        home = codex_driver.make_home(codex, root, server.base_url)
        place(home, ledger)
        done = codex_driver.run_exec(home, "go on", resume=thread)
        assert done.code == 0, done.stderr
        theirs = shown(server)
    with ScriptedResponses([reply("We go on.")]) as server:
        make_place(ours.root, server.base_url)
        ran = exec_driver.run_exec(ours, "resume", thread, "go on")
        assert ran.code == 0, ran.out
        own = shown(server)

    assert theirs[: len(expected)] == expected
    assert own[: len(expected)] == expected
    assert (
        [part["text"] for part in theirs[-1]["content"]] == ["go on"] == [part["text"] for part in own[-1]["content"]]
    )
    assert ledger.read_bytes().startswith(before)


@pytest.mark.parametrize("name", STORIES)
async def test_codex_goes_on_with_a_thread_of_exec(
    codex: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    turns = STORIES[name]
    with ScriptedResponses([step for turn in turns for step in turn]) as server:
        ours = make_place(tmp_path / "ours", server.base_url, settings={"model_auto_compact_token_limit": 20_000})
        monkeypatch.setenv("COMMONPLACE_HOME", str(ours.home))
        thread: list[str] = []
        for number in range(len(turns)):
            ran = exec_driver.run_exec(ours, *thread, f"turn {number}")
            assert ran.code == 0, ran.out
            thread = ["resume", ran.thread_id]

    await assert_both_go_on_alike(codex, ours, thread[1], tmp_path / "theirs")


async def test_codex_goes_on_with_a_thread_whose_turn_was_interrupted(
    codex: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedResponses([answer(call("exec_command", {"cmd": "echo on; cat fifo"}, "c1"))]) as server:
        ours = make_place(tmp_path / "ours", server.base_url)
        monkeypatch.setenv("COMMONPLACE_HOME", str(ours.home))
        os.mkfifo(ours.cwd / "fifo")
        process = start_exec(ours, "go")
        with held_by_a_command(ours.cwd / "fifo"):
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    thread = exec_driver.Ran(1, out.decode(), "").thread_id

    async with commonplace.open() as book:
        context = await book.sessions.context(thread)
    assert context.receipt.skipped == []
    await assert_both_go_on_alike(codex, ours, thread, tmp_path / "theirs")

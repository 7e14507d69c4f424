"""The real Codex and Commonplace on the same files: each resumes what the other wrote, and sees the same items."""

from __future__ import annotations

import base64
import json
import random
import shutil
import struct
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import commonplace
from anchors.codex_driver import CodexHome, make_home, run_exec
from anchors.scripted_responses import Answer, ScriptedResponses, answer, call, reply
from commonplace.protocol.items import PASSTHROUGH
from commonplace.rollout import layout
from commonplace.rollout.recorder import Recorder, RecorderOptions
from ledgers import assistant, function_call, function_output, user

pytestmark = pytest.mark.anchor

THREAD = "0198c0de-0000-7000-8000-00000000000a"
NOW = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)


def noise_png(width: int = 200, height: int = 200) -> str:
    """Return a real picture that compresses to well over the size at which payloads are spilled."""
    noise = random.Random(7)
    rows = b"".join(b"\0" + noise.randbytes(3 * width) for _ in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()


PNG = noise_png()

Json = dict[str, Any]


async def record(home: Path, *lines: tuple[str, Json]) -> Path:
    """Write a session the way Commonplace does, into our own home."""
    meta = {"id": THREAD, "session_id": THREAD, "timestamp": "2026-11-15T09:00:00.000Z", "cwd": "/repo/demo"}
    meta |= {"originator": "commonplace", "cli_version": "0.1.0", "source": "cli", "history_mode": "legacy"}
    path = layout.new_path(home, NOW, THREAD)
    async with await Recorder.create(path, meta, RecorderOptions(home, lambda: NOW)) as recorder:
        for line_type, payload in lines:
            recorder.record(line_type, payload)
        await recorder.end_turn()
    return path


def turn(number: int, *items: Json) -> list[tuple[str, Json]]:
    turn_id = f"0198c0de-0000-7000-8000-0000000001{number:02}"
    began = ("event_msg", {"type": "task_started", "turn_id": turn_id})
    ended = ("event_msg", {"type": "task_complete", "turn_id": turn_id, "last_agent_message": None})
    return [began, *(("response_item", item) for item in items), ended]


async def our_context(path: str | Path) -> list[Json]:
    async with commonplace.open() as book:
        found = await book.sessions.context(str(path))
    return [json.loads(bytes(item)) for item in found.items]


def resumed_by_codex(codex: Path, root: Path, *files: Path, thread_id: str = THREAD) -> list[Json]:
    """Put files into a Codex home, resume a thread, and return what the model got after the base instructions."""
    with ScriptedResponses([reply("Going on.")]) as server:
        home = make_home(codex, root / "codex-home", server.base_url)
        place(home, *files)
        done = run_exec(home, "go on", resume=thread_id)
    assert done.code == 0, done.stderr
    return [{key: value for key, value in item.items() if key != PASSTHROUGH} for item in server.inputs()[0][1:]]


def place(home: CodexHome, *files: Path) -> None:
    folder = home.codex_home / "sessions" / "2026" / "11" / "15"
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy2(file, folder / file.name)


def assert_codex_saw(expected: list[Json], seen: list[Json]) -> None:
    """After our items Codex adds fresh context and the prompt."""
    assert seen[: len(expected)] == expected
    assert seen[-1]["content"] == [{"type": "input_text", "text": "go on"}]


async def test_codex_resumes_a_plain_session_of_ours(codex: Path, home: Path, tmp_path: Path) -> None:
    items = [user("hello", "msg_1"), function_call("c1"), function_output("c1"), assistant("done", "msg_2")]
    path = await record(home, *turn(1, *items))

    assert_codex_saw(items, resumed_by_codex(codex, tmp_path, path))
    assert await our_context(path) == items


async def test_codex_resumes_a_compacted_session_of_ours(codex: Path, home: Path, tmp_path: Path) -> None:
    replacement = [user("first", "msg_1"), user("What follows is a summary.\nAll is well.", "msg_s")]
    payload: Json = {
        "message": "All is well.",
        "replacement_history": replacement,
        "window_number": 1,
        "resume_metadata": {},
    }
    later = [user("second", "msg_3"), assistant("answer", "msg_4")]
    path = await record(
        home, *turn(1, user("first", "msg_1"), assistant("long work")), ("compacted", payload), *turn(2, *later)
    )

    assert_codex_saw([*replacement, *later], resumed_by_codex(codex, tmp_path, path))
    assert await our_context(path) == [*replacement, *later]


async def test_codex_resumes_a_session_with_spilled_payloads(codex: Path, home: Path, tmp_path: Path) -> None:
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "high"}
    picture = {
        "type": "message",
        "role": "user",
        "id": "msg_1",
        "content": [{"type": "input_text", "text": "see"}, image],
    }
    long = "head " + "x" * 200_000 + " tail"
    path = await record(
        home, *turn(1, picture, function_call("c1"), function_output("c1", long), assistant("ok", "msg_2"))
    )

    seen = resumed_by_codex(codex, tmp_path, path)
    ours = await our_context(path)

    assert path.stat().st_size < 65_536
    assert [item["type"] for item in seen[:4]] == ["message", "function_call", "function_call_output", "message"]
    assert "kept as blob" in seen[0]["content"][1]["text"]
    assert seen[2]["output"].startswith("head x")
    assert seen[2]["output"].endswith("x tail")
    assert ours[0] == picture
    assert ours[1:] == seen[1:4]


async def test_codex_resumes_a_copied_fork_with_everything_inlined(codex: Path, home: Path, tmp_path: Path) -> None:
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "high"}
    picture = {"type": "message", "role": "user", "id": "msg_1", "content": [image]}
    payload: Json = {"message": "s", "replacement_history": [picture], "window_number": 1, "resume_metadata": {}}
    await record(home, *turn(1, picture, assistant("a")), ("compacted", payload), *turn(2, user("more", "msg_5")))

    async with commonplace.open() as book:
        fork = await book.sessions.fork(THREAD, copy=True)
    seen = resumed_by_codex(codex, tmp_path, Path(fork.path), thread_id=fork.thread_id)

    assert_codex_saw([picture, user("more", "msg_5")], seen)
    assert await our_context(fork.path) == [picture, user("more", "msg_5")]


@pytest.mark.parametrize("copy", [True, False], ids=["copied", "by reference"])
async def test_codex_resumes_our_fork_of_a_session_that_it_wrote(codex: Path, tmp_path: Path, *, copy: bool) -> None:
    with ScriptedResponses([reply("One."), reply("Two.")]) as server:
        theirs = make_home(codex, tmp_path / "theirs", server.base_url)
        first = run_exec(theirs, "one")
        run_exec(theirs, "two", resume=first.thread_id)
    parent = theirs.rollouts()[0]

    async with commonplace.open() as book:
        fork = await book.sessions.fork(str(parent), copy=copy, at="1")
    expected = await our_context(fork.path)
    files = [Path(fork.path)] if copy else [parent, Path(fork.path)]
    seen = resumed_by_codex(codex, tmp_path, *files, thread_id=fork.thread_id)

    assert [item["content"][0]["text"] for item in expected[-2:]] == ["one", "One."]
    assert seen[: len(expected)] == expected
    assert seen[-1]["content"][0]["text"] == "go on"


def one_turn(server: ScriptedResponses, home: CodexHome) -> str:
    return run_exec(home, "run it").thread_id


STORIES: dict[str, list[Answer]] = {
    "tools": [answer(call("exec_command", {"cmd": "echo hi; false"}, "call_1")), reply("It ran.")],
    "long output": [answer(call("exec_command", {"cmd": "seq 1 30000"}, "call_1")), reply("It ran.")],
    "compaction": [
        answer(call("exec_command", {"cmd": "echo hi"}, "call_1"), input_tokens=250_000),
        reply("SUMMARY: it ran."),
        reply("Done."),
    ],
}


@pytest.mark.parametrize("story", STORIES)
async def test_commonplace_resumes_what_codex_wrote_exactly_as_codex_does(
    codex: Path, tmp_path: Path, story: str
) -> None:
    with ScriptedResponses([*STORIES[story], reply("Going on.")]) as server:
        home = make_home(codex, tmp_path / "theirs", server.base_url)
        thread = one_turn(server, home)
        ours = await our_context(home.rollouts()[0])
        before = home.rollouts()[0].read_bytes()
        run_exec(home, "go on", resume=thread)
    seen = [{key: value for key, value in item.items() if key != PASSTHROUGH} for item in server.inputs()[-1][1:]]

    assert seen[:-1] == ours
    assert home.rollouts()[0].read_bytes().startswith(before)

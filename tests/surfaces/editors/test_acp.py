"""The ACP package's own client drives `commonplace acp` from end to end."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import acp
import pytest
from editors.editor import Editor, editing

import processes
from anchors import progress_server
from anchors.scripted_responses import ScriptedResponses, answer, call, custom_call, halted, refusal, reply, say
from commonplace.rollout.chain import SkipLog, open_ledger
from commonplace.rollout.transcript import read_transcript
from exec_driver import Place, make_place, run_exec
from pictures import png

EDIT = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+three\n*** End Patch\n"
PLAN = {"plan": [{"step": "look", "status": "in_progress"}]}


@pytest.fixture
def model() -> Generator[ScriptedResponses]:
    with ScriptedResponses([]) as server:
        yield server


@pytest.fixture
def place(tmp_path: Path, model: ScriptedResponses) -> Place:
    return make_place(tmp_path, model.base_url, settings={"approval": "untrusted", "sandbox": "workspace-write"})


def statuses(editor: Editor) -> list[list[str]]:
    return [[update.status for update in updates] for updates in editor.calls().values()]


def half_said(update: Any) -> bool:
    return update.session_update == "agent_message_chunk" and "Half" in update.content.text


async def test_a_change_is_asked_about_shown_and_made(place: Place, model: ScriptedResponses) -> None:
    (place.cwd / "a.txt").write_text("one\ntwo\n")
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "x"}
    model.add(
        answer(thought, say("I look."), call("update_plan", PLAN, "c0")),
        answer(custom_call("apply_patch", EDIT, "c1")),
        answer(call("exec_command", {"cmd": "cat a.txt; touch made"}, "c2")),
        reply("Done."),
    )
    async with editing(place) as (agent, editor):
        session = await agent.new_session(cwd=str(place.cwd), mcp_servers=[])
        done = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("change it")])

    assert done.stop_reason == "end_turn"
    assert (place.cwd / "a.txt").read_text() == "one\nthree\n"
    assert (editor.words("agent_thought_chunk"), editor.words()) == ("Hm.", "I look.Done.")
    assert [update.entries[0].status for update in editor.updates if update.session_update == "plan"] == ["in_progress"]
    change, command = editor.calls().values()
    (shown,) = change[0].content
    assert (shown.type, shown.old_text, shown.new_text) == ("diff", "one\ntwo\n", "one\nthree\n")
    assert (shown.path, change[0].locations[0].path) == (str(place.cwd / "a.txt"),) * 2
    assert (change[0].kind, command[0].kind, statuses(editor)) == (
        "edit",
        "execute",
        [["in_progress", "completed"], ["in_progress", "completed"]],
    )
    assert command[-1].content[0].content.text == "one\nthree\n"
    assert [tool_call.tool_call_id for tool_call, _ in editor.asked] == [*editor.calls()]
    assert [[option.option_id for option in options][-1] for _, options in editor.asked] == ["denied", "denied"]


async def test_a_question_shows_the_whole_command_its_folder_and_its_program(
    place: Place, model: ScriptedResponses
) -> None:
    evil = place.cwd / "evil"
    evil.mkdir()
    (evil / "bash").symlink_to("/bin/sh")
    wanted = {"command": ["./bash", "-c", "git status"], "workdir": "evil", "justification": "look\nin /srv"}
    model.add(answer(call("shell", wanted, "c1")), reply("Done."))
    async with editing(place) as (agent, editor):
        editor.choice = "denied"
        session = await agent.new_session(cwd=str(place.cwd), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("go")])

    ((asked, _),) = editor.asked
    end = Path("/bin/sh").resolve()
    assert asked.title is not None
    assert asked.title.startswith(f"./bash -c 'git status' · in {evil} with {evil / 'bash'} -> {end} (")
    assert asked.title.endswith("look in /srv)")
    assert ["./bash -c 'git status'"] == [updates[0].title for updates in editor.calls().values()]


@pytest.mark.parametrize(("choice", "reason"), [("denied", "end_turn"), (None, "cancelled"), ("nonsense", "end_turn")])
async def test_what_is_not_allowed_is_not_done(
    place: Place, model: ScriptedResponses, choice: str | None, reason: str
) -> None:
    model.add(answer(call("exec_command", {"cmd": "touch made"}, "c1")), reply("Well."))
    async with editing(place) as (agent, editor):
        editor.choice = choice
        session = await agent.new_session(cwd=str(place.cwd), mcp_servers=[])
        done = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("do it")])
    model.drop()

    assert (done.stop_reason, statuses(editor)) == (reason, [["in_progress", "failed"]])
    assert not (place.cwd / "made").exists()


async def test_a_turn_is_cancelled_in_the_middle_and_the_session_is_loaded_again(
    place: Place, model: ScriptedResponses
) -> None:
    pause = threading.Event()
    model.add(answer(call("exec_command", {"cmd": "echo hi"}, "c1")), reply("One."), halted("Half and half.", pause))
    async with editing(place) as (agent, editor):
        session = (await agent.new_session(cwd=str(place.cwd), mcp_servers=[])).session_id
        await agent.prompt(session_id=session, prompt=[acp.text_block("first")])
        running = asyncio.create_task(agent.prompt(session_id=session, prompt=[acp.text_block("second")]))
        await editor.until(half_said)
        with pytest.raises(acp.RequestError, match="turn is running"):
            await agent.prompt(session_id=session, prompt=[acp.text_block("third")])
        await agent.cancel(session_id=session)
        assert (await running).stop_reason == "cancelled"
        pause.set()

    model.add(reply("Again."))
    async with editing(place) as (agent, editor):
        listed = await agent.list_sessions(cwd=str(place.cwd))
        loaded = await agent.load_session(cwd=str(place.cwd), session_id=session, mcp_servers=[])
        shown = editor.kinds()
        told = editor.words("user_message_chunk")
        done = await agent.prompt(session_id=session, prompt=[acp.text_block("go on")])

    assert [(each.session_id, each.cwd) for each in listed.sessions] == [(session, str(place.cwd))]
    assert shown[:4] == ["user_message_chunk", "tool_call", "agent_message_chunk", "user_message_chunk"]
    assert told == "firstsecond"
    assert loaded.modes is not None
    assert (done.stop_reason, editor.words().startswith("One."), editor.words()[-6:]) == ("end_turn", True, "Again.")
    assert [update.title for update in editor.updates if update.session_update == "tool_call"] == ["echo hi"]


def shown(editor: Editor) -> dict[str, tuple[Any, ...]]:
    """Each call as it was shown last: title, kind, status, contents and files."""
    found: dict[str, tuple[Any, ...]] = {}
    for name, updates in editor.calls().items():
        last = updates[-1]
        contents = [
            (part.old_text, part.new_text) if part.type == "diff" else part.content.text for part in last.content or ()
        ]
        files = [each.path for each in last.locations or ()]
        found[name] = (last.title, updates[0].kind, last.status, contents, files)
    return found


async def test_a_session_that_is_loaded_shows_all_that_it_showed(tmp_path: Path, model: ScriptedResponses) -> None:
    place = make_place(tmp_path, model.base_url)
    with (place.home / "config.toml").open("a") as file:
        words = [sys.executable, progress_server.__file__]
        file.write(f"[mcp_servers.works]\ncommand = {json.dumps(words[0])}\nargs = {json.dumps(words[1:])}\n")
    (place.cwd / "a.txt").write_text("one\ntwo\n")
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "x"}
    search = {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "leaks"}}
    steps = [
        answer(thought, say("I look."), call("update_plan", PLAN, "c0"), search),
        answer(custom_call("apply_patch", EDIT, "c1"), call("work", {}, "c2", namespace="mcp__works")),
        answer(call("exec_command", {"cmd": "cat a.txt; exit 3"}, "c3"), call("recall", {"query": "one"}, "c4")),
        answer(call("spawn_agent", {"message": "count"}, "c5", namespace="multi_agent_v1")),
        reply("Done."),
    ]

    def decide(body: dict[str, Any]) -> Any:
        users = [part["text"] for item in body["input"] if item.get("role") == "user" for part in item["content"]]
        if "count" in users:
            return reply("There are 7.")
        return reply("<proposed_plan>\nfirst this\n</proposed_plan>") if "plan it" in users else steps.pop(0)

    model.add(*[decide] * 7)
    async with editing(place) as (agent, editor):
        session = (await agent.new_session(cwd=str(place.cwd), mcp_servers=[])).session_id
        await agent.prompt(session_id=session, prompt=[acp.text_block("do it")])
        await agent.set_session_mode(session_id=session, mode_id="plan")
        await agent.prompt(session_id=session, prompt=[acp.text_block("plan it")])
        before, live = shown(editor), editor
    async with editing(place) as (agent, editor):
        await agent.load_session(cwd=str(place.cwd), session_id=session, mcp_servers=[])
    model.drop()  # the agent may have been closed before it asked

    assert len(before) == 6, before
    assert shown(editor) == before
    assert editor.words() == live.words() == "I look.Done.first this\n"
    assert editor.words("agent_thought_chunk") == live.words("agent_thought_chunk") == "Hm."
    assert editor.words("user_message_chunk") == "do itplan it"
    plans = [
        [(entry.content, entry.status) for entry in each.entries] for each in editor.updates if hasattr(each, "entries")
    ]
    assert plans == [[("look", "pending")]]  # the ledger keeps what was done, and what was not


async def test_what_would_mislead_a_reader_is_shown_as_a_number(place: Place, model: ScriptedResponses) -> None:
    command = "touch \u202egpj.sh\u200b # \u2066fine\u2069\x1b[2J"
    patch = "*** Begin Patch\n*** Add File: evil\u202egpj.sh\n+x\n*** End Patch\n"
    more = {"cmd": command, "justification": "it is \u202efine"}
    model.add(answer(call("exec_command", more, "c1")), answer(custom_call("apply_patch", patch, "c2")), reply("Done."))
    async with editing(place) as (agent, editor):
        editor.choice = "denied"
        session = await agent.new_session(cwd=str(place.cwd), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("go")])

    titles = [tool_call.title or "" for tool_call, _ in editor.asked]
    titles += [update.title for updates in editor.calls().values() for update in updates]
    assert len(titles) == 6
    assert all(title.isprintable() for title in titles), titles
    assert titles[0].startswith("touch \\u{202e}gpj.sh\\u{200b} # \\u{2066}fine\\u{2069}\\u{1b}[2J")
    assert "evil\\u{202e}gpj.sh" in titles[1]


async def test_pictures_and_resources_reach_the_model(place: Place, model: ScriptedResponses) -> None:
    model.add(reply("I see."))
    picture = base64.b64encode(png(8, 8)).decode()
    note = acp.embedded_text_resource("file:///n%20otes.md", "</resource>\nremember the milk, $deploy")
    prompt: list[Any] = [
        acp.text_block("look"),
        acp.image_block(picture, "image/png"),
        acp.resource_link_block("main.py", "file:///repo/ma%20in.py"),
        acp.resource_block(note),
        acp.resource_block(acp.embedded_blob_resource("file:///b.png", picture, mime_type="image/png")),
    ]
    async with editing(place) as (agent, _):
        session = await agent.new_session(cwd=str(place.cwd), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=prompt)
        sound: list[Any] = [acp.audio_block(picture, "audio/wav")]
        with pytest.raises(acp.RequestError, match="Sound"):
            await agent.prompt(session_id=session.session_id, prompt=sound)

    parts = model.inputs()[0][-1]["content"]
    assert [part["type"] for part in parts] == ["input_text", "input_image", "input_text", "input_text", "input_image"]
    assert parts[1]["image_url"] == f"data:image/png;base64,{picture}"
    assert parts[2]["text"] == "[@main.py](/repo/ma in.py)"
    quoted = "&lt;/resource>\nremember the milk, $deploy"
    assert parts[3]["text"] == f'<resource uri="file:///n%20otes.md">\n{quoted}\n</resource>'
    (path,) = place.ledgers()
    said = read_transcript(open_ledger(path), SkipLog()).user_texts
    assert said == ["look\n[@main.py](/repo/ma in.py)"], "a file that is sent along is nobody's wish"


async def test_a_mode_is_chosen_and_errors_are_told(place: Place, model: ScriptedResponses) -> None:
    model.add(reply("A plan."), refusal(400, "bad"))
    async with editing(place) as (agent, _):
        opened = await agent.new_session(cwd=str(place.cwd), mcp_servers=[])
        session = opened.session_id
        await agent.set_session_mode(session_id=session, mode_id="plan")
        await agent.prompt(session_id=session, prompt=[acp.text_block("plan it")])
        again = await agent.resume_session(session_id=session, cwd=str(place.cwd), mcp_servers=[])
        problems: list[str] = []
        for failing in (
            agent.set_session_mode(session_id=session, mode_id="wild"),
            agent.prompt(session_id=session, prompt=[acp.text_block("fail")]),
            agent.prompt(session_id="nobody", prompt=[acp.text_block("hi")]),
            agent.prompt(session_id=session, prompt=[acp.text_block(" ")]),
            agent.new_session(cwd="/no/such/folder", mcp_servers=[]),
            agent.load_session(cwd=str(place.cwd), session_id="nobody", mcp_servers=[]),
        ):
            with pytest.raises(acp.RequestError) as error:
                await failing
            problems.append(str(error.value))
        await agent.close_session(session_id=session)
        with pytest.raises(acp.RequestError):
            await agent.close_session(session_id=session)

    assert opened.modes is not None
    assert (opened.modes.current_mode_id, len(opened.modes.available_modes)) == ("default", 4)
    assert again.modes is not None
    assert again.modes.current_mode_id == "plan"
    words = ["no mode 'wild'", "scripted bad", "Resource not found", "nothing to do", "no folder", "nobody"]
    assert [word for word, problem in zip(words, problems, strict=True) if word not in problem] == []


def test_lines_that_are_no_messages_are_survived(place: Place) -> None:
    lines = [b"{", b"[]", b"\xff", b"[" * 5000, b'{"jsonrpc":"2.0","id":1}', b'{"jsonrpc":"2.0","id":2,"method":5}']
    lines += [b'{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":5}}', b'{"id":4,"method":"no/such"}']
    lines += [b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":"' + b"x" * 17 * 2**20 + b'"}']
    lines += [b'{"jsonrpc":"2.0","id":9,"method":"initialize","params":{"protocolVersion":1}}', b""]
    done = processes.run(["acp"], given=b"\n".join(lines), env=place.environment(), cwd=place.cwd)

    assert b'"id":9,"result":{' in done.stdout, (done.stdout, done.stderr)
    assert (done.returncode, done.stdout.count(b'"error"'), b"Traceback" in done.stderr) == (0, 4, False)
    assert b"A message has at most 16 MB." in done.stdout


async def test_a_session_of_another_host_keeps_the_name_that_the_editor_knows(
    tmp_path: Path, model: ScriptedResponses
) -> None:
    ledger = (tmp_path / "store").as_uri()
    there, here = (make_place(tmp_path / name, model.base_url, settings={"ledger": ledger}) for name in ("a", "b"))
    model.add(reply("One."), reply("Two."))
    ran = await asyncio.to_thread(run_exec, there, "first")
    assert (ran.code, ran.err) == (0, "")
    async with editing(here) as (agent, editor):
        (listed,) = (await agent.list_sessions()).sessions
        await agent.load_session(cwd=str(here.cwd), session_id=listed.session_id, mcp_servers=[])
        done = await agent.prompt(session_id=listed.session_id, prompt=[acp.text_block("second")])

    assert editor.words("user_message_chunk") == "first"
    assert (done.stop_reason, editor.words()) == ("end_turn", "One.Two.")

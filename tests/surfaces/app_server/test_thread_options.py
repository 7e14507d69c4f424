"""What a client asks of a thread when it opens, forks, lists or reads one, as the real Codex 0.166 takes it."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from app_server.app_client import AppClient

from anchors.scripted_responses import ScriptedResponses, answer, call, custom_call, failure, reply, say
from exec_driver import make_place
from pictures import png

Json = dict[str, Any]


@pytest.fixture
def model() -> Generator[ScriptedResponses]:
    with ScriptedResponses() as server:
        yield server


@pytest.fixture
def client(tmp_path: Path, model: ScriptedResponses) -> Generator[AppClient]:
    with AppClient(make_place(tmp_path, model.base_url)) as found:
        yield found


def turns(client: AppClient, thread: str) -> list[Json]:
    found: list[Json] = client.ask("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"]
    return found


def test_a_fork_ends_before_a_turn(client: AppClient, model: ScriptedResponses) -> None:
    model.add(reply("One."), reply("Two."), reply("Three."))
    thread = client.start()
    first, second = (client.run(thread, text)["id"] for text in ("one", "two"))
    forked = client.ask("thread/fork", {"threadId": thread, "beforeTurnId": second})["thread"]
    client.run(forked["id"], "three")

    assert [turn["id"] for turn in forked["turns"]] == [first]
    assert "Two." not in str(model.inputs()[2])
    assert forked["originator"] == "test"
    for wrong in ({"lastTurnId": first, "beforeTurnId": second}, {"beforeTurnId": "x"}, {"beforeTurnId": first}):
        assert client.fail("thread/fork", {"threadId": thread, **wrong})[0] == -32600


def test_a_fork_ends_exactly_where_it_was_asked_to_beside_a_compaction(
    client: AppClient, model: ScriptedResponses
) -> None:
    """As with Codex: a compaction is a turn, and belongs to none of its neighbours."""
    model.add(reply("One."), reply("Two."), reply("The summary."), reply("Three."), *[reply("Forked.")] * 5)
    thread = client.start()
    first, second = (client.run(thread, text)["id"] for text in ("one", "two"))
    client.ask("thread/compact/start", {"threadId": thread})
    client.wait(lambda _: sum(message.get("method") == "turn/completed" for message in client.told) == 3)
    third = client.run(thread, "three")["id"]
    compaction = turns(client, thread)[2]["id"]
    cases: list[tuple[Json, list[str], bool]] = [
        ({"lastTurnId": second}, [first, second], False),
        ({"beforeTurnId": compaction}, [first, second], False),
        ({"lastTurnId": compaction}, [first, second, compaction], True),
        ({"beforeTurnId": third}, [first, second, compaction], True),
        ({"lastTurnId": third}, [first, second, compaction, third], True),
    ]
    for given, wanted, is_summed_up in cases:
        forked = client.ask("thread/fork", {"threadId": thread, **given})["thread"]
        client.run(forked["id"], "four")

        assert [turn["id"] for turn in forked["turns"]] == wanted, given
        assert ("The summary." in str(model.inputs()[-1])) == is_summed_up, given


def test_a_turn_is_reverted_up_to_a_compaction_and_no_further(client: AppClient, model: ScriptedResponses) -> None:
    model.add(reply("One."), reply("The summary."), reply("Two."), reply("Three."))
    thread = client.start()
    first = client.run(thread, "one")["id"]
    client.ask("thread/compact/start", {"threadId": thread})
    client.wait(lambda _: sum(message.get("method") == "turn/completed" for message in client.told) == 2)
    compaction = turns(client, thread)[1]["id"]
    second = client.run(thread, "two")["id"]
    for before in (compaction, first):
        code, text = client.fail("thread/revert", {"threadId": thread, "beforeTurnId": before})
        assert (code, "a compaction cannot be taken back" in text) == (-32600, True)
    left = client.ask("thread/revert", {"threadId": thread, "beforeTurnId": second})["thread"]["turns"]
    code, _ = client.fail("thread/revert", {"threadId": thread, "beforeTurnId": compaction})
    client.run(thread, "three")

    assert ([turn["id"] for turn in left], code) == ([first, compaction], -32600)
    shown = str(model.inputs()[-1])
    assert ("The summary." in shown, "Two." in shown) == (True, False)


def test_a_steered_turn_that_was_rolled_back_counts_as_one(client: AppClient, model: ScriptedResponses) -> None:
    hold = threading.Event()
    model.add(reply("One."), answer(say("Never."), hold=hold), reply("Two."))
    thread = client.start()
    first = client.run(thread, "one")["id"]
    second = client.turn(thread, "two")
    model.wait_for_requests(2)
    said = [{"type": "text", "text": "and more"}]
    client.ask("turn/steer", {"threadId": thread, "expectedTurnId": second, "input": said})
    hold.set()
    client.finish(second)
    left = client.ask("thread/rollback", {"threadId": thread, "numTurns": 1})["thread"]["turns"]
    forked = client.ask("thread/fork", {"threadId": thread, "lastTurnId": first})["thread"]["turns"]

    assert [[turn["id"] for turn in each] for each in (left, forked)] == [[first], [first]]


@pytest.mark.parametrize(
    "network", [{"sandbox_workspace_write": {"network_access": True}}, {"sandbox_workspace_write.network_access": True}]
)
def test_the_config_of_a_thread_is_judged_and_holds(client: AppClient, network: Json) -> None:
    config = {"sandbox_mode": "workspace-write", "model_reasoning_effort": "low", "memory.use": False, **network}
    opened = client.ask("thread/start", {"config": config})
    warned = client.notice("warning")
    code, text = client.fail("thread/start", {"config": {"model_reasoning_effort": 7}})

    assert opened["sandbox"]["networkAccess"] is True
    assert (opened["thread"]["model"], opened["thread"]["reasoningEffort"]) == ("gpt-5.5", "low")
    assert warned["message"].startswith("memory.use holds for the whole server")
    assert (code, "must be a text, not 7" in text) == (-32600, True)


def test_an_effort_that_no_model_knows_is_the_highest(client: AppClient, model: ScriptedResponses) -> None:
    model.add(reply("One."))
    client.run(client.start(), "one", effort="ultra")

    assert model.requests[0]["reasoning"]["effort"] == "xhigh"


def test_skills_and_mentions_are_shown_as_they_were_sent(client: AppClient, model: ScriptedResponses) -> None:
    model.add(reply("One."))
    named = [{"type": "skill", "name": "s", "path": "/s/SKILL.md"}, {"type": "mention", "name": "m", "path": "app://m"}]
    thread = client.start()
    client.run(thread, "", input=[{"type": "text", "text": "see [@m](app://m)"}, *named])
    (turn,) = turns(client, thread)

    assert turn["items"][0]["content"] == [
        {"type": "text", "text": "see [@m](app://m)", "text_elements": []},
        *named,
    ]


def test_every_kind_of_input_comes_back_as_it_was_sent_and_what_cannot_be_used_costs_no_turn(
    client: AppClient, model: ScriptedResponses
) -> None:
    """As with Codex: a file that cannot be read is told to the model, blank words are words."""
    model.add(reply("One."), reply("Two."))
    picture, sound = client.place.cwd / "a.png", client.place.cwd / "a.wav"
    picture.write_bytes(png(8, 8))
    sound.write_bytes(b"RIFF")
    marked = {"byteRange": {"start": 3, "end": 5}, "placeholder": "@f"}
    sent: list[Json] = [
        {"type": "text", "text": "hi @f", "text_elements": [marked]},
        {"type": "text", "text": " ", "text_elements": []},
        {"type": "localImage", "path": str(picture), "detail": "low"},
        {"type": "localImage", "path": "/nowhere.png", "detail": None},
        {"type": "audio", "url": "data:audio/wav;base64,AAAA"},
        {"type": "localAudio", "path": str(sound)},
        {"type": "localAudio", "path": "/nowhere.wav"},
        {"type": "image", "url": "data:image/png;base64,AAAA", "detail": "high"},
    ]
    thread = client.start()
    turn = client.run(thread, "", input=sent)
    client.run(thread, "", input=[{"type": "text", "text": ""}])
    kept = [each["items"][0]["content"] for each in turns(client, thread)]
    told = client.notice("item/completed", turnId=turn["id"])["item"]["content"]

    assert (turn["status"], told) == ("completed", sent)
    assert kept == [sent, [{"type": "text", "text": "", "text_elements": []}]]
    parts: list[Json] = model.inputs()[0][-1]["content"]
    assert [part.get("detail") for part in parts if part["type"] == "input_image"] == ["low", "high"]
    words = [part["text"] for part in parts if part["type"] == "input_text"]
    assert words[:2] == ["hi @f", " "]
    assert [text.partition("` is left out")[0] for text in words if "left out" in text] == [
        "The local image `/nowhere.png",
        "The local audio `/nowhere.wav",
    ]
    assert words.count("audio content omitted because you do not support audio input") == 2


def test_a_failed_turn_keeps_the_kind_of_its_error(client: AppClient, model: ScriptedResponses) -> None:
    model.add(failure("insufficient_quota"))
    thread = client.start()
    told = client.run(thread, "one")
    (kept,) = turns(client, thread)

    assert told["error"]["codexErrorInfo"] == kept["error"]["codexErrorInfo"] == "usageLimitExceeded"


def test_threads_in_which_nobody_spoke_are_not_listed(client: AppClient, model: ScriptedResponses) -> None:
    model.add(reply("One."))
    silent, spoken = client.start(), client.start()
    client.run(spoken, "one")
    client.ask("thread/fork", {"threadId": silent})
    listed = [each["id"] for each in client.ask("thread/list", {})["data"]]

    assert listed == [spoken]
    assert client.ask("thread/list", {"sectionId": "x"})["data"] == []
    assert client.fail("thread/list", {"sortKey": "section_position"})[0] == -32600


def test_an_ephemeral_thread_says_that_it_keeps_no_turns(client: AppClient, model: ScriptedResponses) -> None:
    model.add(reply("One."))
    thread = client.ask("thread/start", {"ephemeral": True})["thread"]["id"]
    client.run(thread, "one")

    assert client.fail("thread/read", {"threadId": thread, "includeTurns": True})[0] == -32600
    assert client.ask("thread/read", {"threadId": thread})["thread"]["ephemeral"]


def test_an_interrupt_before_any_turn_is_no_error(client: AppClient) -> None:
    thread = client.start()

    assert client.ask("turn/interrupt", {"threadId": thread, "turnId": ""}) == {}
    assert client.fail("turn/interrupt", {"threadId": thread, "turnId": "x"})[0] == -32600


@pytest.mark.parametrize(
    ("method", "field"),
    [
        ("thread/start", "projectId"),
        ("thread/start", "experimentalRawEvents"),
        ("thread/start", "allowProviderModelFallback"),
        ("thread/start", "selectedCapabilityRoots"),
        ("thread/resume", "initialTurnsPage"),
        ("thread/list", "projectId"),
    ],
)
def test_fields_that_codex_has_on_trial_need_the_capability(tmp_path: Path, method: str, field: str) -> None:
    with AppClient(make_place(tmp_path, "http://127.0.0.1:9/v1"), experimental=False) as client:
        told = client.fail(method, {"threadId": "x", field: {}})

    assert told == (-32600, f"{method}.{field} requires experimentalApi capability")


def test_a_source_that_no_thread_can_have_is_refused(client: AppClient) -> None:
    assert client.fail("thread/list", {"sourceKinds": ["cli", "editor"]})[0] == -32602


def test_interrupts_that_come_together_are_all_answered(client: AppClient, model: ScriptedResponses) -> None:
    """As with Codex: whoever asked while the turn ran is told that it ended; who asks later is told that none runs.

    The first interrupt may have ended the turn before a later one is read.
    """
    hold = threading.Event()
    model.add(answer(say("Never."), hold=hold))
    thread = client.start()
    turn = client.turn(thread, "hi")
    model.wait_for_requests(1)
    asked = {"threadId": thread, "turnId": turn}
    answers = [client.answer(number) for number in [client.send("turn/interrupt", asked) for _ in range(3)]]
    client.finish(turn)

    late = {"code": -32600, "message": "no active turn to interrupt"}
    assert answers[0].get("result") == {}
    assert all(each.get("result") == {} or each.get("error") == late for each in answers)
    assert client.fail("turn/interrupt", asked) == (late["code"], late["message"])
    assert client.fail("turn/steer", {"threadId": thread, "expectedTurnId": "", "input": []}) == (
        -32600,
        "expectedTurnId must not be empty",
    )


def test_a_client_sets_the_mode_which_holds_until_it_sets_another_one(
    client: AppClient, model: ScriptedResponses
) -> None:
    patch = "*** Begin Patch\n*** Add File: {}.txt\n+hello\n*** End Patch\n"
    for number, name in enumerate(("a", "b", "c")):
        model.add(answer(custom_call("apply_patch", patch.format(name), f"c{number}")), reply("Yes."))
    thread = client.start()
    plan = {"mode": "plan", "settings": {"model": "gpt-5.4", "reasoning_effort": "low"}}
    client.run(thread, "plan it", collaborationMode=plan)
    settings = client.notice("thread/settings/updated")["threadSettings"]
    client.run(thread, "go on")
    own = {"model": "gpt-5.5", "developer_instructions": "Work like a pair."}
    client.run(thread, "do it", collaborationMode={"mode": "default", "settings": own})

    assert settings["collaborationMode"]["mode"] == "plan"
    assert [(each["model"], each["reasoning"]["effort"]) for each in model.requests[::2]] == [
        ("gpt-5.4", "low"),
        ("gpt-5.4", "low"),
        ("gpt-5.5", "low"),
    ]
    assert sorted(path.name for path in client.place.cwd.glob("*.txt")) == ["c.txt"], "a plan changes nothing"
    assert "Work like a pair." in str(model.inputs()[-1])
    several: list[Json] = [{"mode": "wild", "settings": own}, {"mode": "plan", "settings": {}}, {"mode": "plan"}]
    for wrong in several:
        assert client.fail("turn/start", {"threadId": thread, "input": [], "collaborationMode": wrong})[0] == -32602


def test_a_thread_whose_turn_failed_is_unread(client: AppClient, model: ScriptedResponses) -> None:
    model.add(failure("insufficient_quota"))
    turn = client.run(client.start(), "one")
    told = client.methods()

    assert client.notice("thread/readState/changed")["readState"]["firstUnread"]["turnId"] == turn["id"]
    assert told.index("error") < told.index("thread/readState/changed") < told.index("turn/completed")


@pytest.mark.parametrize("damage", ["emptied", "headless", "gone"])
def test_a_file_that_was_damaged_hides_no_other_thread(tmp_path: Path, model: ScriptedResponses, damage: str) -> None:
    model.add(reply("One."), reply("Two."))
    place = make_place(tmp_path, model.base_url)
    with AppClient(place) as client:
        damaged, whole = client.start(), client.start()
        for thread in (damaged, whole):
            client.run(thread, "hello")
    (path,) = (each for each in place.ledgers() if damaged in each.name)
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[200:] if damage == "headless" else b"")
    with AppClient(place) as client:
        listed = [each["id"] for each in client.ask("thread/list", {})["data"]]

        assert listed == [whole]
        assert client.fail("thread/resume", {"threadId": damaged})[0] == -32600


@pytest.mark.parametrize(("commands", "calls"), [(True, True), (True, False), (False, True), (False, False)])
def test_a_client_says_which_questions_are_asked(tmp_path: Path, commands: bool, calls: bool) -> None:
    policy = {"granular": {"sandbox_approval": commands, "rules": True, "mcp_elicitations": calls}}
    escalated = {"cmd": "touch made", "sandbox_permissions": "require_escalated", "justification": "it is needed"}
    script = [answer(call("exec_command", escalated, "c1")), answer(call("update_plan", {"plan": []}, "c2"))]
    with ScriptedResponses([*script, reply("Done."), reply("Again.")]) as model:
        place = make_place(tmp_path, model.base_url, settings={"sandbox": "read-only"})
        with (place.home / "config.toml").open("a") as file:
            ask = json.dumps({"hookSpecificOutput": {"permissionDecision": "ask"}})
            file.write(
                f"[[hooks.pre_tool_use]]\nmatcher = 'update_plan'\ncommand = {json.dumps(f'echo {shlex.quote(ask)}')}\n"
            )
        with AppClient(place) as client:
            opened = client.ask("thread/start", {"cwd": str(place.cwd), "approvalPolicy": policy})
            client.run(opened["thread"]["id"], "go")
            asked = [message["method"] for message in client.told if "id" in message and "method" in message]
            client.run(opened["thread"]["id"], "go", approvalPolicy="never")
            told = client.notice("thread/settings/updated")["threadSettings"]
        with AppClient(place, experimental=False) as plain:
            refused = plain.fail("thread/start", {"cwd": str(place.cwd), "approvalPolicy": policy})

    names = ["item/commandExecution/requestApproval"] * commands + ["mcpServer/elicitation/request"] * calls
    assert asked == names
    assert (place.cwd / "made").exists() == commands
    assert opened["approvalPolicy"] == {
        "granular": {**policy["granular"], "skill_approval": False, "request_permissions": False}
    }
    assert told["approvalPolicy"] == "never"
    assert refused == (-32600, "askForApproval.granular requires experimentalApi capability")

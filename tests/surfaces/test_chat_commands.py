"""The commands of `commonplace chat`, each in a real terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anchors.scripted_responses import ScriptedResponses, answer, call, reply
from exec_driver import make_place, run_exec
from terminal import CTRL_D, ESCAPE, NOW, Terminal

Json = dict[str, Any]


def shell(command: str, call_id: str = "c1") -> Json:
    return call("exec_command", {"cmd": command}, call_id)


def said(server: ScriptedResponses) -> list[str]:
    texts = [item["content"][-1]["text"] for item in server.inputs()[-1] if item.get("role") in ("user", "assistant")]
    return [text for text in texts if not text.startswith("<")]


def test_status_help_memory_and_words_that_are_no_command(tmp_path: Path) -> None:
    with ScriptedResponses([reply("A path."), reply("A list.")]) as server:
        place = make_place(tmp_path, server.base_url)
        with Terminal(place, "chat", columns=250, rows=90) as terminal:
            terminal.ready()
            terminal.say("/status")
            empty = terminal.wait("file     none yet")
            terminal.say("/usr/bin is where?")
            terminal.wait("A path.")
            terminal.ready()
            terminal.say("/status")
            status = terminal.wait(str(place.home / "sessions"))
            terminal.say("/help")
            helped = terminal.wait("/quit")
            terminal.say("/memory")
            terminal.wait("This session is learned from.")
            terminal.say("/memory off")
            terminal.wait("This session is not learned from.")
            terminal.say("/memory of")
            terminal.wait("! /memory of means nothing. Use /memory, /memory on or /memory off.")
            terminal.say("/frobnicate")
            terminal.wait("! There is no command /frobnicate. /help lists them.")
            terminal.say("/plan yes")
            terminal.wait("! /plan takes nothing. Leave the rest out.")
            terminal.say("/redo")
            terminal.wait("! There is nothing to be taken back.")
            terminal.ready()
            terminal.say("/quit")
            code = terminal.end()
        run_exec(place, "resume", "--last", "and now?", more={"COMMONPLACE_NOW": NOW})

    assert "tokens   nothing yet" in empty
    assert "model    mock:gpt-5.5, effort " in status
    assert f"folder   {place.cwd}\nsandbox  danger-full-access, approval on-request, mode default\n" in status
    assert "tokens   100 in (0 cached), 10 out; " in status
    assert f"thread   {place.thread_ids()[0]}\n" in status
    assert "/compact" in helped
    assert code == 0
    assert '"kind":"mode"' in (place.home / "decisions.jsonl").read_text()
    assert said(server) == ["/usr/bin is where?", "A path.", "and now?"]


def test_another_model_and_plan_mode_hold_from_the_next_turn_on(tmp_path: Path) -> None:
    with ScriptedResponses([reply("One."), reply("Two."), reply("Three.")]) as server:
        place = make_place(tmp_path, server.base_url)
        with Terminal(place, "chat", columns=200) as terminal:
            terminal.ready()
            terminal.say("first")
            terminal.wait("One.")
            terminal.ready()
            terminal.say("/model mock:gpt-5.4")
            terminal.wait("From the next turn on: mock:gpt-5.4.")
            terminal.say("/model nobody:knows")
            terminal.wait("! ")
            terminal.say("/plan")
            terminal.ready("plan ›")
            terminal.say("second")
            terminal.wait("Two.")
            terminal.ready("plan ›")
            terminal.say("/plan")
            terminal.ready()
            terminal.say("third")
            terminal.wait("Three.")

    assert [body["model"] for body in server.requests] == ["gpt-5.5", "gpt-5.4", "gpt-5.4"]
    modes = [[str(item) for item in items if "collaboration_mode" in str(item)] for items in server.inputs()]
    assert [len(found) for found in modes] == [0, 1, 2]


def test_every_setting_of_a_turn_has_a_command_and_a_mode_comes_back(tmp_path: Path) -> None:
    with ScriptedResponses([reply("One."), answer(shell("touch made.txt")), reply("Two.")]) as server:
        place = make_place(tmp_path, server.base_url)
        (place.cwd / "inner").mkdir()
        with Terminal(place, "chat", "--mode", "pair_programming", columns=250) as terminal:
            terminal.wait("pair_programming mode")
            terminal.ready()
            for command, shown in {
                "/mode chaos": "! 'chaos' is no mode. Use default, plan, execute, pair_programming.",
                "/mode plan": "From the next turn on: plan.",
                "/effort low": "From the next turn on: low.",
                "/personality friendly": "From the next turn on: friendly.",
                "/sandbox read-only": "From the next turn on: read-only.",
                "/approval never": "From the next turn on: never.",
                "/cd inner": f"From the next turn on: {place.cwd / 'inner'}.",
                "/mode": "plan; /mode NAME takes another one.",
            }.items():
                terminal.say(command)
                terminal.wait(shown)
            terminal.say("first")
            terminal.wait("One.")
            terminal.ready("plan ›")
        done = run_exec(place, "resume", "--last", "--all", "and now?", more={"COMMONPLACE_NOW": NOW})

    assert done.code == 0
    assert server.requests[0]["reasoning"]["effort"] == "low"
    assert f"<cwd>{place.cwd / 'inner'}</cwd>" in str(server.inputs()[0])
    assert "plan mode is on" in str(server.inputs()[-1][-1])
    assert not (place.cwd / "made.txt").exists()


def test_a_profile_is_used(tmp_path: Path) -> None:
    with ScriptedResponses([reply("One.")]) as server:
        place = make_place(tmp_path, server.base_url)
        with (place.home / "config.toml").open("a") as file:
            file.write('[profiles.careful]\nmodel = "mock:gpt-5.4"\nsandbox = "read-only"\napproval = "untrusted"\n')
        with Terminal(place, "chat", "--profile", "careful", columns=200) as terminal:
            terminal.ready()
            terminal.say("/status")
            status = terminal.wait("sandbox  read-only")
            terminal.say("hello")
            terminal.wait("One.")

    assert "sandbox  read-only, approval untrusted, mode default" in status
    assert server.requests[0]["model"] == "gpt-5.4"


def test_files_go_back_and_forward_again(tmp_path: Path) -> None:
    with ScriptedResponses([answer(shell("echo new > made.txt")), reply("Made.")]) as server:
        place = make_place(tmp_path, server.base_url)
        made = place.cwd / "made.txt"
        with Terminal(place, "chat", columns=200) as terminal:
            terminal.ready()
            terminal.say("/undo")
            terminal.wait("! There is nothing to be undone.")
            terminal.say("go")
            terminal.wait("Made.")
            terminal.ready()
            terminal.say("/undo")
            terminal.wait("1 path(s) went back in ")
            assert not made.exists()
            terminal.say("/redo")
            terminal.wait("1 path(s) went forward in ")

    assert made.read_text() == "new\n"


def test_a_fork_goes_its_own_way_and_another_session_is_chosen_by_its_number(tmp_path: Path) -> None:
    with ScriptedResponses([reply("Old."), reply("One."), reply("Two."), reply("Three.")]) as server:
        place = make_place(tmp_path, server.base_url)
        old = run_exec(place, "an old question").thread_id
        with Terminal(place, "chat", columns=200, rows=80) as terminal:
            terminal.ready()
            terminal.say("/fork")
            terminal.wait("! Nothing was said yet.")
            terminal.say("first")
            terminal.wait("One.")
            terminal.ready()
            terminal.say("/fork")
            terminal.wait("This is a copy now: ")
            terminal.say("second")
            terminal.wait("Two.")
            terminal.ready()
            forked = said(server)
            terminal.say("/resume")
            listed = terminal.wait(lambda text: text.endswith("answer ›"))
            terminal.say("9")
            terminal.wait("Answer first")
            terminal.type(ESCAPE)
            terminal.ready()
            terminal.say("/resume")
            terminal.wait(lambda text: text.count("Which session?") == 2 and text.endswith("answer ›"))
            number = next(line for line in listed.splitlines() if "an old question" in line).split()[0]
            terminal.say(number)
            terminal.wait(f"This is {old} now.")
            terminal.ready()
            terminal.say("third")
            terminal.wait("Three.")
            terminal.ready()
            terminal.type(CTRL_D)
            terminal.end()

    assert forked == ["first", "One.", "second"]
    assert said(server) == ["an old question", "Old.", "third"]
    assert len(place.ledgers()) == 3
    assert terminal.text.endswith(f"To come back: commonplace chat resume {old}")


def test_a_history_is_shortened_and_words_typed_meanwhile_are_said_after_it(tmp_path: Path) -> None:
    with ScriptedResponses([reply("word " * 2_000), reply("A summary."), reply("After.")]) as server:
        place = make_place(tmp_path, server.base_url)
        with Terminal(place, "chat", "-c", "compaction.at_tokens=5000", columns=200, rows=80) as terminal:
            terminal.ready()
            terminal.say("first")
            terminal.wait("word")
            terminal.ready()
            terminal.type("/compact\rand now?\r")
            shown = terminal.wait("After.")

    assert "the history was shortened: " in shown
    assert said(server)[-1] == "and now?"

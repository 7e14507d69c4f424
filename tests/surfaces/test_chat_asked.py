"""Consent in `commonplace chat`: what is asked, what can be answered, and what comes of it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from anchors.scripted_responses import ScriptedResponses, answer, call, custom_call, reply
from commonplace.agent import events
from commonplace.surfaces.cli.chat import questions
from exec_driver import make_place
from terminal import CTRL_C, CTRL_D, ESCAPE, Terminal

Json = dict[str, Any]
ASKING = {"sandbox": "workspace-write", "approval": "untrusted"}


def shell(command: str, call_id: str = "c1") -> Json:
    return call("exec_command", {"cmd": command}, call_id)


def output(server: ScriptedResponses) -> str:
    """What the model was told of its last call."""
    return str(server.inputs()[-1][-1]["output"])


def test_yes_runs_it_once_no_does_not_and_other_words_wait(tmp_path: Path) -> None:
    script = [
        answer(shell("touch 'a b' \\\n  && echo \x1b[2Jdone")),
        answer(shell("touch c", "c2")),
        reply("Well."),
    ]
    with ScriptedResponses(script) as server:
        place = make_place(tmp_path, server.base_url, settings=ASKING)
        with Terminal(place, "chat", columns=200) as terminal:
            terminal.ready()
            terminal.say("go")
            asked = terminal.wait("answer ›")
            terminal.say("yes please")
            terminal.wait("Answer first")
            terminal.type("\x15")  # Ctrl-U: the words stay until somebody takes them away
            terminal.say("y")
            terminal.wait("$ touch c")
            terminal.say("n")
            shown = terminal.wait("Well.")

    assert "? May this run?\n    $ touch 'a b' \\\n        && echo \N{REPLACEMENT CHARACTER}[2Jdone\n" in asked
    assert "    because: " not in asked
    assert "y yes · s for this session · n no · q stop (Esc)" in asked
    assert "→ yes, once" in shown
    assert "→ no" in shown
    assert sorted(path.name for path in place.cwd.iterdir()) == ["a b"]
    assert "did not allow" in output(server)


def test_for_this_session_and_always_are_not_asked_again_and_always_is_kept(tmp_path: Path) -> None:
    script = [
        answer(shell("touch a")),
        answer(shell("touch a", "c2")),
        answer(shell("mkdir b", "c3")),
        answer(shell("mkdir c", "c4")),
        reply("Well."),
        answer(shell("mkdir d", "c5")),
        reply("Still."),
    ]
    with ScriptedResponses(script) as server:
        place = make_place(tmp_path, server.base_url, settings=ASKING)
        with Terminal(place, "chat", columns=200) as terminal:
            terminal.ready()
            terminal.say("go")
            terminal.wait("answer ›")
            terminal.say("s")
            asked = terminal.wait(lambda text: "$ mkdir b" in text and text.endswith("answer ›"))
            terminal.say("a")
            first = terminal.wait("Well.")
            terminal.ready()
            terminal.type(CTRL_D)
            terminal.end()
        with Terminal(place, "chat", "resume", columns=200) as terminal:
            terminal.ready()
            terminal.say("go on")
            second = terminal.wait("Still.")

    assert f"a always: `{shutil.which('mkdir')} …`" in asked
    assert (first.count("May this run?"), second.count("May this run?")) == (2, 0)
    assert sorted(path.name for path in place.cwd.iterdir()) == ["a", "b", "c", "d"]
    kept = [json.loads(line) for line in (place.home / "decisions.jsonl").read_text().splitlines()]
    assert [line["words"] for line in kept] == [[[shutil.which("mkdir")]]]


def test_a_change_of_files_names_its_paths_and_esc_stops_the_turn(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: new.txt\n+one\n*** End Patch"
    with ScriptedResponses([answer(custom_call("apply_patch", patch, "c1"))]) as server:
        place = make_place(tmp_path, server.base_url)
        with Terminal(place, "chat", "--sandbox", "read-only", "--approval", "on-request", columns=200) as terminal:
            terminal.ready()
            terminal.say("go")
            asked = terminal.wait("answer ›")
            terminal.type(ESCAPE)
            shown = terminal.ready()

    assert f"? May these files be changed?\n    {place.cwd / 'new.txt'}\n" in asked
    assert "asked since: " in asked
    assert "y yes · n no · q stop (Esc)" in asked
    assert "! stopped" in shown
    assert list(place.cwd.iterdir()) == []


def test_a_question_sets_aside_what_is_being_typed_and_ctrl_c_takes_it_away(tmp_path: Path) -> None:
    hold = threading.Event()
    with ScriptedResponses([answer(shell("touch a"), hold=hold)]) as server:
        place = make_place(tmp_path, server.base_url, settings=ASKING)
        with Terminal(place, "chat", columns=200) as terminal:
            terminal.ready()
            terminal.say("go")
            terminal.wait("working")
            terminal.type("y")
            terminal.wait("› y")
            hold.set()
            terminal.wait(lambda text: text.endswith("answer ›"))
            terminal.type(CTRL_C)
            terminal.wait(lambda text: text.endswith("› y"))

    assert os.listdir(place.cwd) == []


SHOWN = {
    "a shell of the workspace": (("./node_modules/.bin/bash", "-c", "git status"), "/srv"),
    "a shell by a long path": (("/srv/bash", "-c", "git status"), "/srv"),
    "another shell": (("/usr/bin/zsh", "-c", "git status"), "/srv"),
    "a shell with more options": (("bash", "-lc", "git status"), "/srv"),
    "a shell by its name": (("bash", "-c", "git status"), "/srv"),
    "a shell with a name for the script": (("/bin/bash", "-c", "git status", "x"), "/srv"),
    "another folder": (("git", "status"), "/srv/evil"),
    "a folder above": (("git", "status"), "/"),
    "a program of the workspace": (("./git", "status"), "/srv"),
    "words with blanks": (("git status", ";", "rm"), "/srv"),
}


@pytest.mark.parametrize("blank", ["\u00a0", "\u2003", "  ", "\t", "\n", "\u200b", "\u202e", "\x1f"])
def test_a_path_with_another_blank_does_not_look_like_one_without(blank: str) -> None:
    path = f"/srv/a{blank}b"
    command, programs = (f"{path}/run",), (f"{path}/run",)
    request = events.Asked(turn_id="t", request_id="1", kind="run", command=command, cwd=path, programs=programs)
    text = questions.consent(request, Path("/srv"), lambda _: None).text

    assert "/srv/a b" not in text
    assert f"in /srv/a{blank if blank.isprintable() else chr(0xFFFD)}b (not" in text


@pytest.mark.parametrize("what", SHOWN)
def test_a_question_shows_what_runs_its_programs_and_the_folder(what: str) -> None:
    command, cwd = SHOWN[what]
    programs = ("/srv/node_modules/.bin/bash", "/usr/bin/git")
    request = events.Asked(
        turn_id="t",
        request_id="1",
        kind="run",
        command=command,
        cwd=cwd,
        programs=programs,
        reason="x\nin /home · with /usr/bin/true",
    )
    text = questions.consent(request, Path("/srv"), lambda _: None).text

    assert f"$ {shlex.join(command)}\n" in text
    place = (
        f"    in {cwd}{'' if cwd == '/srv' else ' (not the folder of the conversation)'} with {', '.join(programs)} · "
    )
    assert text.splitlines()[-1].startswith(place), "before the model's own words, which have no line of their own"
    assert 3 == len(text.splitlines())

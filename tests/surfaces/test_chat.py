"""`commonplace chat` in a real terminal, against a scripted model: typing, streaming, going on, what is left behind."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from anchors.scripted_responses import ScriptedResponses, answer, call, halted, reply
from exec_driver import Place, make_place, run_exec
from terminal import CTRL_C, CTRL_D, ENTER, NEW_LINE, PASTE, UP, Terminal

Json = dict[str, Any]
ALT_ENTER = "\x1b\r"
MARKDOWN = """# Findings

The test is *flaky* since <Clock> is read **twice**:

1. once in `setUp`
2. once in the test

```python
def now():
    return 1
```

| file | line |
|---|---|
| a.py | 3 |

That is [all](http://127.0.0.1/x).
"""
DRAWN = """# Findings

The test is flaky since <Clock> is read twice:

 1 once in setUp
 2 once in the test

def now():
    return 1

 file  line
──────────
 a.py  3

That is all (http://127.0.0.1/x).
"""


def said(server: ScriptedResponses) -> list[str]:
    """What was said so far, as the model was shown it last, without the context."""
    texts = [item["content"][-1]["text"] for item in server.inputs()[-1] if item.get("role") in ("user", "assistant")]
    return [text for text in texts if not text.startswith("<")]


def without_space(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_an_answer_is_drawn_while_it_streams_and_stays_as_markdown(tmp_path: Path) -> None:
    pause = threading.Event()
    with ScriptedResponses([halted(MARKDOWN, pause)]) as server:
        place = make_place(tmp_path, server.base_url)
        with Terminal(place, "chat") as terminal:
            terminal.ready()
            terminal.say("Why?")
            half = terminal.wait(lambda text: "once in the test" in text and "working" in text)
            pause.set()
            whole = terminal.ready()
            terminal.type(CTRL_D)
            code = terminal.end()

    assert "That is" not in half
    shown = whole.partition("› Why?")[2]
    assert without_space(shown)[:-1] == without_space(DRAWN)
    assert whole.count("# Findings") == 1
    assert code == 0
    assert terminal.text.splitlines()[-1] == f"To come back: commonplace chat resume {place.thread_ids()[0]}"


def test_many_lines_are_one_input_typed_or_pasted(tmp_path: Path) -> None:
    with (
        ScriptedResponses([reply("One."), reply("Two.")]) as server,
        Terminal(make_place(tmp_path, server.base_url), "chat") as terminal,
    ):
        terminal.ready()
        terminal.type(f"first{NEW_LINE}second{ALT_ENTER}third{ENTER}")
        terminal.wait("One.")
        terminal.type(PASTE.format("a\r\nb\rc") + "d" + ENTER)
        shown = terminal.wait("Two.")

    assert said(server) == ["first\nsecond\nthird", "One.", "a\nb\ncd"]
    assert "› first\n  second\n  third\n\nOne.\n\n› a\n  b\n  cd\n\nTwo." in shown


def test_what_was_typed_is_kept_for_the_next_time_and_for_nobody_else(tmp_path: Path) -> None:
    with ScriptedResponses([reply("One."), reply("Two.")]) as server:
        place = make_place(tmp_path, server.base_url)
        for number, typed in enumerate((f"say{NEW_LINE}it", f"{UP}{UP} again")):
            with Terminal(place, "chat") as terminal:
                terminal.ready()
                terminal.type(typed + ENTER)
                terminal.wait(["One.", "Two."][number])
                terminal.ready()
                terminal.say("/quit")
                terminal.end()

    kept = place.home / "chat_history"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert said(server) == ["say\nit again"]


def test_words_typed_while_it_works_are_told_to_it_and_others_are_kept_for_later(tmp_path: Path) -> None:
    hold = threading.Event()
    script = [
        answer(call("exec_command", {"cmd": "true"}, "c1"), hold=hold),
        reply("Steered."),
        reply("Later."),
    ]
    with ScriptedResponses(script) as server, Terminal(make_place(tmp_path, server.base_url), "chat") as terminal:
        terminal.ready()
        terminal.say("begin")
        terminal.wait("working")
        terminal.say("/queue and then")
        terminal.say("use tabs")
        waiting = terminal.wait("use tabs (not read yet)")
        hold.set()
        terminal.wait("Later.")
        shown = terminal.ready()

    assert "and then (not read yet)" in waiting
    assert said(server) == ["begin", "use tabs", "Steered.", "and then"]
    assert [line for line in shown.splitlines() if line.startswith("›")][:4] == [
        "› begin",
        "› /queue and then",
        "› use tabs",
        "› and then",
    ]


@pytest.mark.parametrize("columns", [40, 12])
def test_another_size_of_the_window_is_taken_at_once(tmp_path: Path, columns: int) -> None:
    pause = threading.Event()
    text = "word " * 30 + "\n\n" + "more " * 30
    with (
        ScriptedResponses([halted(text, pause)]) as server,
        Terminal(make_place(tmp_path, server.base_url), "chat", columns=100, rows=40) as terminal,
    ):
        terminal.ready()
        terminal.say("go")
        terminal.wait("word word")
        terminal.resize(columns, 20)
        pause.set()
        shown = terminal.wait(lambda text: ("working" not in text and text.count("more") == 30) or columns < 40)
        shown = terminal.ready()
        terminal.type(CTRL_D)
        code = terminal.end()

    assert max(len(line) for line in shown.splitlines()[-4:]) <= columns
    assert code == 0


def test_an_answer_cannot_steer_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\x1b]52;c;ZXZpbA==\x07\x9b31m\r\x08\u202e&#27;[31m&#x9b;1m&#13; `\x1b[5m`\n\n"
    code = "```\n\x1b[?1049h\n```\n\n- \x1b(0\n\n| \x1bc |\n|---|\n\n[a](http://\x1b[6n)\n\nEnd."
    command = "printf '\\033[2J\\033]0;owned\\007x\\n'"
    script = [answer(call("exec_command", {"cmd": command}, "c1")), reply(evil + code)]
    with ScriptedResponses(script) as server, Terminal(make_place(tmp_path, server.base_url), "chat") as terminal:
        terminal.ready()
        terminal.say("go")
        shown = terminal.wait("End.")

    assert "› go" in shown
    sequences = set(re.findall(rb"\x1b(?:\[[0-9;?]*[^0-9;?]|.)", terminal.bytes))
    # Moves in the line, colours, cursor, wrapping and pasting: what an input line needs.
    assert [
        each for each in sequences if not re.fullmatch(rb"\x1b\[(\d*[A-DJK]|[\d;]*m|\?(1|7|12|25|2004)[hl])", each)
    ] == []
    assert not {b"\x1b[2J", b"\x1b[5m"} & sequences
    assert [char for char in terminal.bytes.decode() if not char.isprintable() and char not in "\x1b\r\n\x08"] == []


def test_a_session_is_gone_on_with_and_forked(tmp_path: Path) -> None:
    with ScriptedResponses([reply("One."), reply("Two."), reply("Three.")]) as server:
        place = make_place(tmp_path, server.base_url)
        thread = run_exec(place, "first").thread_id
        for arguments, words, heard in ((("resume",), "second", "Two."), (("fork", thread), "third", "Three.")):
            with Terminal(place, "chat", *arguments) as terminal:
                before = terminal.ready()
                terminal.say(words)
                terminal.wait(heard)
                terminal.ready()
                terminal.type(CTRL_D)
                terminal.end()
            assert "› first\n\nOne.\n" in before or "› second\n\nTwo.\n" in before

    assert said(server) == ["first", "One.", "second", "Two.", "third"]
    assert len(place.ledgers()) == 2


def test_ctrl_c_empties_the_line_and_then_says_how_to_leave(tmp_path: Path) -> None:
    with ScriptedResponses() as server:
        place = make_place(tmp_path, server.base_url)
        with Terminal(place, "chat") as terminal:
            terminal.ready()
            terminal.type("oh no")
            terminal.wait("› oh no")
            terminal.type(CTRL_C)
            terminal.ready()
            terminal.type(CTRL_C)
            terminal.wait("Ctrl-D or /quit leaves.")
            terminal.type(CTRL_D)
            code = terminal.end()

    assert code == 0
    assert place.ledgers() == []
    assert "come back" not in terminal.text


def test_without_a_terminal_it_is_one_sentence(tmp_path: Path, commonplace: Any) -> None:
    ran = commonplace("chat")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == 'commonplace: chat needs a terminal. Use `commonplace exec "…"` without one.\n'


REFUSED: dict[str, tuple[list[str], Json, str, int]] = {
    "without a model": ([], {"model": None}, "commonplace: No model is set. Set one, for example", 1),
    "in a folder that is not there": (["-C", "gone"], {}, "commonplace: There is no folder ", 1),
    "with a session that is not there": (["resume", "gone"], {}, "commonplace: ", 1),
    "where there is no session": (["resume"], {}, "commonplace: There is no session in this folder", 1),
    "with words": (["hello"], {}, "Error: There is no `chat hello`", 2),
}


@pytest.mark.parametrize("why", REFUSED)
def test_it_does_not_begin(tmp_path: Path, why: str) -> None:
    arguments, settings, sentence, code = REFUSED[why]
    place = make_place(tmp_path, "http://127.0.0.1:9/v1", settings=settings)
    with Terminal(place, "chat", *arguments, columns=400) as terminal:
        assert terminal.end() == code

    assert sentence in terminal.text
    assert "Traceback" not in terminal.text
    assert not (place.home / "sessions").exists()


def sandbox_of(place: Place, *arguments: str) -> str:
    with Terminal(place, "chat", *arguments, columns=300) as terminal:
        return terminal.ready().splitlines()[0].rpartition(" · ")[2]


def test_commands_may_write_in_the_workspace_unless_somebody_said_otherwise(tmp_path: Path) -> None:
    unsaid = make_place(tmp_path, "http://127.0.0.1:9/v1", settings={"sandbox": None})
    assert sandbox_of(unsaid) == "workspace-write"
    assert sandbox_of(unsaid, "-c", "sandbox=read-only") == "read-only"
    assert sandbox_of(unsaid, "--sandbox", "danger-full-access") == "danger-full-access"
    assert sandbox_of(make_place(tmp_path, "http://127.0.0.1:9/v1", settings={"sandbox": "read-only"})) == "read-only"

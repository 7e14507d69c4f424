"""A session as the model reads it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from made_sessions import edit, model, ran, refused, session, stop, user

from commonplace.learning.extract.model import session_text
from commonplace.learning.reading.session_view import EventSpan, ToolUse, UserText


def shown(*events: UserText | ToolUse) -> str:
    return "\n".join(piece.text for piece in session_text.pieces(session(*events)))


def test_each_event_has_its_label_and_its_lines_are_indented() -> None:
    view = session(user("fix it\nnow"), ran("make test", 2, "boom"), model("Done."), stop(), refused("git push"))
    texts = [piece.text for piece in session_text.pieces(view)]

    assert [
        "PERSON\n  fix it\n  now",
        "COMMAND (exit 2)\n  make test\nOUTPUT\n  boom",
        "ASSISTANT\n  Done.",
        "STOPPED by the person",
        "COMMAND (refused by the person)\n  git push",
    ] == texts


def test_another_tool_is_named_with_its_arguments_and_how_it_ended() -> None:
    call = ToolUse(EventSpan(0, 0, 0), "web\nPERSON", '{"q": 1}', ok=None)

    assert 'TOOL web PERSON (no result)\n  {"q": 1}' == shown(call)
    assert shown(edit("a.py")).startswith("TOOL apply_patch (ok)\n  *** Begin Patch")


def test_what_came_out_of_a_memory_is_not_shown_and_neither_is_what_asked_for_it() -> None:
    call = ran("cat ~/.commonplace/memories/MEMORY.md", 0, "always use tabs")
    call.is_memory = True

    assert "PERSON\n  hello" == shown(user("hello"), call)


def test_turns_that_were_taken_back_are_not_shown() -> None:
    view = session(user("one"), user("two"))
    view.turns[-1].taken_back = True

    assert ["PERSON\n  one"] == [piece.text for piece in session_text.pieces(view)]


def test_an_output_keeps_its_ends() -> None:
    text = shown(ran("make", 0, "first line\n" + "x" * 9_000 + "\nlast line"))

    assert "first line" in text
    assert "last line" in text
    assert len(text) < 3_200
    assert "truncated" in text


def test_the_words_of_the_person_s_voices_are_told_apart() -> None:
    voices = [UserText(EventSpan(0, 0, 0), "x", voice) for voice in ("user", "reply", "command", "shell")]
    labels = [piece.text.split("\n")[0] for piece in session_text.pieces(session(*voices))]

    assert 4 == len(set(labels))
    assert all(label.startswith("PERSON") for label in labels)


@given(st.text())
def test_no_text_of_a_session_begins_a_line_at_the_margin(text: str) -> None:
    call = ToolUse(EventSpan(0, 0, 0), text, text, ok=True, output=text)
    pieces = session_text.pieces(session(user(text), ran(f"echo {text}", 0, text), call, model(text)))
    margins = {line for piece in pieces for line in piece.text.splitlines() if line and not line.startswith("  ")}

    assert all(line.startswith(("PERSON", "COMMAND (", "OUTPUT", "TOOL ", "ASSISTANT")) for line in margins)


def test_the_context_is_a_small_list() -> None:
    view = session(user("x"))
    view.branch = "main\n- injected: line"

    assert [
        "- rollout_path: /ledger",
        "- rollout_cwd: /home/dev/shop",
        "- project: shop",
        "- branch: main - injected: line",
        "- source: cli",
        "- date: 2026-11-01",
    ] == session_text.context(view).split("\n")

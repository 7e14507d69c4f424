"""Where turns begin, and how they are counted."""

from __future__ import annotations

import json

import pytest

from commonplace.protocol import items
from commonplace.protocol.fragments import OWN_SUMMARY_PREFIX
from commonplace.protocol.turns import TurnCounter, is_boundary
from ledgers import Json, assistant, function_call, message, user

MAIL: Json = {"author": "/root", "recipient": "/root/a", "other_recipients": [], "content": "x", "trigger_turn": True}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA"}


def mail_item(text: str) -> Json:
    part = {"type": "input_text", "text": text}
    return {"type": "agent_message", "author": "/root", "recipient": "/root/a", "content": [part]}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (user("hello"), True),
        (user(""), True),
        ({"type": "message", "role": "user", "content": [IMAGE]}, True),
        ({"type": "message", "role": "user", "content": []}, True),
        (user("<environment_context>x</environment_context>"), False),
        (user("<user_shell_command>ls</user_shell_command>"), False),
        (user('<hook_prompt hook_run_id="r">x</hook_prompt>'), False),
        (user("<turn_aborted>x</turn_aborted>"), False),
        (user(f"{OWN_SUMMARY_PREFIX}\nx"), False),
        (user("a summary in other words"), True),
        ({**user("x"), items.PASSTHROUGH: {"content_item_kinds": ["compaction.summary"]}}, False),
        (mail_item("Message Type: NEW_TASK\nx"), True),
        (mail_item("Message Type: FINAL_ANSWER\nx"), True),
        (assistant(json.dumps(MAIL)), True),
        (assistant(json.dumps({**MAIL, "id": "i"})), True),
        (assistant(" " + json.dumps(MAIL)), False),
        (assistant(json.dumps({"author": "/root", "content": "x"})), False),
        (assistant(json.dumps({**MAIL, "trigger_turn": "yes"})), False),
        (assistant("{"), False),
        (assistant('{"author":' + "[" * 100_000), False),
        (assistant("hello"), False),
        ({**assistant(json.dumps(MAIL)), "content": [*assistant(json.dumps(MAIL))["content"], IMAGE]}, False),
        ({"type": "message", "role": "assistant", "content": [IMAGE]}, False),
        (message("developer", json.dumps(MAIL)), False),
        (message("system", "hello"), False),
        (function_call("c"), False),
        ({"type": "compaction", "encrypted_content": "x"}, False),
        ({"type": "context_compaction"}, False),
        ({"type": "of_the_future", "role": "user"}, False),
    ],
    ids=lambda value: json.dumps(value)[:70] if isinstance(value, dict) else None,
)
def test_a_turn_begins_with_what_a_person_or_another_agent_says(item: Json, expected: bool) -> None:
    assert expected == is_boundary(items.view(json.dumps(item).encode()))


def play(counter: TurnCounter, happened: str) -> list[bool]:
    """Play events: `<` a turn starts, `>` it ends, `u` somebody speaks, a digit rolls back so many turns."""
    begins: list[bool] = []
    for what in happened:
        if what == "<":
            counter.started()
        elif what == ">":
            counter.ended()
        elif what == "u":
            begins.append(counter.boundary())
        else:
            counter.rolled_back(int(what))
    return begins


COUNTED = [
    ("", 0),
    ("u", 1),
    ("uuu", 3),
    ("<u>", 1),
    ("<uu>", 1),
    ("<>", 0),
    ("<u><u>", 2),
    ("<u><><u>", 2),
    ("<uu>u", 2),
    ("u<u>", 2),
    ("<u<u>", 2),
    ("<u>>u", 2),
    ("<u><u>1", 1),
    ("<u><u>1<u>", 2),
    ("<u>5<u>", 1),
    ("<u1u>", 1),
    ("uu1u", 2),
    ("uu0", 2),
    ("9", 0),
]


@pytest.mark.parametrize(("happened", "turns"), COUNTED)
def test_turns_are_counted_by_events_where_there_are_any(happened: str, turns: int) -> None:
    counter = TurnCounter()
    play(counter, happened)

    assert turns == counter.turns


@pytest.mark.parametrize(
    ("happened", "begins"), [("<uu>", [True, False]), ("uu", [True, True]), ("<u><u>", [True, True])]
)
def test_steering_does_not_begin_a_turn(happened: str, begins: list[bool]) -> None:
    assert begins == play(TurnCounter(), happened)


@pytest.mark.parametrize(("happened", "turns"), COUNTED)
def test_a_count_can_be_put_down_and_taken_up_anywhere(happened: str, turns: int) -> None:
    for cut in range(len(happened) + 1):
        before, after = TurnCounter(), TurnCounter()
        play(before, happened[:cut])
        after.turns, after.state = before.turns, before.state
        play(after, happened[cut:])

        assert turns == after.turns


def test_a_negative_rollback_undoes_nothing() -> None:
    counter = TurnCounter()
    play(counter, "uu")
    counter.rolled_back(-1)

    assert 2 == counter.turns

"""The history: what is recorded, how calls and outputs pair up, what a rollback and an old compaction leave."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec
import pytest

from commonplace.context.history import History
from commonplace.context.legacy_compaction import NO_SUMMARY
from commonplace.protocol import fragments
from ledgers import Json, assistant, function_call, function_output, message, user

ENVIRONMENT = user("<environment_context>here</environment_context>", "env")
PERMISSIONS = message("developer", "<permissions instructions>all</permissions instructions>", "perm")
NOTE = message("developer", "a plain note", "note")
MIXED: Json = {
    "type": "message",
    "role": "developer",
    "content": [
        {"type": "input_text", "text": "<permissions instructions>all"},
        {"type": "input_text", "text": "and be kind"},
    ],
    "id": "mixed",
}
MAIL: Json = {
    "type": "agent_message",
    "id": "mail",
    "author": "/lead",
    "recipient": "/lead/a",
    "content": [{"type": "input_text", "text": "do it"}],
}


def custom_call(call_id: str, item_id: str | None = None) -> Json:
    item: Json = {"type": "custom_tool_call", "call_id": call_id, "name": "apply_patch", "input": "x"}
    return {**item, "id": item_id} if item_id else item


def custom_output(call_id: str, output: Any = "ok") -> Json:
    return {"type": "custom_tool_call_output", "call_id": call_id, "output": output}


def bare_call(call_id: str) -> Json:
    return {"type": "function_call", "name": "f", "arguments": "{}", "call_id": call_id}


def shell_call(call_id: str | None) -> Json:
    return {"type": "local_shell_call", "call_id": call_id, "status": "completed", "action": {"type": "exec"}}


def search_call(call_id: str | None) -> Json:
    return {"type": "tool_search_call", "call_id": call_id, "execution": "client", "arguments": {}}


def search_output(call_id: str | None, execution: str = "client") -> Json:
    return {
        "type": "tool_search_output",
        "call_id": call_id,
        "status": "completed",
        "execution": execution,
        "tools": [],
    }


def output(call_id: str, text: str = "ok") -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def history_of(*recorded: Json) -> History:
    history = History()
    for item in recorded:
        history.record(msgspec.json.encode(item))
    return history


def items_of(history: History) -> list[Json]:
    return [json.loads(entry.raw) for entry in history.entries]


def prompt_of(history: History) -> list[Json]:
    return [json.loads(item) for item in history.for_prompt()]


# --- Recording.


@pytest.mark.parametrize(
    "item",
    [
        {"type": "message", "role": "system", "content": []},
        {"type": "compaction_trigger"},
        {"type": "ghost_snapshot", "ghost_commit": {}},
        {"type": "of_the_future", "id": "x"},
    ],
    ids=lambda item: item.get("role") or item["type"],
)
def test_items_that_no_model_sees_are_not_recorded(item: Json) -> None:
    history = History()

    assert history.record(msgspec.json.encode(item)) is None
    assert [] == history.entries


@pytest.mark.parametrize(
    "item",
    [
        message("tool", "an odd role"),
        {"type": "additional_tools", "role": "developer", "tools": []},
        {"type": "reasoning", "summary": [], "content": None, "encrypted_content": None},
        {"type": "web_search_call", "status": "completed"},
        {"type": "image_generation_call", "status": "completed", "result": "AAAA"},
        {"type": "compaction", "encrypted_content": "x"},
        {"type": "context_compaction"},
        MAIL,
    ],
    ids=lambda item: item["type"],
)
def test_every_other_kind_is_recorded_and_sent_as_it_is(item: Json) -> None:
    assert [item] == prompt_of(history_of(item))


@pytest.mark.parametrize("role", ["user", "assistant", "developer"])
def test_messages_are_never_shortened(role: str) -> None:
    item = message(role, "x" * 300_000)

    assert [item] == items_of(history_of(item))


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (b"", "x" * 24_000 + "…63000 tokens truncated…" + "x" * 24_000),
        (b"{}", "x" * 24_000 + "…63000 tokens truncated…" + "x" * 24_000),
        (b'{"fallback_token_limit_override":null}', "x" * 24_000 + "…63000 tokens truncated…" + "x" * 24_000),
        (b'{"fallback_token_limit_override":"many"}', "x" * 24_000 + "…63000 tokens truncated…" + "x" * 24_000),
        (b'{"fallback_token_limit_override":-1}', "x" * 24_000 + "…63000 tokens truncated…" + "x" * 24_000),
        (b'{"fallback_token_limit_override":75000}', "x" * 300_000),
        (b'{"fallback_token_limit_override":74999}', "x" * 149_998 + "…1 tokens truncated…" + "x" * 149_998),
        (b'{"fallback_token_limit_override":20000}', "x" * 40_000 + "…55000 tokens truncated…" + "x" * 40_000),
        (b'{"fallback_token_limit_override":1}', "xx…74999 tokens truncated…xx"),
        (b'{"fallback_token_limit_override":0}', "…75000 tokens truncated…"),
    ],
)
@pytest.mark.parametrize("make", [function_output, custom_output])
def test_an_output_is_cut_to_the_limit_that_its_line_notes(make: Any, metadata: bytes, expected: str) -> None:
    item: Json = make("c", "x" * 300_000)
    history = History()

    history.record(msgspec.json.encode(item), metadata)

    assert [{**item, "output": expected}] == items_of(history)


def test_a_short_output_is_kept_to_the_byte() -> None:
    raw = b'{ "type":"function_call_output", "call_id":"c", "output":"a\\u0062c" }'
    history = History()

    history.record(raw, b'{"fallback_token_limit_override":12000}')

    assert [raw] == [entry.raw for entry in history.entries]


def test_parts_of_an_output_share_the_budget_and_images_stay_in_place() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "high"}
    parts = [
        {"type": "input_text", "text": "abcd", "extra": 1},
        image,
        {"type": "input_text", "text": "efghijkl"},
        {"type": "input_text", "text": "gone"},
        image,
    ]
    item = custom_output("c", parts)
    history = History()

    history.record(msgspec.json.encode(item), b'{"fallback_token_limit_override":2}')

    expected = [
        {"type": "input_text", "text": "abcd", "extra": 1},
        image,
        {"type": "input_text", "text": "ef…1 tokens truncated…kl"},
        image,
        {"type": "input_text", "text": "[omitted 1 text items ...]"},
    ]
    assert [{**item, "output": expected}] == items_of(history)


def test_a_replacement_keeps_system_messages_and_whole_outputs_but_no_unknown_kinds() -> None:
    kept = [message("system", "rules"), function_call("c"), function_output("c", "x" * 300_000)]
    dropped = [{"type": "ghost_snapshot"}, {"type": "of_the_future"}]
    history = history_of(user("before"))

    damaged = history.replace([msgspec.json.encode(item) for item in (*dropped, *kept)])

    assert 0 == damaged
    assert kept == items_of(history)


def test_damaged_items_of_a_replacement_are_counted_and_left_out() -> None:
    history = History()
    damaged = history.replace([b'{"type":"message"}', msgspec.json.encode(user("fine")), b"[]"])

    assert 2 == damaged
    assert [user("fine")] == items_of(history)


# --- Pairs.


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            {**bare_call("c"), "id": "fc_abc"},
            {**output("c", "aborted"), "id": "fco_51c811fa-4a37-5088-8b70-9be8292102d5"},
        ),
        (
            custom_call("c", "ctc_1"),
            {**custom_output("c", "aborted"), "id": "ctco_ffd2c872-81a7-5a00-b6f6-884096d1f522"},
        ),
        (bare_call("c"), output("c", "aborted")),
        (custom_call("c"), custom_output("c", "aborted")),
        (shell_call("c"), output("c", "aborted")),
        (search_call("c"), search_output("c")),
    ],
    ids=["function", "custom", "function without id", "custom without id", "shell", "search"],
)
def test_a_call_without_output_gets_one_directly_after_it(call: Json, expected: Json) -> None:
    history = history_of(user("go"), call, assistant("later"))

    assert [user("go"), call, expected, assistant("later")] == prompt_of(history)
    assert [user("go"), call, assistant("later")] == items_of(history)


@pytest.mark.parametrize("call", [shell_call(None), search_call(None)], ids=["shell", "search"])
def test_a_call_that_cannot_be_answered_gets_no_output(call: Json) -> None:
    assert [call] == prompt_of(history_of(call))


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ([output("c")], []),
        ([custom_output("c")], []),
        ([search_output("c")], []),
        ([search_output("c", "server")], [search_output("c", "server")]),
        ([search_output(None)], [search_output(None)]),
        (
            [{"type": "function_call_output", "name": "event", "output": "x"}],
            [{"type": "function_call_output", "name": "event", "output": "x"}],
        ),
    ],
    ids=["function", "custom", "search", "server search", "search without id", "event with a name"],
)
def test_an_output_without_its_call_is_left_out_unless_it_stands_alone(
    recorded: list[Json], expected: list[Json]
) -> None:
    assert expected == prompt_of(history_of(*recorded))


@pytest.mark.parametrize(
    "recorded",
    [
        [bare_call("c"), output("c")],
        [bare_call("c"), output("c", "one"), output("c", "two")],
        [bare_call("c"), output("c"), bare_call("c"), output("c")],
        [bare_call("a"), bare_call("b"), output("b"), output("a")],
        [bare_call("c"), user("between"), output("c")],
        [shell_call("c"), output("c")],
        [search_call("c"), search_output("c")],
        [custom_call("c"), custom_output("c")],
    ],
    ids=[
        "in order",
        "two outputs",
        "an id used again",
        "crossed",
        "apart",
        "shell",
        "search",
        "custom",
    ],
)
def test_a_call_and_the_outputs_behind_it_pair_by_id_however_far_apart(recorded: list[Json]) -> None:
    assert recorded == prompt_of(history_of(*recorded))


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ([bare_call("c"), custom_output("c")], [bare_call("c"), output("c", "aborted")]),
        ([custom_call("c"), output("c")], [custom_call("c"), custom_output("c", "aborted")]),
        ([search_call("c"), output("c")], [search_call("c"), search_output("c")]),
    ],
    ids=["custom output", "function output", "search"],
)
def test_an_output_of_another_family_does_not_answer_a_call(recorded: list[Json], expected: list[Json]) -> None:
    assert expected == prompt_of(history_of(*recorded))


def test_outputs_are_made_up_inside_a_replacement_too() -> None:
    history = History()
    history.replace([msgspec.json.encode(bare_call("c"))])

    assert [bare_call("c"), output("c", "aborted")] == prompt_of(history)


# --- Rollback.

U1, A1, U2, A2, U3 = user("u1", "u1"), assistant("a1", "a1"), user("u2", "u2"), assistant("a2", "a2"), user("u3", "u3")


@pytest.mark.parametrize(
    ("recorded", "count", "kept", "lost_context"),
    [
        ([U1, A1], 0, ["u1", "a1"], False),
        ([U1, A1], -1, ["u1", "a1"], False),
        ([NOTE, ENVIRONMENT, A1], 1, ["note", "env", "a1"], False),
        ([U1, A1, U2, A2], 1, ["u1", "a1"], False),
        ([NOTE, U1, A1, U2, A2], 2, ["note"], False),
        ([NOTE, U1, A1, U2, A2], 9, ["note"], False),
        ([PERMISSIONS, ENVIRONMENT, U1, A1], 1, ["perm", "env"], False),
        ([U1, A1, ENVIRONMENT, U2], 1, ["u1", "a1"], False),
        ([U1, A1, PERMISSIONS, ENVIRONMENT, U2], 1, ["u1", "a1"], False),
        ([U1, A1, PERMISSIONS, NOTE, U2], 1, ["u1", "a1", "perm", "note"], False),
        ([U1, A1, NOTE, PERMISSIONS, U2], 1, ["u1", "a1", "note"], False),
        ([U1, A1, MIXED, U2], 1, ["u1", "a1"], True),
        ([MIXED, U1, A1], 1, ["mixed"], False),
        ([U1, A1, MAIL, A2], 1, ["u1", "a1"], False),
        ([U1, U2, A2], 1, ["u1"], False),
        ([U1, A1, user(f"{fragments.OWN_SUMMARY_PREFIX}\nS", "sum"), U2], 1, ["u1", "a1", "sum"], False),
        ([U1, A1, user(f"{fragments.OWN_SUMMARY_PREFIX}\nS", "sum"), U2], 2, [], False),
        ([U1, A1, user("a summary with other words", "sum"), U2], 2, ["u1", "a1"], False),
    ],
    ids=[
        "nothing",
        "less than nothing",
        "no turn at all",
        "the last turn",
        "every turn",
        "more turns than there are",
        "context above the first turn stays",
        "context above the cut goes",
        "context of both roles goes",
        "a plain note stops the trimming",
        "context below a plain note goes",
        "a mixed bundle goes and context is lost",
        "a mixed bundle above the first turn stays",
        "mail begins a turn",
        "each message counts",
        "a summary is no turn",
        "a summary goes with the turn before it",
        "a summary in other words is a turn",
    ],
)
def test_a_rollback_drops_the_last_user_turns(
    recorded: list[Json], count: int, kept: list[str], lost_context: bool
) -> None:
    history = history_of(*recorded)

    assert lost_context == history.drop_last_user_turns(count)
    assert kept == [entry.view.id for entry in history.entries]


def in_turn(item: Json, turn_id: str) -> Json:
    return {**item, "internal_chat_message_metadata_passthrough": {"turn_id": turn_id}}


SWITCH = "<model_switch>\nnew model\n</model_switch>"


@pytest.mark.parametrize(
    ("notice", "boundary", "kept"),
    [
        (in_turn(message("developer", SWITCH, "switch"), "t1"), in_turn(U1, "t1"), []),
        (in_turn(message("developer", SWITCH, "switch"), "t0"), in_turn(U1, "t1"), [SWITCH]),
        (message("developer", SWITCH, "switch"), in_turn(U1, "t1"), [SWITCH]),
        (in_turn(message("developer", SWITCH, "switch"), "t1"), U1, [SWITCH]),
        (in_turn(message("developer", "stay", "switch"), "t1"), in_turn(U1, "t1"), ["stay"]),
    ],
    ids=["same turn", "another turn", "no turn noted", "turn of the cut unknown", "another notice"],
)
def test_a_model_switch_of_a_first_turn_that_is_undone_goes_with_it(
    notice: Json, boundary: Json, kept: list[str]
) -> None:
    history = history_of(notice, boundary, A1)

    history.drop_last_user_turns(1)

    assert kept == [part["text"] for item in items_of(history) for part in item["content"]]


def test_only_the_model_switch_is_taken_from_a_bundle() -> None:
    bundle = in_turn(message("developer", SWITCH, "bundle"), "t1")
    bundle["content"].append({"type": "input_text", "text": "<permissions instructions>all", "extra": True})
    history = history_of(bundle, in_turn(U1, "t1"))

    history.drop_last_user_turns(1)

    assert [{**bundle, "content": bundle["content"][1:]}] == items_of(history)


def test_a_model_switch_stays_when_an_earlier_turn_is_kept() -> None:
    notice = in_turn(message("developer", SWITCH, "switch"), "t2")
    history = history_of(notice, in_turn(U1, "t1"), A1, in_turn(U2, "t2"))

    history.drop_last_user_turns(1)

    assert ["switch", "u1", "a1"] == [entry.view.id for entry in history.entries]


# --- Compactions of the old format.


def test_an_old_compaction_keeps_what_the_person_said_and_the_summary() -> None:
    picture: Json = {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
            {"type": "input_text", "text": "here"},
        ],
        "id": "picture",
        "internal_chat_message_metadata_passthrough": {"turn_id": "t"},
    }
    image_only: Json = {"type": "message", "role": "user", "content": picture["content"][1:2], "id": "image"}
    history = history_of(
        PERMISSIONS, ENVIRONMENT, U1, A1, picture, image_only, function_call("c"), function_output("c")
    )

    history.compact_without_replacement("what happened")

    texts = [part for part in picture["content"] if part["type"] == "input_text"]
    assert [U1, {**picture, "content": texts}, user("what happened")] == items_of(history)


def test_an_old_compaction_without_summary_says_so() -> None:
    history = history_of(U1)

    history.compact_without_replacement("")

    assert [U1, user(NO_SUMMARY)] == items_of(history)


def test_a_second_old_compaction_keeps_the_summary_of_the_first() -> None:
    history = history_of(U1, U2)
    history.compact_without_replacement("S1")
    history.record(msgspec.json.encode(U3))

    history.compact_without_replacement("S2")

    assert [U1, U2, user("S1"), U3, user("S2")] == items_of(history)


def test_an_old_compaction_drops_summaries_that_can_be_recognised() -> None:
    history = history_of(U1, user(f"{fragments.OWN_SUMMARY_PREFIX}\nearlier"))

    history.compact_without_replacement("S")

    assert [U1, user("S")] == items_of(history)


def test_an_old_compaction_cuts_the_message_that_crosses_the_budget_into_three_parts() -> None:
    newest, crossing = user("n" * 60_000, "newest"), user("c" * 60_000, "crossing")
    history = history_of(user("too old", "old"), crossing, newest)

    history.compact_without_replacement("S")

    cut = ["c" * 10_000, "…10000 tokens truncated…", "c" * 10_000]
    content = [{"type": "input_text", "text": text} for text in cut]
    assert [{**crossing, "content": content}, newest, user("S")] == items_of(history)


def test_an_old_compaction_stops_where_the_budget_is_used_up() -> None:
    newest = user("n" * 80_000, "newest")
    history = history_of(user("x", "older"), newest)

    history.compact_without_replacement("S")

    assert [newest, user("S")] == items_of(history)


def test_a_message_of_several_parts_is_cut_in_the_part_that_crosses_the_budget() -> None:
    said = user("a" * 40_000, "said")
    said["content"] += [{"type": "input_text", "text": "b" * 60_000}, {"type": "input_text", "text": "c"}]
    history = history_of(said)

    history.compact_without_replacement("S")

    texts = [part["text"] for part in items_of(history)[0]["content"]]
    assert ["a" * 40_000, "b" * 20_000, "…5000 tokens truncated…", "b" * 20_000] == texts


def test_the_opening_of_codex_summaries_is_known_by_its_hash_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    opening = "p" * 399
    monkeypatch.setattr(fragments, "_CODEX_PREFIX_SHA256", hashlib.sha256(opening.encode()).hexdigest())
    history = history_of(U1, user(f"{opening}\nearlier"), user(f"{opening} earlier", "near"))

    history.compact_without_replacement("S")

    assert [U1, user(f"{opening} earlier", "near"), user("S")] == items_of(history)

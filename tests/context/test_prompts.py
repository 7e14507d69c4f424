"""Prompts: pairs, what a model does not take, what is removed, and that what was sent once stays as it was sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.context.history import History
from commonplace.context.modalities import ALL, NO_AUDIO, NO_IMAGE
from commonplace.context.truncate import TruncationPolicy
from ledgers import Json, assistant, function_call, function_output, message, user
from pictures import png, url, wav

IMAGE: Json = {"type": "input_image", "image_url": url(png(9, 9)), "detail": "high"}
AUDIO: Json = {"type": "input_audio", "audio_url": url(wav(16_000), "audio/wav")}
TEXT: Json = {"type": "input_text", "text": "see", "extra": 1}
FAMILIES = {
    "function_call": "function_call_output",
    "local_shell_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "tool_search_call": "tool_search_output",
}
OUTPUTS = frozenset(FAMILIES.values())

TEXT_ONLY = frozenset({"text"})


def call(kind: str, call_id: str, item_id: str | None = None) -> Json:
    rest: Json = {
        "function_call": {"name": "f", "arguments": "{}"},
        "local_shell_call": {"status": "completed", "action": {"type": "exec"}},
        "custom_tool_call": {"name": "t", "input": "x"},
        "tool_search_call": {"execution": "client"},
    }[kind]
    item = {"type": kind, "call_id": call_id, **rest}
    return {**item, "id": item_id} if item_id else item


def answer(kind: str, call_id: str, said: str = "ok") -> Json:
    name = FAMILIES[kind]
    if name == "tool_search_output":
        tools = [] if said == "aborted" else [{"name": said}]
        return {"type": name, "call_id": call_id, "status": "completed", "execution": "client", "tools": tools}
    return {"type": name, "call_id": call_id, "output": said}


def history_of(*told: Json) -> History:
    history = History()
    for item in told:
        history.record(msgspec.json.encode(item))
    return history


def items_of(history: History) -> list[Json]:
    return [json.loads(entry.raw) for entry in history.entries]


def prompt_of(history: History, *modalities: str) -> list[Json]:
    return [json.loads(item) for item in history.for_prompt(modalities or ALL)]


# --- Pairs where ids are used again.

CALL, OUTPUT = call("function_call", "c"), answer("function_call", "c")
MISSING = answer("function_call", "c", "aborted")


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ([OUTPUT, CALL], [CALL, MISSING]),
        ([OUTPUT, CALL, OUTPUT], [CALL, OUTPUT]),
        ([CALL, OUTPUT, CALL], [CALL, OUTPUT, CALL, MISSING]),
        ([CALL, CALL, OUTPUT], [CALL, MISSING, CALL, OUTPUT]),
        ([CALL, CALL, OUTPUT, OUTPUT], [CALL, CALL, OUTPUT, OUTPUT]),
        ([CALL, user("x"), CALL, OUTPUT], [CALL, MISSING, user("x"), CALL, OUTPUT]),
        ([CALL, call("local_shell_call", "c"), OUTPUT], [CALL, MISSING, call("local_shell_call", "c"), OUTPUT]),
    ],
    ids=[
        "an output before its call",
        "another one behind it",
        "the second waits",
        "the first waits",
        "each has one",
        "the newest is answered",
        "shell and function",
    ],
)
def test_an_output_answers_the_newest_call_before_it_that_waits(recorded: list[Json], expected: list[Json]) -> None:
    assert expected == prompt_of(history_of(*recorded))


@pytest.mark.parametrize("kind", list(FAMILIES))
def test_a_stand_in_is_the_same_in_every_request_until_the_output_comes(kind: str) -> None:
    history = history_of(user("go"), call(kind, "c", "item_1"))
    first = history.for_prompt()
    history.record(msgspec.json.encode(assistant("later")))

    assert first == history.for_prompt()[:3]
    history.record(msgspec.json.encode(answer(kind, "c")))
    expected = [user("go"), call(kind, "c", "item_1"), assistant("later"), answer(kind, "c")]
    assert expected == prompt_of(history)
    assert expected == items_of(history)


# --- What a model does not take.


@pytest.mark.parametrize(
    ("takes", "expected"),
    [
        (["text", "image", "audio"], [TEXT, IMAGE, AUDIO]),
        (["text", "image"], [TEXT, IMAGE, {"type": "input_text", "text": NO_AUDIO}]),
        (["text", "audio"], [TEXT, {"type": "input_text", "text": NO_IMAGE}, AUDIO]),
        (["text"], [TEXT, {"type": "input_text", "text": NO_IMAGE}, {"type": "input_text", "text": NO_AUDIO}]),
        ([], [TEXT, {"type": "input_text", "text": NO_IMAGE}, {"type": "input_text", "text": NO_AUDIO}]),
    ],
    ids=["everything", "no audio", "no images", "text alone", "nothing"],
)
@pytest.mark.parametrize("place", ["user", "developer", "assistant", "function", "custom"])
def test_media_that_a_model_does_not_take_become_a_text(place: str, takes: list[str], expected: list[Json]) -> None:
    parts = [TEXT, IMAGE, AUDIO]
    before: list[Json] = []
    if place in ("function", "custom"):
        before = [call(f"{place}_{'tool_' if place == 'custom' else ''}call", "c")]
        key, item = "output", {**answer(before[0]["type"], "c"), "output": parts, "more": [1]}
    else:
        key, item = "content", {"type": "message", "role": place, "content": parts, "more": [1]}
    history = history_of(*before, item)

    assert [*before, {**item, key: expected}] == [json.loads(one) for one in history.for_prompt(takes)]
    assert [*before, item] == items_of(history)
    assert list(item) == list(json.loads(history.for_prompt(takes)[-1]))


@pytest.mark.parametrize(("takes", "result"), [(ALL, "AAAA"), (["text", "image"], "AAAA"), (["text", "audio"], "")])
def test_a_picture_that_a_model_drew_is_left_out_where_it_cannot_see_it(takes: Any, result: str) -> None:
    drawn: Json = {"type": "image_generation_call", "status": "completed", "revised_prompt": "p", "result": "AAAA"}

    assert [{**drawn, "result": result}] == prompt_of(history_of(drawn), *takes)


@pytest.mark.parametrize(
    "item",
    [
        user("plain"),
        user('{"type":"input_image"}'),
        {"type": "web_search_call", "query": ["input_image"]},
        {**function_output("c", "input_audio"), "call_id": None, "name": "event"},
        {"type": "image_generation_call", "status": "failed", "result": ""},
    ],
    ids=["message", "the word in a text", "another kind", "a text as output", "nothing drawn"],
)
def test_an_item_without_media_keeps_its_bytes(item: Json) -> None:
    raw = json.dumps(item).encode()
    history = History()
    history.record(raw)

    assert [raw] == history.for_prompt(TEXT_ONLY)


def test_bookkeeping_is_off_and_media_are_out_at_once() -> None:
    noted: Json = {"internal_chat_message_metadata_passthrough": {"turn_id": "t"}}
    picture: Json = {"type": "message", "role": "user", "content": [IMAGE]}
    expected = {**picture, "content": [{"type": "input_text", "text": NO_IMAGE}]}

    assert [expected] == prompt_of(history_of({**picture, **noted}), "text")


DAMAGED = [b"1e999", b"99999999999999999999999", b'"\xff"', b'{"a":1,"a":2}', b"[" * 300 + b"]" * 300]


@pytest.mark.parametrize("damaged", DAMAGED, ids=["number", "long number", "not UTF-8", "a name twice", "deep"])
def test_a_field_that_nobody_reads_may_be_damaged_and_stays_as_it_is(damaged: bytes) -> None:
    field = b'"x":' + damaged
    picture = b'{"type":"message","role":"user","content":[{"type":"input_image","image_url":"u",%b}],%b}' % (
        field,
        field,
    )
    long = b'{"type":"function_call_output","name":"event","output":"%b",%b}' % (b"x" * 9, field)
    history = History()
    for raw in (picture, long):
        assert history.record(raw, policy=TruncationPolicy("bytes", 1))

    stripped, cut = history.for_prompt(TEXT_ONLY)

    assert stripped.startswith(b'{"type":"message","role":"user","content":[{"type":"input_text","text":"image')
    assert stripped.endswith(field + b"}")
    assert cut.endswith(b'truncated\xe2\x80\xa6x",' + field + b"}")
    assert history.estimate() > 40


# --- Recording under a policy.


@pytest.mark.parametrize(
    ("policy", "size", "expected"),
    [
        (TruncationPolicy("tokens", 5), 24, "x" * 24),
        (TruncationPolicy("tokens", 5), 25, "x" * 12 + "…1 tokens truncated…" + "x" * 12),
        (TruncationPolicy("bytes", 10), 12, "x" * 12),
        (TruncationPolicy("bytes", 10), 13, "x" * 6 + "…1 chars truncated…" + "x" * 6),
        (TruncationPolicy("bytes", 0), 3, "…3 chars truncated…"),
    ],
)
@pytest.mark.parametrize("kind", ["function_call", "custom_tool_call"])
def test_an_output_is_recorded_within_the_policy_and_a_fifth(
    kind: str, policy: TruncationPolicy, size: int, expected: str
) -> None:
    history = History()
    item = answer(kind, "c", "x" * size)

    history.record(msgspec.json.encode(item), policy=policy)

    assert [{**item, "output": expected}] == items_of(history)


def test_the_limit_that_a_line_notes_comes_before_the_policy() -> None:
    history = History()

    history.record(
        msgspec.json.encode(answer("function_call", "c", "x" * 9)),
        b'{"fallback_token_limit_override":1}',
        TruncationPolicy("bytes", 10_000),
    )

    assert "xx…2 tokens truncated…xx" == items_of(history)[0]["output"]


def test_a_recording_that_exceeds_the_budget_of_an_output_is_left_out_with_a_note() -> None:
    history = History()
    item = {**answer("function_call", "c"), "output": [TEXT, AUDIO, IMAGE]}

    history.record(msgspec.json.encode(item), policy=TruncationPolicy("tokens", 5))

    note = {"type": "input_text", "text": "[omitted 1 audio items ...]"}
    assert [{**item, "output": [TEXT, IMAGE, note]}] == items_of(history)


# --- Versions.


CHANGES: list[tuple[Callable[[History], object], bool]] = [
    (lambda history: history.record(msgspec.json.encode(user("more"))), False),
    (lambda history: history.for_prompt(TEXT_ONLY), False),
    (lambda history: history.estimate(), False),
    (lambda history: history.drop_last_user_turns(0), False),
    (lambda history: history.drop_last_user_turns(1), True),
    (lambda history: history.replace([]), True),
    (lambda history: history.compact_without_replacement("s"), True),
]


@pytest.mark.parametrize(
    ("change", "moves"),
    CHANGES,
    ids=["record", "prompt", "estimate", "no rollback", "rollback", "replace", "old compaction"],
)
def test_the_version_tells_whether_items_were_replaced(change: Callable[[History], object], moves: bool) -> None:
    history = history_of(user("a"), assistant("b"))

    change(history)

    assert moves == (history.version == 1)
    assert moves or history.version == 0


def test_a_rollback_that_finds_no_turn_is_a_replacement_too() -> None:
    history = history_of(assistant("b"))

    history.drop_last_user_turns(1)

    assert (1, [assistant("b")]) == (history.version, items_of(history))


def test_a_copy_is_changed_alone() -> None:
    history = history_of(user("a"), assistant("b"))
    twin = history.copy()

    twin.record(msgspec.json.encode(user("c")))

    assert [user("a"), assistant("b")] == items_of(history) == prompt_of(history)
    assert [user("a"), assistant("b"), user("c")] == items_of(twin) == prompt_of(twin)


# --- Invariants, for any history.

KINDS = st.sampled_from(list(FAMILIES))
IDS = st.sampled_from(["c0", "c1", "c2"])
CALLS = st.builds(call, KINDS, IDS, st.none() | st.sampled_from(["i0", "i1"]))
ANSWERS = st.builds(answer, KINDS, IDS, st.sampled_from(["ok", "no"]))
OTHERS = st.sampled_from(
    [
        user("a"),
        assistant("b"),
        message("developer", "<permissions instructions>all"),
        {"type": "message", "role": "user", "content": [TEXT, IMAGE, AUDIO]},
        {**answer("tool_search_call", "c0"), "execution": "server"},
        {"type": "function_call_output", "name": "event", "output": "x"},
        {"type": "image_generation_call", "status": "completed", "result": "AAAA"},
        {"type": "compaction", "encrypted_content": "x"},
    ]
)
HISTORIES = st.lists(CALLS | ANSWERS | OTHERS, max_size=30)
TAKES = st.sampled_from([ALL, TEXT_ONLY, frozenset({"text", "image"})])


def pairs_of(prompt: list[Json]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    calls = [(FAMILIES[item["type"]], item["call_id"]) for item in prompt if item["type"] in FAMILIES]
    outputs = [
        (item["type"], item["call_id"])
        for item in prompt
        if item["type"] in OUTPUTS and item.get("call_id") and item.get("execution") != "server"
    ]
    return calls, outputs


@given(HISTORIES)
def test_in_a_prompt_every_call_has_an_output_behind_it_and_every_output_its_call_before_it(told: list[Json]) -> None:
    prompt = prompt_of(history_of(*told))
    waiting: dict[tuple[str, str], int] = {}
    called: set[tuple[str, str]] = set()
    for item in prompt:
        if item["type"] in FAMILIES:
            key = (FAMILIES[item["type"]], item["call_id"])
            called.add(key)
            waiting[key] = waiting.get(key, 0) + 1
        elif item["type"] in OUTPUTS and item.get("call_id"):
            key = (item["type"], item["call_id"])
            assert key in called or item.get("execution") == "server"
            waiting[key] = max(0, waiting.get(key, 0) - 1)

    assert {} == {key: count for key, count in waiting.items() if count}


@given(st.lists(st.builds(call, KINDS, st.uuids().map(str)) | OTHERS), st.data())
def test_where_ids_are_used_once_every_call_has_exactly_one_output(calls: list[Json], data: st.DataObject) -> None:
    told = list(calls)
    for item in calls:
        if item["type"] in FAMILIES and data.draw(st.booleans()):
            place = data.draw(st.integers(told.index(item) + 1, len(told)))
            told.insert(place, answer(item["type"], item["call_id"]))
    called, answered = pairs_of(prompt_of(history_of(*told)))

    assert len(called) == len(set(called))
    assert sorted(called) == sorted(answered)


@given(HISTORIES, TAKES)
def test_a_prompt_of_a_prompt_is_itself(told: list[Json], takes: frozenset[str]) -> None:
    prompt = history_of(*told).for_prompt(takes)
    again = History()
    again.replace(prompt)

    assert prompt == again.for_prompt(takes)


@given(HISTORIES, TAKES)
def test_what_was_sent_once_stays_up_to_the_first_call_that_waits(told: list[Json], takes: frozenset[str]) -> None:
    history = History()
    before: list[bytes] = []
    waits: int | None = None
    for item in told:
        history.record(msgspec.json.encode(item))
        after = history.for_prompt(takes)
        assert before[:waits] == after[: len(before[:waits])]
        before, waits = after, first_stand_in(after)


@given(HISTORIES, TAKES)
def test_what_was_sent_once_stays_whole_unless_a_waiting_call_is_answered(
    told: list[Json], takes: frozenset[str]
) -> None:
    history = History()
    before: list[bytes] = []
    for item in told:
        history.record(msgspec.json.encode(item))
        after = history.for_prompt(takes)
        key = (item["type"], item.get("call_id"))
        awaited = any(key == (one["type"], one["call_id"]) for one in map(json.loads, before) if is_stand_in(one))
        if not awaited:
            assert before == after[: len(before)]
        before = after


def is_stand_in(item: Json) -> bool:
    return item["type"] in OUTPUTS and (item.get("output") == "aborted" or item.get("tools") == [])


def first_stand_in(prompt: list[bytes]) -> int | None:
    return next((index for index, item in enumerate(prompt) if is_stand_in(json.loads(item))), None)


STEPS = st.lists(
    st.tuples(st.just("record"), CALLS | ANSWERS | OTHERS)
    | st.tuples(st.just("ask"), TAKES)
    | st.tuples(st.sampled_from(["copy", "legacy"]), st.none())
    | st.tuples(st.just("drop"), st.integers(0, 3))
    | st.tuples(st.just("replace"), HISTORIES),
    max_size=40,
)


@given(STEPS, TAKES)
def test_a_prompt_does_not_depend_on_when_it_was_asked_for(steps: list[tuple[str, Any]], takes: frozenset[str]) -> None:
    history = History()
    for step, what in steps:
        if step == "record":
            history.record(msgspec.json.encode(what))
        elif step == "ask":
            history.for_prompt(what)
            history.used()
        elif step == "copy":
            history = history.copy()
        elif step == "legacy":
            history.compact_without_replacement("s")
        elif step == "drop":
            history.drop_last_user_turns(what)
        else:
            history.replace(map(msgspec.json.encode, what))
    fresh = History()
    fresh.replace(entry.raw for entry in history.entries)

    assert fresh.for_prompt(takes) == history.for_prompt(takes)
    assert fresh.estimate() == history.estimate()
    assert fresh.used() == history.used()


def test_a_prompt_that_was_given_out_is_not_changed_later() -> None:
    history = history_of(user("a"), function_call("c"))
    given_out = history.for_prompt()
    kept = list(given_out)
    history.record(msgspec.json.encode(function_output("c")))
    history.for_prompt().clear()

    assert kept == given_out
    assert [user("a"), function_call("c"), function_output("c")] == prompt_of(history)

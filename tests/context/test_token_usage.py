"""What the server counted, what was added since, and how much of the window is left."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.context.history import History
from commonplace.context.tokens import item_tokens
from commonplace.context.usage import TokenInfo, TokenUsage, percent_left
from commonplace.protocol import items
from generated_rows import check_each
from ledgers import Json, assistant, function_call, function_output, user

ENVIRONMENT = user("<environment_context>here</environment_context>")
MAIL: Json = {
    "type": "agent_message",
    "author": "/a",
    "recipient": "/b",
    "content": [{"type": "input_text", "text": "do it"}],
}

TOOLS: Json = {"type": "additional_tools", "role": "developer", "tools": []}


def sealed(length: int) -> Json:
    return {"type": "reasoning", "summary": [], "encrypted_content": "x" * length}


OPEN_REASONING: Json = {"type": "reasoning", "summary": [], "content": None, "encrypted_content": None}


def history_of(*told: Json) -> History:
    history = History()
    for item in told:
        history.record(msgspec.json.encode(item))
    return history


def cost(*told: Json) -> int:
    return sum(item_tokens(raw, items.view(raw)) for raw in map(msgspec.json.encode, told))


# --- Usage of responses.


def test_usages_add_up_field_by_field_and_the_last_one_stays() -> None:
    history = History()
    history.record_usage(TokenUsage(100, 10, 1, 20, 5, 120), 258_400)
    info = history.record_usage(TokenUsage(200, 100, 2, 30, 6, 230))

    assert (
        TokenInfo(TokenUsage(300, 110, 3, 50, 11, 350), TokenUsage(200, 100, 2, 30, 6, 230), 258_400)
        == info
        == history.info
    )


def test_usage_is_written_as_the_events_of_codex_tell_it() -> None:
    written = {
        "total_token_usage": {
            "input_tokens": 9000,
            "cached_input_tokens": 0,
            "cache_write_input_tokens": 0,
            "output_tokens": 80,
            "reasoning_output_tokens": 40,
            "total_tokens": 9080,
        },
        "last_token_usage": {"input_tokens": 9000, "output_tokens": 80, "total_tokens": 9080},
        "model_context_window": 258400,
    }

    info = msgspec.convert(written, TokenInfo)

    assert TokenUsage(9000, 0, 0, 80, 40, 9080) == info.total_token_usage
    assert TokenUsage(9000, 0, 0, 80, 0, 9080) == info.last_token_usage
    assert written["total_token_usage"] == msgspec.to_builtins(info)["total_token_usage"]


@pytest.mark.parametrize(
    ("before", "last"),
    [
        (None, 1_000),
        (TokenUsage(total_tokens=400), 600),
        (TokenUsage(total_tokens=1_000), 0),
        (TokenUsage(total_tokens=5_000), 0),
    ],
)
def test_a_full_window_counts_as_used_to_the_end(before: TokenUsage | None, last: int) -> None:
    history = History()
    if before is not None:
        history.record_usage(before)

    assert TokenInfo(TokenUsage(total_tokens=1_000), TokenUsage(total_tokens=last), 1_000) == history.mark_full(1_000)


def test_after_a_replacement_the_estimate_takes_the_place_of_the_last_count_and_the_total_stays() -> None:
    history = history_of(user("x" * 400), assistant("y"))
    total = TokenUsage(9_000, 1, 2, 80, 40, 9_080)
    history.record_usage(total, 258_400)
    history.replace([msgspec.json.encode(user("short"))])

    info = history.recompute_usage("x" * 41)

    assert TokenInfo(total, TokenUsage(total_tokens=cost(user("short")) + 11), 258_400) == info == history.info


def test_a_history_that_no_server_counted_can_be_recomputed() -> None:
    history = history_of(user("short"))

    expected = TokenInfo(TokenUsage(), TokenUsage(total_tokens=cost(user("short"))), 1_000)

    assert expected == history.recompute_usage(window=1_000)


RECORDINGS = sorted((Path(__file__).parent.parent / "data").glob("codex_*/*/rollout-*.jsonl"))


def test_every_count_of_the_real_codex_follows_from_the_one_before() -> None:
    """Each is the same told again, one more response, a recount after a compaction, or a window that was full."""
    check_each([(path, path) for path in RECORDINGS], _follow)


def _follow(path: Path) -> None:
    payloads = [line["payload"] for line in map(json.loads, path.read_text("utf-8").splitlines())]
    told = [payload["info"] for payload in payloads if payload.get("type") == "token_count" and payload["info"]]
    counts = [msgspec.convert(info, TokenInfo) for info in told]
    for before, after in pairwise(counts):
        last, window = after.last_token_usage, after.model_context_window or 0
        ways = (
            before,
            before.with_response(last, window),
            before.recomputed(last.total_tokens, window),
            before.full(window),
        )

        assert after in ways


# --- What is in use.


@pytest.mark.parametrize(
    ("told", "counted"),
    [
        ([user("a"), ENVIRONMENT], []),
        ([user("a"), assistant("b")], []),
        ([user("a"), assistant("b"), user("c")], [user("c")]),
        ([user("a"), function_call("1"), function_output("1")], [function_output("1")]),
        ([function_call("1"), function_output("1"), user("c"), ENVIRONMENT, MAIL], None),
        ([user("a"), sealed(5_000), user("b")], [sealed(5_000), user("b")]),
        ([user("a"), {"type": "local_shell_call", "call_id": "c", "status": "completed"}, user("b")], [user("b")]),
        ([user("a"), {"type": "custom_tool_call", "call_id": "c", "name": "n", "input": "i"}], []),
        ([user("a"), {"type": "tool_search_call", "execution": "client"}, user("b")], [user("b")]),
        ([user("a"), {"type": "web_search_call"}, user("b")], [user("b")]),
        ([user("a"), {"type": "image_generation_call", "status": "completed", "result": "A"}, user("b")], [user("b")]),
        ([user("a"), {"type": "compaction", "encrypted_content": "x"}, user("b")], [user("b")]),
        ([user("a"), {"type": "compaction_summary", "encrypted_content": "x"}, user("b")], [user("b")]),
        ([user("a"), {"type": "context_compaction"}, user("b")], [user("b")]),
        ([assistant("a"), TOOLS], None),
    ],
)
def test_what_came_after_the_last_thing_that_the_model_made_is_added(
    told: list[Json], counted: list[Json] | None
) -> None:
    history = history_of(*told)
    history.record_usage(TokenUsage(total_tokens=9_000))

    assert 9_000 + cost(*(told[1:] if counted is None else counted)) == history.used()


@pytest.mark.parametrize(
    ("told", "earlier"),
    [
        ([sealed(2_000), user("a"), sealed(3_000)], [sealed(2_000)]),
        ([user("a"), sealed(2_000), sealed(3_000)], []),
        ([sealed(2_000), sealed(3_000)], []),
        ([sealed(2_000), user("a"), sealed(3_000), user("b"), assistant("c")], [sealed(2_000), sealed(3_000)]),
        ([sealed(2_000), ENVIRONMENT, assistant("c")], []),
        ([sealed(2_000), MAIL, assistant("c")], [sealed(2_000)]),
        ([OPEN_REASONING, user("a"), assistant("c")], []),
    ],
    ids=["one turn back", "this turn", "no turn", "two turns back", "context is no turn", "mail", "not encrypted"],
)
def test_reasoning_of_earlier_turns_is_added(told: list[Json], earlier: list[Json]) -> None:
    history = history_of(*told)
    history.record_usage(TokenUsage(total_tokens=9_000))

    assert 9_000 + cost(*earlier) == history.used()


def test_before_any_answer_nothing_is_counted_but_what_follows_the_model() -> None:
    assert 0 == history_of(user("a")).used()
    assert cost(user("b")) == history_of(assistant("a"), user("b")).used()


ANY_ITEM = st.sampled_from(
    [user("u"), assistant("a"), sealed(2_000), ENVIRONMENT, MAIL, function_output("c"), OPEN_REASONING]
)


@given(st.lists(ANY_ITEM))
def test_sums_that_grow_are_those_made_at_once(told: list[Json]) -> None:
    history = history_of(*told)
    grown = History()
    for entry in history.entries:
        grown.record(entry.raw)
        grown.used()

    assert grown.used() == history.used()
    assert grown.estimate() == history.estimate() == sum(entry.tokens for entry in history.entries)


# --- What is left.


@pytest.mark.parametrize(
    ("used", "window", "percent"),
    [
        (0, 0, 0),
        (0, 12_000, 0),
        (0, 12_001, 100),
        (12_000, 112_000, 100),
        (0, 112_000, 100),
        (12_499, 112_000, 100),
        (12_500, 112_000, 100),
        (12_501, 112_000, 99),
        (13_000, 112_000, 99),
        (62_000, 112_000, 50),
        (111_500, 112_000, 1),
        (111_501, 112_000, 0),
        (112_000, 112_000, 0),
        (999_999, 112_000, 0),
        (-5, 112_000, 100),
    ],
)
def test_the_percentage_left_is_of_what_a_person_can_fill(used: int, window: int, percent: int) -> None:
    assert percent == percent_left(used, window)
    assert percent == TokenInfo(TokenUsage(), TokenUsage(total_tokens=used), window).percent_left


def test_nothing_is_known_of_an_unknown_window() -> None:
    assert TokenInfo(TokenUsage(), TokenUsage(total_tokens=5)).percent_left is None

"""Events: one tolerant view of them all, strict only where a replay depends on a field."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from commonplace.protocol import events
from commonplace.protocol.events import Event, event
from ledgers import Json


def read(payload: Any) -> Event:
    return event(json.dumps(payload).encode())


@pytest.mark.parametrize(
    ("kind", "kinds"),
    [
        ("task_started", events.TURN_STARTED),
        ("turn_started", events.TURN_STARTED),
        ("task_complete", events.TURN_COMPLETE),
        ("turn_complete", events.TURN_COMPLETE),
    ],
)
def test_both_names_of_a_turns_start_and_end_are_known(kind: str, kinds: frozenset[str]) -> None:
    found = read({"type": kind, "turn_id": "t", "model_context_window": None})

    assert found.type in kinds
    assert "t" == found.turn_id


def test_the_fields_that_readers_need_are_named() -> None:
    assert 2 == read({"type": "thread_rolled_back", "num_turns": 2}).num_turns
    assert "hello" == read({"type": "user_message", "message": "hello", "images": []}).message
    counted = read({"type": "token_count", "info": {"total_token_usage": {"total_tokens": 7}}, "rate_limits": None})
    assert counted.info is not None
    assert counted.info.total_token_usage is not None
    assert 7 == counted.info.total_token_usage.total_tokens
    done = read({"type": "item_completed", "turn_id": "t", "item": {"type": "CommandExecution", "exit_code": 1}})
    assert done.item is not None
    assert ("CommandExecution", 1) == (done.item.type, done.item.exit_code)


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "of_the_future", "turn_id": {"deep": 1}},
        {"type": "token_count", "info": "odd"},
        {"type": "token_count", "info": {"total_token_usage": {"total_tokens": "many"}}},
        {"type": "user_message", "message": ["odd"]},
        {"type": "item_completed", "item": {"type": 5}},
    ],
    ids=str,
)
def test_an_event_that_steers_nothing_is_reduced_to_its_kind_when_damaged(payload: Json) -> None:
    assert Event(type=payload["type"]) == read(payload)


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "task_started", "turn_id": 5},
        {"type": "turn_started", "turn_id": 5},
        {"type": "task_complete", "turn_id": 5},
        {"type": "turn_complete", "turn_id": 5},
        {"type": "turn_aborted", "turn_id": 5},
        {"type": "thread_rolled_back", "num_turns": "one"},
        {"type": "thread_rolled_back", "num_turns": 1.5},
        {"type": 5},
        {},
        [],
        "task_started",
    ],
    ids=str,
)
def test_a_damaged_event_that_steers_a_replay_is_an_error(payload: Any) -> None:
    with pytest.raises(msgspec.DecodeError):
        read(payload)


@pytest.mark.parametrize("kind", ["task_started", "task_complete", "turn_aborted"])
@pytest.mark.parametrize("turn_id", [{}, {"turn_id": None}], ids=["missing", "null"])
def test_a_turn_event_may_lack_its_id(kind: str, turn_id: Json) -> None:
    assert read({"type": kind, **turn_id}).turn_id is None

"""When a history is compacted, and what is kept when the provider does it: the spec's tables, one row each."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from commonplace.context import triggers
from commonplace.context.compaction import remote, sizes
from commonplace.context.triggers import ModelLimits, Trigger, WindowUse

BIG = ModelLimits("big", window=258_400, limit=244_800, comp_hash="a")
SMALL = ModelLimits("small", window=121_600, limit=115_200, comp_hash="a")
HASH = Trigger("comp_hash_changed", "pre_turn", by_previous_model=True)
DOWN = Trigger("model_downshift", "pre_turn", by_previous_model=True)
LIMIT = Trigger("context_limit", "pre_turn")


@pytest.mark.parametrize(
    ("used", "current", "previous", "due"),
    [
        (WindowUse(10), BIG, None, []),
        (WindowUse(244_799), BIG, BIG, []),
        (WindowUse(244_800), BIG, BIG, [LIMIT]),
        (WindowUse(258_400), ModelLimits("x", window=258_400), None, [LIMIT]),
        (WindowUse(10), BIG, ModelLimits("big", comp_hash="b"), [HASH]),
        (WindowUse(250_000), BIG, ModelLimits("big", comp_hash="b"), [HASH]),
        (WindowUse(10), BIG, ModelLimits("big", comp_hash=None), []),
        (WindowUse(115_201), SMALL, BIG, [DOWN]),
        (WindowUse(115_200), SMALL, BIG, [LIMIT]),
        (WindowUse(100_000), SMALL, BIG, []),
        (WindowUse(200_000), BIG, SMALL, []),
        (WindowUse(120_000, counted=50), SMALL, BIG, []),
        (WindowUse(121_600, counted=50), SMALL, BIG, [DOWN]),
        (WindowUse(120_000, counted=115_200), SMALL, SMALL, [LIMIT]),
        (WindowUse(10**9), ModelLimits("x"), None, []),
    ],
)
def test_what_is_due_before_a_turn(
    used: WindowUse, current: ModelLimits, previous: ModelLimits | None, due: list[Trigger]
) -> None:
    assert triggers.before_turn(used, current, previous) == due


@pytest.mark.parametrize(
    ("used", "follow_up", "new_window", "is_due"),
    [
        (WindowUse(244_800), True, False, True),
        (WindowUse(244_800), False, False, False),
        (WindowUse(10), True, False, False),
        (WindowUse(10), True, True, True),
        (WindowUse(10), False, True, False),
    ],
)
def test_what_is_due_within_a_turn(used: WindowUse, follow_up: bool, new_window: bool, is_due: bool) -> None:
    found = triggers.after_sampling(used, BIG, follow_up=follow_up, new_window=new_window)
    assert found == (Trigger("context_limit", "mid_turn", injects=True) if is_due else None)


def message(role: str, *texts: str, **more: Any) -> bytes:
    parts = [{"type": "input_text", "text": text} for text in texts]
    return msgspec.json.encode({"type": "message", "role": role, "content": [*parts, *more.get("parts", [])]})


def mail(text: str, author: str = "root", recipient: str = "root/child") -> bytes:
    content = [{"type": "input_text", "text": text}]
    return msgspec.json.encode({"type": "agent_message", "author": author, "recipient": recipient, "content": content})


CALL = b'{"type":"function_call","name":"x","arguments":"{}","call_id":"c"}'
OUTPUT = b'{"type":"function_call_output","call_id":"c","output":"y"}'
COMPACTION = b'{"type":"compaction","encrypted_content":"z"}'
HOOK = '<hook_prompt hook_run_id="1">stop</hook_prompt>'
ENVIRONMENT = "<environment_context>\n</environment_context>"


@pytest.mark.parametrize(
    ("raw", "beside"),
    [
        (message("user", "do it"), True),
        (message("user", ENVIRONMENT), False),
        (message("user", HOOK), True),
        (message("assistant", "done"), False),
        (message("developer", "<permissions instructions>"), False),
        (message("system", "x"), False),
        (mail("please look"), True),
        (mail("x" * 50_000), False),
        (mail("Message Type: FINAL_ANSWER\nx"), False),
        (mail("Message Type: MESSAGE\nx", "root/child", "root"), False),
        (mail("Message Type: MESSAGE\nx"), True),
        (CALL, False),
        (OUTPUT, False),
        (b'{"type":"reasoning","summary":[]}', False),
        (COMPACTION, False),
    ],
)
def test_what_is_kept_when_the_provider_compacts(raw: bytes, beside: bool) -> None:
    assert remote.history_around([raw], COMPACTION) == [*([raw] if beside else []), COMPACTION]


def test_the_newest_messages_stay_within_a_budget_and_the_one_at_the_edge_is_cut() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    old, edge, new = (
        message("user", "a" * 1000),
        message("user", "b" * 400_000, parts=[image]),
        message("user", "c" * 1000),
    )
    kept = remote.history_around([old, edge, new], COMPACTION)
    assert kept[-2:] == [new, COMPACTION]
    assert len(kept) == 3
    cut = json.loads(kept[0])
    assert "tokens truncated" in cut["content"][0]["text"]
    assert cut["content"][1] == image


def test_outputs_at_the_end_are_left_out_until_the_request_fits() -> None:
    outputs = [
        msgspec.json.encode({"type": "function_call_output", "call_id": f"c{n}", "output": "x" * 4_000})
        for n in range(4)
    ]
    history = [message("user", "go"), CALL, *outputs]
    found = remote.fitted_history(history, window=2_400)
    assert sizes.total(found) <= 2_400
    assert [remote.LEFT_OUT.encode() in raw for raw in found[2:]] == [False, False, True, True]
    assert remote.fitted_history(history, window=10**6) == history
    assert remote.fitted_history([message("user", "x" * 10_000)], window=10) == [message("user", "x" * 10_000)]

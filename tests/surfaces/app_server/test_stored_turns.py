"""The turns of a stored thread as clients read them, from files that Codex wrote and from lines of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import open_ledger
from commonplace.sessions import turn_list
from commonplace.surfaces.app_server import items, thread_views
from commonplace.surfaces.app_server.item_shapes import CollabAgentState, UserMessageItem

SAMPLES = sorted((Path(__file__).parents[2] / "data" / "codex_samples").glob("*.jsonl"))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem[-8:])
def test_what_a_person_said_is_shown_without_the_context_that_was_injected(sample: Path, tmp_path: Path) -> None:
    found = turn_list.turns(open_ledger(sample, [sample.parent]), BlobStore(tmp_path))

    shown = [thread_views.turn(turn, None) for turn in found]
    said = [item for turn in shown for item in turn.items if isinstance(item, UserMessageItem)]
    assert said
    assert not [part for item in said for part in item.content if part["text"].startswith("<")]
    assert {turn.status for turn in shown} <= {"completed", "interrupted", "failed"}
    assert len({turn.id for turn in shown}) == len(shown)


@pytest.mark.parametrize(
    ("item", "wanted"),
    [
        ({"type": "Reasoning", "id": "r", "summary_text": ["a"], "raw_content": []}, {"summary": ["a"], "content": []}),
        (
            {
                "type": "FileChange",
                "id": "f",
                "changes": {"/a": {"type": "add", "content": "x\n"}},
                "status": "declined",
            },
            {"changes": [{"path": "/a", "kind": {"type": "add"}, "diff": "x\n"}], "status": "declined"},
        ),
        (
            {
                "type": "McpToolCall",
                "id": "m",
                "server": "s",
                "tool": "t",
                "status": "declined",
                "result": {"isError": 1},
            },
            {"status": "failed", "result": {"content": [], "isError": 1}},
        ),
        (
            {
                "type": "DynamicToolCall",
                "id": "d",
                "tool": "t",
                "arguments": "{",
                "status": "completed",
                "success": True,
            },
            {"arguments": {"input": "{"}, "success": True},
        ),
        (
            {"type": "WebSearch", "id": "w", "query": "q", "action": {"type": "open_page", "url": "u"}},
            {"action": {"type": "openPage", "url": "u"}},
        ),
        (
            {
                "type": "CollabAgentToolCall",
                "id": "a",
                "tool": "wait",
                "status": "failed",
                "sender_thread_id": "p",
                "receiver_thread_ids": ["x", "y"],
                "agents_states": {"x": {"errored": "No."}, "y": "not_found"},
            },
            {
                "tool": "wait",
                "status": "failed",
                "agents_states": {
                    "x": CollabAgentState(status="errored", message="No."),
                    "y": CollabAgentState(status="notFound"),
                },
            },
        ),
        (
            {"type": "SubAgentActivity", "id": "s", "kind": "started", "agent_thread_id": "x", "agent_path": "/root/a"},
            {"kind": "started", "agent_thread_id": "x", "agent_path": "/root/a"},
        ),
        (
            {"type": "UserMessage", "id": "u", "content": [{"type": "image", "image_url": "data:x"}]},
            {"content": [{"type": "image", "url": "data:x", "detail": None}]},
        ),
        (
            {
                "type": "UserMessage",
                "id": "u",
                "content": [  # as Codex writes it
                    {"type": "local_image", "path": "/a.png", "detail": "low"},
                    {"type": "audio", "audio_url": "data:x"},
                    {"type": "local_audio", "path": "/a.wav"},
                    {"type": "skill", "name": "s", "path": "/SKILL.md"},
                    {"type": "mention", "name": "m", "path": "app://m"},
                    {"type": "text", "text": "hi", "text_elements": [{"byte_range": {"start": 0, "end": 2}}]},
                ],
            },
            {
                "content": [
                    {"type": "localImage", "path": "/a.png", "detail": "low"},
                    {"type": "audio", "url": "data:x"},
                    {"type": "localAudio", "path": "/a.wav"},
                    {"type": "skill", "name": "s", "path": "/SKILL.md"},
                    {"type": "mention", "name": "m", "path": "app://m"},
                    {
                        "type": "text",
                        "text": "hi",
                        "text_elements": [{"byteRange": {"start": 0, "end": 2}, "placeholder": None}],
                    },
                ]
            },
        ),
    ],
)
def test_each_kind_of_item_has_its_shape(item: dict[str, Any], wanted: dict[str, Any]) -> None:
    found = items.stored(item)

    assert found is not None
    assert {name: getattr(found, name) for name in wanted} == wanted


@pytest.mark.parametrize(
    "item", [{}, {"type": "Nothing", "id": "x"}, {"type": "UserMessage"}, {"type": "Plan", "id": "x"}]
)
def test_what_is_no_item_is_left_out(item: dict[str, Any]) -> None:
    assert items.all_stored([item]) == []

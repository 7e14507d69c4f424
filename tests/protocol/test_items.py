"""Views of response items: every kind, what each needs, and what passes through untouched."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from commonplace.protocol import items
from ledgers import Json

TEXT = [{"type": "input_text", "text": "t"}]

EXAMPLES: list[tuple[type[Any], Json, set[str]]] = [
    (items.Message, {"type": "message", "role": "user", "content": TEXT, "phase": "commentary"}, {"role", "content"}),
    (
        items.AgentMessage,
        {"type": "agent_message", "author": "/root", "recipient": "/root/a", "content": TEXT},
        {"author", "recipient", "content"},
    ),
    (
        items.Reasoning,
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "x"},
        set(),
    ),
    (
        items.LocalShellCall,
        {"type": "local_shell_call", "call_id": "c", "status": "completed", "action": {"type": "exec"}},
        set(),
    ),
    (
        items.FunctionCall,
        {"type": "function_call", "name": "f", "namespace": "n", "arguments": "{}", "call_id": "c"},
        {"name", "arguments", "call_id"},
    ),
    (
        items.FunctionCallOutput,
        {"type": "function_call_output", "call_id": "c", "name": "f", "output": "o"},
        {"output"},
    ),
    (items.ToolSearchCall, {"type": "tool_search_call", "call_id": "c", "execution": "client"}, {"execution"}),
    (
        items.ToolSearchOutput,
        {"type": "tool_search_output", "call_id": "c", "status": "completed", "execution": "server"},
        {"status", "execution"},
    ),
    (
        items.CustomToolCall,
        {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "i", "status": "completed"},
        {"call_id", "name", "input"},
    ),
    (
        items.CustomToolCallOutput,
        {"type": "custom_tool_call_output", "call_id": "c", "output": TEXT},
        {"call_id", "output"},
    ),
    (items.WebSearchCall, {"type": "web_search_call", "status": "completed", "action": {"type": "search"}}, set()),
    (
        items.ImageGenerationCall,
        {"type": "image_generation_call", "status": "completed", "result": "AAAA"},
        {"status", "result"},
    ),
    (items.Compaction, {"type": "compaction", "encrypted_content": "x"}, {"encrypted_content"}),
    (items.CompactionSummary, {"type": "compaction_summary", "encrypted_content": "x"}, {"encrypted_content"}),
    (items.ContextCompaction, {"type": "context_compaction", "encrypted_content": "x"}, set()),
]
KINDS = [kind.__name__ for kind, _, _ in EXAMPLES]
NEED_NAMES = [f"{kind.__name__}-{name}" for kind, _, needed in EXAMPLES for name in sorted(needed)]
NEEDS = [(example, name) for _, example, needed in EXAMPLES for name in sorted(needed)]


def view(item: Json) -> Any:
    return items.view(json.dumps(item).encode())


@pytest.mark.parametrize(("kind", "item"), [row[:2] for row in EXAMPLES], ids=KINDS)
def test_a_view_names_the_fields_of_its_kind(kind: type[Any], item: Json) -> None:
    noted = {items.PASSTHROUGH: {"turn_id": "t", "create_time": 1.5}}

    found = view({**item, "id": "i", **noted, "of_the_future": {"x": [1]}})

    assert kind is type(found)
    assert ("i", "t") == (found.id, found.turn_id)
    named = msgspec.json.decode(msgspec.json.encode(found))
    for name, value in item.items():
        assert value == (texts_of(named[name]) if isinstance(value, list) else named[name])


def texts_of(parts: list[Json]) -> list[Json]:
    """Parts as far as they say something: a view names more fields than one part has."""
    return [{key: value for key, value in part.items() if value is not None} for part in parts]


@pytest.mark.parametrize(("item", "name"), NEEDS, ids=NEED_NAMES)
def test_an_item_without_a_field_that_its_kind_needs_is_damaged(item: Json, name: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        view({key: value for key, value in item.items() if key != name})


@pytest.mark.parametrize(("item", "needed"), [row[1:] for row in EXAMPLES], ids=KINDS)
def test_an_item_needs_no_more_than_that(item: Json, needed: set[str]) -> None:
    found = view({key: value for key, value in item.items() if key in needed | {"type"}})

    assert (None, None) == (found.id, found.turn_id)


@pytest.mark.parametrize(
    "item",
    [
        {"type": "message", "role": "user", "content": "text"},
        {"type": "message", "role": "user", "content": ["text"]},
        {"type": "message", "role": 5, "content": []},
        {"type": "message", "role": "user", "content": [{"text": "no type"}]},
        {"type": "function_call", "name": "f", "arguments": {}, "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": {"text": "x"}},
        {"type": "message", "role": "user", "content": [], "id": 5},
        {"type": 5},
        {"role": "user"},
        [],
        "text",
    ],
    ids=str,
)
def test_fields_of_another_type_are_damage(item: Any) -> None:
    with pytest.raises(msgspec.DecodeError):
        view(item)


@pytest.mark.parametrize("kind", ["compaction_trigger", "additional_tools", "ghost_snapshot", "of_the_future", ""])
def test_a_kind_that_no_view_describes_is_other(kind: str) -> None:
    found = view({"type": kind, "content": 5})

    assert isinstance(found, items.Other)
    assert (kind, None, None) == (found.type, found.id, found.turn_id)


def test_a_history_holds_every_known_kind_and_additional_tools() -> None:
    assert {*(example["type"] for _, example, _ in EXAMPLES), "additional_tools"} == items.HISTORY_KINDS


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([], ""),
        (TEXT, "t"),
        ([*TEXT, {"type": "input_text", "text": ""}, *TEXT], "t\nt"),
        ([{"type": "input_image", "image_url": "data:image/png;base64,AA"}], ""),
        ([{"type": "input_audio", "audio_url": "data:audio/wav;base64,AA"}, *TEXT], "t"),
    ],
)
def test_the_text_of_a_message_is_its_texts_on_lines_of_their_own(content: list[Json], text: str) -> None:
    assert text == view({"type": "message", "role": "user", "content": content}).text()


# --- What a model gets.

NOTE = b'"internal_chat_message_metadata_passthrough":{"turn_id":"t","create_time":1.0}'


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"type":"message","id":"i","role":"user"}', b'{"type":"message","id":"i","role":"user"}'),
        (b'{ "z" : 1.50, "a":"\\u00e9" , "type":"x"}', b'{ "z" : 1.50, "a":"\\u00e9" , "type":"x"}'),
        (b'{"type":"x",' + NOTE + b',"b":{"c": [1.0, 2]}}', b'{"type":"x","b":{"c": [1.0, 2]}}'),
        (b"{" + NOTE + b"}", b"{}"),
        (b'{"type":"x","id":""}', b'{"type":"x"}'),
        (b'{"type": "x", "id" : "", "a": 1}', b'{"type":"x","a":1}'),
        (b'{"id":"","b":2,' + NOTE + b',"a":1}', b'{"b":2,"a":1}'),
        (b'{"type":"x","id":null}', b'{"type":"x"}'),
        (b'{"type":"x", "id": null, "status":null}', b'{"type":"x","status":null}'),
        (b'{"type":"x","call_id":""}', b'{"type":"x","call_id":""}'),
        (b'{"type":"x","content":[{"id":""}]}', b'{"type":"x","content":[{"id":""}]}'),
        (b'{"type":"x","content":[{' + NOTE + b"}]}", b'{"type":"x","content":[{' + NOTE + b"}]}"),
    ],
)
def test_only_bookkeeping_and_an_id_that_is_empty_or_null_are_taken_off(raw: bytes, expected: bytes) -> None:
    assert expected == items.wire(raw)
    assert expected == items.wire(msgspec.Raw(raw))


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b'{"role":"user","content":[],"type":"message"}', items.Message),
        (b'{"type":"message","type":"foo","role":"user","content":[]}', items.Other),
        (b'{"type":"foo","role":1}', items.Other),
        (b'{"type":"foo","type":"message","role":"user","content":[]}', None),
        (b'{"type":"message","role":"user"}', None),
        (b'{"type":1}', None),
        (b"{}", None),
    ],
)
def test_an_item_is_what_its_last_type_says(raw: bytes, kind: type | None) -> None:
    if kind is None:
        with pytest.raises(msgspec.DecodeError):
            items.view(raw)
    else:
        assert type(items.view(raw)) is kind

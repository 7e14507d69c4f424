"""Items on their way out and back: verbatim where the API has items, as a dialogue where it has messages."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from dialects import CHAT, MESSAGES, RESPONSES, SHELL, Dialect, Said, ask, collected, done, framed
from hypothesis import given
from hypothesis import strategies as st
from scripted_http import Json, Reply, serve, whole

from commonplace.errors import BadInput, ContextTooLong, RequestRefused, StreamBroken
from commonplace.models.anthropic import CACHED, Messages
from commonplace.models.anthropic_stream import MessagesReader
from commonplace.models.base import (
    Completed,
    CustomTool,
    Event,
    FunctionTool,
    HostedTool,
    ItemAdded,
    ItemDone,
    ReasoningDelta,
    Request,
    Usage,
)
from commonplace.models.catalog import ModelInfo
from commonplace.models.chat import Chat
from commonplace.models.chat_stream import ChatReader
from commonplace.models.responses import Responses, ResponsesReader
from commonplace.models.sse import ServerEvent
from commonplace.models.tool_names import FlatToolNames
from commonplace.protocol import items


def raw(*values: Json) -> tuple[bytes, ...]:
    return tuple(msgspec.json.encode(value) for value in values)


def user(text: str) -> Json:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def developer(text: str) -> Json:
    return {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]}


def said(text: str) -> Json:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def called(call_id: str, name: str = "shell", arguments: str = "{}") -> Json:
    return {"type": "function_call", "name": name, "arguments": arguments, "call_id": call_id}


def gave(call_id: str, output: Any = "ok") -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def chat(*values: Json, **changes: Any) -> list[Json]:
    return json.loads(Chat().body(ask(input=raw(*values), **changes)))["messages"]


def messages(*values: Json, **changes: Any) -> Json:
    return json.loads(Messages().body(ask(input=raw(*values), **changes)))


def read(reader: Any, frames: list[tuple[str, Json]]) -> list[Event]:
    found: list[Event] = []
    for name, data in frames:
        found.extend(reader.feed(ServerEvent(name, msgspec.json.encode(data))))
    return [*found, *(() if reader.finished else reader.end())]


# --- Responses

SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc_", min_size=1), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.sampled_from(["message", "reasoning", "web_search_call", "future_item"]),
    st.dictionaries(st.text("xyz", min_size=1), VALUES),
)
def test_an_item_is_given_out_and_sent_back_byte_for_byte(kind: str, fields: Json) -> None:
    spaced = json.dumps({"type": kind, "id": "it_1", **fields}, separators=(" ,  ", " :\t")).encode()
    event = b'{"type":"response.output_item.done","item": ' + spaced + b" }"
    [out] = ResponsesReader().feed(ServerEvent("x", event))
    body = Responses().body(Request(model="m", input=(spaced,)))

    assert ItemDone(spaced) == out
    assert spaced in body


async def test_what_a_server_said_comes_back_to_it_unchanged() -> None:
    first = Said("Größe: 日本", "hm", (("shell", '{"command": "ls"}', "call_1"),))
    async with (
        serve(RESPONSES.reply(first), RESPONSES.reply(Said("x"))) as server,
        RESPONSES.model(server.base_url) as model,
    ):
        events = await collected(model.stream(ask()))
        kept = tuple(event.item for event in events if isinstance(event, ItemDone))
        await collected(model.stream(ask(input=ask().input + kept)))

    frames = [data for _, data in RESPONSES.frames(first) if isinstance(data, dict)]
    assert [data["item"] for data in frames if data["type"].endswith("item.done")] == server.seen[1].body["input"][1:]


def test_a_responses_request_has_what_was_asked_for_and_nothing_more() -> None:
    plain = json.loads(Responses().body(ask()))
    full = json.loads(
        Responses().body(
            ask(
                effort="none",
                summary="auto",
                verbosity="low",
                prompt_cache_key="thread-1",
                service_tier="flex",
                metadata={"turn": "7"},
                parallel_tool_calls=False,
                tools=(
                    SHELL,
                    FunctionTool("read", "Read.", {}, namespace="memories"),
                    CustomTool("patch", "Patch."),
                    FunctionTool("list", "List.", {}, namespace="memories"),
                    HostedTool(b'{"type":"web_search","external_web_access":true}'),
                ),
            )
        )
    )

    expected = {"model", "input", "tools", "tool_choice", "parallel_tool_calls", "store", "stream"}
    assert expected == set(plain)
    assert (False, True) == (plain["store"], plain["stream"])
    assert {"effort": "none", "summary": "auto"} == full["reasoning"]
    assert ["reasoning.encrypted_content"] == full["include"]
    assert ("thread-1", "flex", {"turn": "7"}) == (
        full["prompt_cache_key"],
        full["service_tier"],
        full["client_metadata"],
    )
    assert ["function", "namespace", "custom", "web_search"] == [tool["type"] for tool in full["tools"]]
    assert ["read", "list"] == [tool["name"] for tool in full["tools"][1]["tools"]]


def test_bookkeeping_and_the_reasoning_of_other_servers_stay_here() -> None:
    noted = {**user("hi"), "internal_chat_message_metadata_passthrough": {"turn_id": "t"}}
    foreign: Json = {"type": "reasoning", "summary": [], "encrypted_content": "commonplace:anthropic:{}"}
    quoting = user('It says "commonplace:anthropic:{}".')
    body = json.loads(Responses().body(ask(input=raw(noted, foreign, quoting))))

    assert [user("hi"), quoting] == body["input"]


def compacting(*kinds: str) -> bytes:
    done_events: list[tuple[str, Json | str]] = [
        ("", {"type": "response.output_item.done", "item": {"type": kind, "id": f"i{n}", "encrypted_content": "E"}})
        for n, kind in enumerate(kinds)
    ]
    return framed([*done_events, ("", {"type": "response.completed", "response": {"id": "r"}})])


async def test_a_remote_compaction_gives_one_compaction_item() -> None:
    request = ask(input=(*ask().input, b'{"type":"compaction_trigger"}'))
    reply = Reply(whole(compacting("reasoning", "compaction")))
    async with serve(reply) as server, RESPONSES.model(server.base_url) as model:
        events = await collected(model.stream(request))

    assert {"type": "compaction_trigger"} == server.seen[0].body["input"][-1]
    assert ["compaction"] == [item["type"] for item in done(events)]


@pytest.mark.parametrize("kinds", [(), ("message",), ("compaction", "compaction")])
async def test_a_remote_compaction_with_another_number_of_items_is_not_tried_again(kinds: tuple[str, ...]) -> None:
    request = ask(input=(*ask().input, b'{"type":"compaction_trigger"}'))
    reply = Reply(whole(compacting(*kinds)))
    async with serve(reply) as server, RESPONSES.model(server.base_url) as model:
        with pytest.raises(RequestRefused, match=f"sent {kinds.count('compaction')} summaries"):
            await collected(model.stream(request))


@pytest.mark.parametrize(
    ("reason", "stop"), [("max_output_tokens", "length"), ("content_filter", "refused"), ("new", "length")]
)
def test_an_answer_that_was_cut_off_says_why(reason: str, stop: str) -> None:
    response = {"id": "r", "end_turn": False, "incomplete_details": {"reason": reason}}
    [event] = read(ResponsesReader(), [("", {"type": "response.incomplete", "response": response})])

    assert isinstance(event, Completed)
    assert (stop, False) == (event.stop, event.end_turn)


def test_parts_of_a_summary_are_kept_apart() -> None:
    def delta(text: str) -> tuple[str, Json]:
        return "", {"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "delta": text}

    def part(index: int) -> tuple[str, Json]:
        return "", {"type": "response.reasoning_summary_part.added", "item_id": "rs_1", "summary_index": index}

    events = read(ResponsesReader(), [part(0), delta("one"), part(1), delta("two")])

    assert "one\n\ntwo" == "".join(event.text for event in events if isinstance(event, ReasoningDelta))


# --- The dialogue


def test_calls_and_results_stand_together_whatever_was_recorded_in_between() -> None:
    history = (user("go"), called("a"), developer("note"), called("b"), gave("b"), gave("a"), user("more"))

    assert ["user", "assistant", "tool", "tool", "user"] == [message["role"] for message in chat(*history)]
    assert "note\n\nmore" == chat(*history)[-1]["content"]
    blocks = messages(*history)["messages"]
    assert ["user", "assistant", "user"] == [message["role"] for message in blocks]
    assert ["tool_result", "tool_result", "text", "text"] == [block["type"] for block in blocks[2]["content"]]


def test_a_call_without_a_result_and_a_result_without_a_call_become_well_formed() -> None:
    history = (user("go"), called("a"), said("never mind"), user("next"), called("b"), user("stop"), gave("zzz"))
    found = messages(*history)["messages"]
    uses = [b["id"] for m in found for b in m["content"] if b["type"] == "tool_use"]
    results = [b["tool_use_id"] for m in found for b in m["content"] if b["type"] == "tool_result"]

    assert ["a", "b"] == uses == results
    assert "outside of a call" in json.dumps(found)


KINDS: list[Callable[[int], Json]] = [
    lambda n: user(f"u{n}"),
    lambda n: developer(f"d{n}"),
    lambda n: said(f"s{n}"),
    lambda n: called(f"c{n}"),
    lambda n: gave(f"c{max(n - 1, 0)}"),
    lambda n: gave(f"c{max(n - 2, 0)}"),
    lambda n: {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}], "encrypted_content": "gAAA"},
    lambda n: {"type": "custom_tool_call", "call_id": f"c{n}", "name": "patch", "input": "x"},
    lambda n: {
        "type": "custom_tool_call_output",
        "call_id": f"c{n - 1}",
        "output": [{"type": "input_text", "text": "y"}],
    },
    lambda n: {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}},
    lambda n: {"type": "compaction", "encrypted_content": "E"},
    lambda n: {"type": "something_new"},
]


@given(st.lists(st.integers(0, len(KINDS) - 1), max_size=14))
def test_any_history_becomes_a_dialogue_that_servers_accept(picks: list[int]) -> None:
    history = [KINDS[pick](n) for n, pick in enumerate(picks)]
    found = messages(*history)["messages"]
    roles = [message["role"] for message in found]

    assert "user" == roles[0]
    assert all(one != two for one, two in itertools.pairwise(roles))
    nothing: Json = {"content": []}
    for message, following in zip(found, [*found[1:], nothing], strict=True):
        assert message["content"]
        uses = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        answered = [b["tool_use_id"] for b in following["content"] if b["type"] == "tool_result"]
        assert sorted(uses) == sorted(answered)
    spoken = chat(*history)
    ids = [call["id"] for message in spoken for call in message.get("tool_calls", [])]
    assert sorted(ids) == sorted(message["tool_call_id"] for message in spoken if message["role"] == "tool")


def test_what_is_no_item_is_refused_with_its_place() -> None:
    with pytest.raises(BadInput, match="Item 2"):
        Chat().body(ask(input=(*ask().input, b'{"type":"message"}')))


def test_every_kind_of_history_has_a_place_in_a_dialogue() -> None:
    examples: dict[str, Json] = {
        "agent_message": {"author": "a", "recipient": "b", "content": [{"type": "input_text", "text": "mail"}]},
        "local_shell_call": {"call_id": "l", "status": "completed", "action": {"type": "exec", "command": ["ls"]}},
        "tool_search_call": {"call_id": "t", "execution": "client", "arguments": {"query": "q"}},
        "tool_search_output": {"call_id": "t", "status": "completed", "execution": "client", "tools": [{"a": 1}]},
        "image_generation_call": {"status": "completed", "result": "aGk="},
        "compaction": {"encrypted_content": "E"},
        "compaction_summary": {"encrypted_content": "E"},
        "context_compaction": {},
        "web_search_call": {"status": "completed"},
    }
    for kind, fields in examples.items():
        assert kind in items.KNOWN_KINDS
        assert chat(user("u"), {"type": kind, **fields})[0]["role"] == "user"
        assert 1 < len(json.dumps(chat({"type": kind, **fields})))


# --- Chat Completions


def test_pictures_in_a_tool_s_result_follow_it_in_a_user_message() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}
    found = chat(user("look"), called("a", "view_image"), gave("a", [picture]))

    assert ["user", "assistant", "tool", "user"] == [message["role"] for message in found]
    assert [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}] == found[-1]["content"]


def test_reasoning_goes_back_within_its_turn_only() -> None:
    thought = {
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}],
        "encrypted_content": "commonplace:chat:",
    }
    history = (user("go"), thought, called("a"), gave("a"))

    assert "hm" == chat(*history)[1]["reasoning_content"]
    assert "reasoning_content" not in chat(*history, said("done"), user("next"))[1]
    assert "reasoning_content" not in chat(user("go"), {**thought, "encrypted_content": "gAAA"}, called("a"))[1]


def test_namespaces_become_flat_names_and_come_back() -> None:
    tools = (FunctionTool("read", "Read.", {"type": "object"}, namespace="memories"),)
    body = json.loads(Chat().body(ask(tools=tools)))
    item = FlatToolNames(tools).call("memories__read", "{}", "c", "fc_1")

    assert "memories__read" == body["tools"][0]["function"]["name"]
    assert ("read", "memories") == (item["name"], item["namespace"])
    assert "memories__read" == chat(user("u"), {**item, "id": "x"})[1]["tool_calls"][0]["function"]["name"]


@pytest.mark.parametrize("dialect", [CHAT, MESSAGES], ids=lambda dialect: dialect.name)
async def test_a_tool_with_free_text_comes_back_as_a_custom_call(dialect: Dialect) -> None:
    patch = CustomTool("apply_patch", "Change files.", {"type": "grammar", "syntax": "lark", "definition": "start: X"})
    said = Said(calls=(("apply_patch", '{"input":"*** Begin\\n+é"}', "call_1"),))
    async with serve(dialect.reply(said)) as server, dialect.model(server.base_url) as model:
        [item] = done(await collected(model.stream(ask(tools=(patch,)))))

    assert ("custom_tool_call", "apply_patch", "*** Begin\n+é") == (item["type"], item["name"], item["input"])
    assert item["id"].startswith("ctc_")
    assert "start: X" in json.dumps(server.seen[0].body["tools"])


def chunk(delta: Json, finish: str | None = None, **more: Any) -> tuple[str, Json]:
    return "", {"id": "r", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def chat_reader(*tools: FunctionTool) -> ChatReader:
    return ChatReader(FlatToolNames(tools), lambda prefix: f"{prefix}_x")


@pytest.mark.parametrize(
    "calls",
    [
        [
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}},
            {"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}},
        ],
        [
            {"id": "a", "function": {"name": "f", "arguments": {}}},
            {"id": "b", "function": {"name": "g", "arguments": {}}},
        ],
        [{"function": {"name": "f", "arguments": "{}"}}, {"function": {"name": "g", "arguments": "{}"}}],
        [{"index": 0, "id": "", "function": {"name": "f"}}, {"index": 1, "id": None, "function": {"name": "g"}}],
    ],
    ids=["same index", "no index, objects", "no index, no id", "no id, no arguments"],
)
def test_whole_calls_arrive_in_the_ways_of_many_servers(calls: list[Json]) -> None:
    events = read(chat_reader(), [chunk({"tool_calls": [call]}) for call in calls] + [chunk({}, "stop")])

    assert [("f", "{}"), ("g", "{}")] == [(item["name"], item["arguments"]) for item in done(events)]
    assert all(item["call_id"] for item in done(events))
    assert Completed("r", None, "tools") == events[-1]


def test_a_name_that_a_server_repeats_is_one_call() -> None:
    pieces = ['{"a"', ":1", "}"]
    frames = [
        chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": p}}]}) for p in pieces
    ]

    [item] = done(read(chat_reader(), [*frames, chunk({}, "tool_calls")]))
    assert ("f", '{"a":1}') == (item["name"], item["arguments"])


def test_usage_may_stand_in_the_last_chunk_with_choices() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1}}
    events = read(chat_reader(), [chunk({"content": "hi"}), chunk({}, "length", usage=usage)])

    assert [Usage(5, 0, 2, 1, 7), Completed("r", None, "length")] == events[-2:]


def test_the_newer_name_of_reasoning_is_read_too() -> None:
    events = read(chat_reader(), [chunk({"reasoning": "hm"}), chunk({"content": "hi"}, "stop")])

    assert ["reasoning", "message"] == [item["type"] for item in done(events)]
    assert "hm" == done(events)[0]["content"][0]["text"]


def test_a_chat_request_is_small_by_default() -> None:
    assert {"model", "messages", "stream", "stream_options"} == set(json.loads(Chat().body(ask())))


# --- Messages


def test_thinking_goes_back_unchanged_before_what_followed_it() -> None:
    blocks = [
        {"type": "thinking", "thinking": "größe\n", "signature": "c2ln", "new_field": {"z": 1, "a": [2]}},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
    ]
    reader = MessagesReader(FlatToolNames((SHELL,)), lambda prefix: f"{prefix}_x", "m-1")
    frames: list[tuple[str, Json]] = []
    for index, block in enumerate(
        [*blocks, {"type": "tool_use", "id": "a", "name": "shell", "input": {"command": "ls"}}]
    ):
        frames.append(("", {"type": "content_block_start", "index": index, "content_block": block}))
        frames.append(("", {"type": "content_block_stop", "index": index}))
    kept = [event.item for event in read(reader, frames) if isinstance(event, ItemDone)]
    history = (*ask().input, *kept, *raw(gave("a")))
    body = json.loads(Messages().body(ask(input=history)))
    other = json.loads(Messages().body(ask(input=history, model="m-2")))

    [assistant] = [message for message in body["messages"] if message["role"] == "assistant"]
    assert ["tool_use"] == [block["type"] for block in other["messages"][1]["content"]]
    assert blocks == assistant["content"][:2]
    assert {"command": "ls"} == assistant["content"][2]["input"]


def test_a_model_is_told_to_think_in_the_way_that_it_understands() -> None:
    def body(model: str, **changes: Any) -> Json:
        return json.loads(Messages().body(ask(model=model, **changes)))

    adaptive = body("claude-opus-5-5", effort="xhigh", summary="auto")
    budget = body("claude-haiku-4-5-20251001", effort="medium")

    assert {"type": "adaptive", "display": "summarized"} == adaptive["thinking"]
    assert {"effort": "xhigh"} == adaptive["output_config"]
    assert {"type": "enabled", "budget_tokens": 10_000} == budget["thinking"]
    assert budget["thinking"]["budget_tokens"] < budget["max_tokens"]
    assert "thinking" not in body("claude-opus-5-5")
    assert "thinking" not in body("claude-opus-5-5", effort="none")
    assert 128_000 == adaptive["max_tokens"]
    assert 7 == body("claude-opus-5-5", max_output_tokens=7)["max_tokens"]


def test_breakpoints_stand_at_the_system_and_the_last_two_user_turns() -> None:
    history = (user("1"), said("a"), user("2"), said("b"), called("x"), gave("x"))
    body = messages(*history, instructions="I.", tools=(SHELL,))
    marked = [
        (number, block["type"])
        for number, message in enumerate(body["messages"])
        for block in message["content"]
        if "cache_control" in block
    ]

    assert CACHED == body["system"][-1]["cache_control"]
    assert [(2, "text"), (4, "tool_result")] == marked


def test_pictures_are_sent_by_value_or_by_address() -> None:
    parts = [
        {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
        {"type": "input_image", "image_url": "https://example.org/a.png"},
    ]
    content = messages({"type": "message", "role": "user", "content": parts})["messages"][0]["content"]

    assert {"type": "base64", "media_type": "image/png", "data": "AA=="} == content[0]["source"]
    assert {"type": "url", "url": "https://example.org/a.png"} == content[1]["source"]


def test_arguments_that_are_no_object_still_make_a_request() -> None:
    found = messages(user("go"), called("a", arguments='{"cut'), gave("a"), called("b", arguments=""), gave("b"))
    inputs = [b["input"] for m in found["messages"] for b in m["content"] if b["type"] == "tool_use"]

    assert [{"unparsed": '{"cut'}, {}] == inputs


@pytest.mark.parametrize(
    ("reason", "stop", "end_turn"),
    [
        ("end_turn", "end", None),
        ("tool_use", "tools", None),
        ("max_tokens", "length", None),
        ("refusal", "refused", None),
        ("pause_turn", "paused", False),
        ("something_new", "end", None),
    ],
)
def test_reasons_to_stop_are_told(reason: str, stop: str, end_turn: bool | None) -> None:
    frames: list[tuple[str, Json]] = [
        ("", {"type": "message_start", "message": {"id": "m"}}),
        ("", {"type": "message_delta", "delta": {"stop_reason": reason}}),
        ("", {"type": "message_stop"}),
    ]
    [event] = read(MessagesReader(FlatToolNames(()), str), frames)

    assert isinstance(event, Completed)
    assert (stop, end_turn) == (event.stop, event.end_turn)


async def test_a_window_that_fills_up_in_the_answer_is_a_context_that_is_too_long() -> None:
    spoken = MESSAGES.spoken(Said("hello")).replace(b'"end_turn"', b'"model_context_window_exceeded"')
    async with serve(Reply(whole(spoken))) as server, MESSAGES.model(server.base_url) as model:
        with pytest.raises(ContextTooLong):
            await collected(model.stream(ask()))


def test_a_block_that_was_never_begun_is_no_answer() -> None:
    delta = {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "x"}}
    with pytest.raises(msgspec.DecodeError):
        read(MessagesReader(FlatToolNames(()), str), [("", delta)])


def test_a_search_that_the_server_ran_is_an_item() -> None:
    block: Json = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    query = {"type": "input_json_delta", "partial_json": '{"query":"q"}'}
    frames: list[tuple[str, Json]] = [
        ("", {"type": "content_block_start", "index": 0, "content_block": block}),
        ("", {"type": "content_block_delta", "index": 0, "delta": query}),
        ("", {"type": "content_block_stop", "index": 0}),
    ]
    [item] = done(read(MessagesReader(FlatToolNames(()), str), frames))

    assert {"type": "search", "query": "q"} == item["action"]


def test_a_provider_s_own_row_decides_about_an_unknown_model() -> None:
    body = Messages(lambda slug: ModelInfo(window=1, max_output=99, thinking="budget")).body(ask(effort="high"))

    assert (99, 98) == (json.loads(body)["max_tokens"], json.loads(body)["thinking"]["budget_tokens"])


async def test_an_answer_without_its_end_mark_is_broken_even_if_all_its_text_is_there() -> None:
    frames = framed(CHAT.frames(Said("hello", usage=None))[:-2])
    async with serve(Reply(whole(frames))) as server, CHAT.model(server.base_url) as model:
        with pytest.raises(StreamBroken):
            await collected(model.stream(ask()))


def test_an_item_is_added_without_its_text() -> None:
    events = read(chat_reader(), [chunk({"content": "hi"}, "stop")])
    added = next(event for event in events if isinstance(event, ItemAdded))

    assert [] == msgspec.json.decode(added.item)["content"]

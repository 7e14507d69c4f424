"""All three APIs over real sockets, through the same bodies: text, calls, reasoning, structured output, usage."""

from __future__ import annotations

import msgspec
import pytest
from dialects import ALL, KEY, SHELL, Dialect, Said, ask, collected, done
from scripted_http import Json, Reply, bytewise, serve, whole

from commonplace.models.base import (
    Completed,
    Event,
    ItemAdded,
    OutputSchema,
    RateLimits,
    ReasoningDelta,
    Request,
    TextDelta,
    Usage,
)

pytestmark = pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
TEXT = "Zwei Dateien: größe.py und 日本.py."


async def told(dialect: Dialect, request: Request, said: Said) -> tuple[Json, list[Event]]:
    """Ask once; return the body that the server saw and the events of the answer."""
    async with serve(dialect.reply(said)) as server, dialect.model(server.base_url) as model:
        events = await collected(model.stream(request))
    return server.seen[0].body, events


async def test_text_comes_in_deltas_and_then_as_an_item(dialect: Dialect) -> None:
    async with serve(dialect.reply(Said(TEXT))) as server, dialect.model(server.base_url) as model:
        events = await collected(model.stream(ask()))

    deltas = [event for event in events if isinstance(event, TextDelta)]
    [item] = done(events)
    assert TEXT == "".join(delta.text for delta in deltas)
    assert 2 == len(deltas)
    assert ("message", "assistant", TEXT) == (item["type"], item["role"], item["content"][0]["text"])
    assert {item["id"]} == {delta.id for delta in deltas}
    assert events[-1] == Completed("resp_1", None, "end")


async def test_every_item_is_added_before_it_grows_and_is_done_once(dialect: Dialect) -> None:
    said = Said("Looking.", "Where is it?", (("shell", '{"command":"ls"}', "call_1"),))
    async with serve(dialect.reply(said)) as server, dialect.model(server.base_url) as model:
        events = await collected(model.stream(ask(tools=(SHELL,))))

    added = [event.id for event in events if isinstance(event, ItemAdded)]
    assert added == [item["id"] for item in done(events)]
    assert ["reasoning", "message", "function_call"] == [item["type"] for item in done(events)]


async def test_a_call_is_put_together_from_its_pieces(dialect: Dialect) -> None:
    said = Said(calls=(("shell", '{"command": "ls -l"}', "call_1"),))
    async with serve(dialect.reply(said)) as server, dialect.model(server.base_url) as model:
        events = await collected(model.stream(ask(tools=(SHELL,))))

    [item] = done(events)
    assert ("function_call", "shell", "call_1") == (item["type"], item["name"], item["call_id"])
    assert {"command": "ls -l"} == msgspec.json.decode(item["arguments"])
    assert events[-1] == Completed("resp_1", None, "tools")


async def test_parallel_calls_keep_their_order_and_their_arguments(dialect: Dialect) -> None:
    said = Said(calls=tuple(("shell", f'{{"command":"{n}"}}', f"call_{n}") for n in range(5)))
    async with serve(dialect.reply(said)) as server, dialect.model(server.base_url) as model:
        events = await collected(model.stream(ask(tools=(SHELL,))))

    expected = [(f"call_{n}", f'{{"command":"{n}"}}') for n in range(5)]
    assert expected == [(item["call_id"], item["arguments"]) for item in done(events)]


async def test_reasoning_comes_in_deltas_and_goes_back_with_the_next_request(dialect: Dialect) -> None:
    said = Said("Done.", "First I look, then I say.", (("shell", "{}", "call_1"),))
    async with (
        serve(dialect.reply(said), dialect.reply(Said("Fine."))) as server,
        dialect.model(server.base_url) as model,
    ):
        events = await collected(model.stream(ask(tools=(SHELL,))))
        output = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
        first = ask().input + tuple(msgspec.json.encode(item) for item in [*done(events), output])
        await collected(model.stream(ask(input=first, tools=(SHELL,))))

    assert said.thought == "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    sent = msgspec.json.encode(server.seen[1].body).decode()
    assert ("gAAA" if dialect.name == "responses" else said.thought) in sent
    assert dialect.name != "anthropic" or '"signature":"c2ln"' in sent


async def test_usage_counts_the_cached_part_as_input(dialect: Dialect) -> None:
    _, events = await told(dialect, ask(), Said("x", usage=(120, 20, 30)))

    assert [Usage(120, 20, 30, 0, 150)] == [event for event in events if isinstance(event, Usage)]


async def test_a_server_that_does_not_count_gives_no_usage(dialect: Dialect) -> None:
    _, events = await told(dialect, ask(), Said("x", usage=None))

    assert [] == [event for event in events if isinstance(event, Usage)]
    assert isinstance(events[-1], Completed)


async def test_an_answer_follows_a_schema_where_one_is_asked_for(dialect: Dialect) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    body, events = await told(dialect, ask(output_schema=OutputSchema(schema)), Said('{"n":1}'))

    places = {
        "responses": lambda: body["text"]["format"],
        "chat": lambda: body["response_format"]["json_schema"],
        "anthropic": lambda: body["output_config"]["format"],
    }
    assert schema == places[dialect.name]()["schema"]
    [item] = done(events)
    assert {"n": 1} == msgspec.json.decode(item["content"][0]["text"])


async def test_a_header_may_hold_any_text(dialect: Dialect) -> None:
    async with serve(dialect.reply(Said("x"))) as server, dialect.model(server.base_url) as model:
        await collected(model.stream(ask(headers={"x-turn": '{"cwd": "größe"}\r\nx-evil: 1'})))

    assert '{"cwd": "größe"}  x-evil: 1' == server.seen[0].headers["x-turn"].encode("latin-1").decode()


async def test_instructions_and_leading_developer_messages_come_first(dialect: Dialect) -> None:
    developer = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]}
    items = (msgspec.json.encode(developer), *ask("hello there").input)
    body, _ = await told(dialect, ask(input=items, instructions="You are an agent."), Said("x"))

    text = msgspec.json.encode(body).decode()
    assert dialect.name == "anthropic" or text.index("You are an agent.") < text.index("hello there")
    assert text.index("Be brief.") < text.index("hello there") or "Be brief." in str(body["system"])


async def test_a_key_goes_into_its_header_and_nowhere_else(dialect: Dialect) -> None:
    async with serve(dialect.reply(Said("x"))) as server, dialect.model(server.base_url) as model:
        await collected(model.stream(ask(headers={"X-Turn": "7", "Authorization": "mine", "x-api-key": "mine"})))

    headers = server.seen[0].headers
    carried = headers["x-api-key" if dialect.name == "anthropic" else "authorization"]
    assert KEY in carried
    assert "7" == headers["x-turn"]
    assert KEY not in msgspec.json.encode(server.seen[0].body).decode()
    assert KEY not in repr(model)


async def test_the_next_request_uses_the_same_connection(dialect: Dialect) -> None:
    replies = [dialect.reply(Said("x")) for _ in range(3)]
    async with serve(*replies) as server, dialect.model(server.base_url) as model:
        for _ in range(3):
            await collected(model.stream(ask()))

    assert (3, 1) == (len(server.seen), server.connections)


async def test_a_snapshot_of_rate_limits_comes_before_the_answer(dialect: Dialect) -> None:
    headers = {"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "250"}
    headers |= {"x-ratelimit-reset-tokens": "1m30s"}
    reply = Reply(whole(dialect.spoken(Said("x"))), headers=headers)
    async with serve(reply) as server, dialect.model(server.base_url) as model:
        events = await collected(model.stream(ask()))

    first = events[0]
    assert isinstance(first, RateLimits)
    assert ("tokens", 75.0, 1_000_090.0) == (
        first.limits[0].name,
        first.limits[0].used_percent,
        first.limits[0].resets_at,
    )


async def test_a_stream_that_is_cut_at_every_byte_says_the_same(dialect: Dialect) -> None:
    said = Said(TEXT, "Größe?", (("shell", '{"command":"ls"}', "call_1"), ("shell", '{"command":"é"}', "call_2")))
    spoken = dialect.spoken(said)
    async with serve(Reply(whole(spoken)), Reply(bytewise(spoken))) as server:
        async with dialect.model(server.base_url) as model:
            at_once = await collected(model.stream(ask(tools=(SHELL,))))
        async with dialect.model(server.base_url) as model:
            in_bytes = await collected(model.stream(ask(tools=(SHELL,))))

    assert at_once == in_bytes

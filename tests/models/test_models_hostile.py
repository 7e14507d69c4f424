"""Servers that misbehave: framing, errors, silence, early ends; the same bodies for all three APIs."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator

import anyio
import pytest
from dialects import ALL, KEY, Dialect, Said, Slept, ask, collected, done, framed, patient
from hypothesis import given
from hypothesis import strategies as st
from scripted_http import Reply, bytewise, refusal, serve, whole

from commonplace.errors import (
    BadAnswer,
    ContextTooLong,
    ModelError,
    ModelUnavailable,
    NotAuthorised,
    QuotaExceeded,
    RateLimited,
    RequestRefused,
    StreamBroken,
)
from commonplace.models.base import Completed, Event, ItemDone, RateLimits, Retrying, TextDelta

pytestmark = pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
ONCE = {"retries": 0}
DEEP = b'{"type":"response.output_item.done","error":' + b"[" * 9999 + b"]" * 9999 + b"}"


async def plain(dialect: Dialect, said: Said) -> list[Event]:
    async with serve(dialect.reply(said)) as server, dialect.model(server.base_url) as model:
        return await collected(model.stream(ask()))


async def failing(dialect: Dialect, reply: Reply, **pace: object) -> ModelError:
    async with (
        serve(reply) as server,
        dialect.model(server.base_url, patient(**{**ONCE, **pace})) as model,
    ):
        with pytest.raises(ModelError) as caught:
            await collected(model.stream(ask()))
    return caught.value


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("cut", [whole, bytewise], ids=["whole", "bytewise"])
async def test_lines_may_end_in_any_way(dialect: Dialect, newline: bytes, cut: Callable[[bytes], list[bytes]]) -> None:
    said = Said("one\ntwo", "hm")
    reply = Reply(cut(framed(dialect.frames(said), newline)))
    async with serve(reply) as server, dialect.model(server.base_url) as model:
        events = await collected(model.stream(ask()))

    assert await plain(dialect, said) == events


async def test_comments_keep_alives_and_unknown_fields_mean_nothing(dialect: Dialect) -> None:
    said = Said("hello")
    noise = b": keep-alive\n\nid: 7\nretry: 10\nnonsense\n\n:\n\n\n"
    spoken = b"\xef\xbb\xbf" + noise
    for frame in dialect.frames(said):
        spoken += noise + framed([frame])
    async with serve(Reply(whole(spoken + noise))) as server, dialect.model(server.base_url) as model:
        events = await collected(model.stream(ask()))

    assert await plain(dialect, said) == events


async def test_data_over_several_lines_is_one_event(dialect: Dialect) -> None:
    said = Said("hello")
    spoken = framed(dialect.frames(said)).replace(b'", "', b'",\ndata: "')
    async with serve(Reply(whole(spoken))) as server, dialect.model(server.base_url) as model:
        events = await collected(model.stream(ask()))

    assert b",\ndata: " in spoken
    assert done(await plain(dialect, said)) == done(events)
    assert not [event for event in events if isinstance(event, ItemDone) and b"\n" in event.item]


@pytest.mark.parametrize("ends", [True, False], ids=["in order", "abruptly"])
async def test_a_stream_that_ends_early_is_broken_wherever_it_is_cut(dialect: Dialect, ends: bool) -> None:
    frames = dialect.frames(Said("hello there", "hm"))
    last = {"responses": 1, "chat": 3, "anthropic": 1}[dialect.name]
    for count in range(len(frames) - last + 1):
        cut = framed(frames[:count]) + framed(frames[count : count + 1])[:-3]
        error = await failing(dialect, Reply(whole(cut), ends=ends))
        assert (StreamBroken, True) == (type(error), error.retryable)


async def test_what_was_said_before_a_break_has_been_given_out(dialect: Dialect) -> None:
    frames = framed(dialect.frames(Said("hello there")))
    cut = frames[: frames.index(b"there")]
    seen: list[Event] = []
    async with serve(Reply(whole(cut), ends=False)) as server, dialect.model(server.base_url) as model:
        with pytest.raises(StreamBroken):  # noqa: PT012 (what came before the error is the point)
            async for event in model.stream(ask()):
                seen.append(event)  # noqa: PERF401

    assert "hello " == "".join(event.text for event in seen if isinstance(event, TextDelta))
    assert 1 == len(server.seen)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("context", ContextTooLong),
        ("quota", QuotaExceeded),
        ("key", NotAuthorised),
        ("rate", RateLimited),
        ("down", ModelUnavailable),
        ("refused", RequestRefused),
    ],
)
async def test_each_vendor_s_errors_become_ours(dialect: Dialect, kind: str, expected: type[ModelError]) -> None:
    error = await failing(dialect, dialect.errors[kind]())

    assert expected is type(error)
    assert error.hint
    assert "here" == error.data["provider"]
    assert KEY not in error.sentence() + repr(error.data) + repr(error)
    assert (None, None) == (error.__cause__, error.__context__)


@pytest.mark.parametrize("kind", ["context", "quota", "key", "refused"])
async def test_an_error_that_cannot_pass_is_not_tried_again(dialect: Dialect, kind: str) -> None:
    async with serve(dialect.errors[kind]()) as server, dialect.model(server.base_url) as model:
        with pytest.raises(ModelError) as caught:
            await collected(model.stream(ask()))

    assert not caught.value.retryable
    assert 1 == len(server.seen)


async def test_a_server_that_asks_to_wait_is_waited_for(dialect: Dialect) -> None:
    slept = Slept()
    replies = [dialect.errors["rate"](), dialect.reply(Said("at last"))]
    async with serve(*replies) as server, dialect.model(server.base_url, patient(sleep=slept)) as model:
        events = await collected(model.stream(ask()))

    assert [7.0] == slept.seconds
    assert isinstance(events[0], Retrying)
    assert (1, 4, 7.0) == (events[0].attempt, events[0].limit, events[0].delay)
    assert "at last" == done(events)[0]["content"][0]["text"]


async def test_a_server_that_asks_for_too_long_a_wait_is_not_waited_for(dialect: Dialect) -> None:
    error = await failing(dialect, dialect.errors["rate"](), retries=4, longest_wait=6.0)

    assert 7.0 == error.retry_after
    assert "7 s" in error.hint


async def test_failures_are_tried_again_with_growing_delays_and_then_given_up(dialect: Dialect) -> None:
    slept = Slept()
    replies = [dialect.errors["down"]() for _ in range(5)]
    async with serve(*replies) as server, dialect.model(server.base_url, patient(sleep=slept)) as model:
        with pytest.raises(ModelUnavailable):
            await collected(model.stream(ask()))

    assert [0.2, 0.4, 0.8, 1.6] == [round(seconds, 6) for seconds in slept.seconds]
    assert 5 == len(server.seen)


async def test_a_stream_that_breaks_before_anything_was_said_is_tried_again(dialect: Dialect) -> None:
    replies = [Reply(whole(b": hello\n\n"), ends=False), Reply(whole(b"data: {oops\n\n")), dialect.reply(Said("fine"))]
    async with serve(*replies) as server, dialect.model(server.base_url) as model:
        events = await collected(model.stream(ask()))

    assert 2 == sum(isinstance(event, Retrying) for event in events)
    assert "fine" == done(events)[0]["content"][0]["text"]


@pytest.mark.parametrize(
    "data",
    [b"{oops", b"[]", b"7", b'"text"', b"\xff\xfe", b'{"type": 7, "id": 7}', b"", b"[" * 5000, DEEP],
    ids=["cut", "list", "number", "text", "bytes", "types", "empty", "deep", "deep inside"],
)
async def test_malformed_json_is_a_bad_answer(dialect: Dialect, data: bytes) -> None:
    error = await failing(dialect, Reply(whole(b"data: " + data + b"\n\n")))

    expected = StreamBroken if data == b"" else BadAnswer  # data of no length are no event
    assert expected is type(error)
    assert error.retryable


async def test_a_failure_in_the_middle_of_a_stream_is_an_error(dialect: Dialect) -> None:
    said = dialect.frames(Said("hello"))[:2]
    spoken = framed(said) + framed(dialect.failed("overloaded_error"))

    assert ModelUnavailable is type(await failing(dialect, Reply(whole(spoken))))


async def test_a_page_instead_of_a_stream_is_a_bad_answer(dialect: Dialect) -> None:
    error = await failing(dialect, refusal(200, "<html>Welcome</html>"))

    assert BadAnswer is type(error)
    assert "base_url" in error.hint


async def test_an_error_with_status_200_is_still_an_error(dialect: Dialect) -> None:
    body = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}

    assert QuotaExceeded is type(await failing(dialect, refusal(200, body)))


async def test_a_server_that_is_not_there_is_unavailable(dialect: Dialect) -> None:
    async with serve() as server:
        address = server.base_url
    async with dialect.model(address, patient(retries=2)) as model:
        with pytest.raises(ModelUnavailable) as caught:
            await collected(model.stream(ask()))

    assert "127.0.0.1" in caught.value.sentence()
    assert None is caught.value.__context__


async def test_a_server_that_falls_silent_is_given_up(dialect: Dialect) -> None:
    reply = Reply(whole(framed(dialect.frames(Said("hello"))[:2])), hold=anyio.Event())
    error = await failing(dialect, reply, idle=1.0)

    assert StreamBroken is type(error)
    assert "too long" in error.message


def ticking() -> Iterator[float]:
    """A clock that moves a second whenever somebody looks."""
    return itertools.count(0.0, 1.0)


async def test_a_slow_drip_that_never_ends_a_line_is_given_up(dialect: Dialect) -> None:
    clock = ticking()
    drip = Reply(itertools.chain([b"data: "], itertools.repeat(b"x")))
    async with (
        serve(drip) as server,
        dialect.model(server.base_url, patient(retries=0, clock=lambda: next(clock))) as model,
    ):
        with pytest.raises(StreamBroken):
            await collected(model.stream(ask()))
        await server.left.wait()


async def test_keep_alives_keep_a_stream_alive(dialect: Dialect) -> None:
    clock = ticking()
    pieces = [*[b": still here\n"] * 1000, dialect.spoken(Said("hello"))]
    async with (
        serve(Reply(pieces)) as server,
        dialect.model(server.base_url, patient(clock=lambda: next(clock))) as model,
    ):
        events = await collected(model.stream(ask()))

    assert isinstance(events[-1], Completed)


async def test_a_caller_may_take_its_time_between_events(dialect: Dialect) -> None:
    now = [0.0]
    pieces = [framed([frame]) for frame in dialect.frames(Said("hello there", "hm"))]
    seen: list[Event] = []
    async with (
        serve(Reply(pieces)) as server,
        dialect.model(server.base_url, patient(clock=lambda: now[0])) as model,
    ):
        async for event in model.stream(ask()):
            now[0] += 10_000.0
            seen.append(event)

    assert isinstance(seen[-1], Completed)


async def test_a_refusal_also_tells_the_limits(dialect: Dialect) -> None:
    reply = dialect.errors["rate"]()
    reply.headers |= {"x-ratelimit-limit-tokens": "10", "x-ratelimit-remaining-tokens": "0"}
    async with serve(reply, dialect.reply(Said("x"))) as server, dialect.model(server.base_url) as model:
        events = await collected(model.stream(ask()))

    assert [RateLimits, Retrying] == [type(event) for event in events[:2]]


async def test_closing_the_stream_in_the_middle_closes_the_connection(dialect: Dialect) -> None:
    frames = dialect.frames(Said("hello there"))
    reply = Reply(whole(framed(frames[:-2])), hold=anyio.Event())
    async with serve(reply) as server, dialect.model(server.base_url) as model:
        events = model.stream(ask())
        async for event in events:
            if isinstance(event, TextDelta):
                break
        await events.aclose()
        with anyio.fail_after(60):
            await server.left.wait()


async def test_cancelling_the_task_closes_the_connection(dialect: Dialect) -> None:
    reply = Reply(whole(framed(dialect.frames(Said("hello there"))[:3])), hold=anyio.Event())
    async with serve(reply) as server, dialect.model(server.base_url) as model:
        async with anyio.create_task_group() as group:
            group.start_soon(collected, model.stream(ask()))
            await server.sent.wait()
            group.cancel_scope.cancel()
        with anyio.fail_after(60):
            await server.left.wait()


async def test_the_environment_s_proxies_are_not_used(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert done(await plain(dialect, Said("hello")))


async def test_a_key_is_in_no_log(dialect: Dialect, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        await plain(dialect, Said("hello"))
        await failing(dialect, dialect.errors["key"]())

    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert KEY not in logged


@given(data=st.data())
def test_any_division_of_a_stream_gives_the_same_events(dialect: Dialect, data: st.DataObject) -> None:
    text = data.draw(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
    newline = data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    said = Said(text, data.draw(st.sampled_from(["", "hm"])), (("shell", '{"a":"é"}', "call_1"),))
    spoken = framed(dialect.frames(said), newline)
    places = sorted(data.draw(st.sets(st.integers(1, len(spoken) - 1), max_size=40)))
    pieces = [spoken[start:end] for start, end in itertools.pairwise([0, *places, len(spoken)])]

    async def run() -> None:
        async with serve(Reply(pieces)) as server, dialect.model(server.base_url) as model:
            divided = await collected(model.stream(ask()))
        assert await plain(dialect, said) == divided

    anyio.run(run)

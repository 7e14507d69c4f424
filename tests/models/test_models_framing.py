"""Server-sent events without a socket: the decoder alone."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import BadAnswer
from commonplace.models.sse import Decoder, ServerEvent


def fed(*chunks: bytes) -> list[tuple[str, bytes]]:
    decoder = Decoder()
    return [(event.name, event.data) for chunk in chunks for event in decoder.feed(chunk)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"data: a\n\n", [("message", b"a")]),
        (b"event: x\ndata: a\n\n", [("x", b"a")]),
        (b"data:a\ndata: b\ndata:  c\n\n", [("message", b"a\nb\n c")]),
        (b"event: x\n\ndata: a\n\n", [("message", b"a")]),
        (b"data: a\n", []),
        (b"data: a\r\rdata: b\r\n\r\n", [("message", b"a"), ("message", b"b")]),
        (b": c\ndata: a\n: d\ndata: b\n\n", [("message", b"a\nb")]),
        (b"\n\n\n", []),
        (b"data\n\n", []),
        (b"data: a\xe2\x80\xa8b\x0bc\n\n", [("message", b"a\xe2\x80\xa8b\x0bc")]),
    ],
)
def test_lines_become_events(text: bytes, expected: list[tuple[str, bytes]]) -> None:
    assert expected == fed(text)
    assert expected == fed(*(text[n : n + 1] for n in range(len(text))))


def test_an_event_comes_out_with_its_empty_line_and_not_later() -> None:
    decoder = Decoder()

    assert [] == decoder.feed(b"data: a\r\n\r")[1:]
    assert [] == decoder.feed(b"\n")
    assert [ServerEvent("message", b"b")] == decoder.feed(b"data: b\n\n")


@given(
    st.lists(st.sampled_from([b"data: x", b"\r", b"\n", b"\r\n", b"event: e", b":", b"data", b"\xef\xbb\xbf"])),
    st.data(),
)
def test_any_division_gives_the_same(parts: list[bytes], data: st.DataObject) -> None:
    text = b"".join(parts)
    places = sorted(data.draw(st.sets(st.integers(0, len(text)))))

    assert fed(text) == fed(*(text[start:end] for start, end in itertools.pairwise([0, *places, len(text)])))


def test_an_event_that_never_ends_is_refused() -> None:
    decoder = Decoder(max_event_bytes=100)
    decoder.feed(b"data: " + b"x" * 50)

    with pytest.raises(BadAnswer):
        decoder.feed(b"x" * 50)


def test_many_events_and_comments_are_not_one_large_event() -> None:
    decoder = Decoder(max_event_bytes=100)

    for _ in range(50):
        assert 1 == len(decoder.feed(b": keep-alive\nid: 7\ndata: " + b"x" * 40 + b"\n\n"))
        assert [] == decoder.feed(b": " + b"y" * 60 + b"\n")


def test_comments_count_as_signs_of_life() -> None:
    decoder = Decoder()
    decoder.feed(b": a\n: b\n\n: c")

    assert 3 == decoder.lines

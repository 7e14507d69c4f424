"""Streams: bounded memory, key blocks across pieces, complete lines without waiting."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from commonplace.redact import MARK, Redactor, redact
from commonplace.redact.stream import AHEAD, CONTEXT, STEP
from redact import made


def key_block(lines: int) -> str:
    draw = random.Random(lines)
    body = "\n".join(made.make("<B64>", draw) for _ in range(lines))
    return f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n"


def stream(data: bytes, size: int) -> bytes:
    redactor = Redactor()
    pieces = [redactor.feed(data[at : at + size]) for at in range(0, len(data), size)]
    return b"".join(pieces) + redactor.close()


def test_memory_is_bounded_however_long_a_line_is() -> None:
    redactor = Redactor()
    piece = b"lorem ipsum dolor " * 60_000
    tracemalloc.start()
    try:
        for _ in range(7):  # more than the memory that it may use
            redactor.feed(piece)
            assert len(redactor._data) <= CONTEXT + AHEAD + 2 * STEP
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 6 * 1024 * 1024


@pytest.mark.parametrize("size", [1, 63, 64, 65, 1000, 70_000, 300_000])
@pytest.mark.parametrize("lines", [3, 25])
def test_a_key_block_is_found_however_the_stream_is_cut(size: int, lines: int) -> None:
    text = "before\n" + key_block(lines) + "after\n"

    assert stream(text.encode(), size) == redact(text).encode()
    assert text.count("\n") - lines + 1 == redact(text).count("\n")


def test_a_key_block_longer_than_the_window_becomes_one_mark() -> None:
    text = "before\n" + key_block(2 * (AHEAD + STEP) // 64) + "after\n"
    expected = f"before\n-----BEGIN RSA PRIVATE KEY-----\n{MARK}\n-----END RSA PRIVATE KEY-----\nafter\n"

    assert stream(text.encode(), 50_000) == expected.encode()


def test_secrets_at_every_distance_from_a_cut_are_found() -> None:
    draw = random.Random(4)
    parts: list[str] = []
    length = 0
    while length < AHEAD + 3 * STEP:
        parts.append(f"{'x ' * draw.randrange(400)}\nAPI_TOKEN={made.make('<A40>', draw)}\n")
        length += len(parts[-1])
    text = "".join(parts)

    assert stream(text.encode(), 100_000) == redact(text).encode()


def test_complete_lines_come_without_waiting_for_more() -> None:
    redactor = Redactor()
    password = made.make("<A14>", random.Random(1))

    assert redactor.feed(b"one\nDB_PASSWORD=" + password.encode() + b"\nhal") == b""
    assert redactor.flush() == f"one\nDB_PASSWORD={MARK}\n".encode()
    assert redactor.flush() == b""
    assert redactor.feed(b"f\n") + redactor.flush() == b"half\n"


def test_a_line_is_judged_with_the_lines_before_it() -> None:
    redactor = Redactor()
    password = made.make("<A14>", random.Random(2))
    redactor.feed(b"password: |\n")

    assert redactor.flush() == b"password: |\n"
    assert redactor.feed(f"  {password}\n".encode()) + redactor.flush() == f"  {MARK}\n".encode()


def test_a_key_block_that_has_not_ended_is_held_back() -> None:
    redactor = Redactor()
    lines = key_block(6).splitlines(keepends=True)
    redactor.feed("".join(["x\n", *lines[:4]]).encode())
    early = redactor.flush()
    rest = redactor.feed("".join(lines[4:]).encode()) + redactor.flush() + redactor.close()

    assert not any(line.strip() in early.decode() for line in lines[1:4])
    assert (early + rest).decode() == redact("x\n" + "".join(lines))


def test_kinds_are_counted() -> None:
    redactor = Redactor()
    redactor.feed(("ghp_" + made.make("<A36>", random.Random(3))).encode())
    redactor.close()

    assert {"github_token": 1} == redactor.counts

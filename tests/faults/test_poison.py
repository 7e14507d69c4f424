"""Sessions that nobody can read fail alone, with a reason, and are left alone after three tries."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from faulty_home import FaultyHome, Taught, taught

from commonplace.protocol.ids import uuid7
from model_server import Body, ModelServer, extraction, first_words

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]
NewHome = Callable[..., FaultyHome]
POISON = "curare"
TIME = "2026-11-10T10:00:00.000Z"


@pytest.fixture(scope="module")
def good(in_memory: Path) -> Taught:
    """Sessions with which nothing is wrong; others are put beside them."""
    return taught(in_memory / "good", 8)


def line(kind: str, payload: dict[str, object]) -> bytes:
    return json.dumps({"timestamp": TIME, "type": kind, "payload": payload}).encode() + b"\n"


def said(words: str) -> bytes:
    content = [{"type": "input_text", "text": words}]
    return line("response_item", {"type": "message", "role": "user", "content": content})


def beside(known: Taught, name: str, *pieces: bytes, ending: str = "jsonl") -> tuple[str, Path]:
    """Write a session of these lines beside the good ones; return its thread and its file."""
    thread = uuid7(1_794_000_000_000, name.encode().ljust(10, b"x")[:10])
    head = line("session_meta", {"id": thread, "timestamp": TIME, "cwd": "/repo", "source": "cli"})
    path = known.sources / f"codex/sessions/2026/11/10/rollout-2026-11-10T10-00-00-{thread}.{ending}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join([head, said("Always say please."), *pieces]))
    return thread, path


PIECES: dict[str, tuple[bytes, ...]] = {
    "huge": (b'{"timestamp":"' + b"x" * (130 << 20) + b'"}\n', said("Never shout.")),
    "deep": (b"[" * 200_000 + b"]" * 200_000 + b"\n", said("Never shout.")),
    "text": (b"\xff\xfe\xc3\x28" * 1000 + b"\n", said("Never shout.").replace(b"shout", b"\xc3\x28")),
    "zero": (b"\0" * 100_000 + b"\n", said("Never\\u0000 shout.")),
    "half": (said("Never shout.")[:-30],),
}


@pytest.mark.parametrize("name", PIECES)
def test_broken_lines_cost_the_lines_and_no_other_session(good: Taught, new_home: NewHome, name: str) -> None:
    _, path = beside(good, name, *PIECES[name])
    try:
        home = new_home(good)
        home.finish()
        home.check_others()
    finally:
        path.unlink()


def test_a_torn_archive_costs_no_other_session(good: Taught, new_home: NewHome) -> None:
    _, path = beside(good, "torn")
    whole = zstandard.compress(path.read_bytes() + said("Never shout.") * 1000)
    path.unlink()
    torn = path.with_suffix(".jsonl.zst")
    torn.write_bytes(whole[: len(whole) // 2])
    try:
        home = new_home(good)
        home.finish()
        home.check_others()
    finally:
        torn.unlink()


def test_a_session_on_which_the_reader_breaks_is_tried_three_times(good: Taught, new_home: NewHome) -> None:
    thread, path = beside(good, "reader", said(f"Never touch {POISON}."))
    try:
        home = new_home(good)
        for _ in range(5):
            code, told = home.run(faults={"extractor": POISON})
            assert code == 0, told
        rows = home.rows(f"SELECT status, retry_remaining, last_error FROM jobs WHERE job_key = '{thread}'")
        assert [("error", 0, f"The extractor failed: RecursionError: {POISON}.")] == rows
        assert 3 == home.log()["memory_stage1", thread]
        home.check(failed={thread: POISON})
    finally:
        path.unlink()


def test_a_session_about_which_a_model_talks_nonsense_is_read_without_it_in_the_end(
    good: Taught, new_home: NewHome
) -> None:
    """All others are read by the model; this one by rules, when its last try comes."""
    thread, path = beside(good, "model", said(f"Never touch {POISON}."))

    def answer(body: Body) -> str:
        return "\0{[" if "Always say please." in first_words(body) else extraction(body)

    try:
        with ModelServer(answer) as server:
            home = new_home(good, memory_extract_model="here:m-1")
            home.path.mkdir(exist_ok=True, parents=True)
            (home.path / "config.toml").write_text(server.provider(), "utf-8")
            for number in range(3):
                code, told = home.run()
                assert code == 0, told
                rows = home.rows(f"SELECT status, retry_remaining FROM jobs WHERE job_key = '{thread}'")
                assert [("error", 2 - number) if number < 2 else ("done", 1)] == rows
        assert good.outputs.keys() | {thread} == home.outputs().keys()
    finally:
        path.unlink()

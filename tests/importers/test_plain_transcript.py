"""Plain transcripts: each session a thread, each line whose it is."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.importers import transcript
from commonplace.importers.converter import TORN, ConvertedRecord, SessionHead, thread_id_for
from commonplace.protocol.rollout import Origin, Skipped

Json = dict[str, Any]
Found = SessionHead | ConvertedRecord | Skipped


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "talk.jsonl"


def line(text: Any = "hello", session: Any = "s", role: Any = "user", **more: Any) -> Json:
    return {"session": session, "role": role, "text": text, **more}


def converted(file: Path, *lines: Json) -> list[Found]:
    file.write_text("".join(json.dumps(said) + "\n" for said in lines))
    return list(transcript.convert(file))


def pieces(found: list[Found]) -> list[ConvertedRecord]:
    return [item for item in found if isinstance(item, ConvertedRecord)]


def skips(found: list[Found]) -> list[str]:
    return [item.reason for item in found if isinstance(item, Skipped)]


def shape(piece: ConvertedRecord) -> list[tuple[str, str]]:
    """What each payload is, and its text."""
    return [_shape(payload.value) for payload in piece.payloads]


def _shape(value: Json) -> tuple[str, str]:
    if value["type"] == "message":
        noted = value.get("internal_chat_message_metadata_passthrough", {}).get("content_item_kinds", [""])
        return f"{value['role']} {noted[0]}".strip(), value["content"][0]["text"]
    return value["type"], value.get("output", value.get("name", ""))


@pytest.mark.parametrize(
    ("said", "shapes"),
    [
        (line(role="user"), [("user user.text", "hello")]),
        (line(role="USER"), [("user user.text", "hello")]),
        (line(role="assistant"), [("assistant", "hello")]),
        (line(role="system"), [("developer imported.instructions", "hello")]),
        (line(role="tool"), [("function_call", "tool"), ("function_call_output", "hello")]),
        (line(role="tool", name="grep"), [("function_call", "grep"), ("function_call_output", "hello")]),
        (line(role="user", name="Ann"), [("user user.text", "hello")]),
        (line(role="assistant", name="Bob"), [("user user.text", "hello")]),
        (line(role="system", name="Eve"), [("user user.text", "hello")]),
        (line(role="narrator", name="Eve"), [("user user.text", "hello")]),
        ({"session": "s", "name": "Eve", "text": "hello"}, [("user user.text", "hello")]),
        (
            line(text="<commonplace_memory>x</commonplace_memory>"),
            [("user memory.injected", "<commonplace_memory>x</commonplace_memory>")],
        ),
        (line(session=7), [("user user.text", "hello")]),
        (line(name=None, time=None, cwd=None, id=None), [("user user.text", "hello")]),
        (line(name={}, time=[], cwd=3, id=[]), [("user user.text", "hello")]),
    ],
)
def test_a_line_is_the_words_of_whom_it_says(file: Path, said: Json, shapes: list[tuple[str, str]]) -> None:
    (piece,) = pieces(converted(file, said))

    assert shapes == shape(piece)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (line(role="narrator"), "unknown_type"),
        (line(role=None), "unknown_type"),
        (line(text=None), "not_a_record"),
        (line(text=["hello"]), "not_a_record"),
        (line(text="  \n"), "empty"),
        (line(session=""), "not_a_record"),
        (line(session=None), "not_a_record"),
        ({"role": "user", "text": "hello"}, "not_a_record"),
        ({"session": "s", "role": "user"}, "not_a_record"),
        ({}, "not_a_record"),
    ],
)
def test_a_line_that_cannot_be_used_is_reported(file: Path, said: Json, reason: str) -> None:
    found = converted(file, said, line("kept"))

    assert [reason] == skips(found)
    assert ["kept"] == [shape(piece)[0][1] for piece in pieces(found)]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [(b"nonsense", "not_json"), (b"[1]", "not_a_record"), (b"3", "not_a_record"), (b'{"session', TORN)],
)
def test_what_is_no_object_is_reported(file: Path, raw: bytes, reason: str) -> None:
    file.write_bytes(json.dumps(line()).encode() + b"\n" + raw + (b"" if reason == TORN else b"\n"))

    assert [reason] == skips(list(transcript.convert(file)))


def test_sessions_that_take_turns_in_a_file_become_threads(file: Path) -> None:
    found = converted(
        file,
        line("a1", "a", cwd="/repo/a", time="2026-11-15T09:00:00Z"),
        line("b1", "b", cwd="/repo/b"),
        line("a2", "a", "assistant", time="2026-11-15T09:00:05Z", cwd="/elsewhere"),
        line("b2", "b", "assistant"),
    )

    heads = [item for item in found if isinstance(item, SessionHead)]
    assert [("a", "/repo/a", "2026-11-15T09:00:00.000Z"), ("b", "/repo/b", "")] == [
        (head.session_id, head.cwd, head.started) for head in heads
    ]
    assert [SessionHead, ConvertedRecord, SessionHead, ConvertedRecord, ConvertedRecord, ConvertedRecord] == [
        type(item) for item in found
    ]
    a, b = thread_id_for("transcript", "a"), thread_id_for("transcript", "b")
    assert [(a, "1"), (b, "1"), (a, "2"), (b, "2")] == [(piece.thread_id, piece.record) for piece in pieces(found)]


def test_a_session_that_is_a_uuid_keeps_it(file: Path) -> None:
    name = "7C1F0A3E-5b2d-4e8f-9a61-2d4c8b0e6f13"

    (head, _) = converted(file, line(session=name))

    assert isinstance(head, SessionHead)
    assert (name, name.lower()) == (head.session_id, head.thread_id)


def test_the_id_of_a_line_comes_back(file: Path) -> None:
    found = pieces(converted(file, line("a", id="D1:3", name="Ann"), line("b", id=17), line("c")))

    assert [("D1:3", "D1:3"), ("17", "17"), ("3", "3")] == [
        (piece.record, piece.payloads[0].origin.id) for piece in found if piece.payloads[0].origin
    ]
    assert Origin(id="D1:3", offset=0, name="Ann") == found[0].payloads[0].origin


def test_a_line_that_stands_twice_is_taken_once_and_another_with_its_id_is_kept(file: Path) -> None:
    found = converted(file, line("a", id="x"), line("a", id="x"), line("b", id="x"), line("a", "other", id="x"))

    assert ["duplicate"] == skips(found)
    assert ["x", "x#3", "x"] == [piece.record for piece in pieces(found)]
    assert ["x", "x#3", "x"] == [piece.payloads[0].origin.id for piece in pieces(found) if piece.payloads[0].origin]


def test_a_line_without_a_time_has_that_of_the_line_before_it_in_its_session(file: Path) -> None:
    found = pieces(converted(file, line("a", time=1794733200), line("b", "other"), line("c"), line("d", time="bad")))

    assert ["2026-11-15T09:00:00.000Z", "", "2026-11-15T09:00:00.000Z", "2026-11-15T09:00:00.000Z"] == [
        piece.time for piece in found
    ]


def test_half_a_surrogate_pair_does_not_lose_the_line(file: Path) -> None:
    file.write_bytes(rb'{"session":"s","role":"user","text":"cut \ud83d"}' + b"\n")

    assert [("user user.text", "cut \ufffd")] == shape(pieces(list(transcript.convert(file)))[0])


def test_a_file_cut_at_every_byte_gives_the_lines_before_the_cut_and_the_whole_afterwards(file: Path) -> None:
    data = "".join(
        json.dumps(said, ensure_ascii=False) + "\n"
        for said in (line("é1", id="1"), line("2", "b", "tool"), line("3", name="Ann"), line("😀", "b"))
    ).encode()
    file.write_bytes(data)
    whole = list(transcript.convert(file))
    found: list[Found] = []

    for cut in range(len(data) + 1):
        file.write_bytes(data[:cut])
        found = list(transcript.convert(file))
        if found and isinstance(found[-1], Skipped):
            assert TORN == found[-1].reason
            found.pop()
        assert whole[: len(found)] == found
    assert whole == found


def test_thousands_of_sessions_take_little_memory(file: Path) -> None:
    with file.open("w") as out:
        for n in range(8_000):
            out.write(json.dumps(line("hello " * 20, f"session {n % 4000}", id=f"id-{n}")) + "\n")

    tracemalloc.start()
    count = sum(isinstance(item, ConvertedRecord) for item in transcript.convert(file))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert 8_000 == count
    assert peak < 6 * 2**20


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["session", "id", "time", "role", "name", "text", "cwd", "x"]),
            st.recursive(
                st.none()
                | st.booleans()
                | st.integers()
                | st.floats()
                | st.text(max_size=5)
                | st.sampled_from(["user", "tool"]),
                lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
                max_leaves=4,
            ),
        ),
        max_size=5,
    )
)
def test_no_line_is_an_error(tmp_path: Path, lines: list[Json]) -> None:
    found = converted(tmp_path / "any.jsonl", *lines)

    assert len(lines) == len(pieces(found)) + len(skips(found))


def test_transcripts_are_found_below_a_folder(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a/c.jsonl", "a/d.txt", "a/e.jsonl.zst"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")

    found = [str(path.relative_to(tmp_path)) for path in transcript.find(tmp_path)]

    assert ["b.jsonl", "a/c.jsonl", "a/e.jsonl.zst"] == found
    assert [tmp_path / "a/d.txt"] == list(transcript.find(tmp_path / "a/d.txt"))
    assert [] == list(transcript.find(tmp_path / "none"))

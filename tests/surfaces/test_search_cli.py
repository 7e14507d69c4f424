"""`sessions search` and `memory search`, as people and scripts use them."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from command import Command

HIT = {"thread_id", "item", "source_id", "turn", "role", "time", "score", "text", "project"}
SECRET = "a8Kd93mXq2Lr7Tz0Wv5Yb1Nc6Ge4Hf8Jp2Rs"[:36]
SHOP = "/home/someone/shop"
BLOG = "/home/someone/blog"


def write(path: Path, lines: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    return path


def line(session: str, key: str, role: str, text: str, day: int = 1, cwd: str = SHOP, **more: str) -> dict[str, Any]:
    time = f"2026-03-{day:02}T10:00:00Z"
    return {"session": session, "id": key, "time": time, "role": role, "text": text, "cwd": cwd, **more}


TALKS = [
    line("port", "p1", "user", "which port does the test database listen on?", 1),
    line("port", "p2", "assistant", "Let me look at the compose file.", 1),
    line("port", "p3", "tool", "ports:\n  - 5433:5432\nZEBRA_MARK", 1, name="shell"),
    line("port", "p4", "assistant", "It listens on 5433, because 5432 is taken.", 1),
    line("port", "p5", "user", f"thanks, remember that my token is ghp_{SECRET}", 1),
    line("flaky", "f1", "user", "the websocket test is flaky again", 5),
    line("flaky", "f2", "assistant", "The retry loop races with the close frame.", 5),
    line("essay", "e1", "user", "write about the flaky weather and the database of clouds", 9, BLOG),
    line("essay", "e2", "assistant", "Clouds are a slow database.", 9, BLOG),
]


@pytest.fixture
def talks(commonplace: Command, tmp_path: Path) -> Path:
    """A transcript that was imported."""
    path = write(tmp_path / "talks.jsonl", TALKS)
    commonplace.ok("sessions", "import", "--from", "transcript", "--path", path)
    return path


def found(document: Any) -> list[str]:
    return [hit["source_id"] for hit in document["hits"]]


def test_a_hit_is_the_exchange_with_where_it_stands(commonplace: Command, talks: Path) -> None:
    hit = commonplace.ok("sessions", "search", "test database port")["hits"][0]
    assert set(hit) == HIT | {"reply"}
    assert hit["source_id"] == "p1"
    assert hit["role"] == "user"
    assert hit["turn"] == 1
    assert hit["text"] == "which port does the test database listen on?"
    assert hit["reply"] == "It listens on 5433, because 5432 is taken."
    assert hit["time"].startswith("2026-03-01T10:00:00")
    assert hit["project"] == SHOP
    shown = commonplace.ok("sessions", "show", hit["thread_id"], "--items")
    assert next(item["source_id"] for item in shown["items"] if item["offset"] == hit["item"]) == "p1"


def test_hits_are_ordered_and_limited(commonplace: Command, talks: Path) -> None:
    document = commonplace.ok("sessions", "search", "flaky database", "--limit", 2)
    scores = [hit["score"] for hit in document["hits"]]
    assert len(scores) == 2
    assert scores == sorted(scores, reverse=True)


def test_a_project_narrows_the_search(commonplace: Command, talks: Path) -> None:
    assert found(commonplace.ok("sessions", "search", "flaky", "--project", BLOG)) == ["e1", "e2"]
    assert "e1" not in found(commonplace.ok("sessions", "search", "flaky", "--project", "shop"))
    assert "flaky" in commonplace("sessions", "search", "flaky", "--project", "shop").out
    commonplace.refused("bad_input", "sessions", "search", "flaky", "--project", "nowhere")


def test_since_leaves_out_what_is_older(commonplace: Command, talks: Path) -> None:
    assert found(commonplace.ok("sessions", "search", "flaky", "--since", "2026-03-06")) == ["e1", "e2"]
    assert found(commonplace.ok("sessions", "search", "flaky", "--since", "2026-04-01")) == []
    commonplace.refused("bad_input", "sessions", "search", "flaky", "--since", "soon")


def test_tool_output_is_found_by_exact_search_alone(commonplace: Command, talks: Path) -> None:
    assert found(commonplace.ok("sessions", "search", "ZEBRA_MARK")) == []
    hits = commonplace.ok("sessions", "search", "--exact", "ZEBRA_MARK")["hits"]
    assert [hit["role"] for hit in hits] == ["tool"]
    assert set(hits[0]) == HIT
    assert hits[0]["turn"] == 1


@pytest.mark.parametrize(
    ("query", "options", "ids"),
    [
        ("flaky", (), ["e1", "f1"]),
        ("FLAKY", (), []),
        ("FLAKY", ("--ignore-case",), ["e1", "f1"]),
        ("ports:\n  - 5433", (), ["p3"]),
        ("flaky", ("--limit", "1"), ["e1"]),
        ("flaky", ("--project", SHOP), ["f1"]),
        ("flaky", ("--since", "2026-03-06"), ["e1"]),
    ],
)
def test_exact_search_is_word_for_word_and_newest_first(
    commonplace: Command, talks: Path, query: str, options: tuple[str, ...], ids: list[str]
) -> None:
    assert found(commonplace.ok("sessions", "search", "--exact", query, *options)) == ids


def test_secrets_are_taken_out_of_hits(commonplace: Command, talks: Path) -> None:
    for options in ((), ("--exact",)):
        text = commonplace("sessions", "search", "remember", *options, "--json").out
        assert "remember" in text
        assert SECRET not in text


def test_the_weight_of_the_model_can_be_set(commonplace: Command, talks: Path) -> None:
    usual = found(commonplace.ok("sessions", "search", "database clouds"))
    heavy = found(commonplace.ok("sessions", "search", "slow database clouds", "--assistant", 1))
    assert usual[0] == "e1"
    assert heavy[0] == "e2"


def test_a_batch_answers_line_by_line(
    commonplace: Command, talks: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    lines = [
        b'{"query": "test database port", "limit": 1}',
        b'{"query": "flaky", "project": "blog"}',
        b"not json",
        b"",
        b'{"limit": 3}',
        b'{"query": "  "}',
        b'{"query": "flaky", "project": "nowhere"}',
        b'{"query": "retry loop", "limit": 1}',
    ]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n".join(lines))))
    ran = commonplace("sessions", "search", "--batch")
    answers = [json.loads(each) for each in ran.out.splitlines()]
    assert ran.code == 1
    assert [found(each) if "hits" in each else each["error"]["code"] for each in answers] == [
        ["p1"],
        ["e1", "e2"],
        "bad_input",
        "bad_input",
        "bad_input",
        "bad_input",
        ["f2"],
    ]
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("query", "--batch"),
        ("query", "--ignore-case"),
        ("--batch", "--exact"),
        ("query", "--assistant", "2"),
        ("query", "--limit", "x"),
    ],
)
def test_wrong_usage_is_exit_2(commonplace: Command, talks: Path, arguments: tuple[str, ...]) -> None:
    assert commonplace("sessions", "search", *arguments).code == 2


@pytest.mark.parametrize(
    "arguments", [("  ",), ("x" * 30_000,), ("flaky", "--limit", "0"), ("flaky", "--limit", "9999999")]
)
def test_what_cannot_be_asked_is_refused(commonplace: Command, talks: Path, arguments: tuple[str, ...]) -> None:
    commonplace.refused("bad_input", "sessions", "search", *arguments)


def test_new_words_are_found_and_deleted_threads_are_not(commonplace: Command, talks: Path) -> None:
    assert found(commonplace.ok("sessions", "search", "walrus")) == []
    write(talks, [*TALKS, line("flaky", "f3", "user", "it was the walrus operator", 6)])
    commonplace.ok("sessions", "import", "--from", "transcript", "--path", talks)
    hit = commonplace.ok("sessions", "search", "walrus")["hits"][0]
    assert hit["source_id"] == "f3"
    assert hit["turn"] == 2
    commonplace.ok("sessions", "delete", hit["thread_id"])
    assert found(commonplace.ok("sessions", "search", "walrus")) == []
    assert found(commonplace.ok("sessions", "search", "websocket")) == []
    assert "p1" in found(commonplace.ok("sessions", "search", "port"))


def test_archived_threads_are_found(commonplace: Command, talks: Path) -> None:
    thread = commonplace.ok("sessions", "search", "websocket")["hits"][0]["thread_id"]
    commonplace.ok("sessions", "archive", thread)
    assert found(commonplace.ok("sessions", "search", "websocket"))[0] == "f1"
    assert found(commonplace.ok("sessions", "search", "--exact", "websocket")) == ["f1"]


def test_one_thread_or_any_session_file_can_be_searched(commonplace: Command, talks: Path, tmp_path: Path) -> None:
    thread = commonplace.ok("sessions", "search", "websocket")["hits"][0]["thread_id"]
    assert found(commonplace.ok("sessions", "search", "flaky retry", "--in", thread)) == ["f1", "f2"]
    other = write(tmp_path / "other.jsonl", [line("x", "x1", "user", "a walrus"), line("x", "x2", "assistant", "ok")])
    hits = commonplace.ok("sessions", "search", "walrus", "--in", other)["hits"]
    assert hits[0]["source_id"] == "x1"
    assert hits[0]["reply"] == "ok"
    assert found(commonplace.ok("sessions", "search", "--exact", "a walrus", "--in", other)) == ["x1"]
    assert found(commonplace.ok("sessions", "search", "walrus")) == []
    commonplace.refused("unknown_thread", "sessions", "search", "walrus", "--in", "no-such-thread")


def test_a_compressed_session_is_searched_as_a_plain_one(commonplace: Command, talks: Path, home: Path) -> None:
    thread = commonplace.ok("sessions", "search", "websocket")["hits"][0]["thread_id"]
    plain = next(home.rglob(f"*{thread}.jsonl"))
    packed = plain.with_name(f"{plain.name}.zst")
    packed.write_bytes(zstandard.compress(plain.read_bytes()))
    plain.unlink()
    hit = commonplace.ok("sessions", "search", "websocket")["hits"][0]
    assert (hit["source_id"], hit["reply"]) == ("f1", "The retry loop races with the close frame.")
    assert found(commonplace.ok("sessions", "search", "--exact", "close frame")) == ["f2"]


def test_a_payload_that_was_spilled_is_searched_too(commonplace: Command, tmp_path: Path, home: Path) -> None:
    long = "x" * 40_000 + " needle-in-the-middle " + "y" * 40_000
    path = write(tmp_path / "long.jsonl", [line("l", "l1", "user", "go"), line("l", "l2", "tool", long, name="shell")])
    commonplace.ok("sessions", "import", "--from", "transcript", "--path", path)
    assert any((home / "blobs").iterdir())
    hits = commonplace.ok("sessions", "search", "--exact", "needle-in-the-middle")["hits"]
    assert [hit["source_id"] for hit in hits] == ["l2"]
    assert len(hits[0]["text"]) < 3_000


def test_people_read_hits_in_a_terminal(commonplace: Command, talks: Path) -> None:
    ran = commonplace("sessions", "search", "test database port", "--limit", 1)
    assert ran.code == 0
    assert "2026-03-01" in ran.out
    assert "› which port" in ran.out
    assert "· It listens on 5433" in ran.out
    assert commonplace("sessions", "search", "quetzal").out == "Nothing was found.\n"


def test_texts_in_scripts_without_spaces_are_found(commonplace: Command, tmp_path: Path) -> None:
    path = write(
        tmp_path / "zh.jsonl",
        [
            line("zh", "z1", "user", "测试数据库的端口是5433"),
            line("ja", "j1", "user", "テスト用データベースの再起動方法を教えて"),
            line("other", "o1", "user", "今天天气很好"),
        ],
    )
    commonplace.ok("sessions", "import", "--from", "transcript", "--path", path)
    assert found(commonplace.ok("sessions", "search", "数据库端口"))[0] == "z1"
    assert found(commonplace.ok("sessions", "search", "データベース 再起動"))[0] == "j1"


def test_copies_of_one_message_are_shown_once(commonplace: Command, tmp_path: Path) -> None:
    text = "a long message about the walrus operator that somebody pasted into two different sessions, word for word"
    path = write(tmp_path / "two.jsonl", [line("a", "a1", "user", text), line("b", "b1", "user", text)])
    commonplace.ok("sessions", "import", "--from", "transcript", "--path", path)
    assert len(found(commonplace.ok("sessions", "search", "walrus operator"))) == 1

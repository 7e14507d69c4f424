"""Whatever a client sends, it gets one well-formed answer or (where none is wanted) silence, and the server goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hostile_messages import answered, silent
from talking import Talk, teach

AFTER = "after"


def is_answer(answer: Any) -> bool:
    """Say whether this is an answer as JSON-RPC has it."""
    if not isinstance(answer, dict) or answer.get("jsonrpc") != "2.0" or "id" not in answer:  # pyright: ignore[reportUnknownMemberType]
        return False
    fields: dict[str, Any] = answer  # pyright: ignore[reportUnknownVariableType]
    known = fields["id"]
    if isinstance(known, bool) or not (known is None or isinstance(known, str | int | float)):
        return False
    if "result" in fields:
        return set(fields) == {"jsonrpc", "id", "result"} and isinstance(fields["result"], dict)
    error = fields.get("error")
    return (
        set(fields) == {"jsonrpc", "id", "error"}
        and isinstance(error, dict)
        and isinstance(error["code"], int)
        and isinstance(error["message"], str)
        and 0 < len(error["message"]) < 2000
    )


def answers(talk: Talk, data: bytes, count: int) -> list[Any]:
    """Send a line and then a good request; return what came for the line."""
    talk.write(data + b"\n")
    talk.send({"jsonrpc": "2.0", "id": AFTER, "method": "ping"})
    found: list[Any] = []
    pinged = False
    while not pinged or len(found) < count:
        answer = talk.receive()
        if isinstance(answer, dict) and answer.get("id") == AFTER:  # pyright: ignore[reportUnknownMemberType]
            assert answer["result"] == {}
            pinged = True
        else:
            found.append(answer)
    return found


def test_there_are_many_cases() -> None:
    cases = [data for _, data in (*answered(), *silent())]

    assert len(cases) >= 500
    assert len({*cases}) >= 450


@pytest.mark.parametrize("begun", [True, False], ids=["in a session", "before it"])
def test_every_hostile_request_is_answered_and_the_server_goes_on(begun: bool, home: Path) -> None:
    teach(home)
    wrong: list[str] = []
    with Talk() as talk:
        if begun:
            talk.begin()
        for name, data in answered():
            if not begun and b'"initialize"' in data and b"2025" in data:
                continue  # that would begin it
            found = answers(talk, data, 1)
            if not (len(found) == 1 and (is_answer(found[0]) or _are_answers(found[0]))):
                wrong.append(f"{name}: {str(found)[:200]}")
        assert talk.request("ping")["result"] == {}
        assert talk.end() == 0

    assert wrong == []
    assert "Traceback" not in talk.stderr


def _are_answers(found: Any) -> bool:
    return isinstance(found, list) and bool(found) and all(map(is_answer, found))  # pyright: ignore[reportUnknownArgumentType]


def test_what_wants_no_answer_gets_none(home: Path) -> None:
    teach(home)
    with Talk() as talk:
        talk.begin()
        said = {name: answers(talk, data, 0) for name, data in silent()}
        listed = talk.call("list")
        assert talk.end() == 0

    assert {name: found for name, found in said.items() if found} == {}
    assert listed["isError"] is False
    assert talk.stderr == ""


def test_nothing_from_outside_comes_back(home: Path, tmp_path: Path) -> None:
    teach(home)
    (tmp_path / "secret.txt").write_text("the sentence that must not be told", "utf-8")
    with Talk(cwd=tmp_path) as talk:
        talk.begin()
        paths = ["../secret.txt", "../../secret.txt", str(tmp_path / "secret.txt"), "../config.toml", "../state.sqlite"]
        told = [talk.call(name, {"path": path, **more}) for path in paths for name, more in READERS]

    assert all(result["isError"] for result in told)
    assert "must not be told" not in json.dumps(told)


@pytest.mark.parametrize(
    "filename",
    ["", "x", "../2026-11-15T10-20-30-a.md", "/tmp/2026-11-15T10-20-30-a.md", "2026-11-15T10-20-30-a.md/x", "\0",
     "2026-11-15T10-20-30-../../a.md", "2026-11-15T10-20-30-A.md", ".md", "2026-11-15T10-20-30-a.md\n", 7, None],
)  # fmt: skip
def test_a_note_goes_nowhere_but_into_its_folder(filename: object, home: Path) -> None:
    teach(home)
    before = {path for path in home.rglob("*") if path.suffix == ".md"}
    with Talk("--allow-notes") as talk:
        talk.begin()
        result = talk.call("add_ad_hoc_note", {"filename": filename, "note": "remember: this"})

    assert result["isError"] is True
    assert {path for path in home.rglob("*") if path.suffix == ".md"} == before


READERS: list[tuple[str, dict[str, Any]]] = [("list", {}), ("read", {}), ("search", {"queries": ["sentence"]})]

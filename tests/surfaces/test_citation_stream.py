"""Citations while an answer streams and when it is finished, and what the ledger keeps of them (spec §3.1 to §3.4)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from command import Command

from commonplace.importers import session_citations
from commonplace.importers.session_citations import CitingAnswer
from commonplace.protocol import citations, events
from commonplace.protocol.citations import (
    CLOSE,
    OPEN,
    AnswerStreams,
    Citation,
    CitationStripper,
    CitedEntry,
    FinishedAnswer,
)
from commonplace.protocol.rollout import Line
from commonplace.rollout import reader
from commonplace.rollout.recorder import Recorder, RecorderOptions
from ledgers import FILE, THREAD, TIME, assistant, user

ONE = "01a1dddc-5c08-7863-8c91-eb8a612fb6a1"
BODY = f"\n<citation_entries>\nMEMORY.md:12-15|note=[port]\n</citation_entries>\n<rollout_ids>\n{ONE}\n</rollout_ids>\n"
CITED = Citation([CitedEntry("MEMORY.md", 12, 15, "port")], [ONE])


@pytest.mark.parametrize(
    ("chunks", "shown", "tail", "bodies"),
    [
        pytest.param(
            ["Hello <oai-mem-", "citation>source A</oai-mem-", "citation> world"],
            ["Hello ", "", " world"],
            "",
            ["source A"],
            id="across chunks, no blanks are cleaned up",
        ),
        pytest.param(
            ["abc <oai-mem-"], ["abc "], "<oai-mem-", [], id="a partial opening is held, then shown at the end"
        ),
        pytest.param(["abc <oai-mem-", "x"], ["abc ", "<oai-mem-x"], "", [], id="what turned out to be text is shown"),
        pytest.param([f"x{OPEN}y"], ["x"], "", ["y"], id="the end of the stream closes"),
        pytest.param([f"x{OPEN}y</oai-mem"], ["x"], "", ["y</oai-mem"], id="a partial closing is body at the end"),
        pytest.param(
            [f"a{OPEN}x{OPEN}y{CLOSE}z{CLOSE}b"],
            [f"az{CLOSE}b"],
            "",
            [f"x{OPEN}y"],
            id="no nesting, a stray close stays",
        ),
        pytest.param([f"{OPEN}1{CLOSE}a{OPEN}2{CLOSE}"], ["a"], "", ["1", "2"], id="several blocks, in order"),
        pytest.param(["", "a", ""], ["", "a", ""], "", [], id="nothing is nothing"),
        pytest.param(list("<<oai"), ["", "<", "", "", ""], "<oai", [], id="a second < begins anew"),
        pytest.param([OPEN.upper()], [OPEN.upper()], "", [], id="capitals are another tag"),
    ],
)
def test_what_is_shown_of_each_piece(chunks: list[str], shown: list[str], tail: str, bodies: list[str]) -> None:
    stripper = CitationStripper()

    assert [stripper.push(chunk) for chunk in chunks] == shown
    assert stripper.finish() == tail
    assert stripper.bodies == bodies


def test_each_item_streams_on_its_own_and_is_seeded_by_its_announcement() -> None:
    streams = AnswerStreams()

    assert streams.added("a", "Hello <oai-mem-") == "Hello "
    assert streams.added("b", "<oai") == ""
    assert streams.delta("a", "citation>hidden") == ""
    assert streams.delta("b", "!") == "<oai!"
    assert streams.delta("a", f"{CLOSE} world <") == " world "
    assert streams.delta("c", "late <oai-mem-citation") == "late "
    assert streams.done("a") == "<"
    assert streams.done("a") == ""
    assert streams.done("never announced") == ""
    assert streams.flush() == {"c": "<oai-mem-citation"}
    assert streams.flush() == {}


def test_what_was_held_back_of_the_announcement_is_shown_once() -> None:
    streams = AnswerStreams()

    shown = [streams.added("a", "x <"), streams.delta("a", "b>"), streams.done("a")]

    assert shown == ["x ", "<b>", ""]


@pytest.mark.parametrize(
    ("text", "visible", "citation"),
    [
        ("plain", "plain", None),
        (f"It is 8080.\n{OPEN}{BODY}{CLOSE}", "It is 8080.\n", CITED),
        (f"{OPEN}{BODY}{CLOSE}\n", "\n", CITED),
        (f"a{OPEN}{BODY}", "a", CITED),
        (f"a{OPEN}nothing that parses{CLOSE}", "a", None),
        ("", "", None),
    ],
)
def test_a_finished_answer_is_what_is_seen_and_what_was_used(
    text: str, visible: str, citation: Citation | None
) -> None:
    assert citations.finished(text) == FinishedAnswer(visible, citation)


@pytest.mark.parametrize(
    ("separator", "paths"),
    [
        ("\n", ["a", "b"]),
        ("\r\n", ["a", "b"]),
        ("\u2028", ["a:1-2|note=[x]\u2028b"]),
        ("\x0b", ["a:1-2|note=[x]\x0bb"]),
    ],
)
def test_only_a_newline_ends_a_line(separator: str, paths: list[str]) -> None:
    found = citations.parse([f"<citation_entries>a:1-2|note=[x]{separator}b:3-4|note=[y]</citation_entries>"])

    assert found is not None
    assert [entry.path for entry in found.entries] == paths


def answer(**more: Any) -> dict[str, Any]:
    return assistant(f"It is 8080.\n{OPEN}{BODY}{CLOSE}", "msg_1", phase="final_answer", **more)


async def recorded_session(home: Path) -> Path:
    """A session with a cited answer, written by the recorder."""
    path = home / "sessions" / "2026" / "11" / "15" / FILE
    meta = {"id": THREAD, "timestamp": TIME, "cwd": "/repo/demo", "source": "cli"}
    now = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)
    recorder = await Recorder.create(path, meta, RecorderOptions(home, lambda: now))
    event = {
        "type": "agent_message",
        "message": "It is 8080.\n",
        "phase": "final_answer",
        "memory_citation": {
            "entries": [{"path": "MEMORY.md", "lineStart": 12, "lineEnd": 15, "note": "port"}],
            "rolloutIds": [ONE],
        },
        "memory_receipt": {"entries": [], "threads": [ONE], "unknown": []},
    }
    recorder.record("event_msg", {"type": "task_started", "turn_id": "t1"})
    recorder.record("response_item", user("which port?"))
    recorder.record("event_msg", {"type": "user_message", "message": "which port?"})
    recorder.record("response_item", answer())
    recorder.record("event_msg", event)
    recorder.record("event_msg", {"type": "task_complete", "turn_id": "t1", "last_agent_message": "It is 8080.\n"})
    await recorder.close()
    return recorder.path


async def test_the_ledger_takes_both_and_its_readers_do(home: Path) -> None:
    path = await recorded_session(home)
    lines = [record for record in reader.forward(path) if isinstance(record, Line)]
    told = [events.event(line.payload) for line in lines if line.type == "event_msg"]
    kept = [msgspec.json.decode(line.payload) for line in lines if line.type == "response_item"]

    assert len(lines) == 7
    assert [event.type for event in told] == ["task_started", "user_message", "agent_message", "task_complete"]
    assert told[2].message == "It is 8080.\n"
    assert kept[-1] == answer()
    assert session_citations.citations_since(path, 0)[0] == [CitingAnswer((ONE,), (("MEMORY.md", 12, 15),))]


def test_commands_read_such_a_session(home: Path, commonplace: Command) -> None:
    anyio.run(recorded_session, home)
    shown = commonplace.ok("sessions", "show", THREAD)
    context = commonplace.ok("sessions", "context", THREAD)
    listed = commonplace.ok("sessions", "list")["threads"]
    checked = commonplace.ok("sessions", "verify", THREAD)

    assert shown["user_texts"] == ["which port?"]
    assert shown["skipped"] == context["receipt"]["skipped"] == []
    assert OPEN in context["items"][-1]["content"][0]["text"]  # the model is shown its own block again
    assert [thread["turns"] for thread in listed] == [1]
    assert checked["ok"]

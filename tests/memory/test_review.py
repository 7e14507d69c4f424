"""What waits for a review and why, and the turn that a source stands in."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.memory.edits import review
from commonplace.memory.entries import LISTED, TOLD, Entry, Kind, Source
from commonplace.memory.evidence import Link
from commonplace.memory.source_turn import TurnLine, read_turn
from ledgers import Script, assistant, function_call, function_output, user

SAID, SHOWN, FAILED, RETOLD = "said by the user", "shown by a command", "verified by exit status", "learned"
PASSING = "said once, and it sounds like a part of the task at hand"
ASKED_FIRST = "the setting `memory.review` is on, so that nothing counts before you keep it"


def entry(
    how: str,
    *,
    kind: Kind = "rule",
    support: int = 1,
    confidence: float = 0.35,
    pinned: bool = False,
    note: str | None = None,
) -> Entry:
    sources = [Source("words", how, f"t{number}", note=note) for number in range(support)]
    return Entry("m1", "shop", kind, "words", support, sources, 0, 0, pinned, confidence)


@pytest.mark.parametrize(
    ("about", "asks_first", "reason"),
    [
        (entry(SAID), False, PASSING),
        (entry(SAID, confidence=LISTED), False, "said once, and nothing says that it lasts"),
        (entry(SAID, support=3, confidence=LISTED), False, "said in 3 sessions, each time as part of the task at hand"),
        (entry("told by the memory, said by the user"), False, PASSING),
        (entry(SHOWN, kind="verify"), False, "ran in one session only"),
        (entry(SHOWN, kind="procedure"), False, "ran in one session only"),
        (entry(SHOWN, kind="procedure", support=2), False, "ran in 2 sessions, and others do the same more often"),
        (entry(SHOWN, kind="failure"), False, "seen in one session only"),
        (entry(FAILED, kind="fix"), False, "seen in one session only"),
        (entry(FAILED, kind="fix", support=2), False, "seen in 2 sessions, and the cure is not clear"),
        (entry(RETOLD, kind="environment"), False, "a summary says so, and no words of a session show it"),
        (entry(SAID), True, ASKED_FIRST),
        (entry(SHOWN, kind="verify"), True, ASKED_FIRST),
    ],
)  # fmt: skip
def test_each_doubt_has_one_plain_reason(about: Entry, asks_first: bool, reason: str) -> None:
    assert review.reason(about, asks_first=asks_first) == reason


@pytest.mark.parametrize(
    ("about", "is_doubtful"),
    [
        (entry(SAID, confidence=LISTED), True),
        (entry(SAID, confidence=TOLD - 0.01), True),
        (entry(SAID, confidence=TOLD), False),
        (entry(SAID, confidence=LISTED - 0.01), False),  # a candidate
        (entry(SAID, confidence=LISTED, support=2), False),
        (entry(SAID, confidence=LISTED, pinned=True), False),
        (entry("written by the user", confidence=LISTED, note="extensions/ad_hoc/notes/a.md"), False),
    ],
)
def test_an_entry_is_doubtful_that_is_listed_and_not_told(about: Entry, is_doubtful: bool) -> None:
    assert review.is_doubtful(about) == is_doubtful


def link(path: Path, turn: int | None, start: int | None = None, thread: str | None = "t") -> Link:
    return Link(
        summary_file=None, thread_id=thread, path=str(path), turn=turn, byte_start=start, byte_end=None, quote="x"
    )


def written(tmp_path: Path, script: Script) -> Path:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(script.data())
    return path


def told(lines: list[TurnLine]) -> list[tuple[str, str]]:
    return [(line.role, line.text) for line in lines]


def test_the_turn_of_a_source_is_its_messages_and_commands(tmp_path: Path) -> None:
    script = Script().turn(user("one"), assistant("first"))
    calls = [
        function_call("c1", arguments='{"cmd": "make check"}'), function_output("c1"),
        function_call("c2", arguments='{"command": ["ls", "-l"]}'), function_output("c2"),
        function_call("c3", arguments="no JSON"),
    ]  # fmt: skip
    script.turn(user("two"), *calls, assistant("second\n<oai-mem-citation>x</oai-mem-citation>"))
    path = written(tmp_path, script.turn(user("three")))

    assert told(read_turn(link(path, 2))) == [
        ("user", "two"),
        ("command", "make check"),
        ("command", "ls -l"),
        ("assistant", "second"),
    ]


def test_of_turns_with_one_number_the_one_with_the_bytes_counts(tmp_path: Path) -> None:
    script = Script().turn(user("one")).turn(user("taken back")).rollback(1)
    start = len(script.data())
    path = written(tmp_path, script.turn(user("said instead")).turn(user("three")))

    assert told(read_turn(link(path, 2, start))) == [("user", "said instead")]


def test_of_a_long_turn_what_is_near_comes(tmp_path: Path) -> None:
    script = Script().turn(user("go"), *(assistant(f"line {number}") for number in range(1_000)))
    path = written(tmp_path, script)
    start = script.data().index(b"line 500")

    found = [line.text for line in read_turn(link(path, 1, start))]
    assert len(found) == 200
    assert "line 500" in found


@pytest.mark.parametrize(
    ("turn", "thread", "exists"), [(None, "t", True), (1, None, True), (1, "t", False), (9, "t", True)]
)
def test_without_a_ledger_or_a_turn_there_is_nothing(
    tmp_path: Path, turn: int | None, thread: str | None, exists: bool
) -> None:
    path = written(tmp_path, Script().turn(user("one")))

    assert read_turn(link(path if exists else tmp_path / "gone.jsonl", turn, thread=thread)) == []

"""Where a thread can be cut, and what a fork from there is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recording import compress

from commonplace.errors import BadInput
from commonplace.rollout import blobs, fork, layout
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import Ledger, SkipLog, open_ledger
from commonplace.rollout.fork import Cut
from ledgers import THREAD, Json, Script, assistant, user

CHILD = "0198c0de-0000-7000-8000-000000000002"
GRANDCHILD = "0198c0de-0000-7000-8000-000000000003"


def words_before(ledger: Ledger, cut: Cut, home: Path) -> list[str]:
    found: list[str] = []
    for line in fork.copied_lines(ledger, cut, BlobStore(home), SkipLog()):
        assert line.type != "session_meta"
        if line.type == "response_item":
            found += [part["text"] for part in msgspec.json.decode(line.payload)["content"]]
    return found


def write_fork(ledger: Ledger, cut: Cut, home: Path, thread_id: str = CHILD) -> Path:
    meta = fork.reference_meta({"id": thread_id}, ledger, cut)
    return Script(thread_id, **{key: value for key, value in meta.items() if key != "id"}).write_home(home)


@pytest.fixture
def four_turns(home: Path) -> Path:
    script = Script(paginated=True)
    for number in range(1, 5):
        script.turn(user(f"question {number}"), assistant(f"answer {number}"))
    return script.write_home(home)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "compressed"])
@pytest.mark.parametrize(
    ("tail", "counts"),
    [
        (b"", 0),
        (b"\n\n", 0),
        (b'{"torn', 0),
        (b"garbage\n", 0),
        (b'garbage\n{"torn', 0),
        (b'{"timestamp":"t","ordinal":26,"type":"x","payload":{}}', 54),
    ],
    ids=["whole", "blank", "torn", "garbage", "both", "no newline"],
)
def test_the_end_of_a_thread_is_after_its_last_whole_line(
    four_turns: Path, home: Path, tail: bytes, counts: int, packed: bool
) -> None:
    whole = four_turns.stat().st_size
    with four_turns.open("ab") as file:
        file.write(tail)
    path = compress(four_turns) if packed else four_turns
    ledger = open_ledger(path)
    cut = fork.end_of(ledger)

    assert (path, whole + counts, 21 if not counts else 27) == (cut.part.path, cut.offset, cut.ordinal)
    log = SkipLog()
    child = open_ledger(write_fork(ledger, cut, home))
    list(fork.copied_lines(child, fork.end_of(child), BlobStore(home), log))
    assert [] == [entry for entry in log.entries if entry.reason == "missing_tail"]


def test_a_paginated_thread_whose_last_line_has_no_ordinal_counts_from_the_one_before(four_turns: Path) -> None:
    with four_turns.open("ab") as file:
        file.write(b'{"timestamp":"t","type":"x","payload":{}}\n')
    cut = fork.end_of(open_ledger(four_turns))

    assert (four_turns.stat().st_size, 21) == (cut.offset, cut.ordinal)


def test_a_legacy_thread_is_cut_without_ordinals(home: Path) -> None:
    ledger = open_ledger(Script().turn(user("a")).write_home(home))
    meta = fork.reference_meta({"id": CHILD}, ledger, fork.end_of(ledger))

    assert "legacy" == meta["history_mode"]
    assert "end_ordinal_exclusive" not in meta["history_base"]


@pytest.mark.parametrize("number", range(1, 5))
def test_a_cut_after_a_turn_keeps_that_turn_and_all_before(four_turns: Path, home: Path, number: int) -> None:
    ledger = open_ledger(four_turns)
    kept = [f"{kind} {each}" for each in range(1, number + 1) for kind in ("question", "answer")]
    by_number, by_id = fork.after_turn(ledger, str(number)), fork.after_turn(ledger, f"turn-{number}")

    assert by_number == by_id
    assert kept == words_before(ledger, by_number, home)
    assert 1 + 5 * number == by_number.ordinal


@pytest.mark.parametrize("turn", ["0", "5", "-1", "turn-9", "", "9" * 5000, "٧", "1.0"])
def test_a_turn_that_is_not_there_is_refused_with_the_number_of_turns(four_turns: Path, turn: str) -> None:
    with pytest.raises(BadInput, match="has no turn") as caught:
        fork.after_turn(open_ledger(four_turns), turn)

    assert "It has 4 turns" in caught.value.hint


def test_turns_that_were_rolled_back_cannot_be_cut_at_and_are_not_counted(home: Path) -> None:
    script = Script().turn(user("1")).turn(user("2")).turn(user("3")).rollback(2).turn(user("4"))
    ledger = open_ledger(script.write_home(home))

    assert ["1", "2", "3"] == words_before(ledger, fork.after_turn(ledger, "1"), home)
    assert ["1", "2", "3", "4"] == words_before(ledger, fork.after_turn(ledger, "2"), home)
    assert ["1", "2", "3", "4"] == words_before(ledger, fork.after_turn(ledger, "turn-4"), home)
    for gone in ("3", "turn-2", "turn-3"):
        with pytest.raises(BadInput):
            fork.after_turn(ledger, gone)


def test_what_a_person_adds_inside_a_turn_belongs_to_it(home: Path) -> None:
    ledger = open_ledger(Script().turn(user("1"), user("and")).turn(user("2")).write_home(home))

    assert ["1", "and"] == words_before(ledger, fork.after_turn(ledger, "1"), home)


def test_without_turn_events_each_message_of_a_person_begins_a_turn(home: Path) -> None:
    ledger = open_ledger(Script().item(user("1"), assistant("a"), user("2"), assistant("b")).write_home(home))

    assert ["1", "a"] == words_before(ledger, fork.after_turn(ledger, "1"), home)


def test_a_turn_in_an_inherited_part_is_cut_in_the_file_that_holds_it(four_turns: Path, home: Path) -> None:
    parent = open_ledger(four_turns)
    child_path = write_fork(parent, fork.after_turn(parent, "3"), home)
    with child_path.open("ab") as file:
        file.write(Script().turn(user("mine")).data().split(b"\n", 1)[1])
    child = open_ledger(child_path)
    cut = fork.after_turn(child, "2")

    assert four_turns == cut.part.path
    assert fork.after_turn(parent, "2").offset == cut.offset
    assert ["question 1", "answer 1", "question 2", "answer 2"] == words_before(child, cut, home)

    grandchild = open_ledger(write_fork(child, cut, home, GRANDCHILD))

    assert [THREAD, CHILD] == [
        grandchild.meta.history_base and grandchild.meta.history_base.thread_id,
        grandchild.meta.forked_from_id,
    ]
    assert [GRANDCHILD, THREAD] == [_named(part.path) for part in grandchild.parts]


def _named(path: Path) -> str:
    named = layout.parse_name(path.name)
    assert named is not None
    return named.thread_id


def test_a_fork_of_the_whole_child_refers_to_the_child(four_turns: Path, home: Path) -> None:
    parent = open_ledger(four_turns)
    child = open_ledger(write_fork(parent, fork.after_turn(parent, "3"), home))
    grandchild = open_ledger(write_fork(child, fork.end_of(child), home, GRANDCHILD))

    assert [GRANDCHILD, CHILD, THREAD] == [_named(part.path) for part in grandchild.parts]
    assert words_before(child, fork.end_of(child), home) == words_before(grandchild, fork.end_of(grandchild), home)


def test_a_fork_of_a_file_with_a_name_of_its_own_can_be_opened(tmp_path: Path, home: Path) -> None:
    ledger = open_ledger(Script().turn(user("1")).write(tmp_path, "exported.jsonl"))
    child = open_ledger(write_fork(ledger, fork.end_of(ledger), home))

    assert ["1"] == words_before(child, fork.end_of(child), home)


def test_a_copy_has_its_spilled_values_inlined(home: Path) -> None:
    store = BlobStore(home)
    payload, refs = blobs.spill("response_item", user("x" * 5000), store, 1024)
    whole: list[Json] = [
        {"pointer": r.pointer, "sha256": r.sha256, "bytes": r.bytes, "media_type": r.media_type} for r in refs
    ]
    ledger = open_ledger(Script().line("response_item", payload, blob=whole).write_home(home))

    assert ["x" * 5000] == words_before(ledger, fork.end_of(ledger), home)


steps = st.lists(
    st.tuples(st.just("turn"), st.integers(1, 2)) | st.tuples(st.just("rollback"), st.integers(0, 3)), max_size=12
)


@given(steps)
def test_the_turns_that_can_be_cut_at_are_those_that_a_replay_leaves(
    tmp_path_factory: pytest.TempPathFactory, plan: list[tuple[str, int]]
) -> None:
    """A rollback counts what a person said, as the history does: a turn that was steered counts twice."""
    script, kept = Script(), list[tuple[str, int]]()
    for place, (kind, count) in enumerate(plan):
        if kind == "turn":
            script.turn(*(user(f"{place}") for _ in range(count)))
            kept.append((str(place), count))
        else:
            script.rollback(count)
            left_over = count
            while kept and left_over > 0:
                left_over -= kept.pop()[1]
    left = [text for text, _ in kept]
    ledger = open_ledger(script.write(tmp_path_factory.mktemp("any")))
    home: Any = tmp_path_factory.getbasetemp()

    for number, text in enumerate(left, 1):
        assert text in words_before(ledger, fork.after_turn(ledger, str(number)), home)
        if number < len(left):
            assert left[number] not in words_before(ledger, fork.after_turn(ledger, str(number)), home)
    with pytest.raises(BadInput):
        fork.after_turn(ledger, str(len(left) + 1))

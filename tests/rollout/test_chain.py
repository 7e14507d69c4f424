"""A thread as a chain of files: what is inherited, from where, and what is said when something of it is missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from recording import compress

from commonplace.errors import LedgerError, NotASession, ParentMissing
from commonplace.protocol.rollout import Skipped
from commonplace.rollout import chain, reader
from commonplace.rollout.chain import Ledger, SkipLog, open_ledger, read_head
from commonplace.rollout.checkpoint import Tail
from ledgers import THREAD, Json, Script, user

CHILD = "0198c0de-0000-7000-8000-000000000002"
GRANDCHILD = "0198c0de-0000-7000-8000-000000000003"


def base(thread_id: str, offset: int, **more: Any) -> Json:
    return {"thread_id": thread_id, "end_byte_offset": offset, **more}


def told(ledger: Ledger) -> tuple[list[str], list[Skipped]]:
    """Return what was said in a thread and what is missing of it; both directions must agree."""
    log = SkipLog()
    forth = [words for _, line in chain.forward(ledger, log) if (words := _words(line))]
    tail = Tail(ledger)
    back = [words for line in tail if (words := _words(line))]
    assert forth == back[::-1]
    assert sorted(log.entries, key=str) == sorted(tail.log.entries, key=str)
    return forth, log.entries


def _words(line: Any) -> str:
    if line.type != "response_item":
        return ""
    return msgspec.json.decode(line.payload)["content"][0]["text"]


@pytest.fixture
def parent(home: Path) -> Path:
    return Script().item(user("one"), user("two"), user("three")).write_home(home)


def after(path: Path, text: str) -> int:
    """Return the byte after the line that holds a text."""
    data = path.read_bytes()
    return data.index(b"\n", data.index(text.encode())) + 1


def child_of(source: Path, text: str, thread_id: str = CHILD, **more: Any) -> Script:
    named = source.name.removesuffix(".zst").removesuffix(".jsonl")[-36:]
    return Script(thread_id, history_base=base(named, after(source, text), **more))


def test_a_thread_of_its_own_has_one_part(parent: Path) -> None:
    ledger = open_ledger(parent)

    assert (THREAD, [parent]) == (ledger.thread_id, [part.path for part in ledger.parts])
    assert (["one", "two", "three"], []) == told(ledger)


def test_a_fork_is_its_parents_beginning_and_its_own_lines(parent: Path, home: Path) -> None:
    child = child_of(parent, "two").item(user("four")).write_home(home)

    assert (["one", "two", "four"], []) == told(open_ledger(child))


def test_a_fork_of_a_fork_goes_back_to_the_first(parent: Path, home: Path) -> None:
    child = child_of(parent, "two").item(user("four"), user("five")).write_home(home)
    grandchild = child_of(child, "four", GRANDCHILD).item(user("six")).write_home(home)
    ledger = open_ledger(grandchild)

    assert [grandchild, child, parent] == [part.path for part in ledger.parts]
    assert (["one", "two", "four", "six"], []) == told(ledger)


def test_what_a_parent_adds_later_is_not_inherited(parent: Path, home: Path) -> None:
    child = child_of(parent, "three").write_home(home)
    with parent.open("ab") as file:
        file.write(Script().item(user("later")).lines[1] + b"\n")

    assert (["one", "two", "three"], []) == told(open_ledger(child))


def test_a_parent_that_was_compressed_or_archived_is_found(parent: Path, home: Path) -> None:
    child = child_of(parent, "two").item(user("four")).write_home(home)
    archived = home / "archived_sessions" / compress(parent).name
    archived.parent.mkdir()
    parent.with_name(parent.name + ".zst").rename(archived)
    ledger = open_ledger(child)

    assert archived == ledger.parts[1].path
    assert (["one", "two", "four"], []) == told(ledger)


def test_a_parent_in_another_home_is_found_by_the_path_that_was_noted(parent: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    child = child_of(parent, "two", path=str(parent)).write_home(elsewhere)

    assert parent == open_ledger(child).parts[1].path

    packed = compress(parent)

    assert packed == open_ledger(child).parts[1].path
    assert (["one", "two"], []) == told(open_ledger(child))


def test_a_parent_in_another_home_is_found_by_naming_the_home(parent: Path, home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    child = child_of(parent, "two").write_home(elsewhere)
    with pytest.raises(ParentMissing):
        open_ledger(child)

    assert parent == open_ledger(child, [home]).parts[1].path


def test_a_parent_with_a_name_of_its_own_is_known_by_the_thread_it_holds(tmp_path: Path) -> None:
    odd = Script().item(user("one")).write(tmp_path, "my session.jsonl")
    child = Script(CHILD, history_base=base(THREAD, after(odd, "one"), path=str(odd))).write(
        tmp_path / "home" / "sessions"
    )

    assert (["one"], []) == told(open_ledger(child))


def test_a_noted_path_that_holds_another_thread_now_is_not_used(parent: Path, home: Path, tmp_path: Path) -> None:
    other = Script(GRANDCHILD).item(user("other")).write(tmp_path, "odd.jsonl")
    child = child_of(parent, "two", path=str(other)).write_home(home)

    assert parent == open_ledger(child).parts[1].path


def test_a_missing_parent_is_named(parent: Path, home: Path) -> None:
    child = child_of(parent, "two").write_home(home)
    parent.unlink()
    with pytest.raises(ParentMissing) as caught:
        open_ledger(child)

    assert (CHILD, THREAD) == (caught.value.data["thread_id"], caught.value.data["parent"])


@pytest.mark.parametrize(
    "thread_id",
    ["", "1", "../x", "%", "f" * 8 + "-ffff-7fff-8fff-" + "f" * 12, "0" * 8 + "-0000-7000-8000-" + "0" * 12, "\0"],
)
def test_a_parent_id_that_means_nothing_finds_nothing(home: Path, thread_id: str) -> None:
    child = Script(CHILD, history_base=base(thread_id, 5)).write_home(home)
    Script(GRANDCHILD).write_home(home)
    with pytest.raises(ParentMissing):
        open_ledger(child)


def test_a_thread_that_continues_itself_is_an_error(home: Path) -> None:
    child = Script(CHILD, history_base=base(CHILD, 5)).write_home(home)
    with pytest.raises(LedgerError, match="refers to itself"):
        open_ledger(child)


def test_two_threads_that_continue_each_other_are_an_error(home: Path) -> None:
    one = Script(CHILD, history_base=base(GRANDCHILD, 5)).write_home(home)
    Script(GRANDCHILD, history_base=base(CHILD, 5)).write_home(home)
    with pytest.raises(LedgerError, match="refers to itself"):
        open_ledger(one)


def test_an_offset_below_zero_is_an_error(parent: Path, home: Path) -> None:
    child = Script(CHILD, history_base=base(THREAD, -1)).write_home(home)
    with pytest.raises(LedgerError):
        open_ledger(child)


def test_the_longest_chain_that_is_read_is_read_in_order(home: Path) -> None:
    ids = [f"0198c0de-0000-7000-8000-{number:012x}" for number in range(300)]
    path = Script(ids[0]).item(user("0")).write_home(home)
    for number, thread_id in enumerate(ids[1:], 1):
        path = child_of(path, f'"{number - 1}"', thread_id).item(user(str(number))).write_home(home)

    assert ([str(number) for number in range(300)], []) == told(open_ledger(path))


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "compressed"])
def test_a_parent_shorter_than_what_is_inherited_is_reported(parent: Path, home: Path, packed: bool) -> None:
    child = child_of(parent, "three").item(user("four")).write_home(home)
    end, cut = after(parent, "three"), after(parent, "two")
    os.truncate(parent, cut)
    if packed:
        compress(parent)

    assert (["one", "two", "four"], [Skipped(cut, end - cut, "missing_tail")]) == told(open_ledger(child))


def test_a_parent_cut_in_the_middle_of_a_line_is_reported_twice(parent: Path, home: Path) -> None:
    child = child_of(parent, "three").write_home(home)
    end, begin = after(parent, "three"), after(parent, "two")
    os.truncate(parent, begin + 10)
    said, missing = told(open_ledger(child))

    assert ["one", "two"] == said
    assert [Skipped(begin, 10, "torn"), Skipped(begin + 10, end - begin - 10, "missing_tail")] == missing


def test_an_offset_in_the_middle_of_a_line_leaves_a_torn_line(parent: Path, home: Path) -> None:
    begin = after(parent, "two")
    child = Script(CHILD, history_base=base(THREAD, begin + 7)).write_home(home)

    assert (["one", "two"], [Skipped(begin, 7, "torn")]) == told(open_ledger(child))


def test_an_offset_of_zero_inherits_nothing(parent: Path, home: Path) -> None:
    assert ([], []) == told(open_ledger(Script(CHILD, history_base=base(THREAD, 0)).write_home(home)))


# The first line


def test_the_first_session_meta_is_the_threads_identity(home: Path) -> None:
    path = Script(CHILD).line("session_meta", {"id": THREAD}).write_home(home)

    assert CHILD == read_head(path)[1].id


def test_a_damaged_first_line_gives_way_to_the_next_session_meta(home: Path) -> None:
    script = Script(CHILD)
    script.lines[:0] = [b"torn {", b'{"timestamp":"t","type":"session_meta","payload":{"id":7}}']

    assert CHILD == read_head(script.write_home(home))[1].id


def test_a_history_mode_nobody_knows_is_refused(home: Path) -> None:
    with pytest.raises(LedgerError, match="sideways"):
        read_head(Script(CHILD, history_mode="sideways").write_home(home))


@pytest.mark.parametrize("data", [b"", b"\n \n"])
def test_a_file_without_lines_is_called_empty(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    with pytest.raises(NotASession, match="is empty"):
        read_head(path)


def test_a_session_meta_is_not_looked_for_in_a_whole_large_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "_HEAD_BYTES", 2000)
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"what is this\n" * 1000 + Script().data())
    read: list[int] = []
    real = reader.forward

    def forward(*arguments: Any, **more: Any):
        for record in real(*arguments, **more):
            read.append(record.offset)
            yield record

    monkeypatch.setattr(reader, "forward", forward)
    with pytest.raises(NotASession, match="no session_meta"):
        read_head(path)

    assert max(read) < 2100


def test_the_list_of_what_could_not_be_used_has_an_end() -> None:
    log = SkipLog(limit=3)
    for number in range(1000):
        log.add(Skipped(number * 10, 5, "not_json"))

    assert 3 == len(log.entries)
    assert Skipped(20, 998 * 5, "and_more") == log.entries[-1]

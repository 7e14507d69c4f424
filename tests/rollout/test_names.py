"""The index of thread names: append-only, the newest entry of an id wins, nobody's lines are lost."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recording import no_sync

from commonplace.errors import LedgerError
from commonplace.rollout import thread_names
from ledgers import TIME


def index(home: Path, data: bytes) -> Path:
    home.mkdir(exist_ok=True)
    (home / thread_names.FILE).write_bytes(data)
    return home / thread_names.FILE


def entry(thread_id: str, name: str) -> bytes:
    return f'{{"id":"{thread_id}","thread_name":"{name}","updated_at":"{TIME}"}}\n'.encode()


def test_a_home_without_an_index_has_no_names_and_gets_none_by_reading(home: Path) -> None:
    assert {} == thread_names.read(home)
    assert not home.exists()


def test_a_name_is_written_as_codex_writes_it(home: Path) -> None:
    thread_names.append(home, "t1", "  Fix the parser ", TIME)

    assert entry("t1", "Fix the parser") == (home / thread_names.FILE).read_bytes()
    assert 0o600 == stat.S_IMODE((home / thread_names.FILE).stat().st_mode)


def test_the_newest_entry_of_an_id_wins(home: Path) -> None:
    for name in ("first", "second", "third"):
        thread_names.append(home, "t1", name, TIME)
        thread_names.append(home, "t2", "other", TIME)

    assert {"t1": "third", "t2": "other"} == thread_names.read(home)
    assert 6 == len((home / thread_names.FILE).read_bytes().splitlines())


@pytest.mark.parametrize("blank", ["", "  ", "\t\n"])
def test_an_empty_name_takes_the_name_away(home: Path, blank: str) -> None:
    thread_names.append(home, "t1", "named", TIME)
    thread_names.append(home, "t1", blank, TIME)

    assert {} == thread_names.read(home)

    thread_names.append(home, "t1", "again", TIME)

    assert {"t1": "again"} == thread_names.read(home)


MALFORMED = [b"{", b"\xff\xfe", b"[]", b'{"id":7,"thread_name":"x"}', b'{"id":"t1"}', b"[" * 3000, b"x" * 200_000]


@pytest.mark.parametrize("bad", MALFORMED, ids=lambda bad: str(bad[:12]))
def test_malformed_lines_are_passed_over_by_readers_and_kept_by_rewrites(home: Path, bad: bytes) -> None:
    path = index(home, entry("t1", "one") + bad + b"\n" + entry("t2", "two") + entry("t1", "uno") + b"\n")

    assert {"t1": "uno", "t2": "two"} == thread_names.read(home)

    thread_names.remove(home, "t1")

    assert bad + b"\n" + entry("t2", "two") + b"\n" == path.read_bytes()


def test_fields_that_a_newer_program_adds_do_no_harm(home: Path) -> None:
    index(home, b'{"color":"red","id":"t1","thread_name":"one"}\n')

    assert {"t1": "one"} == thread_names.read(home)


def test_a_torn_last_entry_is_closed_off_by_the_next_one(home: Path) -> None:
    path = index(home, entry("t1", "one") + b'{"id":"t2","thread_na')
    thread_names.append(home, "t3", "three", TIME)

    assert {"t1": "one", "t3": "three"} == thread_names.read(home)
    assert entry("t1", "one") + b'{"id":"t2","thread_na\n' + entry("t3", "three") == path.read_bytes()


def test_a_last_entry_without_newline_counts(home: Path) -> None:
    index(home, entry("t1", "one") + entry("t2", "two")[:-1])

    assert {"t1": "one", "t2": "two"} == thread_names.read(home)


def test_removing_leaves_no_trace_of_the_thread(home: Path) -> None:
    path = index(home, entry("t1", "secret") + entry("t2", "two") + entry("t1", "secret again")[:-1])
    thread_names.remove(home, "t1")
    thread_names.remove(home, "t9")

    assert entry("t2", "two") == path.read_bytes()
    assert {thread_names.FILE, "locks"} == {place.name for place in home.iterdir()}


def test_removing_from_no_index_makes_none(home: Path) -> None:
    thread_names.remove(home, "t1")

    assert not home.exists()


def test_a_rewrite_that_fails_leaves_the_index_as_it_was(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = index(home, entry("t1", "one") + entry("t2", "two"))
    before = path.read_bytes()

    def broken(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(LedgerError, match="No space"):
            thread_names.remove(home, "t1")

    assert before == path.read_bytes()
    assert [] == list(home.glob("*.tmp"))


def test_a_name_that_found_only_half_its_room_is_an_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def short(descriptor: int, data: bytes) -> int:
        return real(descriptor, data[:10])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", short)
        with pytest.raises(LedgerError, match="No space"):
            thread_names.append(home, "t1", "one", TIME)
    thread_names.append(home, "t1", "again", TIME)

    assert {"t1": "again"} == thread_names.read(home)


def test_names_given_while_others_are_removed_are_not_lost(home: Path) -> None:
    thread_names.append(home, "start", "start", TIME)

    def give(letter: str) -> None:
        for number in range(40):
            thread_names.append(home, f"{letter}{number}", "name", TIME)

    def take() -> None:
        for number in range(40):
            thread_names.remove(home, f"a{number}")

    threads = [threading.Thread(target=give, args=(letter,)) for letter in "bcd"] + [threading.Thread(target=take)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", no_sync)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert {"start", *(f"{letter}{number}" for letter in "bcd" for number in range(40))} == thread_names.read(
        home
    ).keys()


def test_an_index_that_is_no_file_holds_no_names(home: Path) -> None:
    home.mkdir()
    os.mkfifo(home / thread_names.FILE)

    assert {} == thread_names.read(home)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.text(max_size=8)), max_size=10))
def test_any_names_read_back_as_the_newest_of_each(
    tmp_path_factory: pytest.TempPathFactory, given_names: list[tuple[str, str]]
) -> None:
    home = tmp_path_factory.mktemp("any")
    expected: dict[str, str] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", no_sync)
        for thread_id, name in given_names:
            thread_names.append(home, thread_id, name, TIME)
            expected[thread_id] = name.strip()

    assert {thread_id: name for thread_id, name in expected.items() if name} == thread_names.read(home)

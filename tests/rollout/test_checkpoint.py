"""The newest lines first: as far back as a replay needs, also where a file can only be read forwards."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from recording import compress

from commonplace.protocol.rollout import Line
from commonplace.rollout import checkpoint
from commonplace.rollout.chain import open_ledger
from commonplace.rollout.checkpoint import Tail
from ledgers import Script, user


def offsets(path: Path) -> list[int]:
    return [line.offset for line in Tail(open_ledger(path))]


def test_a_tail_gives_the_lines_of_plain_and_compressed_files_alike(home: Path) -> None:
    path = Script().turn(user("a")).compacted([user("s")]).raw(b"bad").turn(user("b")).write_home(home)
    plain, log = offsets(path), Tail(open_ledger(path))
    list(log)
    packed = Tail(open_ledger(compress(path)))

    assert plain == [line.offset for line in packed]
    assert plain == sorted(plain, reverse=True)
    assert log.log.entries == packed.log.entries


def test_what_is_not_pulled_is_not_read(home: Path) -> None:
    script = Script()
    for number in range(3000):
        script.item(user(f"{number} " + "x" * 500))
    path = script.write_home(home)
    tail = Tail(open_ledger(path))
    newest = list(islice(tail, 5))

    assert 5 == len([line for line in newest if isinstance(line, Line)])
    assert tail.bytes_read <= 64 * 1024 < path.stat().st_size


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "SLACK_BYTES", 2000)
    monkeypatch.setattr(checkpoint, "LIVE_BYTES", 6000)


def script_with_checkpoint(after: int) -> Script:
    script = Script()
    for number in range(50):
        script.item(user(f"before {number} " + "x" * 200))
    script.compacted([user("summary")])
    for number in range(after):
        script.item(user(f"after {number} " + "x" * 200))
    return script


@pytest.mark.usefixtures("tight")
def test_of_a_compressed_file_only_the_lines_around_its_checkpoint_are_held(home: Path) -> None:
    script = script_with_checkpoint(after=10)
    path = script.write_home(home)
    place = path.read_bytes().index(b'"compacted"')
    tail = Tail(open_ledger(compress(path)))
    held = list(tail)

    assert [] == tail.log.entries
    assert 10 == len([line for line in held if line.offset > place])
    assert sum(line.size for line in held) <= 8000
    assert len(held) < len(script.lines)


@pytest.mark.usefixtures("tight")
def test_of_a_compressed_file_whose_live_lines_are_too_many_the_oldest_are_reported(home: Path) -> None:
    tail = Tail(open_ledger(compress(script_with_checkpoint(after=60).write_home(home))))
    held = list(tail)

    assert ["beyond_bound"] == [entry.reason for entry in tail.log.entries]
    assert sum(line.size for line in held) <= 8000
    assert b"after 59" in bytes(held[0].payload)


@pytest.mark.usefixtures("tight")
def test_a_rollback_after_a_checkpoint_makes_everything_live_again(home: Path) -> None:
    path = compress(script_with_checkpoint(after=2).rollback(1).write_home(home))
    tail = Tail(open_ledger(path))

    assert "thread_rolled_back" in str(bytes(next(iter(tail)).payload))
    assert ["beyond_bound"] == [entry.reason for entry in tail.log.entries]


def test_damaged_compactions_and_events_do_not_stop_the_search_for_a_checkpoint(home: Path) -> None:
    script = Script().item(user("a")).compacted([user("s")])
    script.line("compacted", {"replacement_history": 7}).line("compacted", 7)
    script.event("thread_rolled_back", num_turns="many").line("event_msg", ["thread_rolled_back"])
    path = script.write_home(home)

    assert offsets(path) == offsets(compress(path))

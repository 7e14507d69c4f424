"""Whatever kills a writer: what it acknowledged is in the file, and the file goes on from there."""

from __future__ import annotations

import os
import random
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec
import pytest
from recording import options, say, session_file, skipped, texts, types

import processes
from commonplace.context.reconstruct import reconstruct
from commonplace.errors import ThreadBusy
from commonplace.protocol.rollout import Line, Skipped
from commonplace.rollout import blobs, reader
from commonplace.rollout.chain import open_ledger
from commonplace.rollout.checkpoint import Tail
from commonplace.rollout.recorder import Recorder
from ledgers import Script, assistant, function_call, function_output, user

PROGRAM = Path(__file__).with_name("writer_program.py")


# A file cut at any byte


def replayed(path: Path) -> list[str]:
    """Return the texts that a model would be shown, and the outputs of calls."""
    ledger = open_ledger(path)
    found = reconstruct(Tail(ledger), ledger.meta)
    shown: list[str] = []
    for raw in found.history.for_prompt():
        item = msgspec.json.decode(raw)
        shown += [part["text"] for part in item.get("content", [])] or [item.get("output", item.get("name", ""))]
    return shown


def script() -> Script:
    made = Script().turn(user("first question"), assistant("first answer"))
    made.event("task_started", turn_id="turn-2").item(user("second ⁇ question"))
    return made.item(function_call("c1"), function_output("c1", "done ✓")).item(assistant("second answer"))


async def test_a_file_cut_at_any_byte_of_its_last_lines_goes_on_with_all_that_was_whole(tmp_path: Path) -> None:
    data = script().data()
    lines = data.splitlines(keepends=True)
    kept = sum(map(len, lines[:-3]))
    path = tmp_path / "sessions" / Path(session_file(tmp_path).name)
    path.parent.mkdir()
    for cut in range(kept, len(data) + 1):
        path.write_bytes(data[:cut])
        async with await Recorder.resume(path, options(tmp_path, fsync="never")) as recorder:
            say(recorder, "after the crash")

        ends = [end for end in _ends(lines) if end <= cut + 1]  # a whole line counts without its newline
        torn = data[ends[-1] : cut] if ends[-1] < cut else b""
        assert path.read_bytes().startswith(data[:cut]), cut
        assert [Skipped(ends[-1], len(torn), "not_json")] * bool(torn) == [
            Skipped(each.offset, each.bytes, "not_json") for each in skipped(path)
        ], cut
        whole = [line.type for line in reader.forward(path, end=min(cut, ends[-1])) if isinstance(line, Line)]
        assert [*whole, *["skipped"] * bool(torn), "response_item"] == [
            kind if kind in ("session_meta", "event_msg", "turn_context", "response_item") else "skipped"
            for kind in types(path)
        ], cut
        assert _expected(len(ends)) == replayed(path), cut


def _ends(lines: list[bytes]) -> list[int]:
    return [sum(map(len, lines[: count + 1])) for count in range(len(lines))]


def _expected(lines: int) -> list[str]:
    """Return what is replayed of the script's first lines; a call that lost its output is answered for it."""
    items = {4: "first question", 5: "first answer", 8: "second ⁇ question", 9: "exec_command", 10: "done ✓"}
    shown = [text for number, text in items.items() if number <= lines]
    if lines == 9:
        shown.append("aborted")
    return [*shown, *(["second answer"] if lines > 10 else []), "after the crash"]


# A writer that is killed


@dataclass(slots=True)
class Writer:
    """The program in a process of its own."""

    process: processes.Process

    @property
    def out(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def end(self) -> None:
        """Let it end by itself."""
        self.process.communicate()
        assert 0 == self.process.returncode

    def kill(self) -> list[str]:
        """Kill it at once; return what it had still said before."""
        self.process.send_signal(signal.SIGKILL)
        said, _ = self.process.communicate()
        return said.split("\n")[:-1]


def start(home: Path, how: str, *, first: int = 0, count: int = 0, fsync: str = "never") -> Writer:
    arguments = [home, session_file(home), how, fsync, first, count]
    code = PROGRAM.read_text("utf-8")
    return Writer(processes.Process(arguments, stdin=processes.PIPE, stderr=2, text=True, code=code))


def numbers(path: Path) -> list[int]:
    return [int(text.split(" ", 1)[0]) for text in texts(path)]


def kill_at_random(home: Path, rounds: int, chance: random.Random) -> tuple[int, int]:
    """Kill and go on with one thread; check the file each time. Returns what was acknowledged and what was torn."""
    path = session_file(home)
    acknowledged = torn = 0
    for _ in range(rounds):
        first = numbers(path)[-1] + 1 if path.exists() else 0
        writer = start(
            home, "resume" if path.exists() else "create", first=first, fsync=chance.choice(["never", "line"])
        )
        said = [line for _ in range(chance.randrange(1, 60)) if (line := writer.out.readline().strip())]
        for _ in range(chance.randrange(3000)):
            pass  # let it run on for some microseconds: the kill falls anywhere between two acknowledgements
        said += writer.kill()
        acknowledged = int(said[-1])

        found = numbers(path)
        assert list(range(len(found))) == found, "in order, none twice, none missing"
        assert acknowledged <= len(found), "what was acknowledged is there"
        torn += not path.read_bytes().endswith(b"\n")
    _check_blobs(home, path)
    return acknowledged, torn


def _check_blobs(home: Path, path: Path) -> None:
    store = blobs.BlobStore(home)
    for record in reader.forward(path):
        if isinstance(record, Line):
            assert all(store.state(ref.sha256) == "ok" for ref in record.blobs())


async def goes_on(home: Path) -> None:
    path = session_file(home)
    count = len(numbers(path))
    async with await Recorder.resume(path, options(home)) as recorder:
        say(recorder, f"{count} resumed")

    assert list(range(count + 1)) == numbers(path)


async def test_nothing_acknowledged_is_missing_after_a_kill(home: Path) -> None:
    acknowledged, _ = kill_at_random(home, 12, random.Random(12))

    assert acknowledged > 0
    await goes_on(home)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_nothing_acknowledged_is_missing_after_two_hundred_kills(home: Path) -> None:
    acknowledged, torn = kill_at_random(home, 200, random.Random(os.urandom(8)))
    await goes_on(home)
    print(f"soak: 200 kills, {acknowledged} lines acknowledged, {torn} torn, {session_file(home).stat().st_size} bytes")


# One writer


async def test_the_lock_of_a_killed_writer_is_free_at_once(home: Path) -> None:
    writer = start(home, "create")
    writer.out.readline()
    with pytest.raises(ThreadBusy) as caught:
        await Recorder.resume(session_file(home), options(home))

    assert str(writer.process.pid) == caught.value.data["holder"]
    assert str(writer.process.pid) in caught.value.message

    writer.kill()
    async with await Recorder.resume(session_file(home), options(home)):
        pass


async def test_a_second_recorder_in_the_same_process_is_refused(home: Path) -> None:
    path = Script().write_home(home)
    async with await Recorder.resume(path, options(home)):
        with pytest.raises(ThreadBusy) as caught:
            await Recorder.resume(path, options(home))
    async with await Recorder.resume(path, options(home)):
        pass

    assert str(os.getpid()) == caught.value.data["holder"]


def race(home: Path, rounds: int) -> list[int]:
    """Let two processes reach for one thread at the same moment, round after round; return who won."""
    winners: list[int] = []
    for _ in range(rounds):
        shutil.rmtree(home, ignore_errors=True)
        path = Script().write_home(home)
        writers = [start(home, "race", first=base, count=60) for base in (0, 1_000_000)]
        assert ["ready"] * 2 == [writer.out.readline().strip() for writer in writers]
        for writer in writers:
            writer.tell("go")
        answers = [writer.out.readline().split() for writer in writers]
        lost = [place for place, answer in enumerate(answers) if answer[0] == "busy"]
        assert 1 == len(lost), "exactly one of them writes"
        winner = 1 - lost[0]
        assert answers[lost[0]][1:] in ([str(writers[winner].process.pid)], []), "it is told who has the thread"
        for writer in writers:
            writer.end()
        assert [number + winner * 1_000_000 for number in range(len(numbers(path)))] == numbers(path)
        assert [] == skipped(path)
        winners.append(winner)
    return winners


def test_of_two_processes_that_race_for_a_thread_exactly_one_writes(home: Path) -> None:
    race(home, 8)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_of_two_processes_that_race_a_hundred_times_exactly_one_writes(home: Path) -> None:
    winners = race(home, 100)
    print(f"soak: 100 races, the first process won {winners.count(0)}")

    assert 100 == len(winners)

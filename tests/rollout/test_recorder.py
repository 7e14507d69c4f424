"""The recorder: what it writes, in which order, when the file appears, and how a thread is taken up again."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
import zstandard
from recording import (
    Clock,
    compress,
    create,
    meta,
    open_descriptors,
    options,
    ordinals,
    said,
    say,
    session_file,
    skipped,
    texts,
    types,
)

from commonplace.errors import LedgerError, NotASession, WriteFailed
from commonplace.protocol.rollout import Line, Skipped
from commonplace.rollout import reader
from commonplace.rollout.recorder import Recorder, RecorderOptions
from ledgers import THREAD, Script, user
from waiting import until


@pytest.fixture
def started() -> Callable[[], set[threading.Thread]]:
    """Return the threads that the test started and that have not ended."""
    before = set(threading.enumerate())
    return lambda: {thread for thread in set(threading.enumerate()) - before if thread.name.startswith("recorder-")}


Started = Callable[[], set[threading.Thread]]


async def test_lines_stand_in_the_order_they_were_recorded(home: Path) -> None:
    numbers = [str(number) for number in range(5000)]
    async with await create(home) as recorder:
        for place, number in enumerate(numbers):
            say(recorder, number)
            if place % 1000 == 0:
                await recorder.flush()

    assert numbers == texts(session_file(home))
    assert "session_meta" == types(session_file(home))[0]


async def test_a_recorder_that_rests_has_no_thread_and_goes_on(
    home: Path, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.rollout.recorder._REST_SECONDS", 0.0)
    async with await create(home) as recorder:
        assert set() == started()
        for number in range(3):
            say(recorder, str(number))
            await recorder.flush()
            await until(lambda: not started())
        say(recorder, "3")  # no barrier comes before the next line
        await until(lambda: texts(session_file(home))[-1:] == ["3"])

    assert ["0", "1", "2", "3"] == texts(session_file(home))
    assert set() == started()


async def test_lines_from_many_threads_keep_the_order_of_each(home: Path) -> None:
    async with await create(home) as recorder:
        say(recorder, "start")
        await recorder.flush()

        def tell(name: str) -> None:
            for number in range(300):
                say(recorder, f"{name}{number}")

        tellers = [threading.Thread(target=tell, args=(name,)) for name in "abc"]
        for teller in tellers:
            teller.start()
        for teller in tellers:
            await anyio.to_thread.run_sync(teller.join)

    found = texts(session_file(home))
    for name in "abc":
        assert [f"{name}{number}" for number in range(300)] == [text for text in found if text[0] == name]


async def test_a_session_in_which_nothing_happened_leaves_nothing_behind(home: Path) -> None:
    recorder = await create(home)
    await recorder.flush()
    await recorder.end_turn()
    await recorder.close()

    assert not (home / "sessions").exists()
    assert [] == list((home / "locks").iterdir())


async def test_recording_makes_no_file_before_the_first_barrier(home: Path) -> None:
    recorder = await create(home)
    say(recorder, "hello")

    assert not (home / "sessions").exists()

    await recorder.flush()

    assert ["session_meta", "response_item"] == types(session_file(home))
    await recorder.close()


async def test_closing_writes_what_was_recorded(home: Path) -> None:
    recorder = await create(home)
    say(recorder, "hello")
    await recorder.close()

    assert ["hello"] == texts(session_file(home))


async def test_persist_makes_the_file_with_its_first_line_alone(home: Path) -> None:
    async with await create(home) as recorder:
        await recorder.persist()

        assert ["session_meta"] == types(session_file(home))


async def test_files_and_folders_are_the_owners_alone(home: Path) -> None:
    before = os.umask(0)
    try:
        async with await create(home) as recorder:
            await recorder.persist()
            made = [home, *home.rglob("*")]
            modes = {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_dir()}
            files = {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_file()}
    finally:
        os.umask(before)

    assert ({0o700}, {0o600}) == (modes, files)


async def test_once_the_file_is_there_lines_are_written_between_barriers(home: Path) -> None:
    seen = threading.Event()

    def write(descriptor: int, data: bytes) -> int:
        count = os.write(descriptor, data)
        if b"background" in data:
            seen.set()
        return count

    async with await create(home, write=write) as recorder:
        await recorder.persist()
        say(recorder, "background")

        assert await anyio.to_thread.run_sync(seen.wait, 30)


async def test_times_come_from_the_clock_that_was_given(home: Path) -> None:
    async with await create(home) as recorder:
        say(recorder, "a", "b")

    stamps = [record.timestamp for record in reader.forward(session_file(home)) if isinstance(record, Line)]
    assert ["2026-11-15T09:00:00.000Z", "2026-11-15T09:00:01.000Z", "2026-11-15T09:00:02.000Z"] == stamps


async def test_a_line_is_what_it_was_when_it_was_recorded(home: Path) -> None:
    item, note = said("first"), {"client_authored": True}
    async with await create(home) as recorder:
        recorder.record("response_item", item, note)
        item["content"][0]["text"] = "changed later"
        note["client_authored"] = False
        await recorder.flush()

    *_, line = reader.forward(session_file(home))
    assert isinstance(line, Line)
    assert "first" == msgspec.json.decode(line.payload)["content"][0]["text"]
    assert {"client_authored": True} == msgspec.json.decode(line.metadata)


async def test_what_cannot_be_told_in_json_is_refused_at_once_and_costs_nothing_else(home: Path) -> None:
    async with await create(home) as recorder:
        with pytest.raises(TypeError):
            recorder.record("response_item", {"a": object()})
        with pytest.raises(TypeError):
            recorder.record("response_item", {}, metadata=object())
        with pytest.raises(UnicodeEncodeError):
            recorder.record("response_item", "\ud800")
        say(recorder, "still fine")

    assert ["still fine"] == texts(session_file(home))


# Ordinals


async def test_a_paginated_thread_counts_its_lines_from_zero(home: Path) -> None:
    async with await Recorder.create(session_file(home), meta(history_mode="paginated"), options(home)) as recorder:
        say(recorder, "a", "b")

    assert [0, 1, 2] == ordinals(session_file(home))


async def test_a_paginated_fork_counts_from_where_its_parent_was_cut(home: Path) -> None:
    base = {"thread_id": "parent", "end_byte_offset": 10, "end_ordinal_exclusive": 41}
    first = meta(history_mode="paginated", history_base=base)
    async with await Recorder.create(session_file(home), first, options(home)) as recorder:
        say(recorder, "a")

    assert [41, 42] == ordinals(session_file(home))


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (b"", [0, 1, 2, 3]),
        (b"what is this\n", [0, 1, 2, 3]),
        (b'{"timestamp":"t","ordinal":9,"type":"event_msg","payload":{"type":"x"}}\n', [0, 1, 2, 9, 10]),
        (b'{"timestamp":"t","ordinal":9,"type":"event_msg","payload":{"type":"x"}}', [0, 1, 2, 9, 10]),
        (b'{"timestamp":"t","ordinal":9,"type":"event_msg","payl', [0, 1, 2, 3]),
        (b'{"timestamp":"t","type":"event_msg","payload":{"type":"x"}}\n', [0, 1, 2, None, 3]),
    ],
    ids=["whole", "malformed", "gap", "no newline", "torn", "no ordinal"],
)
async def test_ordinals_go_on_after_the_newest_line_that_has_one(
    home: Path, tail: bytes, expected: list[int | None]
) -> None:
    path = Script(paginated=True).item(user("a"), user("b")).write_home(home)
    with path.open("ab") as file:
        file.write(tail)
    async with await Recorder.resume(path, options(home)) as recorder:
        say(recorder, "c")

    assert expected == ordinals(path)


async def test_a_legacy_thread_has_no_ordinals(home: Path) -> None:
    path = Script().item(user("a")).write_home(home)
    async with await Recorder.resume(path, options(home)) as recorder:
        say(recorder, "b")

    assert [None, None, None] == ordinals(path)


async def test_a_thread_whose_ordinals_are_used_up_is_not_taken_up(home: Path) -> None:
    path = Script(paginated=True).raw(b'{"ordinal":18446744073709551615,"type":"x","payload":{}}').write_home(home)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="ordinal"):
        await Recorder.resume(path, options(home))

    assert before == path.read_bytes()


# Taking a thread up again


async def test_resuming_appends_to_the_same_bytes(home: Path) -> None:
    path = Script().item(user("a")).write_home(home)
    before = path.read_bytes()
    async with await Recorder.resume(path, options(home)) as recorder:
        say(recorder, "b")

    assert THREAD == recorder.thread_id
    assert before == path.read_bytes()[: len(before)]
    assert ["a", "b"] == texts(path)


async def test_resuming_and_closing_leaves_a_file_as_it_was(home: Path) -> None:
    path = Script().item(user("a")).write_home(home)
    os.utime(path, (1_000_000, 1_000_000))
    before = path.read_bytes()
    async with await Recorder.resume(path, options(home)):
        pass

    assert (before, 1_000_000) == (path.read_bytes(), path.stat().st_mtime)


async def test_a_torn_last_line_is_closed_off_and_never_cut(home: Path) -> None:
    path = Script().item(user("a")).write_home(home)
    torn = b'{"timestamp":"t","type":"response_item","payl'
    with path.open("ab") as file:
        file.write(torn)
    before = path.read_bytes()
    async with await Recorder.resume(path, options(home)) as recorder:
        say(recorder, "b")

    assert path.read_bytes().startswith(before + b"\n")
    assert [Skipped(len(before) - len(torn), len(torn), "not_json")] == skipped(path)
    assert ["a", "b"] == texts(path)


async def test_a_compressed_thread_is_made_plain_and_goes_on(home: Path) -> None:
    path = Script().item(user("a")).write_home(home)
    os.utime(path, (1_000_000, 1_000_000))
    path.chmod(0o640)
    before = path.read_bytes()
    packed = compress(path)
    packed.chmod(0o640)
    os.utime(packed, (1_000_000, 1_000_000))
    recorder = await Recorder.resume(packed, options(home))

    assert (path, 0o640, 1_000_000) == (recorder.path, path.stat().st_mode & 0o777, path.stat().st_mtime)
    assert before == path.read_bytes()
    assert [path] == list(path.parent.iterdir())

    say(recorder, "b")
    await recorder.close()

    assert ["a", "b"] == texts(path)


async def test_a_compressed_thread_that_was_cut_short_is_left_alone(home: Path) -> None:
    path = Script().item(*(user(os.urandom(200).hex()) for _ in range(2000))).write_home(home)
    packed = compress(path)
    packed.write_bytes(packed.read_bytes()[:-2000])
    before = packed.read_bytes()
    with pytest.raises(LedgerError, match="cut short"):
        await Recorder.resume(packed, options(home))

    assert [packed] == list(packed.parent.iterdir())
    assert before == packed.read_bytes()
    assert [] == list((home / "locks").iterdir())


async def test_a_plain_file_hides_its_compressed_sibling(home: Path) -> None:
    path = Script().item(user("plain")).write_home(home)
    other = path.with_name(path.name + ".zst")
    other.write_bytes(zstandard.ZstdCompressor().compress(Script().item(user("old")).data()))
    async with await Recorder.resume(other, options(home)) as recorder:
        say(recorder, "more")

    assert ["plain", "more"] == texts(path)
    assert ["old"] == texts(other)


@pytest.mark.parametrize("data", [b"", b"\n\n", b"{}\n", b"what is this\n"])
async def test_a_file_without_a_session_is_not_taken_up(home: Path, data: bytes) -> None:
    path = session_file(home)
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    with pytest.raises(NotASession):
        await Recorder.resume(path, options(home))

    assert data == path.read_bytes()


async def test_a_new_thread_never_writes_into_a_file_that_is_there(home: Path) -> None:
    path = Script().item(user("a")).write_home(home)
    before = path.read_bytes()
    recorder = await create(home)
    say(recorder, "b")
    with pytest.raises(WriteFailed, match="is there already"):
        await recorder.flush()
    recorder.abandon()

    assert before == path.read_bytes()


@pytest.mark.parametrize("thread_id", ["../../outside", "/etc/outside", "a/b", "", ".", "x" * 400, "nul\0"])
async def test_a_thread_id_cannot_lead_its_lock_out_of_the_home(home: Path, tmp_path: Path, thread_id: str) -> None:
    path = Script(thread_id).write(home / "sessions", "rollout-odd.jsonl")
    before = set(tmp_path.rglob("*"))
    async with await Recorder.resume(path, options(home)) as recorder:
        made = set(tmp_path.rglob("*")) - before
        say(recorder, "b")

    assert {"locks"} == {place.relative_to(home).parts[0] for place in made}
    assert ["b"] == texts(path)


# Ending


async def test_closing_leaves_no_thread_no_descriptor_and_no_lock_behind(home: Path, started: Started) -> None:
    before = open_descriptors()
    async with await create(home) as recorder:
        say(recorder, "x" * 100_000)
        await recorder.end_turn()

    assert set() == started()
    assert before == open_descriptors()
    assert [] == list((home / "locks").glob("*-*.lock"))


async def test_after_closing_barriers_return_and_recording_is_refused(home: Path) -> None:
    recorder = await create(home)
    say(recorder, "a")
    await recorder.close()
    with anyio.fail_after(60):
        await recorder.close()
        await recorder.flush()
        recorder.abandon()

    with pytest.raises(LedgerError, match="closed"):
        say(recorder, "b")
    assert ["a"] == texts(session_file(home))


async def test_barriers_that_come_together_with_closing_all_return(home: Path, started: Started) -> None:
    recorder = await create(home)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for number in range(20):
                say(recorder, str(number))
                group.start_soon(recorder.flush)
            group.start_soon(recorder.close)
            group.start_soon(recorder.close)
            group.start_soon(recorder.flush)

    assert [str(number) for number in range(20)] == texts(session_file(home))
    assert set() == started()


async def test_a_cancelled_session_still_writes_what_it_recorded(home: Path, started: Started) -> None:
    with anyio.CancelScope() as scope:
        async with await create(home) as recorder:
            say(recorder, "last words")
            scope.cancel()
            await anyio.sleep_forever()

    assert ["last words"] == texts(session_file(home))
    assert set() == started()


async def test_closing_that_was_cancelled_ends_in_the_background(home: Path) -> None:
    recorder = await create(home)
    say(recorder, "a")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await recorder.close()
    with anyio.fail_after(60):
        await recorder.close()

    assert ["a"] == texts(session_file(home))
    async with await Recorder.resume(session_file(home), options(home)):
        pass


async def test_abandoning_gives_the_thread_up_without_writing(home: Path, started: Started) -> None:
    recorder = await create(home)
    say(recorder, "a")
    await recorder.flush()
    await anyio.to_thread.run_sync(lambda: None)
    recorder.abandon()
    with pytest.raises(LedgerError, match="closed"):
        say(recorder, "b")
    with pytest.raises(WriteFailed, match="abandoned"):
        await recorder.flush()
    await recorder.close()

    assert ["a"] == texts(session_file(home))
    assert set() == started()
    async with await Recorder.resume(session_file(home), options(home)):
        pass


# Spilling


async def test_a_large_value_leaves_its_line_and_a_small_one_does_not(home: Path) -> None:
    async with await create(home, blob_bytes=1024) as recorder:
        recorder.record("response_item", said("x" * 5000))
        recorder.record("response_item", said("y" * 1000))

    _, large, small = (r for r in reader.forward(session_file(home)) if isinstance(r, Line))
    assert [5000] == [ref.bytes for ref in large.blobs()]
    assert large.size < 2000
    assert [] == small.blobs()


def nested(depth: int) -> Any:
    value: Any = "x" * 70_000
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "payload",
    [nested(700), msgspec.Raw(b'{"n": 1e400, "t": "' + b"x" * 70_000 + b'"}')],
    ids=["nested too deep", "a number out of range"],
)
async def test_a_large_value_that_cannot_be_taken_apart_stays_whole_in_its_line(home: Path, payload: Any) -> None:
    async with await create(home) as recorder:
        recorder.record("event_msg", payload)
        say(recorder, "after")
        with anyio.fail_after(60):
            await recorder.flush()

    _, line, _ = reader.forward(session_file(home))
    assert isinstance(line, Line)
    assert (msgspec.json.encode(payload), []) == (bytes(line.payload), line.blobs())


async def test_many_spilling_lines_in_one_batch_need_few_descriptors(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []

    def write(descriptor: int, data: bytes) -> int:
        held.append(len(os.listdir("/proc/self/fd")))
        return os.write(descriptor, data)

    before = len(os.listdir("/proc/self/fd"))
    async with await create(home, write=write) as recorder:
        for _ in range(2000):
            recorder.record("compacted", {"message": "m"})

    assert max(held) < before + 10


async def test_the_clock_is_asked_once_per_line(home: Path) -> None:
    clock = Clock()
    async with await Recorder.create(session_file(home), meta(), RecorderOptions(home, clock)) as recorder:
        say(recorder, "a", "b", "c")

    assert 3 == (clock.moment - Clock()()).total_seconds()

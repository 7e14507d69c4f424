"""When the disk says no: lines stay queued, the next barrier tells, and a later one writes without gap or duplicate."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from recording import Disk, create, no_space, open_descriptors, options, say, session_file, texts, types

from commonplace.errors import LedgerError, WriteFailed
from commonplace.rollout import blobs, locks, private_folders
from commonplace.rollout.recorder import Recorder
from generated_rows import strides
from ledgers import Script, user
from waiting import until

WORDS = ["one", "two", "three"]


def broken(*_: object) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


async def fails(recorder: Recorder) -> WriteFailed:
    with pytest.raises(WriteFailed) as caught:
        await recorder.flush()
    return caught.value


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT, errno.EFBIG])
async def test_a_failed_write_is_told_and_made_good_by_the_next_barrier(home: Path, number: int) -> None:
    recorder = await create(home, write=Disk(OSError(number, os.strerror(number))))
    say(recorder, *WORDS)
    error = await fails(recorder)

    assert (4, os.strerror(number) in error.message) == (error.data["queued"], True)

    await recorder.flush()

    assert WORDS == texts(session_file(home))
    await recorder.close()


async def test_a_failure_between_barriers_is_made_good_in_silence(home: Path) -> None:
    full, failed = False, threading.Event()

    def write(descriptor: int, data: bytes) -> int:
        if full:
            failed.set()
            raise no_space()
        return os.write(descriptor, data)

    recorder = await create(home, write=write)
    await recorder.persist()
    full = True
    say(recorder, *WORDS)

    assert await anyio.to_thread.run_sync(failed.wait, 30)

    full = False
    await recorder.flush()
    await recorder.close()

    assert WORDS == texts(session_file(home))


async def test_a_failure_that_lasts_is_told_at_every_barrier(home: Path) -> None:
    disk = Disk(*(no_space() for _ in range(4)))
    recorder = await create(home, write=disk)
    say(recorder, "one")
    await fails(recorder)
    say(recorder, "two")
    for barrier in (recorder.flush, recorder.end_turn, recorder.persist):
        with pytest.raises(WriteFailed):
            await barrier()
    say(recorder, "three")
    await recorder.flush()
    await recorder.close()

    assert WORDS == texts(session_file(home))


async def recorded_alone(home: Path) -> bytes:
    """Return the bytes that an undisturbed recorder writes."""
    async with await create(home) as recorder:
        say(recorder, *WORDS)
    return session_file(home).read_bytes()


@strides(7)
async def test_a_short_write_of_any_length_before_a_full_disk_leaves_no_trace(tmp_path: Path, stride: int) -> None:
    expected = await recorded_alone(tmp_path / "undisturbed")
    for length in range(1, len(expected), stride):
        place = tmp_path / str(length)
        recorder = await create(place, write=Disk(length, no_space()), fsync="never")
        say(recorder, *WORDS)
        await fails(recorder)

        assert expected[:length] == session_file(place).read_bytes()

        await recorder.close()

        assert expected == session_file(place).read_bytes()


@strides(7)
async def test_a_write_that_fails_after_any_length_had_landed_leaves_no_trace(tmp_path: Path, stride: int) -> None:
    expected = await recorded_alone(tmp_path / "undisturbed")
    for length in [*range(1, len(expected), stride), len(expected)]:
        place = tmp_path / str(length)
        recorder = await create(place, write=Disk((length, errno.EIO)), fsync="never")
        say(recorder, *WORDS)
        await fails(recorder)
        await recorder.close()

        assert expected == session_file(place).read_bytes()


async def test_lines_recorded_after_a_partial_write_follow_what_was_cut_off(home: Path) -> None:
    recorder = await create(home, write=Disk((200, errno.ENOSPC), 7, (3, errno.EIO), no_space(), 1))
    say(recorder, "one")
    await fails(recorder)
    say(recorder, "two")
    await fails(recorder)
    await fails(recorder)
    say(recorder, "three")
    await recorder.close()

    assert ["session_meta", *["response_item"] * 3] == types(session_file(home))
    assert WORDS == texts(session_file(home))


async def test_a_system_that_takes_nothing_is_a_failure_and_no_endless_loop(home: Path) -> None:
    recorder = await create(home, write=Disk(0))
    say(recorder, *WORDS)
    with anyio.fail_after(60):
        await fails(recorder)
    await recorder.close()

    assert WORDS == texts(session_file(home))


async def test_closing_can_be_tried_again_after_a_failure(home: Path) -> None:
    recorder = await create(home, write=Disk(no_space(), no_space()))
    say(recorder, "one")
    for word in ("two", "three"):
        with pytest.raises(WriteFailed):
            await recorder.close()
        say(recorder, word)
    await recorder.close()

    assert WORDS == texts(session_file(home))
    async with await Recorder.resume(session_file(home), options(home)):
        pass


async def test_a_failed_closing_keeps_the_thread_locked(home: Path) -> None:
    recorder = await create(home, write=Disk(no_space()))
    say(recorder, "one")
    with pytest.raises(WriteFailed):
        await recorder.close()
    with pytest.raises(LedgerError, match="is being written"):
        await create(home)
    await recorder.close()


async def test_abandoning_after_a_failure_frees_the_thread_and_the_torn_line_is_closed_off(home: Path) -> None:
    recorder = await create(home, write=Disk((250, errno.ENOSPC)))
    say(recorder, *WORDS)
    await fails(recorder)
    recorder.abandon()
    async with await Recorder.resume(session_file(home), options(home)) as another:
        say(another, "four")

    assert ["session_meta", "not_json", "response_item"] == types(session_file(home))
    assert ["four"] == texts(session_file(home))


async def test_abandoning_returns_although_the_folder_is_gone(home: Path) -> None:
    before = set(threading.enumerate())
    recorder = await create(home)
    await recorder.persist()
    (writer,) = (thread for thread in set(threading.enumerate()) - before if thread.name.startswith("recorder-"))
    shutil.rmtree(session_file(home).parent)
    say(recorder, "one")
    with anyio.fail_after(60):
        await fails(recorder)
        await anyio.to_thread.run_sync(recorder.abandon)

    assert not writer.is_alive()


async def test_whoever_waits_at_a_barrier_learns_that_the_recorder_was_abandoned(home: Path) -> None:
    entered, leave = threading.Event(), threading.Event()

    def write(descriptor: int, data: bytes) -> int:
        entered.set()
        leave.wait(60)
        return os.write(descriptor, data)

    recorder = await create(home, write=write)
    say(recorder, "one")
    failures: list[WriteFailed] = []

    async def wait() -> None:
        failures.append(await fails(recorder))

    abandoning = threading.Thread(target=recorder.abandon)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            group.start_soon(wait)
            await anyio.to_thread.run_sync(entered.wait)
            abandoning.start()
            await until(lambda: refuses(recorder))
            leave.set()
    await anyio.to_thread.run_sync(abandoning.join)

    assert ["abandoned", "abandoned"] == [error.message.split()[-1].rstrip(".") for error in failures]


def refuses(recorder: Recorder) -> bool:
    """Say whether the recorder takes no more lines; ask only when what it takes does not matter."""
    try:
        say(recorder, "are you there?")
    except LedgerError:
        return True
    return False


async def test_an_error_that_nobody_foresaw_is_told_and_the_writer_lives_on(home: Path) -> None:
    broken = True

    def write(descriptor: int, data: bytes) -> int:
        if broken:
            raise ValueError("nobody foresaw this")
        return os.write(descriptor, data)

    recorder = await create(home, write=write)
    say(recorder, *WORDS)
    with anyio.fail_after(60):
        error = await fails(recorder)

    assert "nobody foresaw this" in error.message

    broken = False
    await recorder.close()

    assert WORDS == texts(session_file(home))


# Closing off a torn line can fail too


async def test_a_torn_line_that_cannot_be_closed_off_is_not_written_to(home: Path) -> None:
    path = Script().item(user("zero")).write_home(home)
    with path.open("ab") as file:
        file.write(b'{"torn')
    before, open_before = path.read_bytes(), open_descriptors()
    with pytest.raises(LedgerError, match="No space left"):
        await Recorder.resume(path, options(home, write=Disk(no_space())))

    assert (before, open_before) == (path.read_bytes(), open_descriptors())
    assert [] == list((home / "locks").iterdir())

    async with await Recorder.resume(path, options(home)) as recorder:
        say(recorder, "one")

    assert ["zero", "one"] == texts(path)


async def test_a_newline_that_landed_although_the_call_failed_is_not_written_twice(home: Path) -> None:
    path = Script().item(user("zero")).write_home(home)
    with path.open("ab") as file:
        file.write(b'{"torn')
    before = path.read_bytes()
    with pytest.raises(LedgerError):
        await Recorder.resume(path, options(home, write=Disk((1, errno.EIO))))
    async with await Recorder.resume(path, options(home)):
        pass

    assert before + b"\n" == path.read_bytes()


# Folders and files that vanish


async def test_a_deleted_folder_is_told_and_the_file_is_back_once_the_folder_is(home: Path) -> None:
    recorder = await create(home)
    say(recorder, "one")
    await recorder.flush()
    folder = session_file(home).parent
    shutil.rmtree(folder)
    say(recorder, "two")
    error = await fails(recorder)

    assert "No such file or directory" in error.message

    folder.mkdir()
    say(recorder, "three")
    await recorder.flush()

    assert WORDS == texts(session_file(home))
    assert [session_file(home)] == list(folder.iterdir())
    await recorder.close()


async def test_a_deleted_file_is_put_back_whole_even_when_nothing_is_left_to_write(home: Path) -> None:
    recorder = await create(home)
    say(recorder, *WORDS)
    await recorder.flush()
    before = session_file(home).read_bytes()
    session_file(home).unlink()
    await recorder.flush()

    assert before == session_file(home).read_bytes()
    await recorder.close()


async def test_putting_back_that_fails_halfway_leaves_nothing_half_made(home: Path) -> None:
    disk = Disk()
    recorder = await create(home, write=disk)
    say(recorder, "one", "two")
    await recorder.flush()
    session_file(home).unlink()
    disk.script = [(20, errno.ENOSPC)]
    await fails(recorder)

    assert [] == list(session_file(home).parent.iterdir())

    disk.script = [20, 1, 1]
    say(recorder, "three")
    await recorder.close()

    assert WORDS == texts(session_file(home))


async def test_a_home_renamed_away_and_back_loses_nothing(home: Path) -> None:
    recorder = await create(home)
    say(recorder, "one")
    await recorder.flush()
    home.rename(home.with_name("elsewhere"))
    say(recorder, "two")
    await fails(recorder)

    assert not home.exists()

    home.with_name("elsewhere").rename(home)
    say(recorder, "three")
    await recorder.close()

    assert WORDS == texts(session_file(home))


async def test_a_file_renamed_away_and_back_over_its_copy_loses_nothing(home: Path) -> None:
    path = session_file(home)
    recorder = await create(home)
    say(recorder, "one")
    await recorder.flush()
    path.rename(path.with_name("away"))
    say(recorder, "two")
    await recorder.flush()
    path.with_name("away").rename(path)
    say(recorder, "three")
    await recorder.close()

    assert WORDS == texts(path)
    assert [path] == list(path.parent.iterdir())


async def test_an_older_backup_in_the_files_place_is_brought_up_to_date(home: Path) -> None:
    path = session_file(home)
    recorder = await create(home)
    say(recorder, "one")
    await recorder.flush()
    backup = path.read_bytes()
    say(recorder, "two")
    await recorder.flush()
    path.unlink()
    path.write_bytes(backup)
    say(recorder, "three")
    await recorder.close()

    assert WORDS == texts(path)


@pytest.mark.parametrize("other", [b"another file altogether", b"", None], ids=["another file", "empty", "a fifo"])
async def test_another_thing_in_the_files_place_is_never_written_to(home: Path, other: bytes | None) -> None:
    path = session_file(home)
    recorder = await create(home)
    say(recorder, "one")
    await recorder.flush()
    path.unlink()
    if other is None:
        os.mkfifo(path)
    else:
        path.write_bytes(other)
    say(recorder, "two")
    if other == b"":  # nothing of anybody's is in the way
        await recorder.close()
        assert ["one", "two"] == texts(path)
        return
    with anyio.fail_after(60):
        await fails(recorder)

    if other is not None:
        assert other == path.read_bytes()

    path.unlink()
    await recorder.close()

    assert ["one", "two"] == texts(path)


async def test_a_line_that_another_program_added_is_told_and_nothing_is_written_after_it(home: Path) -> None:
    recorder = await create(home)
    say(recorder, "one")
    await recorder.flush()
    with session_file(home).open("ab") as file:
        file.write(b"{}\n")
    before = session_file(home).read_bytes()
    say(recorder, "two")
    error = await fails(recorder)
    recorder.abandon()

    assert "changed by another program" in error.message
    assert before == session_file(home).read_bytes()


async def test_a_file_that_became_shorter_is_told(home: Path) -> None:
    recorder = await create(home)
    say(recorder, "one")
    await recorder.flush()
    os.truncate(session_file(home), 30)
    say(recorder, "two")
    error = await fails(recorder)
    recorder.abandon()

    assert "changed by another program" in error.message


async def test_a_lock_that_was_swept_away_is_taken_anew(home: Path) -> None:
    recorder = await create(home)
    await recorder.persist()
    shutil.rmtree(home / "locks")
    say(recorder, "one")
    await recorder.flush()

    with pytest.raises(LedgerError, match="is being written"):
        await Recorder.resume(session_file(home), options(home))
    await recorder.close()


async def test_a_writer_whose_lock_went_to_another_writes_no_more(home: Path) -> None:
    recorder = await create(home)
    say(recorder, "one")
    await recorder.flush()
    shutil.rmtree(home / "locks")
    async with await Recorder.resume(session_file(home), options(home)) as another:
        say(another, "two")
        await another.flush()
        say(recorder, "lost")
        error = await fails(recorder)
    recorder.abandon()

    assert "is being written by process" in error.message
    assert ["one", "two"] == texts(session_file(home))


# A disk that is really full


@contextmanager
def small_disk(place: Path) -> Generator[bool]:
    """Mount 128 KiB of memory, where the system lets us; say whether it did."""
    place.mkdir(parents=True)
    mount = ctypes.CDLL(None, use_errno=True)
    mounted = 0 == mount.mount(b"tmpfs", str(place).encode(), b"tmpfs", 0, b"size=128k")
    try:
        yield mounted
    finally:
        if mounted:
            mount.umount2(str(place).encode(), 2)


async def test_a_disk_that_is_full_costs_nothing_once_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as mounted:
        home = tmp_path / "disk" / "home"
        room = 20_000

        def scarce(descriptor: int, data: bytes) -> int:
            nonlocal room
            if not room:
                raise no_space()
            room -= (taken := os.write(descriptor, data[:room]))
            return taken

        recorder = await create(home, write=os.write if mounted else scarce, fsync="never")
        await recorder.persist()
        ballast = tmp_path / "disk" / "ballast"
        ballast.write_bytes(b"x" * 64_000)
        words = [f"{number} " + "word " * 100 for number in range(100)]
        say(recorder, *words)
        error = await fails(recorder)

        assert "No space left on device" in error.message

        landed = texts(session_file(home))
        assert words[: len(landed)] == landed
        assert len(landed) < 100

        ballast.unlink()
        room = 10**9
        await recorder.close()

        assert words == texts(session_file(home))
        assert ["session_meta", *["response_item"] * 100] == types(session_file(home))


async def test_a_blob_that_finds_no_room_keeps_its_line_queued(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = await create(home, blob_bytes=1024)
    real = blobs.BlobStore.put
    full = True

    def put(store: blobs.BlobStore, data: bytes) -> str:
        if full:
            raise no_space()
        return real(store, data)

    monkeypatch.setattr(blobs.BlobStore, "put", put)
    say(recorder, "one", "x" * 5000, "three")
    await fails(recorder)
    full = False
    await recorder.close()

    assert ["one", "x" * 256] == [text[:256] for text in texts(session_file(home))[:2]]
    assert "ok" == blobs.BlobStore(home).state(next((home / "blobs").iterdir()).name)


# How hard a barrier works


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was made to survive a loss of power, by the names of files and folders."""
    names: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        names.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return names


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("never", {"flush": 0, "end_turn": 0, "close": 0}),
        ("turn", {"flush": 0, "end_turn": 1, "close": 1}),
        ("line", {"flush": 1, "end_turn": 1, "close": 1}),
    ],
)
async def test_what_survives_a_loss_of_power_is_a_setting(
    home: Path, synced: list[str], policy: Any, expected: dict[str, int]
) -> None:
    recorder = await create(home, fsync=policy)
    counts: dict[str, int] = {}
    for name in ("flush", "end_turn", "close"):
        say(recorder, name)
        before = synced.count(session_file(home).name)
        await getattr(recorder, name)()
        counts[name] = synced.count(session_file(home).name) - before

    assert expected == counts


async def test_the_first_sync_covers_every_folder_that_was_made(home: Path, synced: list[str]) -> None:
    (home / "sessions" / "2026").mkdir(parents=True)
    recorder = await create(home)
    say(recorder, "one")
    await recorder.end_turn()

    assert [session_file(home).name, "15", "11", "2026"] == synced

    synced.clear()
    await recorder.end_turn()
    await recorder.close()

    assert [session_file(home).name] * 2 == synced


async def test_a_sync_that_fails_is_told_and_tried_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = await create(home)
    say(recorder, *WORDS)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(WriteFailed, match="Input/output error"):
            await recorder.end_turn()
    await recorder.end_turn()
    await recorder.close()

    assert WORDS == texts(session_file(home))


async def test_a_folder_whose_name_could_not_be_synced_is_synced_later(
    home: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = await create(home)
    say(recorder, "one")
    with monkeypatch.context() as patch:
        patch.setattr(private_folders, "sync", broken)
        with pytest.raises(WriteFailed):
            await recorder.end_turn()
    synced.clear()
    await recorder.end_turn()
    await recorder.close()

    assert {"15", "11", "2026", "sessions"} < set(synced)


async def test_a_home_that_cannot_be_locked_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "blocked").write_text("a file where the home should be")
    with pytest.raises(LedgerError, match="cannot be locked"):
        await create(tmp_path / "blocked")


async def test_a_lock_holds_on_a_full_disk_although_its_holder_cannot_be_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", broken)
        lock = locks.WriterLock(home, "t")
        lock.acquire()
    with pytest.raises(LedgerError, match="process unknown"):
        locks.WriterLock(home, "t").acquire()
    lock.release()
    with locks.WriterLock(home, "t"):
        pass


async def test_after_a_failed_sync_the_same_bytes_are_written_again_before_they_count_as_safe(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = await create(home, fsync="turn")
    say(recorder, "one")
    await recorder.end_turn()
    safe = session_file(home).stat().st_size
    real, broken, again = os.fsync, True, list[tuple[int, int]]()
    real_pwrite = os.pwrite

    def fsync(descriptor: int) -> None:
        if broken:
            raise OSError(errno.EIO, "Input/output error")
        real(descriptor)

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        again.append((offset, len(data)))
        return real_pwrite(descriptor, data, offset)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "pwrite", pwrite)
    say(recorder, "two")
    with pytest.raises(WriteFailed):
        await recorder.end_turn()
    before = session_file(home).read_bytes()
    broken = False
    await recorder.end_turn()
    await recorder.end_turn()

    assert [(safe, len(before) - safe)] == again
    assert before == session_file(home).read_bytes()
    await recorder.close()

"""One writer per thread: who holds a lock, how it is lost and found, and that its files stay in their folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
from pathlib import Path

import pytest
from recording import open_descriptors

from commonplace.errors import LedgerError, ThreadBusy
from commonplace.rollout import locks
from commonplace.rollout.locks import WriterLock


def test_a_lock_is_held_until_it_is_released_and_leaves_no_file(home: Path) -> None:
    before = open_descriptors()
    with WriterLock(home, "t1"):
        assert f"{os.getpid()}\n" == (home / "locks" / "t1.lock").read_text()
        with pytest.raises(ThreadBusy, match=f"process {os.getpid()}"):
            WriterLock(home, "t1").acquire()
        with WriterLock(home, "t2"):
            pass

    assert [] == list((home / "locks").iterdir())
    assert before == open_descriptors()


def test_releasing_twice_does_not_take_anothers_lock_away(home: Path) -> None:
    first, second = WriterLock(home, "t1"), WriterLock(home, "t1")
    first.acquire()
    first.release()
    second.acquire()
    first.release()
    with pytest.raises(ThreadBusy):
        WriterLock(home, "t1").acquire()
    second.release()


def test_a_file_left_by_a_dead_process_locks_nobody_out(home: Path) -> None:
    (home / "locks").mkdir(parents=True)
    (home / "locks" / "t1.lock").write_text("999999\n")
    with WriterLock(home, "t1"):
        assert f"{os.getpid()}\n" == (home / "locks" / "t1.lock").read_text()


def test_a_lock_that_a_program_has_from_a_process_that_was_killed_is_waited_for(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = WriterLock(home, "t1")
    held.acquire()
    (home / "locks" / "t1.lock").write_text("999999\n")  # as if that process had been killed while it started a program
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            held.release()

    monkeypatch.setattr(locks.time, "sleep", pause)
    with WriterLock(home, "t1"):
        assert 3 == len(waited)


def test_a_lock_that_nobody_gives_up_is_not_waited_for_without_end(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(locks.time, "sleep", waited.append)
    with WriterLock(home, "t1"):
        (home / "locks" / "t1.lock").write_text("999999\n")
        with pytest.raises(ThreadBusy, match="process 999999"):
            WriterLock(home, "t1").acquire()

    assert 4.9 < sum(waited) < 5.1


def test_a_release_after_the_lock_was_swept_away_leaves_the_new_holder_alone(home: Path) -> None:
    first, second = WriterLock(home, "t1"), WriterLock(home, "t1")
    first.acquire()
    shutil.rmtree(home / "locks")
    second.acquire()
    first.release()
    with pytest.raises(ThreadBusy):
        WriterLock(home, "t1").acquire()
    second.release()


def test_a_file_that_is_removed_between_opening_and_locking_it_is_not_taken_for_the_lock(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = WriterLock(home, "t1"), WriterLock(home, "t1")
    first.acquire()
    real = fcntl.flock

    def flock(descriptor: int, how: int) -> None:
        first.release()  # the former holder lets go just now, and takes the file with it
        real(descriptor, how)

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", flock)
        second.acquire()
    with pytest.raises(ThreadBusy):
        WriterLock(home, "t1").acquire()
    second.release()


def test_renewing_takes_a_swept_lock_anew(home: Path) -> None:
    lock = WriterLock(home, "t1")
    lock.acquire()
    lock.renew()
    before = open_descriptors()
    shutil.rmtree(home / "locks")
    lock.renew()
    with pytest.raises(ThreadBusy):
        WriterLock(home, "t1").acquire()
    lock.release()

    assert [] == list((home / "locks").iterdir())
    assert len(open_descriptors()) < len(before)


def test_renewing_a_lock_that_another_took_says_who_has_it(home: Path) -> None:
    first, second = WriterLock(home, "t1"), WriterLock(home, "t1")
    first.acquire()
    shutil.rmtree(home / "locks")
    with second, pytest.raises(ThreadBusy):
        first.renew()
    first.renew()
    first.release()


def test_renewing_never_makes_a_home_that_is_gone(home: Path) -> None:
    lock = WriterLock(home, "t1")
    lock.acquire()
    shutil.rmtree(home)
    with pytest.raises(FileNotFoundError):
        lock.renew()
    lock.release()

    assert not home.exists()


def test_a_system_without_locks_is_told_from_a_thread_that_is_busy(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    before = open_descriptors()
    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", unsupported)
        with pytest.raises(LedgerError, match="cannot be locked: Operation not supported") as caught:
            WriterLock(home, "t1").acquire()

    assert not isinstance(caught.value, ThreadBusy)
    assert before == open_descriptors()


@pytest.mark.parametrize("thread_id", ["../t", "/t", "a/../../b", "", ".", "..", "t" * 300, "nul\0", "\ud800"])
def test_any_thread_id_has_a_lock_inside_the_folder_and_of_its_own(home: Path, thread_id: str) -> None:
    with WriterLock(home, thread_id), WriterLock(home, thread_id + "x"):
        assert 2 == len(list((home / "locks").iterdir()))
        with pytest.raises(ThreadBusy):
            WriterLock(home, thread_id).acquire()

    assert [home] == list(home.parent.iterdir())


def test_of_many_threads_that_want_a_lock_one_has_it_at_a_time(home: Path) -> None:
    inside, most, wins = 0, 0, 0
    guard = threading.Lock()

    def run() -> None:
        nonlocal inside, most, wins
        for _ in range(300):
            try:
                with WriterLock(home, "t1"):
                    with guard:
                        inside += 1
                        wins += 1
                        most = max(most, inside)
                    with guard:
                        inside -= 1
            except ThreadBusy:
                continue

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 1 == most
    assert wins > 0


def test_a_shared_lock_is_had_by_many_and_keeps_out_whoever_wants_it_alone(home: Path) -> None:
    def alone() -> bool:
        descriptor = os.open(home / "locks" / "name.lock", os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
        return True

    with locks.shared(home, "name"):
        with locks.shared(home, "name"):
            assert not alone()
        assert not alone()
    assert alone()
    with locks.shared(home, "name", exclusive=True):
        assert not alone()

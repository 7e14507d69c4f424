"""Leases that are lost, and clocks that jump: whoever lost a claim changes nothing, and no job waits for ever."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from faulty_home import FaultyHome, ended, in_state

import processes
import waiting

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]
NewHome = Callable[..., FaultyHome]
DAY = 86_400
AFTER_LEASES = 3_601
"""Both kinds of leases have run out."""
HELD = [
    "learning.extract.phase1:extract_embedded",
    "learning.extract.phase1:_store",
    "memory.workspace.staging:stage",
    "learning.consolidate.phase2:_written",
    "learning.consolidate.phase2:_confirm",
    "memory.workspace.staging:commit",
    "memory.edits.history:record",
    "learning.consolidate.phase2:_record",
]


def held(home: FaultyHome, point: str, when: str = "before", **faults: object) -> processes.Process:
    """Start a worker and return when it stands still at a point."""
    worker = home.start(faults={"at": {"point": point, "when": when, "does": "stop"}, **faults})
    in_state(worker, "T")
    return worker


def resumed(worker: processes.Process) -> tuple[int, str]:
    worker.send_signal(signal.SIGCONT)
    _, said = worker.communicate(timeout=300)
    return worker.wait(), said


@pytest.mark.parametrize("point", HELD)
def test_a_worker_that_stood_still_past_its_lease_changes_nothing(new_home: NewHome, point: str) -> None:
    """The other one is on another host, which knows nothing of the first but its lease."""
    home = new_home()
    worker = held(home, point)
    with ended(worker):
        code, said = home.run(faults={"host": "elsewhere"}, later=AFTER_LEASES)
        assert code == 0, said
        home.check()
        resumed(worker)

    home.check()
    home.finish(later=2 * AFTER_LEASES)
    home.check()


@pytest.mark.parametrize("point", HELD)
def test_a_worker_that_died_on_another_host_is_replaced_after_its_lease(new_home: NewHome, point: str) -> None:
    home = new_home()
    worker = held(home, point, host="elsewhere")
    worker.kill()
    worker.communicate()
    home.finish(later=AFTER_LEASES)
    home.finish(later=2 * AFTER_LEASES)
    home.check()


@pytest.mark.parametrize("jump", [DAY, -DAY, 365 * DAY, -365 * DAY])
@pytest.mark.parametrize("point", ["learning.extract.phase1:extract_embedded", "learning.consolidate.phase2:_written"])
def test_a_clock_that_jumps_between_a_claim_and_what_follows(
    new_home: NewHome, tmp_path: Path, point: str, jump: int
) -> None:
    """Heartbeats come while the clock is wrong; the work is finished all the same, by the one who claimed it."""
    home, clock = new_home(), tmp_path / "clock"
    clock.write_text("0")
    worker = held(home, point, clock=str(clock), values={"learning.extract.phase1:_STORED_EVERY": 0.01})
    with ended(worker):
        clock.write_text(str(jump))
        code, said = resumed(worker)

    assert code == 0, said
    home.finish()
    home.check()


@pytest.mark.parametrize("jump", [DAY, 365 * DAY])
@pytest.mark.parametrize("point", HELD)
def test_a_worker_whose_clock_was_ahead_and_that_died_elsewhere_blocks_nobody(
    new_home: NewHome, point: str, jump: int
) -> None:
    """Its leases end after any lease that a right clock gives."""
    home = new_home()
    at = {"point": point, "when": "before", "does": "stop"}
    worker = home.start(faults={"at": at, "host": "elsewhere"}, later=jump)
    in_state(worker, "T")
    worker.kill()
    worker.communicate()
    home.finish(later=AFTER_LEASES)
    home.finish(later=2 * AFTER_LEASES)
    home.check()


def test_background_starts_do_not_wait_for_a_time_that_only_a_wrong_clock_saw(new_home: NewHome) -> None:
    """A success and a failure in the future are no reason to pause now."""
    home = new_home()
    code, said = home.run("memory", "run", later=365 * DAY)
    assert code == 0, said
    code, said = home.run("worker", "--once", "--background", faults={"extractor": "the"}, later=365 * DAY)
    assert code == 0, said
    code, said = home.run("worker", "--once", "--background", "--import")
    assert code == 0, said
    home.finish()
    home.check()


def test_workers_with_clocks_that_differ_share_the_work(new_home: NewHome) -> None:
    """A minute apart in both directions, as hosts without a time service are."""
    home = new_home(memory_max_running="30")
    workers = [home.start(faults={"host": f"host-{late}"}, later=late) for late in (-60, 0, 60)]
    with ended(*workers):
        said = [worker.communicate(timeout=300)[1] for worker in workers]

    assert [0, 0, 0] == [worker.wait() for worker in workers], said
    home.finish(later=AFTER_LEASES)
    home.check(cap=30)


def test_a_worker_that_sleeps_in_a_claim_holds_nobody_up_for_longer_than_the_server_allows(
    new_home: NewHome, database_address: str
) -> None:
    """PostgreSQL ends a transaction whose process stands still, which gives up its locks."""
    if database_address == "sqlite":
        pytest.skip("a file's lock ends with its process; who waits is told that it is locked")
    home = new_home()
    worker = held(home, "state.extraction_jobs:claim_next", "after", values={"state.postgres:_IDLE_SECONDS": 0.5})
    with ended(worker):
        home.finish()
        home.check()
        code, said = resumed(worker)

    assert code in (0, 1), said
    assert "Traceback" not in said
    home.finish()
    home.check()


def test_many_short_leases_while_the_disk_is_slow(new_home: NewHome) -> None:
    """Each flush takes long, leases are short, three workers take over from one another as they like."""
    home = new_home(memory_extract_lease_seconds="1", memory_extract_heartbeat_seconds="1")
    workers = [home.start(faults={"slow": 0.02}) for _ in range(3)]
    with ended(*workers):
        said = [worker.communicate(timeout=500)[1] for worker in workers]

    assert [0, 0, 0] == [worker.wait() for worker in workers], said
    home.finish()
    home.check()


async def _is_waiting(home: FaultyHome, pid: int) -> None:
    await waiting.until(lambda: bool(home.rows(f"SELECT 1 FROM jobs WHERE pid = {pid} AND status = 'running'")))


def test_told_to_end_while_it_stands_still_a_worker_gives_back_what_it_holds(new_home: NewHome) -> None:
    home = new_home()
    worker = held(home, "learning.extract.phase1:_store")
    with ended(worker):
        anyio.run(_is_waiting, home, worker.pid)
        worker.send_signal(signal.SIGTERM)
        code, said = resumed(worker)

    assert code in (0, 143), said
    assert [] == home.rows("SELECT 1 FROM jobs WHERE status = 'running'")
    home.finish()
    home.check()

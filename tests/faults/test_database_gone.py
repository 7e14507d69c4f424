"""A database that goes away, stands still or is kept locked ends a run with a sentence, and costs nothing but time."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from faulty_home import FaultyHome, Taught, ended, in_state
from own_server import OwnServer

import processes
import waiting

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]
NewHome = Callable[..., FaultyHome]
QUICK = {
    "learning.worker:CYCLE_SECONDS": 0.05,
    "state.home:FOREGROUND_SECONDS": 0.05,
    "state.home:LEARNING_SECONDS": 0.05,
}
STEPS = [
    ("learning.extract.phase1:extract_embedded", "before", 1),
    ("learning.extract.phase1:_store", "before", 1),
    ("state.outputs:put", "after", 2),
    ("transaction", "before", 2),
    ("transaction", "after", 5),
    ("learning.consolidate.phase2:_written", "after", 1),
    ("learning.consolidate.phase2:_confirm", "before", 1),
    ("memory.workspace.staging:commit", "before", 1),
    ("memory.edits.history:record", "after", 1),
    ("learning.consolidate.entry_rows:write", "after", 1),
]
WITHIN = {
    ("transaction", "before"),
    ("state.outputs:put", "after"),
    ("learning.consolidate.entry_rows:write", "after"),
}
"""Steps in the middle of a transaction."""


@pytest.fixture
def away(tmp_path: Path, ten: Taught, own_server: OwnServer) -> FaultyHome:
    """A home whose database is on a server that can be stopped."""
    return FaultyHome(tmp_path, own_server.address, ten)


def held(home: FaultyHome, point: str, when: str, number: int, **faults: object) -> processes.Process:
    """Start a worker and return when it stands still at a point."""
    at = {"point": point, "when": when, "number": number, "does": "stop"}
    worker = home.start(faults={"at": at, "values": QUICK, **faults})
    in_state(worker, "T")
    return worker


def told(worker: processes.Process) -> tuple[int, str]:
    """Let a worker go on; return how it ended and what it said."""
    worker.send_signal(signal.SIGCONT)
    _, said = worker.communicate(timeout=300)
    assert "Traceback" not in said, said
    return worker.wait(), said


@pytest.mark.parametrize(("point", "when", "number"), STEPS)
def test_a_server_that_stops_at_a_step(
    away: FaultyHome, own_server: OwnServer, point: str, when: str, number: int
) -> None:
    worker = held(away, point, when, number)
    with ended(worker):
        own_server.stop()
        try:
            code, said = told(worker)
        finally:
            own_server.start()

    assert 1 == code
    assert "database" in said
    away.finish()
    away.check()


@pytest.mark.parametrize(("point", "when", "number"), STEPS)
def test_a_server_that_starts_anew_at_a_step(
    away: FaultyHome, own_server: OwnServer, point: str, when: str, number: int
) -> None:
    """Whoever was not in the middle of a transaction does not notice."""
    worker = held(away, point, when, number)
    with ended(worker):
        own_server.stop()
        own_server.start()
        code, said = told(worker)

    assert code == 0 or ((point, when) in WITHIN and code == 1), said
    away.finish()
    away.check()


def test_a_server_that_stands_still(away: FaultyHome, own_server: OwnServer) -> None:
    workers = [held(away, "learning.extract.phase1:_store", "before", 1), away.start()]
    with ended(*workers):
        own_server.freeze()
        for worker in workers:
            worker.send_signal(signal.SIGCONT)
        own_server.thaw()
        codes = [(worker.communicate(timeout=300)[1], worker.wait()) for worker in workers]

    assert [0, 0] == [code for _, code in codes], codes
    away.finish()
    away.check()


def test_a_worker_goes_on_by_itself_when_the_server_is_back(away: FaultyHome, own_server: OwnServer) -> None:
    """It began without the server, lost it once more in the middle, and nobody started it again."""
    own_server.stop()
    at = {"point": "learning.consolidate.phase2:_confirm", "when": "before", "number": 1, "does": "stop"}
    worker = away.start("worker", faults={"values": QUICK, "at": at}, COMMONPLACE_NOW="")
    with ended(worker):
        assert worker.stderr is not None
        assert "not available" in worker.stderr.readline()
        own_server.start()
        in_state(worker, "T")
        own_server.stop()
        worker.send_signal(signal.SIGCONT)
        while "This cycle failed: The PostgreSQL" not in worker.stderr.readline():
            pass
        own_server.start()
        done = "SELECT 1 FROM jobs WHERE kind = 'memory_consolidate_global' AND status = 'done'"
        anyio.run(waiting.until, lambda: bool(away.rows(done)))
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=100)

    assert 0 == worker.wait(), said
    away.check()


def test_nothing_is_learned_without_the_database(away: FaultyHome, own_server: OwnServer) -> None:
    """A memory that exists stays as it is, byte for byte."""
    away.finish()
    own_server.stop()
    try:
        found = [away.run(*words) for words in (("worker", "--once"), ("learn",), ("memory", "run"))]
    finally:
        own_server.start()

    assert [1, 1, 1] == [code for code, _ in found]
    assert all("Nothing is learned while the database is away" in said for _, said in found)
    away.check()


@pytest.mark.parametrize(("point", "when", "number"), STEPS)
def test_a_file_that_another_process_keeps_locked(
    tmp_path: Path, ten: Taught, point: str, when: str, number: int
) -> None:
    home = FaultyHome(tmp_path, "sqlite", ten)
    worker = held(home, point, when, number)
    with ended(worker), closing(sqlite3.connect(home.path / "state.sqlite", isolation_level=None)) as other:
        if (point, when) not in WITHIN:
            other.execute("BEGIN IMMEDIATE")
            code, said = told(worker)
            assert (1, True) == (code, "locked" in said), said
            other.execute("ROLLBACK")
        else:  # the worker has the lock: the other one must wait
            other.execute("PRAGMA busy_timeout = 0")
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
            assert 0 == told(worker)[0]

    home.finish()
    home.check()


def test_a_file_that_is_locked_when_a_worker_starts(tmp_path: Path, ten: Taught) -> None:
    home = FaultyHome(tmp_path, "sqlite", ten)
    with closing(sqlite3.connect(home.path / "state.sqlite", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        code, said = home.run(faults={"values": QUICK})
        other.execute("ROLLBACK")

    assert (1, True) == (code, "Nothing is learned" in said), said
    home.finish()
    home.check()

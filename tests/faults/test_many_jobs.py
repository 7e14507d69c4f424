"""Ten thousand queued sessions and eight workers: each is read once, and the memory is that of one worker alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_home import FaultyHome, Taught, ended, taught

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]
JOBS = 10_000
WORKERS = 8
CAP = 400


@pytest.fixture(scope="module")
def ten_thousand(in_memory: Path) -> Taught:
    """Small sessions, and what one quiet worker makes of them."""
    return taught(in_memory / "ten thousand", JOBS)


def test_eight_workers_and_ten_thousand_jobs(ten_thousand: Taught, new_home: Callable[..., FaultyHome]) -> None:
    home = new_home(ten_thousand, memory_max_running=str(CAP))
    code, said = home.run("sessions", "import", "--from", "codex", "--path", str(ten_thousand.sources / "codex"))
    assert code == 0, said
    workers = [home.start() for _ in range(WORKERS)]
    with ended(*workers):
        told = [worker.communicate(timeout=1500)[1] for worker in workers]

    assert [0] * WORKERS == [worker.wait() for worker in workers], told
    readers = {pid for (pid,) in home.rows("SELECT DISTINCT pid FROM jobs WHERE kind = 'memory_stage1'")}
    assert {worker.pid for worker in workers} == readers
    home.finish()
    home.check(cap=CAP)

"""A worker that is killed at any step of any job loses nothing and leaves nothing that the next one cannot finish."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_program import PHASE_1, PHASE_2
from faulty_home import FaultyHome

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]
NewHome = Callable[..., FaultyHome]


def kill_at(new_home: NewHome, point: str, when: str, number: int) -> bool:
    """Kill a worker at a point, let a quiet one finish, and look; say whether the point was reached."""
    home = new_home()
    code, said = home.run(faults={"at": {"point": point, "when": when, "number": number, "does": "kill"}})
    if code != -signal.SIGKILL:
        assert code == 0, said
        return False
    home.finish()
    home.check()
    home.remove()
    return True


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", [*PHASE_1, *PHASE_2])
def test_a_kill_at_a_step_of_a_job(new_home: NewHome, point: str, when: str) -> None:
    assert kill_at(new_home, point, when, 1)


@pytest.mark.parametrize("share", range(6))
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_around_every_commit(new_home: NewHome, when: str, share: int) -> None:
    for number in range(share + 1, 1000, 6):
        if not kill_at(new_home, "transaction", when, number):
            assert number > 10
            return


def test_every_step_is_one_that_a_run_takes(new_home: NewHome, tmp_path: Path) -> None:
    """A step that was renamed, or that no run reaches, would not be tried by anybody."""
    home, trace = new_home(), tmp_path / "trace"
    code, said = home.run(faults={"trace": str(trace)})

    assert code == 0, said
    reached = set(trace.read_text("utf-8").splitlines())
    assert set() == {f"{point} {when}" for point in (*PHASE_1, *PHASE_2) for when in ("before", "after")} - reached
    home.check()

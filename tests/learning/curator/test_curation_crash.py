"""A consolidation with a model that is cut short anywhere leaves the old memory or the new one."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_consolidation_crash import half_learned

import processes

HERE = Path(__file__).parent
PLACES = (HERE, HERE.parent, HERE.parent / "consolidate", HERE.parent / "rules")


def crash(tmp_path: Path, every: int) -> int:
    """Kill a consolidation before every so-manieth step; return how many that were."""
    home = half_learned(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    code = (HERE / "curation_crash.py").read_text("utf-8")
    done = processes.run([home, work, every], code=code, path=PLACES, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_a_crash_between_steps_of_a_model_s_run_leaves_the_old_or_the_new_memory(tmp_path: Path) -> None:
    assert crash(tmp_path, every=37) > 3


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_a_crash_before_any_step_of_a_model_s_run_leaves_the_old_or_the_new_memory(tmp_path: Path) -> None:
    assert crash(tmp_path, every=1) > 80

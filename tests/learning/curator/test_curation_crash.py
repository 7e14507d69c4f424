"""A consolidation with a model that is cut short anywhere leaves the old memory or the new one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_consolidation_crash import half_learned

HERE = Path(__file__).parent
PLACES = (HERE, HERE.parent, HERE.parent / "consolidate", HERE.parent / "rules")


def crash(tmp_path: Path, every: int) -> int:
    """Kill a consolidation before every so-manieth step; return how many that were."""
    home = half_learned(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    paths = os.pathsep.join(map(str, PLACES))
    done = subprocess.run(
        [sys.executable, str(HERE / "curation_crash.py"), str(home), str(work), str(every)],
        env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_a_crash_between_steps_of_a_model_s_run_leaves_the_old_or_the_new_memory(tmp_path: Path) -> None:
    assert crash(tmp_path, every=37) > 3


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_a_crash_before_any_step_of_a_model_s_run_leaves_the_old_or_the_new_memory(tmp_path: Path) -> None:
    assert crash(tmp_path, every=1) > 80

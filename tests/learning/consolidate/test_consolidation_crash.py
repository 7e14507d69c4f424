"""A consolidation that is cut short anywhere leaves the old memory or the new one, and the next run finishes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from learners import environment, many, run

import processes

PROGRAM = Path(__file__).with_name("crash_program.py")


def half_learned(tmp_path: Path) -> Path:
    """A home with a memory of some sessions, and others that were read but are not in it."""
    source = many(tmp_path / "sources", 24)
    paths = sorted((source / "sessions").rglob("*.jsonl"))
    home = tmp_path / "home"
    variables = environment(home, "sqlite")
    some = [argument for path in paths[:10] for argument in ("--path", str(path))]
    run(variables, "sessions", "import", "--from", "codex", *some)
    run(variables, "memory", "run")
    run(variables, "sessions", "import", "--from", "codex", "--path", str(source))
    run(variables, "memory", "run", "--phase", "1")
    return home


def crash(tmp_path: Path, every: int) -> int:
    """Kill a consolidation before every so-manieth step; return how many that were."""
    home = half_learned(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    done = processes.run([home, work, every], code=PROGRAM.read_text("utf-8"), text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_a_crash_between_steps_leaves_the_old_or_the_new_memory(tmp_path: Path) -> None:
    assert crash(tmp_path, every=61) > 2


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_a_crash_before_any_step_leaves_the_old_or_the_new_memory(tmp_path: Path) -> None:
    assert crash(tmp_path, every=1) > 80

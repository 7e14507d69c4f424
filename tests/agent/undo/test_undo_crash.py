"""Killed at any step: no snapshot is broken, a restore can be repeated, and what was there before it is not lost."""

from __future__ import annotations

import random
import shutil
import signal
import tempfile
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest
from manifests import NOW, Manifest, manifest, prune, put

import processes
from commonplace.agent import undo

SCRIPT = """
import os, signal, sys
from datetime import timedelta
from pathlib import Path
from commonplace.agent import undo
from manifests import NOW, SnapshotLimits, prune
import pygit2
what, home, root, snapshot, left = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], int(sys.argv[5])
steps = 0
def hook(event, _):
    # Every opening, renaming, removing and making of a file is a step at which it may end.
    global steps
    if event in ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "os.truncate", "os.chmod"):
        steps += 1
        if steps == left:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
later = NOW + timedelta(hours=1)
if what == "take":
    undo.take(home, root, later)
elif what == "restore":
    undo.restore(home, snapshot, later)
else:
    prune(home, later, SnapshotLimits(snapshots=2))
print(steps)
"""


def _prepare(place: Path) -> tuple[Path, Path, undo.Snapshot, Manifest]:
    root, home = place / "tree", place / "home"
    for number in range(6):
        put(root, f"d{number % 3}/f{number}.txt", f"{number}" * 50, 0o755 if number % 2 else 0o644)
    put(root, "swap", "file")
    (root / "link").symlink_to("d0")
    (root / "empty").mkdir()
    for number in range(2):
        put(root, "version", str(number))
        undo.take(home, root, NOW + timedelta(minutes=number))
    put(root, "version", "2")
    return root, home, undo.take(home, root, NOW + timedelta(minutes=2)), manifest(root)


def _turn(root: Path) -> Manifest:
    shutil.rmtree(root / "d1")
    put(root, "d0/f0.txt", "changed")
    (root / "d0/f3.txt").chmod(0o600)
    (root / "swap").unlink()
    put(root, "swap/inner/file", "folder")
    (root / "link").unlink()
    put(root, "link", "no link")
    (root / "empty").rmdir()
    put(root, "added/deep/file", "added")
    return manifest(root)


def _run(what: str, home: Path, root: Path, snapshot: str, left: int) -> tuple[bool, str]:
    """Run until the end or the step at which it is killed; say whether it was."""
    process = processes.Process(
        [what, home, root, snapshot, left], text=True, code=SCRIPT, path=[Path(__file__).parent]
    )
    out, err = process.communicate(timeout=100)
    assert process.returncode in (0, -signal.SIGKILL), err
    return process.returncode != 0, out


def _all_whole(home: Path) -> None:
    for one in undo.listed(home):
        assert not one.incomplete
        undo.diff(home, one.id)


def _kill_take(place: Path, left: int) -> bool:
    root, home, snapshot, before = _prepare(place)
    changed = _turn(root)
    is_killed, _ = _run("take", home, root, "-", left)

    assert manifest(root) == changed
    _all_whole(home)
    again = undo.take(home, root, NOW + timedelta(hours=2))
    undo.restore(home, snapshot.id, NOW + timedelta(hours=2))
    assert manifest(root) == before
    undo.restore(home, again.id, NOW + timedelta(hours=2))
    assert manifest(root) == changed
    return is_killed


def _kill_restore(place: Path, left: int) -> bool:
    root, home, snapshot, before = _prepare(place)
    changed = _turn(root)
    is_killed, _ = _run("restore", home, root, snapshot.id, left)

    touched = manifest(root) != changed
    redo = [one for one in undo.listed(home) if one.kind == "redo"]
    assert redo or not touched
    undo.restore(home, snapshot.id, NOW + timedelta(hours=2))
    assert manifest(root) == before
    if redo:
        undo.restore(home, redo[-1].id, NOW + timedelta(hours=3))
        assert manifest(root) == changed
    return is_killed


def _kill_prune(place: Path, left: int) -> bool:
    root, home, snapshot, before = _prepare(place)
    is_killed, _ = _run("prune", home, root, "-", left)

    _all_whole(home)
    _turn(root)
    undo.take(home, root, NOW + timedelta(hours=2))
    undo.restore(home, snapshot.id, NOW + timedelta(hours=2))
    assert manifest(root) == before
    prune(home, NOW + timedelta(hours=2))
    _all_whole(home)
    return is_killed


KILLS = {"take": _kill_take, "restore": _kill_restore, "prune": _kill_prune}


@cache
def _steps(what: str) -> int:
    """Return how many steps it takes to the end."""
    with tempfile.TemporaryDirectory() as place:
        root, home, snapshot, _ = _prepare(Path(place))
        if what != "prune":
            _turn(root)
        return int(_run(what, home, root, snapshot.id, -1)[1])


@pytest.mark.parametrize("what", sorted(KILLS))
@pytest.mark.parametrize("share", [0.1, 0.35, 0.6, 0.75, 0.9, 0.97])
def test_being_killed_breaks_nothing(tmp_path: Path, what: str, share: float) -> None:
    assert KILLS[what](tmp_path, max(1, int(_steps(what) * share)))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("what", sorted(KILLS))
def test_being_killed_at_every_step_breaks_nothing(tmp_path: Path, what: str) -> None:
    for left in range(1, _steps(what) + 1):
        KILLS[what](tmp_path / str(left), left)
        shutil.rmtree(tmp_path / str(left))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_being_killed_again_and_again_breaks_nothing(tmp_path: Path) -> None:
    root, home, snapshot, before = _prepare(tmp_path)
    chance = random.Random(7)
    for _ in range(150):
        if chance.random() < 0.3 and manifest(root) == before:
            _turn(root)
        what = chance.choice(["take", "restore", "restore"])
        _run(what, home, root, snapshot.id, chance.randrange(1, 250))
        _all_whole(home)
    undo.restore(home, snapshot.id, NOW + timedelta(hours=2))
    assert manifest(root) == before

"""`commonplace sessions undo`: what it prints, what it changes, what it refuses; `delete` takes snapshots along."""

from __future__ import annotations

import hashlib
from pathlib import Path

import anyio
import pytest
from command import Command

import commonplace as library
from commonplace.models.scripted import ScriptedModel, answer, call, say

KEYS = {"thread_id", "snapshot", "tree", "changed", "removed", "recreated", "left_alone"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "kept.txt").write_text("as it was\n")
    (root / "gone.txt").write_text("gone\n")
    return root


@pytest.fixture
def thread(project: Path) -> str:
    """A thread of two turns."""
    scripts = ["echo changed > kept.txt; rm gone.txt; echo new > new.txt", "echo again > kept.txt"]

    async def work() -> str:
        steps = [
            part
            for script in scripts
            for part in (answer(call("shell", {"command": script}, "c1")), answer(say("Done.")))
        ]
        async with ScriptedModel(*steps) as model, library.open() as book:
            thread = await book.start(cwd=project, speaker=model, sandbox="danger-full-access")
            for _ in scripts:
                await thread.turn("Work.")
            await thread.close()
            return thread.id

    return anyio.run(work)


def state(root: Path) -> dict[str, str]:
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_undo_goes_back_turn_by_turn_and_redo_forward(commonplace: Command, project: Path, thread: str) -> None:
    last = state(project)
    first = commonplace.ok("sessions", "undo", thread)
    assert set(first) == KEYS
    assert (thread, str(project)) == (first["thread_id"], first["tree"])
    assert (["kept.txt"], [], []) == (first["changed"], first["removed"], first["recreated"])
    middle = state(project)
    second = commonplace.ok("sessions", "undo", thread)

    assert (["kept.txt"], ["new.txt"], ["gone.txt"]) == (second["changed"], second["removed"], second["recreated"])
    assert "as it was\n" == (project / "kept.txt").read_text()
    commonplace.refused("bad_input", "sessions", "undo", thread)
    commonplace.ok("sessions", "undo", thread, "--redo")
    assert middle == state(project)
    commonplace.ok("sessions", "undo", thread, "--redo")
    assert last == state(project)
    commonplace.refused("bad_input", "sessions", "undo", thread, "--redo")


def test_a_dry_run_says_the_same_and_changes_nothing(commonplace: Command, project: Path, thread: str) -> None:
    before = state(project)
    shown = commonplace.ok("sessions", "undo", thread, "--dry-run")

    assert before == state(project)
    assert shown == commonplace.ok("sessions", "undo", thread)


def test_people_read_what_went_back(commonplace: Command, project: Path, thread: str) -> None:
    shown = commonplace("sessions", "undo", thread, "--dry-run")
    assert f"M kept.txt\n1 path(s) would go back in {project}.\n" == shown.out
    done = commonplace("sessions", "undo", thread)
    assert f"M kept.txt\n1 path(s) went back in {project}.\n" == done.out


def test_what_is_no_thread_or_has_no_snapshot_is_refused(commonplace: Command, tmp_path: Path) -> None:
    commonplace.refused("unknown_thread", "sessions", "undo", "0190c1f4-0000-7000-8000-000000000000")


def test_delete_takes_the_snapshots_along(commonplace: Command, home: Path, thread: str) -> None:
    assert [*(home / "snapshots").iterdir()]
    commonplace.ok("sessions", "delete", thread)
    assert [] == [path for path in (home / "snapshots").rglob("*") if path.is_dir()]


def test_the_index_knows_of_an_undo(commonplace: Command, thread: str) -> None:
    commonplace.ok("sessions", "list")
    commonplace.ok("sessions", "undo", thread)
    assert commonplace.ok("doctor")["ok"] is True


def test_doctor_says_how_commands_are_confined(commonplace: Command) -> None:
    from commonplace.agent import sandbox

    (check,) = [each for each in commonplace.ok("doctor")["checks"] if each["name"] == "sandbox"]
    assert {"name": "sandbox", "ok": True, "detail": sandbox.detect().detail} == check

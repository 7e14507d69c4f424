"""The workspace is replaced as a whole or not at all, and nothing that a person saved is lost on the way."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import processes
from commonplace.errors import WorkspaceBusy, WorkspaceChanged, WorkspaceError
from commonplace.memory.workspace import baseline, layout, staging, swap

NOW = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)
PROGRAM = Path(__file__).with_name("swap_program.py")


@pytest.fixture
def root(home: Path) -> Path:
    place = home / layout.FOLDER
    layout.ensure(place)
    for path in ("MEMORY.md", "skills/one/SKILL.md", "rollout_summaries/x.md"):
        staging.put(place / path, f"old {path}")
    baseline.reset(place, "old", NOW)
    return place


@pytest.fixture(params=["exchange", "rename"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of replacing: in one step, and where that cannot be done in two."""
    if request.param == "rename":
        monkeypatch.setattr(swap, "exchange", _cannot)
    return request.param


def _cannot(one: Path, other: Path) -> bool:
    return not (one and other)


def texts(root: Path) -> dict[str, str]:
    files = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.relative_to(root).parts)
    return {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in files}


class TestPut:
    def test_a_file_is_replaced_and_private(self, tmp_path: Path) -> None:
        path = tmp_path / "deep" / "file.md"
        staging.put(path, "one")
        os.link(path, tmp_path / "shared")

        staging.put(path, "two ✓")

        assert "two ✓" == path.read_text("utf-8")
        assert "one" == (tmp_path / "shared").read_text("utf-8")
        assert [0o600, 0o700] == [path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777]
        assert ["file.md"] == os.listdir(path.parent)

    def test_what_fails_leaves_nothing_behind(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()

        with pytest.raises(OSError, match="folder"):
            staging.put(tmp_path / "folder", "text")

        assert ["folder"] == os.listdir(tmp_path)

    def test_a_name_may_be_as_long_as_names_can_be(self, tmp_path: Path) -> None:
        staging.put(tmp_path / ("x" * 255), "text")

        assert ["x" * 255] == os.listdir(tmp_path)

    def test_line_ends_stay_as_they_are(self, tmp_path: Path) -> None:
        staging.put(tmp_path / "file", "a\r\nb\n")

        assert b"a\r\nb\n" == (tmp_path / "file").read_bytes()


class TestStage:
    def test_the_staged_tree_is_the_same_without_baseline_and_diff(self, root: Path) -> None:
        staging.put(root / layout.DIFF, "diff")
        staging.put(root / "skills/one/.git/config", "theirs")
        staging.put(root / f"skills/.1{layout.PART}", "half")
        (root / "empty").mkdir()

        staged = staging.stage(root)

        assert root.with_name("memories.next") == staged
        assert ["MEMORY.md", "empty", "rollout_summaries", "skills"] == sorted(os.listdir(staged))
        assert [".git", "SKILL.md"] == sorted(os.listdir(staged / "skills/one"))
        assert ["one"] == os.listdir(staged / "skills")
        assert (staged / "MEMORY.md").samefile(root / "MEMORY.md")
        assert 0o700 == staged.stat().st_mode & 0o777

    def test_where_files_cannot_be_linked_they_are_copied(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (root / "MEMORY.md").chmod(0o700)

        def refuse(*_: Any, **__: Any) -> None:
            raise PermissionError(errno.EPERM, "no links here")

        monkeypatch.setattr(os, "link", refuse)
        staged = staging.stage(root)

        assert texts(root) == texts(staged)
        assert not (staged / "MEMORY.md").samefile(root / "MEMORY.md")
        baseline.reset(root, "with a program", NOW)
        assert [] == baseline.status(staged, against=root)

    def test_what_was_left_there_is_removed_first(self, root: Path) -> None:
        staging.put(staging.stage(root) / "left.md", "over")

        assert texts(root) == texts(staging.stage(root))

    def test_a_link_and_a_pipe_are_not_staged(self, root: Path) -> None:
        (root / "link").symlink_to("MEMORY.md")
        os.mkfifo(root / "pipe")

        assert ["MEMORY.md", "rollout_summaries", "skills"] == sorted(os.listdir(staging.stage(root)))

    def test_changing_what_is_staged_changes_nothing_in_the_root(self, root: Path) -> None:
        before = texts(root)
        staged = staging.stage(root)

        staging.put(staged / "MEMORY.md", "new")
        (staged / "skills/one/SKILL.md").unlink()

        assert before == texts(root)
        assert [] == baseline.status(root)

    def test_a_name_that_is_not_text_is_staged(self, root: Path, way: str) -> None:
        name = os.fsdecode(b"\xff.md")
        staging.put(root / name, "odd")

        staging.commit(staging.stage(root), root)

        assert "odd" == (root / name).read_text("utf-8")


def add_a_note(root: Path) -> None:
    staging.put(root / layout.NOTES / "new.md", "note")


def save_anew(root: Path) -> None:
    staging.put(root / "MEMORY.md", "old MEMORY.md")


def write_in_place(root: Path) -> None:
    (root / "MEMORY.md").write_text("longer than it was", "utf-8")


def touch(root: Path) -> None:
    os.utime(root / "MEMORY.md", ns=(1, 1))


def remove(root: Path) -> None:
    (root / "MEMORY.md").unlink()


def rename(root: Path) -> None:
    (root / "MEMORY.md").rename(root / "memory.md")


def make_a_folder(root: Path) -> None:
    (root / "new folder").mkdir()


@pytest.mark.usefixtures("way")
class TestCommit:
    def test_the_staged_state_takes_the_place_of_the_old_one(self, root: Path, home: Path) -> None:
        staged = staging.stage(root)
        staging.put(staged / "MEMORY.md", "new")
        (staged / "rollout_summaries/x.md").unlink()
        baseline.reset(staged, "new", NOW)

        staging.commit(staged, root)

        assert {"MEMORY.md": "new", "skills/one/SKILL.md": "old skills/one/SKILL.md"} == texts(root)
        assert "new" == baseline.message(root)
        assert [] == baseline.status(root)
        assert [layout.FOLDER] == os.listdir(home)

    def test_a_state_without_a_baseline_keeps_the_one_of_the_root(self, root: Path) -> None:
        staged = staging.stage(root)
        staging.put(staged / "MEMORY.md", "new")

        staging.commit(staged, root)

        assert "old" == baseline.message(root)
        assert [baseline.BaselineChange("M", "MEMORY.md")] == baseline.status(root)
        baseline.reset(root, "still works", NOW)

    @pytest.mark.parametrize(
        "change",
        [add_a_note, save_anew, write_in_place, touch, remove, rename, make_a_folder],
        ids=lambda change: change.__name__,
    )
    def test_what_somebody_did_meanwhile_is_kept_and_nothing_replaced(
        self, root: Path, change: Callable[[Path], object]
    ) -> None:
        staged = staging.stage(root)
        staging.put(staged / "skills/two.md", "new")
        change(root)
        before = texts(root)

        with pytest.raises(WorkspaceChanged) as caught:
            staging.commit(staged, root)

        assert caught.value.data["changed"]
        assert "run it again" in caught.value.hint
        assert before == texts(root)
        assert "old" == baseline.message(root)
        staging.commit(staging.stage(root), root)

    def test_what_belongs_to_no_state_may_change_meanwhile(self, root: Path) -> None:
        staged = staging.stage(root)
        staging.put(root / layout.DIFF, "diff")
        baseline.reset(root, "again", NOW)

        staging.commit(staged, root)

        assert "again" == baseline.message(root)

    def test_a_file_saved_at_the_very_last_moment_is_kept(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        staged = staging.stage(root)
        staging.put(staged / "MEMORY.md", "new")
        real = staging._sync_folders  # pyright: ignore[reportPrivateUsage]

        def save(place: Path) -> None:
            real(place)
            staging.put(root / "MEMORY.md", "by hand")

        monkeypatch.setattr(staging, "_sync_folders", save)

        with pytest.raises(WorkspaceChanged):
            staging.commit(staged, root)

        assert "by hand" == (root / "MEMORY.md").read_text("utf-8")
        assert "old" == baseline.message(root)

    def test_without_anything_staged_nothing_happens(self, root: Path) -> None:
        staged = staging.stage(root)
        staging.discard(root)
        before = texts(root)

        with pytest.raises(WorkspaceError):
            staging.commit(staged, root)

        assert before == texts(root)

    def test_a_staged_state_can_be_dropped(self, root: Path, home: Path) -> None:
        staging.stage(root)

        staging.discard(root)

        assert [layout.FOLDER] == os.listdir(home)


STAGE = (
    "import sys, pathlib; from commonplace.memory.workspace import staging; staging.stage(pathlib.Path(sys.argv[1]))"
)


class TestRecover:
    def test_what_a_dead_process_staged_is_removed(self, root: Path, home: Path) -> None:
        assert 0 == processes.run([root], code=STAGE).returncode
        assert (home / "memories.next").is_dir()

        staging.recover(root)

        assert [layout.FOLDER] == os.listdir(home)

    def test_what_a_living_process_staged_is_left_alone(self, root: Path) -> None:
        program = f"{STAGE}; print('staged', flush=True); sys.stdin.read()"
        command = [sys.executable, "-c", program, str(root)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout
            assert "staged\n" == other.stdout.readline()
            staging.recover(root)
            left = texts(root.with_name("memories.next"))
            with pytest.raises(WorkspaceBusy) as caught:
                staging.stage(root)
            with pytest.raises(WorkspaceError):
                staging.commit(root.with_name("memories.next"), root)
            other.communicate()

        assert texts(root) == left
        assert other.pid == caught.value.data["holder"]
        staging.stage(root)

    def test_where_nothing_was_left_nothing_is_done(self, root: Path, home: Path) -> None:
        before = texts(root)

        staging.recover(root)
        staging.recover(home / "no such folder")

        assert before == texts(root)

    def test_a_half_staged_folder_never_becomes_the_workspace(self, root: Path, home: Path) -> None:
        root.rename(home / "moved away by hand")
        (home / "memories.next").mkdir()

        staging.recover(root)

        assert ["moved away by hand"] == os.listdir(home)

    def test_between_two_renames_what_was_saved_last_counts(self, root: Path, home: Path) -> None:
        assert 0 == processes.run([root], code=STAGE).returncode
        staging.put(root / "MEMORY.md", "by hand")
        root.rename(home / "memories.old")

        staging.recover(root)

        assert "by hand" == (root / "MEMORY.md").read_text("utf-8")
        assert [layout.FOLDER] == os.listdir(home)

    def test_a_root_made_anew_after_a_crash_is_not_taken_for_the_old_one(self, root: Path, home: Path) -> None:
        assert 0 == processes.run([root], code=STAGE).returncode
        root.rename(home / "memories.old")
        layout.ensure(root)

        with pytest.raises(WorkspaceError) as caught:
            staging.recover(root)

        assert "memories.old" in caught.value.hint
        assert texts(home / "memories.old") == texts(home / "memories.next")


@pytest.mark.parametrize("way", ["exchange", "rename"])
def test_killed_before_any_step_the_workspace_is_wholly_old_or_wholly_new(tmp_path: Path, way: str) -> None:
    command = [sys.executable, str(PROGRAM), str(tmp_path / "homes"), way]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]

    killed = [line for line in told if "left" in line]
    assert len(killed) > 30
    assert [True] * (len(killed) - 1) + [False] == [line["killed"] for line in killed]
    order = ["old", "new"] if way == "exchange" else ["old", "missing", "new"]
    assert order == [state for state, _ in groupby(line["left"] for line in killed)]
    assert {"old", "new"} == {line["recovering"] for line in told if "recovering" in line}
    recovered = [line for line in told if "recovered" in line]
    assert ["old", "new"] == [state for state, _ in groupby(line["recovered"] for line in recovered)]
    assert [[layout.FOLDER]] * len(killed) == [line["beside"] for line in recovered]
    assert any(len(line["beside"]) > 1 for line in killed)


def test_two_folders_change_places_in_one_step(tmp_path: Path) -> None:
    for name in ("one", "two"):
        staging.put(tmp_path / name / "file", name)

    if not swap.exchange(tmp_path / "one", tmp_path / "two"):
        pytest.skip("this file system cannot")

    assert ["two", "one"] == [(tmp_path / name / "file").read_text("utf-8") for name in ("one", "two")]


def test_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()

    with pytest.raises(FileNotFoundError):
        swap.exchange(tmp_path / "one", tmp_path / "two")

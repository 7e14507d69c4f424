"""The workspace is private, whole and free of links before anything is written in it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from commonplace.errors import WorkspaceError
from commonplace.memory.files import raw_memories
from commonplace.memory.workspace import layout


@pytest.fixture
def root(home: Path) -> Path:
    return home / layout.FOLDER


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_root_and_its_parents_are_made_for_the_owner_alone(root: Path, home: Path) -> None:
    before = os.umask(0o000)
    try:
        removed = layout.ensure(root)
    finally:
        os.umask(before)

    assert [] == removed
    assert [0o700] * 3 == [mode(home), mode(root), mode(root / layout.SUMMARIES)]


def test_what_is_there_stays(root: Path) -> None:
    layout.ensure(root)
    (root / layout.MEMORY).write_text("kept", "utf-8")

    layout.ensure(root)

    assert "kept" == (root / layout.MEMORY).read_text("utf-8")


@pytest.mark.parametrize("exists", [True, False])
def test_a_root_that_is_a_link_is_refused_and_its_target_untouched(root: Path, tmp_path: Path, exists: bool) -> None:
    target = tmp_path / "elsewhere"
    if exists:
        target.mkdir()
        (target / "link").symlink_to("nowhere")
    root.parent.mkdir()
    root.symlink_to(target)

    with pytest.raises(WorkspaceError) as caught:
        layout.ensure(root)

    assert caught.value.hint
    assert exists is target.exists()
    assert not exists or ["link"] == os.listdir(target)


@pytest.mark.parametrize("place", ["memories", "memories/rollout_summaries"])
def test_a_file_where_a_folder_belongs_is_an_error_that_says_what_to_do(home: Path, place: str) -> None:
    (home / place).parent.mkdir(parents=True)
    (home / place).write_text("", "utf-8")

    with pytest.raises(WorkspaceError, match="not a folder") as caught:
        layout.ensure(home / layout.FOLDER)

    assert "Move it away" in caught.value.hint


def test_every_link_is_removed_and_none_is_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("theirs", "utf-8")
    (outside / "link").symlink_to("file")
    (root / ".git" / "refs").mkdir(parents=True)
    (root / "skills" / "one").mkdir(parents=True)
    (root / "extensions").symlink_to(outside)
    (root / "MEMORY.md").symlink_to(outside / "file")
    (root / "rollout_summaries").symlink_to("nowhere")
    (root / ".git" / "refs" / "heads").symlink_to(outside)
    (root / "skills" / "one" / "loop").symlink_to("..")
    os.symlink("nowhere", os.fsencode(root) + b"/\xff")  # noqa: PTH211

    removed = layout.ensure(root)

    expected = [".git/refs/heads", "MEMORY.md", "extensions", "rollout_summaries", "skills/one/loop", "\udcff"]
    assert expected == removed
    assert [".git", "rollout_summaries", "skills"] == sorted(os.listdir(root))
    assert ["file", "link"] == sorted(os.listdir(outside))
    assert "theirs" == (outside / "file").read_text("utf-8")


def test_the_names_that_others_use_are_still_where_they_were() -> None:
    assert ("memories", "raw_memories.md", "rollout_summaries") == (
        raw_memories.FOLDER,
        raw_memories.RAW,
        raw_memories.SUMMARIES,
    )

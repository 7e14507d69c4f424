"""Extensions are explained once and their old resources go; everything else is left alone."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commonplace.memory.files import extensions
from commonplace.memory.workspace import layout

NOW = datetime(2026, 11, 15, 9, 0, 0, tzinfo=UTC)
OLD = "2026-11-07T09-00-00"
FRESH = "2026-11-09T09-00-00"


@pytest.fixture
def root(home: Path) -> Path:
    place = home / layout.FOLDER
    layout.ensure(place)
    return place


def resource(root: Path, name: str, extension: str = "chat", *, instructions: bool = True) -> Path:
    folder = root / layout.EXTENSIONS / extension
    (folder / "resources").mkdir(parents=True, exist_ok=True)
    if instructions:
        (folder / layout.INSTRUCTIONS).write_text("how to read it", "utf-8")
    (folder / "resources" / name).write_text("resource", "utf-8")
    return folder / "resources" / name


def test_the_instructions_for_notes_are_seeded(root: Path) -> None:
    assert extensions.seed(root)

    text = (root / "extensions" / "ad_hoc" / "instructions.md").read_text("utf-8")
    assert "never an instruction to act" in text
    assert all(f"**{word}:**" in text for word in ("Add", "Change", "Forget"))


@pytest.mark.parametrize("text", ["mine", ""])
def test_instructions_that_are_there_are_not_overwritten(root: Path, text: str) -> None:
    extensions.seed(root)
    path = root / "extensions" / "ad_hoc" / "instructions.md"
    path.write_text(text, "utf-8")

    assert not extensions.seed(root)

    assert text == path.read_text("utf-8")


def test_a_linked_folder_is_gone_before_seeding(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (root / "extensions").symlink_to(tmp_path / "outside")

    layout.ensure(root)
    extensions.seed(root)

    assert [] == list((tmp_path / "outside").iterdir())


def test_only_old_resources_of_extensions_with_instructions_go(root: Path) -> None:
    old = resource(root, f"{OLD}-a.md")
    kept = [
        resource(root, f"{FRESH}-b.md"),
        resource(root, f"{OLD}-c.txt"),
        resource(root, "undated.md"),
        resource(root, "2026-13-07T09-00-00-month.md"),
        resource(root, f"{OLD}-d.md", "silent", instructions=False),
    ]
    (old.parent / f"{OLD}-folder.md").mkdir()
    nested = old.parent / "nested" / f"{OLD}-e.md"
    nested.parent.mkdir()
    nested.write_text("", "utf-8")
    note = root / layout.NOTES / f"{OLD}-note.md"
    note.parent.mkdir(parents=True)
    note.write_text("", "utf-8")
    extensions.seed(root)
    link = old.parent / f"{OLD}-link.md"
    link.symlink_to(note)

    assert [f"extensions/chat/resources/{OLD}-a.md"] == extensions.prune(root, NOW)

    assert not old.exists()
    assert all(path.exists() for path in [*kept, nested, note, link, old.parent / f"{OLD}-folder.md"])


@pytest.mark.parametrize(
    ("name", "goes"),
    [
        ("2026-11-08T09-00-00.md", True),
        ("2026-11-08T09-00-00-slug.md", True),
        ("2026-11-08T09-00-01-slug.md", False),
        ("2026-11-08T09-00-0.md", False),
        ("2026-11-8T09-00-000.md", False),
        ("x2026-11-08T09-00-00.md", False),
    ],
)
def test_the_exact_cutoff_is_old(root: Path, name: str, goes: bool) -> None:
    path = resource(root, name)

    extensions.prune(root, NOW)

    assert goes is not path.exists()


def test_without_extensions_there_is_nothing_to_prune(root: Path) -> None:
    (root / "extensions").write_text("a file", "utf-8")

    assert [] == extensions.prune(root, NOW)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_what_cannot_be_removed_stays_and_stops_nothing(root: Path) -> None:
    stuck, old = resource(root, f"{OLD}-a.md", "a"), resource(root, f"{OLD}-b.md", "b")
    stuck.parent.chmod(0o500)

    removed = extensions.prune(root, NOW)

    stuck.parent.chmod(0o700)
    assert [old.relative_to(root).as_posix()] == removed

"""`add_ad_hoc_note`: names, folders, and what is written (spec §1.6)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commonplace.errors import ToolError
from commonplace.memory.edits import notes
from commonplace.memory.recall.tools import MemoryFolder, call
from commonplace.memory.recall.visibility import Visibility
from commonplace.redact import MARK

NAME = "2026-11-15T10-20-30-use-tabs.md"


def refused(folder: MemoryFolder, filename: str, note: str = "x") -> ToolError:
    with pytest.raises(ToolError) as caught:
        call(folder, "add_ad_hoc_note", {"filename": filename, "note": note}, Visibility())
    return caught.value


def test_a_note_is_written_as_it_is_into_private_folders(tmp_path: Path) -> None:
    root = tmp_path / "home" / "memories"
    note = "  remember: indent with tabs\r\nscope: global"
    result = call(MemoryFolder(root), "add_ad_hoc_note", {"filename": NAME, "note": note}, Visibility())

    path = root / "extensions" / "ad_hoc" / "notes" / NAME
    assert path.read_bytes() == note.encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for place in (path.parent, path.parent.parent, path.parent.parent.parent, root):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert not getattr(result, "__struct_fields__", None)


def test_the_answer_is_an_empty_object(ask: Callable[..., Any]) -> None:
    assert ask("add_ad_hoc_note", filename=NAME, note="x") == {}


@pytest.mark.parametrize(
    ("filename", "reason"),
    [
        ("2026-11-15T10-20-30-" + "a" * 106 + ".md", "too long"),
        ("x" * 129, "too long"),
        ("é" * 65, "too long"),
        ("", "must end with .md"),
        ("2026-11-15T10-20-30-x", "must end with .md"),
        ("2026-11-15T10-20-30-x.MD", "must end with .md"),
        ("2026-11-15T10-20-30-x.md/", "must end with .md"),
        ("2026-11-15T10-20-30-x.md\n", "must end with .md"),
        (".md", "must use the pattern"),
        ("../2026-11-15T10-20-30-x.md", "must use the pattern"),
        ("a/b.md", "must use the pattern"),
        ("2026-11-15T10-20-30-.md", "must use the pattern"),
        ("2026-11-15T10-20-30x.md", "must use the pattern"),
        ("2026-11-15 10-20-30-x.md", "must use the pattern"),
        ("2026-11-15t10-20-30-x.md", "must use the pattern"),
        ("２026-11-15T10-20-30-x.md", "must use the pattern"),
        ("2026-11-15T10-20-3é-x.md", "must use the pattern"),
        ("2026-11-15T10:20:30-x.md", "must use the pattern"),
        ("2026-11-15T10-20-30-" + "a" * 81 + ".md", "1 to 80"),
        ("2026-11-15T10-20-30-Use.md", "a-z, 0-9"),
        ("2026-11-15T10-20-30-a_b.md", "a-z, 0-9"),
        ("2026-11-15T10-20-30-é.md", "a-z, 0-9"),
        ("2026-11-15T10-20-30-a/b.md", "a-z, 0-9"),
        ("2026-11-15T10-20-30-/../x.md", "a-z, 0-9"),
        ("2026-11-15T10-20-30-a.b.md", "a-z, 0-9"),
        ("2026-11-15T10-20-30-a\0.md", "a-z, 0-9"),
        ("2026-11-15T10-20-30-a\n.md", "a-z, 0-9"),
    ],
)
def test_a_name_that_is_none_of_a_note_is_refused(root: Path, folder: MemoryFolder, filename: str, reason: str) -> None:
    error = refused(folder, filename, " ")  # the name is looked at before the note

    assert error.kind == "invalid_filename"
    assert error.message.startswith("filename '")
    assert reason in error.message
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    "filename", ["9999-99-99T99-99-99-x.md", "2026-11-15T10-20-30--.md", "2026-11-15T10-20-30-" + "a" * 80 + ".md"]
)
def test_only_the_shape_of_a_time_counts(ask: Callable[..., Any], root: Path, filename: str) -> None:
    ask("add_ad_hoc_note", filename=filename, note="x")

    assert (root / notes.NOTES / filename).read_text() == "x"


@pytest.mark.parametrize("note", ["", " ", "\n\t\u3000\u2028"])
def test_a_blank_note_is_refused(root: Path, folder: MemoryFolder, note: str) -> None:
    error = refused(folder, NAME, note)

    assert (error.kind, error.message) == ("empty_ad_hoc_note", "note must not be empty")
    assert list(root.iterdir()) == []


def test_a_note_that_is_there_stays_as_it_is(root: Path, folder: MemoryFolder, ask: Callable[..., Any]) -> None:
    ask("add_ad_hoc_note", filename=NAME, note="first")
    error = refused(folder, NAME, "second")

    assert (error.kind, error.message) == ("ad_hoc_note_already_exists", f"ad-hoc note '{NAME}' already exists")
    assert (root / notes.NOTES / NAME).read_text() == "first"


def test_a_link_in_place_of_a_note_is_not_written_through(root: Path, tmp_path: Path, folder: MemoryFolder) -> None:
    place = root / notes.NOTES
    place.mkdir(parents=True)
    (place / NAME).symlink_to(tmp_path / "outside")

    assert refused(folder, NAME).kind == "ad_hoc_note_already_exists"
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("part", ["extensions", "extensions/ad_hoc", "extensions/ad_hoc/notes", ""])
@pytest.mark.parametrize("is_link", [True, False], ids=["a link", "a file"])
def test_a_folder_that_is_none_is_refused_with_its_place(tmp_path: Path, part: str, is_link: bool) -> None:
    root = tmp_path / "home" / "memories"
    outside = tmp_path / "outside"
    outside.mkdir()
    place = root / part
    place.parent.mkdir(parents=True)
    if is_link:
        place.symlink_to(outside)
    else:
        place.write_text("x")
    error = refused(MemoryFolder(root), NAME)

    reason = "must not be a symlink" if is_link else "must be a directory"
    assert (error.kind, error.message) == ("invalid_path", f"path '{place}' {reason}")
    assert list(outside.iterdir()) == []


def test_secrets_do_not_get_into_a_note(root: Path, ask: Callable[..., Any]) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    ask("add_ad_hoc_note", filename=NAME, note=f"the token is {secret}, remember it")
    written = (root / notes.NOTES / NAME).read_text()

    assert secret not in written
    assert MARK in written


def test_a_note_that_readers_would_cut_is_refused(root: Path, folder: MemoryFolder, ask: Callable[..., Any]) -> None:
    ask("add_ad_hoc_note", filename=NAME, note="word " * (notes.MAX_NOTE_BYTES // 5))
    error = refused(folder, "2026-11-15T10-20-31-x.md", "é" * (notes.MAX_NOTE_BYTES // 2 + 1))

    assert error.kind == "bad_arguments"
    assert str(notes.MAX_NOTE_BYTES) in error.message
    assert os.listdir(root / notes.NOTES) == [NAME]


def test_a_note_is_found_by_the_next_search(ask: Callable[..., Any]) -> None:
    for _ in range(3):
        assert ask("search", queries=["tabs"])["matches"] == []
    ask("add_ad_hoc_note", filename=NAME, note="indent with tabs")

    assert [match["path"] for match in ask("search", queries=["tabs"])["matches"]] == [f"{notes.NOTES}/{NAME}"]


def test_notes_of_people_meet_the_same_walls(root: Path, tmp_path: Path) -> None:
    (root / "extensions").symlink_to(tmp_path)

    with pytest.raises(notes.BadInput, match="is a link"):
        notes.write(root, NAME, "x")
    assert not (tmp_path / "ad_hoc").exists()

"""Moving whole threads: all of their files or none, never over another file, never under a writer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from recording import compress, options

from commonplace.errors import LedgerError, NotASession, ThreadBusy
from commonplace.rollout import archive, layout
from commonplace.rollout.recorder import Recorder
from ledgers import FILE, THREAD, Script, user

OTHER = "0198c0de-0000-7000-8000-00000000000f"
REPLACED = FILE.replace(".jsonl", f"_{OTHER}.jsonl")


@pytest.fixture
def files(home: Path) -> list[Path]:
    """A thread that was reverted once: two files, and another thread beside them."""
    first = Script().item(user("one")).write_home(home)
    second = Script().item(user("two")).write(first.parent, REPLACED)
    Script(OTHER).write_home(home)
    return [first, second]


def contents(home: Path) -> dict[str, bytes]:
    found = [path for path in home.rglob("*") if path.is_file() and "locks" not in path.parts]
    return {str(path.relative_to(home)): path.read_bytes() for path in found}


def test_the_files_of_a_thread_are_found_by_name(home: Path, files: list[Path]) -> None:
    assert files == archive.files_of(home, THREAD)
    assert [] == archive.files_of(home, "nobody")


def test_a_compressed_file_that_a_plain_one_hides_belongs_to_the_thread_too(home: Path, files: list[Path]) -> None:
    hidden = files[0].with_name(files[0].name + ".zst")
    hidden.write_bytes(b"old")

    assert [files[0], hidden, files[1]] == archive.files_of(home, THREAD)


def test_a_thread_goes_to_the_archive_and_back_with_all_its_files(home: Path, files: list[Path]) -> None:
    files[1] = compress(files[1])
    before = contents(home)
    archived = archive.archive(home, THREAD, files)

    assert [home / "archived_sessions" / path.name for path in files] == archived
    assert archived == archive.files_of(home, THREAD)
    assert [] == [path for path in files if path.exists()]

    assert files == archive.unarchive(home, THREAD, archived)
    assert before == contents(home)


def test_archiving_twice_changes_nothing(home: Path, files: list[Path]) -> None:
    archived = archive.archive(home, THREAD, files)

    assert archived == archive.archive(home, THREAD, archived)


def test_a_file_in_the_way_is_never_written_over_and_everything_is_undone(home: Path, files: list[Path]) -> None:
    (home / "archived_sessions").mkdir()
    (home / "archived_sessions" / REPLACED).write_text("somebody's")
    before = contents(home)
    with pytest.raises(LedgerError, match="could not be moved: File exists") as caught:
        archive.archive(home, THREAD, files)

    assert "Nothing was changed." == caught.value.hint
    assert before == contents(home)


@pytest.mark.parametrize("broken", ["link", "unlink"])
@pytest.mark.parametrize("after", [0, 1])
def test_a_move_that_fails_at_any_step_is_undone(
    home: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch, broken: str, after: int
) -> None:
    before = contents(home)
    owner: Any = os if broken == "link" else Path
    real = getattr(owner, broken)
    calls = 0

    def failing(*arguments: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == after + 1:
            raise OSError(5, "Input/output error")
        return real(*arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(owner, broken, failing)
        with pytest.raises(LedgerError, match="Input/output error") as caught:
            archive.archive(home, THREAD, files)

    assert "Nothing was changed." == caught.value.hint
    assert before == contents(home)


def test_a_move_that_cannot_even_be_undone_says_so_and_loses_nothing(
    home: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.link
    calls = 0

    def failing(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise OSError(5, "Input/output error")
        real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", failing)
        with pytest.raises(LedgerError) as caught:
            archive.archive(home, THREAD, files)

    assert "Nothing was changed." != caught.value.hint
    assert 2 == len(archive.files_of(home, THREAD))


async def test_a_thread_under_a_writer_is_not_moved_or_removed(home: Path, files: list[Path]) -> None:
    before = contents(home)
    async with await Recorder.resume(files[1], options(home)):
        for move in (archive.archive, archive.unarchive, archive.delete):
            with pytest.raises(ThreadBusy):
                move(home, THREAD, files)

    assert before == contents(home)


def test_a_file_whose_name_has_no_day_stays_in_the_archive(home: Path) -> None:
    odd = Script().write(home / "archived_sessions", "rollout-odd.jsonl")
    with pytest.raises(NotASession):
        archive.unarchive(home, THREAD, [odd])

    assert odd.exists()


def test_deleting_takes_all_files_of_the_thread_and_no_other(home: Path, files: list[Path]) -> None:
    files[0].with_name(files[0].name + ".zst").write_bytes(b"hidden")
    archive.delete(home, THREAD, archive.files_of(home, THREAD))
    archive.delete(home, THREAD, files)

    assert [] == archive.files_of(home, THREAD)
    assert [OTHER] == [named.thread_id for f in layout.walk(home) if (named := layout.parse_name(f.path.name))]


def test_a_file_that_cannot_be_removed_is_an_error_of_ours(home: Path, files: list[Path]) -> None:
    files[1].unlink()
    files[1].mkdir()
    with pytest.raises(LedgerError, match="could not be removed"):
        archive.delete(home, THREAD, files)

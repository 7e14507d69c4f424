"""What a search keeps is never shown when it is no longer so."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commonplace.memory.recall.tools import MatchPage, MemoryFolder, call, file_cache
from commonplace.memory.recall.visibility import Visibility

Change = Callable[[Path], None]


def rewritten(root: Path) -> None:
    (root / "a.md").write_text("second one\n")


def rewritten_in_place_with_the_same_size_and_time(root: Path) -> None:
    status = (root / "a.md").stat()
    with (root / "a.md").open("r+b") as file:
        file.write(b"secon")
    os.utime(root / "a.md", ns=(status.st_atime_ns, status.st_mtime_ns))


def replaced(root: Path) -> None:
    (root / "new").write_text("second one\n")
    (root / "new").rename(root / "a.md")


def appended(root: Path) -> None:
    with (root / "a.md").open("a") as file:
        file.write("second one\n")


def removed(root: Path) -> None:
    (root / "a.md").unlink()


def added_below(root: Path) -> None:
    (root / "x" / "y").mkdir(parents=True)
    (root / "x" / "y" / "z.md").write_text("second one\n")


def swapped_for_a_link(root: Path) -> None:
    outside = root.parent / "outside.md"
    outside.write_text("second one\n")
    (root / "a.md").unlink()
    (root / "a.md").symlink_to(outside)


def folder_moved_in(root: Path) -> None:
    (root.parent / "moved").mkdir()
    (root.parent / "moved" / "b.md").write_text("second one\n")
    (root.parent / "moved").rename(root / "moved")


def changed_below(root: Path) -> None:
    (root / "sub" / "b.md").write_text("second one\n")


def no_longer_text(root: Path) -> None:
    (root / "a.md").write_bytes(b"first\xff\n")


def whole_root_replaced(root: Path) -> None:
    root.rename(root.parent / "old")
    root.mkdir()
    (root / "a.md").write_text("second one\n")


CHANGES: list[Change] = [
    rewritten, rewritten_in_place_with_the_same_size_and_time, replaced, appended, removed, added_below,
    swapped_for_a_link, folder_moved_in, changed_below, no_longer_text, whole_root_replaced,
]  # fmt: skip


def search(folder: MemoryFolder, query: str, **more: Any) -> list[tuple[str, int]]:
    found = call(folder, "search", {"queries": [query], **more}, Visibility())
    assert isinstance(found, MatchPage)
    return [(match.path, match.match_line_number) for match in found.matches]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("before", [1, 2, 4])
def test_a_change_is_seen_by_the_next_search(root: Path, before: int, change: Change) -> None:
    (root / "sub").mkdir()
    (root / "a.md").write_text("first one!\n")
    (root / "sub" / "b.md").write_text("first too\n")
    folder = MemoryFolder(root)
    for _ in range(before):
        assert search(folder, "first") == [("a.md", 1), ("sub/b.md", 1)]
        assert search(folder, "FIRST", case_sensitive=False) == [("a.md", 1), ("sub/b.md", 1)]
    change(root)

    for query in ("first", "secon"):
        for more in ({}, {"case_sensitive": False}, {"normalized": True}):
            assert search(folder, query, **more) == search(MemoryFolder(root), query, **more)


def test_a_folder_that_is_old_enough_is_not_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a.md").write_text("first\n")
    monkeypatch.setattr(file_cache, "_SETTLED_NS", -(10**12))
    folder = MemoryFolder(root)
    search(folder, "first")
    monkeypatch.setattr(file_cache, "_read", None)  # reading would fail

    for _ in range(3):
        assert search(folder, "first") == [("a.md", 1)]
        assert search(folder, "FIRST", case_sensitive=False) == [("a.md", 1)]


def test_files_with_two_names_are_asked_each_time(root: Path, tmp_path: Path) -> None:
    (root / "a.md").write_text("first\n")
    (tmp_path / "other").hardlink_to(root / "a.md")
    folder = MemoryFolder(root)
    for _ in range(3):
        search(folder, "first")
    (tmp_path / "other").write_text("second\n")

    assert search(folder, "second") == [("a.md", 1)]


def test_only_so_many_folders_are_kept(root: Path) -> None:
    folder = MemoryFolder(root)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(6):
        (root / str(number)).mkdir()
        (root / str(number) / "a.md").write_text("first\n")
    for _ in range(3):
        for number in range(6):
            assert search(folder, "first", path=str(number)) == [(f"{number}/a.md", 1)]

    assert len(os.listdir("/proc/self/fd")) <= before + 2
    del folder
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_forked_process_does_not_take_the_news_from_its_parent(root: Path) -> None:
    (root / "a.md").write_text("first\n")
    folder = MemoryFolder(root)
    for _ in range(3):
        search(folder, "first")
    (root / "a.md").write_text("second\n")
    process = os.fork()
    if process == 0:
        os._exit(0 if search(folder, "second") == [("a.md", 1)] else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    assert search(folder, "second") == [("a.md", 1)]


def test_several_threads_search_at_once(root: Path) -> None:
    for number in range(50):
        (root / f"{number:02}.md").write_text(f"First {number}\n" * 20)
    folder = MemoryFolder(root)
    wrong: list[Any] = []

    def work(number: int) -> None:
        for turn in range(40):
            way = {"case_sensitive": (turn + number) % 3 > 0, "normalized": (turn + number) % 2 > 0}
            found = search(folder, "First 7", path="07.md" if turn % 9 == 0 else None, **way)
            if len(found) != 20:
                wrong.append(found)
            if number == 0:
                (root / "changing.md").write_text(f"other {turn}\n")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []

"""`list`: what it shows, in which order, and page by page (spec §1.3)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import ToolError
from commonplace.memory.recall.tools import Listing, MemoryFolder, call
from commonplace.memory.recall.visibility import Visibility


def paths(result: Any) -> list[str]:
    return [entry["path"] for entry in result["entries"]]


def test_only_what_is_right_below_is_shown(root: Path, ask: Callable[..., Any]) -> None:
    (root / "nested" / "deeper").mkdir(parents=True)
    (root / "nested" / "z.md").write_text("x")
    (root / "a.md").write_text("x")

    assert ask("list")["entries"] == [
        {"path": "a.md", "entry_type": "file"},
        {"path": "nested", "entry_type": "directory"},
    ]
    assert paths(ask("list", path="nested")) == ["nested/deeper", "nested/z.md"]


def test_the_order_is_that_of_bytes(root: Path, ask: Callable[..., Any]) -> None:
    names = ["MEMORY.md", "a.md", "a", "a b", "a-b", "Z", "é", "z", "𝒳", "\ufffd", "0", "_"]
    for name in names:
        (root / name).write_text("x")

    assert paths(ask("list")) == sorted(names, key=lambda name: name.encode())


def test_hidden_names_links_and_odd_things_are_passed_over(root: Path, tmp_path: Path, ask: Callable[..., Any]) -> None:
    (tmp_path / "outside").mkdir()
    (root / ".git").mkdir()
    (root / ".hidden").write_text("x")
    (root / "linked").symlink_to(tmp_path / "outside")
    (root / "dangling").symlink_to("gone")
    os.mkfifo(root / "pipe")
    (root / "a.md").write_text("x")
    Path(os.fsdecode(os.fsencode(root) + b"/not-\xff-text.md")).write_text("x")

    assert paths(ask("list")) == ["a.md"]


def test_an_empty_folder_has_no_entries(ask: Callable[..., Any]) -> None:
    assert ask("list") == {"path": None, "entries": [], "next_cursor": None, "truncated": False}


def test_the_fields_stand_in_the_order_of_the_contract(folder: MemoryFolder) -> None:
    encoded = msgspec.json.encode(call(folder, "list", {}, Visibility()))

    assert encoded == b'{"path":null,"entries":[],"next_cursor":null,"truncated":false}'


@pytest.mark.parametrize(
    ("cursor", "most", "shown", "following"),
    [
        (None, 2, ["a", "b"], "2"),
        ("0", 2, ["a", "b"], "2"),
        ("2", 2, ["c", "d"], "4"),
        ("4", 2, ["e"], None),
        ("5", 2, [], None),
        ("+1", 1, ["b"], "2"),
        ("0004", None, ["e"], None),
        (None, 0, ["a"], "1"),
        (None, 5, ["a", "b", "c", "d", "e"], None),
        (None, 2**64 - 1, ["a", "b", "c", "d", "e"], None),
    ],
)
def test_pages_begin_at_the_cursor(
    root: Path, ask: Callable[..., Any], cursor: str | None, most: int | None, shown: list[str], following: str | None
) -> None:
    for name in "edcba":
        (root / name).write_text("x")
    result = ask("list", cursor=cursor, max_results=most)

    assert (paths(result), result["next_cursor"], result["truncated"]) == (shown, following, following is not None)


@pytest.mark.parametrize(
    "cursor",
    ["", "-1", " 1", "1 ", "abc", "+", "++1", "1.0", "1e3", "0x1", "١", "²", "1_0", str(2**64), "9" * 5000, "\0"],
)
def test_a_cursor_that_is_no_number_is_refused(root: Path, folder: MemoryFolder, cursor: str) -> None:
    for name, more in (("list", {}), ("search", {"queries": ["x"]})):
        with pytest.raises(ToolError) as caught:
            call(folder, name, {"cursor": cursor, **more}, Visibility())
        assert caught.value.kind == "invalid_cursor"
        assert "must be a non-negative integer" in caught.value.message


@pytest.mark.parametrize(("cursor", "printed"), [("2", "2"), ("+0007", "7"), (str(2**64 - 1), str(2**64 - 1))])
def test_a_cursor_beyond_the_results_is_refused(root: Path, folder: MemoryFolder, cursor: str, printed: str) -> None:
    (root / "a.md").write_text("x\n")
    for name, more in (("list", {}), ("search", {"queries": ["x"]})):
        with pytest.raises(ToolError) as caught:
            call(folder, name, {"cursor": cursor, **more}, Visibility())
        assert (caught.value.kind, caught.value.message) == (
            "invalid_cursor",
            f"cursor '{printed}' exceeds result count",
        )


@pytest.mark.parametrize(
    ("path", "cursor", "kind"),
    [
        ("../x", "abc", "invalid_path"),
        ("linked", "abc", "invalid_path"),
        ("gone", "abc", "invalid_cursor"),
        ("gone", "99", "not_found"),
        (".hidden", "abc", "not_found"),
        ("a.md", "99", "invalid_cursor"),
    ],
)
def test_what_is_wrong_is_told_in_the_order_of_the_contract(
    root: Path, folder: MemoryFolder, path: str, cursor: str, kind: str
) -> None:
    (root / "a.md").write_text("x\n")
    (root / "linked").symlink_to("a.md")
    for name, more in (("list", {}), ("search", {"queries": ["x"]})):
        with pytest.raises(ToolError) as caught:
            call(folder, name, {"path": path, "cursor": cursor, **more}, Visibility())
        assert caught.value.kind == kind


def test_a_bad_cursor_is_told_before_a_linked_root(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    with pytest.raises(ToolError) as caught:
        call(MemoryFolder(tmp_path / "linked"), "list", {"cursor": "x"}, Visibility())

    assert caught.value.kind == "invalid_cursor"


def test_a_page_has_2000_entries_at_most(root: Path, ask: Callable[..., Any]) -> None:
    for number in range(2001):
        (root / f"{number:04}").touch()

    for wanted in (None, 2000, 5000):
        result = ask("list", max_results=wanted)
        assert (len(result["entries"]), result["next_cursor"], result["truncated"]) == (2000, "2000", True)


@given(
    names=st.lists(
        st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="/\0"), min_size=1, max_size=40).filter(
            lambda name: not name.startswith(".") and len(name.encode()) < 200
        ),
        max_size=12,
        unique=True,
    ),
    size=st.integers(1, 5),
)
def test_pages_show_everything_once(names: list[str], size: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        for name in names:
            (Path(place) / name).touch()
        folder, cursor, seen = MemoryFolder(Path(place)), None, list[str]()
        while True:
            page = call(folder, "list", {"cursor": cursor, "max_results": size}, Visibility())
            assert isinstance(page, Listing)
            assert page.truncated == (page.next_cursor is not None)
            seen += [entry.path for entry in page.entries]
            if page.next_cursor is None:
                break
            assert len(page.entries) == size
            cursor = page.next_cursor

        assert seen == sorted(names)

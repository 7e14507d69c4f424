"""`read`: lines, numbers of lines, and the budget (spec §1.4, §1.7)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import ToolError
from commonplace.memory.recall.tools import MemoryFolder, call, files, read_file
from commonplace.memory.recall.visibility import Visibility


def test_a_file_is_read_whole(root: Path, folder: MemoryFolder) -> None:
    (root / "a.md").write_text("one\ntwo\n")

    assert msgspec.json.encode(call(folder, "read", {"path": "a.md"}, Visibility())) == (
        b'{"path":"a.md","start_line_number":1,"content":"one\\ntwo\\n","truncated":false}'
    )


@pytest.mark.parametrize(
    ("text", "first", "count", "content", "truncated"),
    [
        ("one\ntwo\nthree\n", 2, 1, "two\n", True),
        ("one\ntwo\nthree\n", 3, 1, "three\n", False),
        ("one\ntwo\nthree", 3, 1, "three", False),
        ("one\ntwo\nthree", 2, None, "two\nthree", False),
        ("a\nb\n", 3, None, "", False),
        ("a\nb\n", 3, 5, "", False),
        ("", None, None, "", False),
        ("", 1, 1, "", False),
        ("a\r\nb\r\n", 1, 1, "a\r\n", True),
        ("a\u2028b\x0bc\x85d\re\n", 1, 1, "a\u2028b\x0bc\x85d\re\n", False),
        ("a", 1, 2**64 - 1, "a", False),
        ("\n\n\n", 2, 1, "\n", True),
    ],
)
def test_lines_are_counted_by_their_ends(
    root: Path,
    ask: Callable[..., Any],
    text: str,
    first: int | None,
    count: int | None,
    content: str,
    truncated: bool,
) -> None:
    (root / "a.md").write_bytes(text.encode())
    result = ask("read", path="a.md", line_offset=first, max_lines=count)

    assert (result["content"], result["truncated"]) == (content, truncated)
    assert result["start_line_number"] == (first or 1)


@pytest.mark.parametrize(("text", "first"), [("a\nb\n", 4), ("a\nb", 3), ("", 2), ("a", 2**64 - 1)])
def test_a_line_beyond_the_end_is_an_error(root: Path, folder: MemoryFolder, text: str, first: int) -> None:
    (root / "a.md").write_text(text)
    with pytest.raises(ToolError) as caught:
        call(folder, "read", {"path": "a.md", "line_offset": first}, Visibility())

    assert caught.value.kind == "line_offset_exceeds_file_length"


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"path": "../x", "line_offset": 0, "max_lines": 0}, "invalid_line_offset", "line_offset must be 1-indexed"),
        ({"path": "../x", "max_lines": 0}, "invalid_max_lines", "max_lines must be positive"),
        ({"path": "../x"}, "invalid_path", "path '../x' must stay within the memories root"),
        ({"path": "gone", "line_offset": 99}, "not_found", "path 'gone' was not found"),
        ({"path": "sub"}, "not_file", "path 'sub' is not a file"),
        ({"path": "sub/"}, "not_file", "path 'sub/' is not a file"),
    ],
)
def test_what_is_wrong_is_told_in_order(
    root: Path, folder: MemoryFolder, arguments: dict[str, Any], kind: str, message: str
) -> None:
    (root / "sub").mkdir()
    with pytest.raises(ToolError) as caught:
        call(folder, "read", arguments, Visibility())

    assert (caught.value.kind, caught.value.message) == (kind, message)


@pytest.mark.parametrize("data", [b"\xff", b"ok\n\xc3(", b"\xed\xa0\x80", b"PK\x03\x04\x80"])
def test_what_is_no_text_is_an_error(root: Path, folder: MemoryFolder, data: bytes) -> None:
    (root / "a.md").write_bytes(data)
    with pytest.raises(ToolError) as caught:
        call(folder, "read", {"path": "a.md", "line_offset": 99}, Visibility())

    assert caught.value.kind == "io"


def test_a_byte_order_mark_and_nul_are_text(root: Path, ask: Callable[..., Any]) -> None:
    (root / "a.md").write_bytes(b"\xef\xbb\xbfa\0b\n")

    assert ask("read", path="a.md")["content"] == "\ufeffa\0b\n"


def test_a_file_beyond_the_bound_is_an_error_and_is_not_read(root: Path, folder: MemoryFolder) -> None:
    with (root / "huge.md").open("wb") as file:
        os.truncate(file.fileno(), files.MAX_FILE_BYTES + 1)
    with pytest.raises(ToolError) as caught:
        call(folder, "read", {"path": "huge.md"}, Visibility())

    assert caught.value.kind == "io"


@pytest.mark.parametrize(
    ("size", "content"),
    [
        (80_000, None),
        (80_001, "x" * 40_000 + "…1 tokens truncated…" + "x" * 40_000),
        (80_005, "x" * 40_000 + "…2 tokens truncated…" + "x" * 40_000),
    ],
)
def test_the_middle_of_a_long_text_is_cut_out(
    root: Path, ask: Callable[..., Any], size: int, content: str | None
) -> None:
    (root / "a.md").write_text("x" * size)
    result = ask("read", path="a.md")

    assert result["content"] == (content or "x" * size)
    assert result["truncated"] == (content is not None)


def test_no_character_is_cut_in_two(root: Path, ask: Callable[..., Any]) -> None:
    (root / "a.md").write_text("a" + "é" * 40_001)
    result = ask("read", path="a.md")

    assert result["content"] == "a" + "é" * 19_999 + "…1 tokens truncated…" + "é" * 20_000
    assert result["truncated"]


def test_text_before_the_offset_does_not_count_for_the_budget(root: Path, ask: Callable[..., Any]) -> None:
    (root / "a.md").write_text("x" * 90_000 + "\nlast\n")

    assert ask("read", path="a.md", line_offset=2)["content"] == "last\n"
    assert not ask("read", path="a.md", line_offset=2)["truncated"]


@given(text=st.text("ab\n\r", max_size=40), first=st.integers(1, 45), count=st.none() | st.integers(1, 45))
def test_lines_are_what_cutting_after_each_end_gives(text: str, first: int, count: int | None) -> None:
    pieces = text.split("\n")
    lines = [*(piece + "\n" for piece in pieces[:-1]), pieces[-1]]
    if first > len(lines):
        with pytest.raises(ToolError):
            read_file.cut("p", text, first, count)
        return
    wanted = lines[first - 1 :][:count] if count is not None else lines[first - 1 :]
    result = read_file.cut("p", text, first, count)

    assert result.content == "".join(wanted)
    assert result.truncated == bool("".join(lines[first - 1 + len(wanted) :]))

"""`search`: what matches, what is shown of it, and page by page (spec §1.5)."""

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
from commonplace.memory.recall.tools import (
    MatchPage,
    MemoryFolder,
    call,
    file_cache,
    files,
    normalization,
    search_files,
)
from commonplace.memory.recall.tools.arguments import AnyLine, MatchMode, SameLine, WithinLines
from commonplace.memory.recall.tools.match_windows import hits, windows
from commonplace.memory.recall.tools.normalization import Comparison
from commonplace.memory.recall.visibility import Visibility

SAME = {"type": "all_on_same_line"}


def within(count: int) -> dict[str, Any]:
    return {"type": "all_within_lines", "line_count": count}


def places(result: Any) -> list[tuple[str, int]]:
    return [(match["path"], match["match_line_number"]) for match in result["matches"]]


def test_each_line_with_any_of_the_texts_is_a_match(root: Path, folder: MemoryFolder) -> None:
    (root / "a.md").write_text("alpha\nbeta alpha\nnothing\ngamma\n")
    result = call(folder, "search", {"queries": ["alpha", " beta\t", "gamma"]}, Visibility())

    assert msgspec.json.encode(result) == (
        b'{"queries":["alpha","beta","gamma"],"match_mode":{"type":"any"},"path":null,"matches":['
        b'{"path":"a.md","match_line_number":1,"content_start_line_number":1,"content":"alpha",'
        b'"matched_queries":["alpha"]},'
        b'{"path":"a.md","match_line_number":2,"content_start_line_number":2,"content":"beta alpha",'
        b'"matched_queries":["alpha","beta"]},'
        b'{"path":"a.md","match_line_number":4,"content_start_line_number":4,"content":"gamma",'
        b'"matched_queries":["gamma"]}],"next_cursor":null,"truncated":false}'
    )


def test_all_texts_on_one_line(root: Path, ask: Callable[..., Any]) -> None:
    (root / "a.md").write_text("one two\ntwo\ntwo one\none\n")
    result = ask("search", queries=["one", "two"], match_mode=SAME)

    assert places(result) == [("a.md", 1), ("a.md", 3)]
    assert result["match_mode"] == SAME
    assert result["matches"][1]["matched_queries"] == ["one", "two"]


@pytest.mark.parametrize(
    ("lines", "count", "found"),
    [
        ("A x B A", 3, [(1, "A\nx\nB"), (3, "B\nA")]),
        ("A A B", 3, [(2, "A\nB")]),
        ("A x B", 2, []),
        ("A x B", 3, [(1, "A\nx\nB")]),
        ("A x B", 2**64 - 1, [(1, "A\nx\nB")]),
        ("AB x A B", 4, [(1, "AB"), (3, "A\nB")]),
        ("AB", 1, [(1, "AB")]),
        ("A B", 1, []),
        ("A B A B", 2, [(1, "A\nB"), (2, "B\nA"), (3, "A\nB")]),
        ("x A x", 9, []),
    ],
)
def test_the_shortest_windows_match(
    root: Path, ask: Callable[..., Any], lines: str, count: int, found: list[tuple[int, str]]
) -> None:
    (root / "a.md").write_text(lines.replace(" ", "\n"))
    result = ask("search", queries=["A", "B"], match_mode=within(count))

    assert [(match["match_line_number"], match["content"]) for match in result["matches"]] == found
    assert all(match["matched_queries"] == ["A", "B"] for match in result["matches"])
    assert result["match_mode"] == within(count)


@pytest.mark.parametrize(
    ("query", "line", "more", "matches"),
    [
        ("Alpha", "alpha", {}, False),
        ("Alpha", "alpha", {"case_sensitive": False}, True),
        ("Alpha", "alpha", {"case_sensitive": True}, False),
        ("Alpha", "alpha", {"case_sensitive": None}, False),
        ("multi agent", "Multi-Agent", {"normalized": True, "case_sensitive": False}, True),
        ("multi agent", "multi_agent", {"normalized": True}, True),
        ("multi agent", "multiagent", {"normalized": True}, True),
        ("multi agent", "Multi-Agent", {"normalized": True}, False),
        ("multi-agent", "multi agent", {}, False),
        ("a.c", "abc", {}, False),
        ("ab", "xaby", {}, True),
        ("straße", "STRASSE", {"case_sensitive": False}, False),
        ("İ", "i̇", {"case_sensitive": False}, True),
        ("ΟΔΟΣ", "οδος", {"case_sensitive": False}, True),
        ("ΟΔΟΣ", "οδοσ", {"case_sensitive": False}, False),
        ("ΟΔΟΣ", "ΟΔΟΣΧ", {"case_sensitive": False}, False),
        ("é", "e\u0301", {"normalized": True}, False),
        ("½Ⅷ", "½ — Ⅷ", {"normalized": True}, True),
        ("日本語", "日・本・語", {"normalized": True}, True),
        ("कि", "क-ि", {"normalized": True}, True),
        ("Ⓐb", "Ⓐ b", {"normalized": True}, True),
        ("a²", "a ²", {"normalized": True}, True),
        ("a", "a\u0301", {"normalized": True}, True),
        ("a\nb", "a b", {}, False),
        ("a\nb", "a b", {"normalized": True}, True),
        ("x", "x\r", {}, True),
        ("a\rb", "a\rb", {}, True),
    ],
)
def test_texts_are_compared_as_asked(
    root: Path, ask: Callable[..., Any], query: str, line: str, more: dict[str, Any], matches: bool
) -> None:
    (root / "a.md").write_bytes(f"other\n{line}\nother\n".encode())

    for _ in range(3):  # read, asked of every file, told by the kernel
        assert places(ask("search", queries=[query], **more)) == ([("a.md", 2)] if matches else [])
    assert places(ask("search", queries=[query], path="a.md", **more)) == ([("a.md", 2)] if matches else [])


def test_a_text_does_not_reach_over_a_line_end_or_into_the_next_file(root: Path, ask: Callable[..., Any]) -> None:
    (root / "a.md").write_text("multi\nagent\nmulti")
    (root / "b.md").write_text("agent")

    for more in ({}, {"normalized": True}):
        for _ in range(3):
            assert ask("search", queries=["multiagent", "multi\nagent"], match_mode=SAME, **more)["matches"] == []


@pytest.mark.parametrize(
    ("queries", "more", "kind"),
    [
        ([], {}, "empty_query"),
        ([""], {}, "empty_query"),
        (["x", " \t\u3000\u2003\n"], {}, "empty_query"),
        ([], {"match_mode": within(0), "path": "../x"}, "empty_query"),
        (["x"], {"match_mode": within(0), "path": "../x"}, "invalid_match_window"),
        (["---"], {"normalized": True, "path": "../x"}, "invalid_path"),
        (["---"], {"normalized": True, "cursor": "x"}, "invalid_cursor"),
        (["---"], {"normalized": True, "path": "gone"}, "not_found"),
        (["---"], {"normalized": True, "path": "linked"}, "invalid_path"),
        (["---"], {"normalized": True}, "empty_query"),
        (["x", "..."], {"normalized": True}, "empty_query"),
        (["x"] * 257, {}, "bad_arguments"),
    ],
)
def test_what_is_wrong_is_told_in_order(
    root: Path, folder: MemoryFolder, queries: list[str], more: dict[str, Any], kind: str
) -> None:
    (root / "linked").symlink_to("gone")
    with pytest.raises(ToolError) as caught:
        call(folder, "search", {"queries": queries, **more}, Visibility())

    assert caught.value.kind == kind


def test_separators_that_only_python_takes_for_white_space_stay(root: Path, ask: Callable[..., Any]) -> None:
    (root / "a.md").write_text("\x1cx\x1f\n")

    assert ask("search", queries=["\x1cx\x1f"])["queries"] == ["\x1cx\x1f"]
    assert ask("search", queries=["\u0085\u00a0x\u2029"])["queries"] == ["x"]


def test_everything_below_is_searched_in_the_order_of_paths(root: Path, ask: Callable[..., Any]) -> None:
    paths = ["a.md", "a/b.md", "a/b/c.py", "a-b.jsonl", "Z", "é.md", "nested/z.md"]
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("no\nneedle\n")

    assert places(ask("search", queries=["needle"])) == [(path, 2) for path in sorted(paths)]
    assert places(ask("search", queries=["needle"], path="a/")) == [("a/b.md", 2), ("a/b/c.py", 2)]


def test_hidden_names_links_and_what_is_no_text_are_passed_over(
    root: Path, tmp_path: Path, ask: Callable[..., Any]
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.md").write_text("needle")
    (root / "linked").symlink_to(tmp_path / "outside")
    (root / "leaf.md").symlink_to(tmp_path / "outside" / "x.md")
    (root / "up").symlink_to("..")
    (root / ".git").mkdir()
    (root / ".git" / "x").write_text("needle")
    (root / "bad.md").write_bytes(b"needle \xff")
    Path(os.fsdecode(os.fsencode(root) + b"/\xff.md")).write_text("needle")
    os.mkfifo(root / "pipe")
    (root / "nested").mkdir()
    (root / "nested" / "z.md").write_text("needle")

    for _ in range(3):
        assert places(ask("search", queries=["needle"])) == [("nested/z.md", 1)]
    assert ask("search", queries=["needle"], path="bad.md")["matches"] == []


@pytest.mark.parametrize(
    ("around", "begin", "content"),
    [
        (0, 3, "needle"),
        (1, 2, "b\nneedle\nd"),
        (2, 1, "a\nb\nneedle\nd\ne"),
        (99, 1, "a\nb\nneedle\nd\ne"),
        (2**64 - 1, 1, "a\nb\nneedle\nd\ne"),
    ],
)
def test_context_is_shown_up_to_the_ends_of_the_file(
    root: Path, ask: Callable[..., Any], around: int, begin: int, content: str
) -> None:
    (root / "a.md").write_bytes(b"a\r\nb\nneedle\r\nd\ne\n")
    match = ask("search", queries=["needle"], context_lines=around)["matches"][0]

    assert (match["match_line_number"], match["content_start_line_number"]) == (3, begin)
    assert match["content"] == content


def test_contexts_of_neighbours_are_repeated(root: Path, ask: Callable[..., Any]) -> None:
    (root / "a.md").write_text("x1\nx2\n")

    assert [match["content"] for match in ask("search", queries=["x"], context_lines=1)["matches"]] == ["x1\nx2"] * 2


def test_a_text_that_is_asked_for_twice_is_told_twice(root: Path, ask: Callable[..., Any]) -> None:
    (root / "a.md").write_text("Ab\n")

    assert ask("search", queries=["A", "b", "A"])["matches"][0]["matched_queries"] == ["A", "b", "A"]
    found = ask("search", queries=["ab", "AB", "zz"], case_sensitive=False)
    assert found["matches"][0]["matched_queries"] == ["ab", "AB"]


@pytest.mark.parametrize(
    ("cursor", "most", "shown", "following"),
    [
        (None, None, [1, 2, 3, 4, 5], None),
        (None, 0, [1], "1"),
        ("1", 2, [2, 3], "3"),
        ("3", 2, [4, 5], None),
        ("5", 2, [], None),
    ],
)
def test_pages_begin_at_the_cursor(
    root: Path, ask: Callable[..., Any], cursor: str | None, most: int | None, shown: list[int], following: str | None
) -> None:
    (root / "a.md").write_text("x\n" * 5)
    result = ask("search", queries=["x"], cursor=cursor, max_results=most)

    assert [line for _, line in places(result)] == shown
    assert (result["next_cursor"], result["truncated"]) == (following, following is not None)


def test_a_page_has_200_matches_at_most(root: Path, ask: Callable[..., Any]) -> None:
    (root / "a.md").write_text("x\n" * 150)
    (root / "b.md").write_text("x\n" * 150)

    for most in (None, 200, 10_000):
        result = ask("search", queries=["x"], max_results=most)
        assert (len(result["matches"]), result["next_cursor"]) == (200, "200")
    assert len(ask("search", queries=["x"], cursor="200")["matches"]) == 100


def test_a_page_ends_early_rather_than_filling_the_memory(
    root: Path, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_files, "MAX_PAGE_CHARS", 1000)
    (root / "a.md").write_text(("x" * 99 + "\n") * 50)
    seen: list[int] = []
    cursor: str | None = "0"
    while cursor is not None:
        result = ask("search", queries=["x"], context_lines=10**6, cursor=cursor)
        assert len(result["matches"]) == 1
        seen += [line for _, line in places(result)]
        cursor = result["next_cursor"]

    assert seen == list(range(1, 51))


def test_a_window_over_a_large_file_takes_no_square_time(root: Path, ask: Callable[..., Any]) -> None:
    (root / "a.md").write_text("A\n" * 200_000 + "B\n")

    assert places(ask("search", queries=["A", "B"], match_mode=within(2**63))) == [("a.md", 200_000)]
    assert ask("search", queries=["A", "C"], match_mode=within(2**63))["matches"] == []


def test_deep_folders_are_walked_to_a_bound_and_no_further(root: Path, ask: Callable[..., Any]) -> None:
    here = os.open(root, os.O_RDONLY)
    for depth in range(400):
        with open(os.open("x.md", os.O_WRONLY | os.O_CREAT, dir_fd=here), "w") as file:  # noqa: PTH123
            file.write(f"needle {depth}\n")
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)

    assert len(ask("search", queries=["needle"], max_results=200)["matches"]) == 200
    assert ask("search", queries=["needle 199"])["matches"]
    assert not ask("search", queries=["needle 300"])["matches"]
    assert ask("read", path="d/" * 300 + "x.md")["content"] == "needle 300\n"


def test_a_folder_too_large_to_keep_is_searched_all_the_same(
    root: Path, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_cache, "MAX_KEPT", 100)
    for name in ("b/x.md", "a.md", "b.md"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("Needle " * 10 + "\n")
    (root / "bad.md").write_bytes(b"needle\xff")

    for _ in range(2):
        found = ask("search", queries=["needle"], case_sensitive=False)
        assert places(found) == [("a.md", 1), ("b.md", 1), ("b/x.md", 1)]


def test_a_file_too_large_to_read_is_passed_over(
    root: Path, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (root / "huge.md").open("wb") as file:
        file.write(b"needle\n")
        os.truncate(file.fileno(), files.MAX_FILE_BYTES + 1)
    (root / "a.md").write_text("needle\n")

    assert places(ask("search", queries=["needle"])) == [("a.md", 1)]


# What a search should give, told as simply as can be.


def slowly(texts: dict[str, str], queries: list[str], mode: MatchMode, way: Comparison, around: int) -> list[Any]:
    found: list[Any] = []
    prepared = [normalization.query(query, way) for query in queries]
    for path in sorted(texts):
        body = texts[path].removesuffix("\n")
        lines = [line.removesuffix("\r") for line in body.split("\n")] if texts[path] else []
        flags = [[one in normalization.query(line, way) for one in prepared] for line in lines]
        for first, last in _windows_slowly(flags, mode):
            begin = max(0, first - around)
            told = queries if isinstance(mode, WithinLines) else [
                query for query, flag in zip(queries, flags[first], strict=True) if flag
            ]  # fmt: skip
            found.append((path, first + 1, begin + 1, "\n".join(lines[begin : last + around + 1]), told))
    return found


def _windows_slowly(flags: list[list[bool]], mode: MatchMode) -> list[tuple[int, int]]:
    if isinstance(mode, AnyLine):
        return [(line, line) for line, flag in enumerate(flags) if any(flag)]
    if isinstance(mode, SameLine):
        return [(line, line) for line, flag in enumerate(flags) if all(flag)]
    every: list[tuple[int, int]] = []
    for first, flag in enumerate(flags):
        seen = list(flag)
        if not any(flag):
            continue
        for last in range(first, min(first + mode.line_count, len(flags))):
            seen = [one or other for one, other in zip(seen, flags[last], strict=True)]
            if all(seen):
                every.append((first, last))
                break
    return [
        one for one in every if not any(other != one and one[0] <= other[0] and one[1] >= other[1] for other in every)
    ]


LETTERS = st.text(st.sampled_from(list("aAbB -_\r\nΣσςİıéÉ½ẞß\u0301\u0345\u00ad'.日")), max_size=24)
QUERIES = st.lists(LETTERS.filter(lambda text: search_files.trim(text) != ""), min_size=1, max_size=3)
MODES = st.sampled_from([AnyLine(), SameLine(), WithinLines(1), WithinLines(2), WithinLines(3), WithinLines(2**64 - 1)])


@given(
    texts=st.dictionaries(st.sampled_from(["a.md", "b.md", "b/c.md", "d"]), LETTERS, max_size=4),
    queries=QUERIES,
    mode=MODES,
    way=st.builds(Comparison, st.booleans(), st.booleans()),
    around=st.integers(0, 3),
)
def test_a_search_gives_what_looking_at_every_line_gives(
    texts: dict[str, str], queries: list[str], mode: MatchMode, way: Comparison, around: int
) -> None:
    trimmed = [search_files.trim(query) for query in queries]
    if not all(normalization.query(query, way) for query in trimmed):
        return
    wanted = slowly(texts, trimmed, mode, way, around)
    arguments = {
        "queries": queries,
        "match_mode": msgspec.to_builtins(mode),
        "case_sensitive": not way.lower,
        "normalized": way.normalized,
        "context_lines": around,
    }
    with tempfile.TemporaryDirectory() as place:
        for path, text in texts.items():
            (Path(place) / path).parent.mkdir(exist_ok=True)
            (Path(place) / path).write_bytes(text.encode())
        folder = MemoryFolder(Path(place))
        for _ in range(3):
            result = call(folder, "search", arguments, Visibility())
            assert isinstance(result, MatchPage)
            assert [msgspec.structs.astuple(match) for match in result.matches] == wanted


@given(text=st.text(max_size=80), way=st.builds(Comparison, st.booleans(), st.booleans()))
def test_a_file_prepared_at_once_is_its_lines_prepared_each(text: str, way: Comparison) -> None:
    lines = [normalization.query(line, way) for line in text.split("\n")]

    assert normalization.lines(text.encode(), way).decode() == "\n".join(lines)


@given(text=st.text("ab\n", max_size=60), query=st.text("ab", min_size=1, max_size=4))
def test_hits_are_the_lines_with_a_text_on_them(text: str, query: str) -> None:
    wanted = [number for number, line in enumerate(text.split("\n")) if query in line]

    assert hits(text.encode(), query.encode()) == wanted


@given(
    found=st.lists(st.lists(st.integers(0, 30), unique=True).map(sorted), min_size=1, max_size=4),
    count=st.integers(1, 33),
)
def test_windows_are_those_that_brute_force_finds(found: list[list[int]], count: int) -> None:
    flags = [[line in lines for lines in found] for line in range(31)]

    assert windows(found, WithinLines(count)) == _windows_slowly(flags, WithinLines(count))


@pytest.mark.parametrize(
    ("chars", "kept"),
    [
        ("azAZ09éßñ日語ʰªⅧⅻ½²①٣ৡ\u0903\u093f\u0345Ⓐⓩ\u0e31🅰ー々ǅ", True),
        (" -_./\\#\n\t\u0301\u094d\u200d\u20ac—…「」😀_\u00ad\ufeff\x1c", False),
    ],
    ids=["kept", "left out"],
)
def test_letters_and_numbers_are_those_of_unicode(chars: str, kept: bool) -> None:
    for char in chars:
        assert normalization.is_alphanumeric(char) is kept, ascii(char)
        assert normalization.lines(f"x{char}é\n".encode(), Comparison(normalized=True)).decode() == (
            f"x{char}é\n" if kept else "x\né\n" if char == "\n" else "xé\n"
        ), ascii(char)

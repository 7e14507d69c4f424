"""A page of matches is given out without secrets and within its time, however long a line is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from commonplace.memory.edits.forgotten import Forgotten, decision
from commonplace.memory.recall import page_cleaning
from commonplace.memory.recall.page_cleaning import LONG, SECONDS, clean_page
from commonplace.memory.recall.tools import MatchPage, MemoryFolder, call
from commonplace.memory.recall.tools.arguments import SearchArguments
from commonplace.memory.recall.visibility import Visibility
from commonplace.redact import MARK
from commonplace.rollout.decisions import DecisionLine

SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


def page(root: Path, asked: SearchArguments, lines: list[str], clock: Iterator[float], *forgotten: str) -> MatchPage:
    (root / "a.md").write_text("\n".join(lines) + "\n")
    arguments = {"queries": asked.queries, "normalized": asked.normalized, "context_lines": asked.context_lines}
    found = call(MemoryFolder(root), "search", arguments, Visibility())
    assert isinstance(found, MatchPage)
    return clean_page(found, asked, _forgotten(*forgotten), lambda: next(clock))


def _forgotten(*texts: str) -> Forgotten:
    made = decision(texts)
    return Forgotten([DecisionLine(time="2026-11-15T09:00:00Z", kind="forget", **made)] if texts else [])


def test_a_long_line_is_shown_whole_where_the_time_suffices(root: Path) -> None:
    words = "lorem ipsum " * (LONG // 8)

    result = page(root, SearchArguments(["needle"]), [f"{words}{SECRET} needle {words}"], iter([0.0] * 99))

    assert result.matches[0].content == f"{words}{MARK} needle {words}"
    assert (result.next_cursor, result.truncated) == (None, False)


@pytest.mark.parametrize(("query", "normalized"), [("the needle", False), ("theneedle", True)])
def test_where_it_does_not_the_match_shows_what_stands_around_the_place(
    root: Path, query: str, normalized: bool
) -> None:
    around = "lorem ipsum " * LONG
    lines = ["before", f"{around}password = {SECRET} the needle {around}", "behind"]
    asked = SearchArguments([query], normalized=normalized, context_lines=1)

    (match,) = page(root, asked, lines, count(0.0, SECONDS + 1)).matches

    assert "the needle" in match.content
    assert SECRET[4:] not in match.content
    assert MARK in match.content
    assert len(match.content) < LONG
    assert (match.content[0], match.content[-1], match.content_start_line_number) == ("…", "…", 2)


def test_a_secret_that_begins_before_the_place_that_is_shown_is_taken_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_cleaning, "_SHOWN", 20)
    lines = [f"{'lorem ipsum ' * LONG}{SECRET} the needle {SECRET}{' lorem' * LONG}"]

    (match,) = page(root, SearchArguments(["the needle"]), lines, count(0.0, SECONDS + 1)).matches

    assert match.content == f"…{MARK} the needle {MARK}…"


def test_forgotten_words_are_taken_out_of_a_long_line(root: Path) -> None:
    wish = "The staging database lives in Frankfurt."
    lines = [f"{'lorem ipsum ' * LONG} {wish} needle{' lorem' * LONG}"]

    (match,) = page(root, SearchArguments(["needle"]), lines, iter([0.0] * 99), wish).matches

    assert "needle" in match.content
    assert "Frankfurt" not in match.content


def test_a_page_whose_time_is_over_ends_and_names_the_next_match(root: Path) -> None:
    lines = ["needle one", "needle two", "needle three"]

    result = page(root, SearchArguments(["needle"]), lines, count(0.0, SECONDS + 1))

    assert [match.content for match in result.matches] == ["needle one"]
    assert (result.next_cursor, result.truncated) == ("1", True)

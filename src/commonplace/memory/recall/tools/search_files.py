"""`search`: where texts stand in the files below a path, exactly and in the order of paths and lines.

Files in which nothing can match are put aside at once, by looking through all of them as one text. The others are
looked at line by line, with the lines that this reader may not see left out; so a line of another project neither
matches nor shows up around a match. Files are taken in order, and the search ends with the first match after the page.

Two bounds are ours: a page ends early, and says so, when its matches hold `MAX_PAGE_CHARS`; and one search looks for at
most `MAX_QUERIES` texts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

import msgspec

from commonplace.errors import ToolError
from commonplace.memory.recall.tools import failures, file_cache, files, normalization
from commonplace.memory.recall.tools.arguments import (
    MAX_QUERIES,
    AnyLine,
    MatchMode,
    SearchArguments,
    WithinLines,
    clamp,
    offset,
    trim,
)
from commonplace.memory.recall.tools.match_windows import Window, hits, windows
from commonplace.memory.recall.tools.normalization import Comparison
from commonplace.memory.recall.tools.results import FileMatch, MatchPage
from commonplace.memory.recall.visibility import OwnershipFiles, Visibility, visible_lines

MAX_RESULTS: Final = 200
"""The most matches on one page."""
MAX_PAGE_CHARS: Final = 8 * 2**20
"""The most characters on one page."""


class _FileQuery(msgspec.Struct, frozen=True):
    """A query: its texts, and how they are compared."""

    queries: list[str]
    mode: MatchMode
    way: Comparison
    prepared: list[bytes]
    """As they are compared, for each query."""
    texts: list[bytes]
    """Each of those once."""
    around: int


def search(
    root: files.MemoryRoot,
    cache: file_cache.FileCache,
    arguments: SearchArguments,
    view: Visibility,
    beside: OwnershipFiles,
) -> MatchPage:
    """Find texts in files.

    Raises:
        ToolError: there is nothing to look for, or the path or the cursor cannot be used.
    """
    queries = [trim(query) for query in arguments.queries]
    mode = arguments.match_mode or AnyLine()
    if not queries or not all(queries):
        raise _empty()
    if isinstance(mode, WithinLines) and mode.line_count == 0:
        raise ToolError("invalid_match_window", "all_within_lines.line_count must be positive")
    if len(queries) > MAX_QUERIES:
        raise failures.bad_arguments(f"queries must not be more than {MAX_QUERIES}")
    with root.find(arguments.path) as target:
        start = offset(arguments.cursor)
        target.must_exist(arguments.path)
        question = _question(arguments, queries, mode)
        page = _MatchCollector(start, clamp(arguments.max_results, MAX_RESULTS), question, view, beside)
        for path, data, compared in _candidates(root, cache, target, question):
            page.take(path, data, compared)
            if page.is_full:
                break
    if start > page.seen:
        raise failures.invalid_cursor(str(start), "exceeds result count")
    end = start + len(page.matches)
    following = str(end) if end < page.seen else None
    return MatchPage(queries, mode, arguments.path, page.matches, following, following is not None)


def _empty() -> ToolError:
    return ToolError("empty_query", "queries must not be empty or contain empty strings")


def comparison(arguments: SearchArguments) -> Comparison:
    """Return how a search compares texts."""
    return Comparison(arguments.case_sensitive is False, bool(arguments.normalized))


def _question(arguments: SearchArguments, queries: list[str], mode: MatchMode) -> _FileQuery:
    way = comparison(arguments)
    prepared = [normalization.query(query, way).encode() for query in queries]
    if not all(prepared):
        raise _empty()
    return _FileQuery(queries, mode, way, prepared, list(dict.fromkeys(prepared)), arguments.context_lines or 0)


def _candidates(
    root: files.MemoryRoot, cache: file_cache.FileCache, target: files.OpenedPath, question: _FileQuery
) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield files that may match, by their paths: as they are, and as they are compared."""
    if target.error is not None:
        raise failures.io(target.error)
    kept = cache.documents(target.descriptor, target.path) if target.kind == "folder" else None
    if kept is not None:
        # No line holds a line end: such a text stands nowhere.
        holding = [set[int]() if b"\n" in text else kept.holding(text, question.way) for text in question.texts]
        every = isinstance(question.mode, AnyLine)
        for number in sorted(set[int]().union(*holding) if every else holding[0].intersection(*holding[1:])):
            yield kept.paths[number], kept.part(number, Comparison()), kept.part(number, question.way)
        return
    if target.kind == "file":
        data = file_cache.text_of(target.descriptor)
        read = iter([(target.path, data)] if data is not None else [])
    else:
        read = file_cache.stream(root, target.descriptor, target.path) if target.kind == "folder" else iter(())
    for path, data in read:
        yield path, data, normalization.lines(data, question.way)


class _MatchCollector:
    """Counts matches, and collects those of the requested page."""

    def __init__(self, start: int, size: int, question: _FileQuery, view: Visibility, beside: OwnershipFiles) -> None:
        self._question = question
        self._view = view
        self._beside = beside
        self._start = start
        self._end = start + size
        self._chars = 0
        self.seen = 0
        self.matches: list[FileMatch] = []

    @property
    def is_full(self) -> bool:
        """Whether a match after the page was seen."""
        return self.seen > self._end

    def take(self, path: str, data: bytes, compared: bytes) -> None:
        """Look at one file."""
        question = self._question
        found = [[] if b"\n" in text else hits(compared, text) for text in question.texts]
        text: str | None = None
        shown: list[bool] | None = None
        if self._view.scope is not None and any(found):
            text = data.decode("utf-8")
            shown = visible_lines(self._view, path, text, self._beside)
            if shown is not None:
                found = [[line for line in each if shown[line]] for each in found]
        matched = windows(found, question.mode)
        before, self.seen = self.seen, self.seen + len(matched)
        chosen = matched[max(self._start - before, 0) : max(self._end - before, 0)]
        if chosen:
            lines = _lines(data.decode("utf-8") if text is None else text, shown)
            by_text = dict(zip(question.texts, found, strict=True))
            for window in chosen:
                self._add(path, window, lines, by_text)

    def _add(self, path: str, window: Window, lines: list[str], found: dict[bytes, list[int]]) -> None:
        question = self._question
        if self._chars > MAX_PAGE_CHARS:
            self._end = self._start + len(self.matches)
            return
        first, last = window
        begin = max(first - question.around, 0)
        content = "\n".join(lines[begin : last + question.around + 1])
        matched = [
            query
            for query, text in zip(question.queries, question.prepared, strict=True)
            if isinstance(question.mode, WithinLines) or _stands(found[text], first)
        ]
        self._chars += len(content)
        self.matches.append(FileMatch(path, first + 1, begin + 1, content, matched))


def _stands(lines: list[int], line: int) -> bool:
    place = bisect_left(lines, line)
    return place < len(lines) and lines[place] == line


def _lines(text: str, shown: list[bool] | None) -> list[str]:
    """Return the lines of a text without their ends; those that may not be seen are blank."""
    lines = text.removesuffix("\n").split("\n")
    if shown is None:
        return [line.removesuffix("\r") for line in lines]
    return [line.removesuffix("\r") if shows else "" for line, shows in zip(lines, shown, strict=False)]

"""What the memory tools answer. As JSON, the fields stand in this order and absent ones are null."""

from __future__ import annotations

from typing import Literal

import msgspec

from commonplace.memory.recall.tools.arguments import MatchMode


class DirectoryEntry(msgspec.Struct, frozen=True):
    """A file or folder, by its path from the root."""

    path: str
    entry_type: Literal["file", "directory"]


class Listing(msgspec.Struct, frozen=True):
    """A page of what is in a folder."""

    path: str | None
    entries: list[DirectoryEntry]
    next_cursor: str | None
    truncated: bool


class Reading(msgspec.Struct, frozen=True):
    """Lines of a file."""

    path: str
    start_line_number: int
    content: str
    truncated: bool


class FileMatch(msgspec.Struct, frozen=True):
    """A match of a search."""

    path: str
    match_line_number: int
    content_start_line_number: int
    content: str
    matched_queries: list[str]


class MatchPage(msgspec.Struct, frozen=True):
    """A page of matches."""

    queries: list[str]
    match_mode: MatchMode
    path: str | None
    matches: list[FileMatch]
    next_cursor: str | None
    truncated: bool


class NoteAdded(msgspec.Struct, frozen=True):
    """A note was written."""


Result = Listing | Reading | MatchPage | NoteAdded

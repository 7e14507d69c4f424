"""The threads that a listing shows, page by page."""

from __future__ import annotations

import msgspec

from commonplace.errors import BadInput
from commonplace.protocol.ids import parse_time
from commonplace.state.database import Row
from commonplace.state.thread_titles import title_of_preview


class ThreadRow(msgspec.Struct, kw_only=True, frozen=True):
    """What a listing shows of one thread (the JSON of `sessions list`)."""

    thread_id: str
    path: str
    cwd: str
    project: str
    title: str
    preview: str
    source: str
    created_at: str
    updated_at: str
    archived: bool
    memory_mode: str
    turns: int | None
    tokens: int | None


class ThreadPage(msgspec.Struct, frozen=True):
    """A stretch of a listing and where the next one begins."""

    threads: list[ThreadRow]
    next_cursor: str | None


def listed_row(row: Row) -> ThreadRow:
    """Return what a listing shows of a row."""
    return ThreadRow(
        thread_id=row["thread_id"],
        path=row["path"],
        cwd=row["cwd"],
        project=row["project"],
        title=row["name"] or row["title"] or title_of_preview(row["preview"]),
        preview=row["preview"],
        source=row["source"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        archived=bool(row["is_archived"]),
        memory_mode=row["memory_mode"],
        turns=row["turns"],
        tokens=row["tokens"],
    )


def parse_cursor(cursor: str) -> tuple[str, str]:
    """Return the time and the thread after which a page begins (raises BadInput)."""
    moment, bar, thread_id = cursor.partition("|")
    if not bar or parse_time(moment) is None or not thread_id:
        raise BadInput(f"{cursor!r} is not a cursor.", hint="Use the next_cursor of an earlier page.")
    return moment, thread_id

"""Session files become rows of the thread table; only what changed is read, and as little of it as possible."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from commonplace.errors import CommonplaceError
from commonplace.patterns import regex
from commonplace.protocol import rollout
from commonplace.protocol.ids import parse_time, wire_time
from commonplace.redact import redact
from commonplace.rollout import chain, layout, reader
from commonplace.rollout.layout import FoundFile
from commonplace.rollout.store import stubs
from commonplace.rollout.survey import Survey, Surveyor, glance, survey
from commonplace.state.database import Row

GLANCE_ABOVE: Final = 16 * 2**20
"""Of larger files only both ends are read, until a full index is requested."""
_LOGIN: Final = regex(r"\A([A-Za-z][\w+.\-]{0,20}://)[^/\s]*@|\A()[^/@\s:]*:[^/\s]*@")
"""User and password before a host, with a scheme or without; `git@host:` stays, it names no person."""


class FileRow(msgspec.Struct):
    """The values of one row, and the blobs that its file refers to."""

    values: dict[str, Any]
    blobs: set[str]
    external_s: int | None = None
    """When the session last received external content, in the part that was read now (epoch seconds)."""
    person: str | None = None
    """Whose session it is, as JSON."""


def read_all(files: list[FoundFile], old: list[Row | None], home: str, complete: bool) -> list[FileRow]:
    """Survey files; one that holds no session is left out of the index."""
    rows: list[FileRow] = []
    for file, known in zip(files, old, strict=True):
        try:
            rows.append(_read_one(file, known, home, complete=complete))
        except CommonplaceError:
            continue
    return rows


def _read_one(file: FoundFile, row: Row | None, home: str, *, complete: bool) -> FileRow:
    if stubs.is_remote(file.name):
        return _as_row_of_other_host(file, home)
    if file.size > GLANCE_ABOVE and not complete and not (row and row["is_complete"]):
        return _as_row(file, glance(file.path), home)
    so_far = _survey_so_far(file, row)
    found = survey(file.path, so_far)
    if found.meta.history_base is not None:
        if so_far is None:
            found = survey(file.path, _inherited(file, found.meta, complete=complete))
        found.preview = found.preview or _first_words_inherited(file)
    return _as_row(file, found, home)


def _as_row_of_other_host(file: FoundFile, home: str) -> FileRow:
    """Look at both ends of a ledger in the store, now and until it changes; it is learned from where it was written."""
    row = _as_row(file, glance(file.path), home)
    row.values |= {"is_complete": 1, "memory_mode": "disabled"}
    return row


def _inherited(file: FoundFile, meta: rollout.SessionMeta, *, complete: bool) -> Survey:
    """Begin a fork's survey with the turns that it inherits; none if its parent is missing or too large to read."""
    found = Survey(meta)
    try:
        parents = chain.open_ledger(file.path).parts[1:]
    except CommonplaceError:
        return found
    if not complete and sum(part.end or 0 for part in parents) > GLANCE_ABOVE:
        return found
    past = Survey(meta)
    for part in reversed(parents):
        Surveyor(past).run(reader.forward(part.path, end=part.end))
    found.turns, found.external_at = past.turns, past.external_at
    return found


def _first_words_inherited(file: FoundFile) -> str:
    """Return the first user message that a fork without messages of its own inherits."""
    try:
        parents = chain.open_ledger(file.path).parts[1:]
        return next((words for part in reversed(parents) if (words := glance(part.path).preview)), "")
    except CommonplaceError:
        return ""


def _survey_so_far(file: FoundFile, row: Row | None) -> Survey | None:
    """Return where an earlier survey stopped, if the file only grew since then."""
    if row is None or not row["is_complete"] or not 0 < row["size"] < file.size:
        return None
    if file.path.name.endswith(".zst") or row["scanned"] > row["size"]:
        return None  # a last line without its newline may have been completed since: read it again
    meta = chain.read_head(file.path)[1]
    if meta.id != row["thread_id"]:
        return None
    return Survey(
        meta,
        offset=row["scanned"],
        preview=row["preview"],
        model=row["model"],
        title=row["title"],
        memory_mode=None if row["memory_mode"] == "enabled" else row["memory_mode"],
        updated_at=row["updated_at"],
        tokens=row["tokens"],
        turns=row["turns"] or 0,
        turn_state=row["turn_state"],
        skipped=row["skipped"],
    )


def _as_row(file: FoundFile, result: Survey, home: str) -> FileRow:
    meta = result.meta
    named = layout.parse_name(file.path.name)
    source = rollout.source_name(meta.source)
    git = meta.git or rollout.GitInfo()
    created = _iso(meta.timestamp) or (wire_time(named.created) if named else "")
    updated = _iso(result.updated_at) or created
    return FileRow(
        {
            "path": str(file.path),
            "home": home,
            "thread_id": meta.id,
            "rollout_id": named.rollout_id if named else meta.id,
            "size": file.size,
            "mtime_ns": file.mtime_ns,
            "scanned": result.offset,
            "is_complete": int(result.complete),
            "turn_state": result.turn_state,
            "source": source,
            "cwd": meta.cwd,
            "project": meta.project(),
            "git_branch": git.branch,
            "git_commit": git.commit_hash,
            "git_url": without_login(git.repository_url or (meta.imported.project if meta.imported else None)),
            "model": result.model,
            "name": None,
            "title": redact(result.title) if result.title else result.title,
            "preview": result.preview,
            "created_at": created,
            "updated_at": updated,
            "updated_s": _seconds(updated),
            "is_archived": int(file.archived),
            "is_root": int(not source.startswith(("subagent:", "internal:"))),
            "memory_mode": result.memory_mode or meta.memory_mode or "enabled",
            "turns": result.turns if result.complete else None,
            "tokens": result.tokens,
            "skipped": result.skipped,
            "base_id": meta.history_base.thread_id if meta.history_base else None,
            "parent_id": meta.parent_thread_id if meta.parent_thread_id != meta.id else None,
        },
        result.blobs,
        None if result.external_at is None else _seconds(result.external_at),
    )


def without_login(url: str | None) -> str | None:
    """Return a remote's address without user and password, and without any other secret."""
    return redact(_LOGIN.sub(lambda found: found[1] or "", url)) if url else url


def _seconds(text: str) -> int:
    moment = parse_time(text)
    return int(moment.timestamp()) if moment else 0


def _iso(text: str | None) -> str | None:
    moment = parse_time(text) if text else None
    return wire_time(moment) if moment else None

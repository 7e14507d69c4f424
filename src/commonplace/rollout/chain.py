"""A thread as a chain of files: its own, and the prefixes of others that it inherits by reference.

A fork by reference copies nothing: its `session_meta` names a parent file and a byte offset (`history_base`), and the
thread is that prefix followed by the fork's own lines; the parent may be a fork itself. `open_ledger` resolves the
chain once; readers then go through its parts in either direction.

Invariants: the first session_meta of the thread's own file is its identity; a chain is finite (a cycle or an absurd
depth is an error); no file of a chain is ever written here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from commonplace.errors import LedgerError, NotASession, ParentMissing
from commonplace.protocol import rollout
from commonplace.protocol.rollout import HistoryBase, Line, SessionMeta, Skipped
from commonplace.rollout import layout, reader
from commonplace.rollout.store import stubs

HISTORY_MODES: Final = frozenset({"legacy", "paginated"})
_MAX_DEPTH: Final = 1000
"""How many parents a fork may have."""
_HEAD_LINE_BYTES: Final = 16 * 2**20
"""The longest first line."""
_HEAD_BYTES: Final = 64 * 2**20
"""How far into a file its session_meta is looked for, and how long it may be."""


class LedgerPart(msgspec.Struct, frozen=True):
    """A file, up to byte `end` (None: all of it)."""

    path: Path
    end: int | None


class Ledger(msgspec.Struct, frozen=True):
    """One thread, ready to be read."""

    path: Path
    meta: SessionMeta
    head: Line
    parts: tuple[LedgerPart, ...]
    """Own file first, then the inherited prefixes, nearest parent first."""

    @property
    def thread_id(self) -> str:
        """The id of the thread."""
        return self.meta.id


class SkipLog(msgspec.Struct):
    """What could not be used, in a list that no file can make endless."""

    limit: int = 10_000
    entries: list[Skipped] = []

    def add(self, skipped: Skipped) -> None:
        """Note one stretch; beyond the limit, everything further is summed up in the last entry."""
        if len(self.entries) < self.limit:
            self.entries.append(skipped)
            return
        last = self.entries[-1]
        total = last.bytes + skipped.bytes
        self.entries[-1] = Skipped(min(last.offset, skipped.offset), total, "and_more")


def open_ledger(path: Path, homes: list[Path] | None = None) -> Ledger:
    """Read a thread's head and resolve what it inherits.

    `homes` are searched for parent files after the folder and the home that the file itself stands in.

    Raises:
        NotASession: no such file, or no session_meta in it.
        ParentMissing: a file that the thread inherits from is not there.
        LedgerError: the file cannot be read, or its chain is damaged.
    """
    _is_there(path)
    head, meta = read_head(path)
    parts = [LedgerPart(path, None)]
    seen = {path.resolve()}
    current = meta
    while (base := current.history_base) is not None:
        parent = _find_parent(base, parts[-1].path, homes or [])
        if parent is not None and not _is_there(parent):
            parent = _find_parent(base, parts[-1].path, homes or [])
        if parent is None:
            raise ParentMissing(
                f"{path} continues the session {base.thread_id}, whose file is missing.",
                hint="Put the parent's file back, or name its home with --home.",
                thread_id=meta.id,
                parent=base.thread_id,
            )
        if parent.resolve() in seen or len(parts) > _MAX_DEPTH or base.end_byte_offset < 0:
            raise LedgerError(f"{path} refers to itself through its parents.", hint="The file is damaged.")
        seen.add(parent.resolve())
        parts.append(LedgerPart(parent, base.end_byte_offset))
        current = read_head(parent)[1]
    return Ledger(path, meta, head, tuple(parts))


def _is_there(path: Path) -> bool:
    """Have the store say how far a ledger of another host goes by now, and whether it is where it was."""
    return not stubs.is_remote(path) or stubs.of_path(path).refresh(path)


def _find_parent(base: HistoryBase, child: Path, homes: list[Path]) -> Path | None:
    if base.path is not None:
        noted = Path(base.path)
        plain = noted.with_suffix("") if reader.is_compressed(noted) else noted
        for place in (plain, plain.with_name(f"{plain.name}.zst")):
            if place.is_file() and _rollout_id(place) == base.thread_id:
                return place
        elsewhere = layout.home_of(noted)
        homes = [*homes, elsewhere] if elsewhere else homes
    own = layout.home_of(child.absolute())
    found = layout.find_rollout(base.thread_id, near=child, homes=[own, *homes] if own else homes)
    return found or stubs.find(base.thread_id, [child, *(Path(home) for home in homes)])


def _rollout_id(path: Path) -> str | None:
    """Return what a file is referred to by: its name's id, or its thread's where the name has none."""
    named = layout.parse_name(path.name)
    if named is not None:
        return named.rollout_id
    try:
        return read_head(path)[1].id
    except (NotASession, LedgerError):
        return None


def read_head(path: Path) -> tuple[Line, SessionMeta]:
    """Return the first session_meta of a file.

    Raises:
        NotASession: the file is empty or holds none where one belongs.
        LedgerError: it cannot be read, or a newer program wrote it.
    """
    return head_of(reader.forward(path, max_line=_HEAD_LINE_BYTES), path)


def head_of(records: Iterator[reader.Record], path: Path) -> tuple[Line, SessionMeta]:
    """Take records of a file up to its first session_meta (raises as `read_head`)."""
    count, unreadable = 0, False
    for record in records:
        count += 1
        unreadable = isinstance(record, Skipped) and record.reason in reader.DAMAGE
        if isinstance(record, Line) and record.type == "session_meta":
            try:
                meta = rollout.session_meta(record)
            except (msgspec.DecodeError, RecursionError):
                continue
            if meta.history_mode not in HISTORY_MODES:
                raise LedgerError(
                    f"{path} is written in a history mode ({meta.history_mode}) that this version does not know.",
                    hint="Update Commonplace.",
                )
            return record, meta
        if record.offset > _HEAD_BYTES:
            break
    if unreadable:
        raise LedgerError(f"{path} is damaged before its first line ends.", hint="Restore the file from a backup.")
    if not count:
        raise NotASession(f"{path} is empty.", hint="It holds no session.", path=str(path))
    raise NotASession(
        f"{path} is not a session file: it has no session_meta line.",
        hint="Name a rollout file, a thread id or a thread name.",
        path=str(path),
    )


def forward(ledger: Ledger, log: SkipLog, meter: reader.Meter | None = None) -> Iterator[tuple[LedgerPart, Line]]:
    """Yield every line of the thread, inherited ones first, each with the part it stands in."""
    meter = meter or reader.Meter()
    for part in reversed(ledger.parts):
        before = meter.bytes_read
        for record in reader.forward(part.path, end=part.end, meter=meter):
            if isinstance(record, Skipped):
                log.add(record)
            else:
                yield part, record
        note_missing_tail(part, meter.bytes_read - before, log)


def note_missing_tail(part: LedgerPart, size: int, log: SkipLog) -> None:
    """Report what a fork inherits from beyond the end of its parent's file, which is `size` bytes long."""
    if part.end is not None and size < part.end:
        log.add(Skipped(size, part.end - size, "missing_tail"))

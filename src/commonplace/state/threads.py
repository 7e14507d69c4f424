"""The thread table: the one index for listing and for finding a thread by id, prefix, name or folder.

Rows mirror files and can always be rebuilt from them. A refresh walks a home, compares size and time of each file with
its row, and reads only what changed: for a file that grew, only what was added. Queries never walk.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import msgspec

from commonplace.errors import AmbiguousThread
from commonplace.protocol.ids import is_uuid
from commonplace.rollout import decisions, layout, thread_names
from commonplace.rollout.layout import FoundFile
from commonplace.state import external_threads, home_identity, import_files
from commonplace.state.database import Database, Row, Transaction
from commonplace.state.import_files import ImportedFile
from commonplace.state.thread_pages import ThreadPage, ThreadRow, listed_row, parse_cursor
from commonplace.state.thread_scan import FileRow

_BATCH: Final = 500
"""How many rows are written in one transaction."""
_SHOWN_MATCHES: Final = 10
"""How many matches of an id prefix are looked up for the error; beyond that it only says that there are more."""

Mask = Callable[[str], str]
Progress = Callable[[int, int], None]
"""A callback that gets the number of files that are done, and the number of all."""


def ambiguous(text: str, matches: list[str]) -> AmbiguousThread:
    """Return the error for a text that names several threads."""
    count = len(matches) if len(matches) < _SHOWN_MATCHES else "many"
    shown = ", ".join(matches[:5])
    return AmbiguousThread(f"{text!r} matches {count} threads: {shown}.", hint="Give more of the id.", matches=matches)


class ReferredFiles(msgspec.Struct, frozen=True):
    """Session files outside the home that it lists as its own: where they are, and which of them it leaves out."""

    roots: tuple[Path, ...]
    why_not: Callable[[Row], str | None] = lambda _: None
    """Return why a row is left out, given its values; None if it is not."""


class Refreshed(msgspec.Struct, frozen=True):
    """The result of a refresh."""

    files: int
    threads: int
    bytes: int
    skipped: int
    """Files that hold no session."""
    read: int
    """Files that were new or had changed."""


LeftOut = Callable[[Row], str | None]
"""Return why a row is left out of a listing; None if it is not."""


class ThreadIndex:
    """The thread table of one database, for any number of homes."""

    def __init__(
        self,
        database: Database,
        referred: Callable[[Path], ReferredFiles | None] = lambda _: None,
        mask: Callable[[Path], Mask | None] = lambda _: None,
        *,
        shuns_external: bool = False,
        keys: Callable[[Path], str] = home_identity.folder,
        memory: str | None = None,
        person: Callable[[str], str] | None = None,
    ) -> None:
        self._database = database
        self._key = keys
        """The name of the rows of a home."""
        self._memory = memory
        """The memory that homes share, if they do."""
        self._person = person
        """Says whose the sessions in a folder are, where that counts."""
        self._referred = referred
        """What a home lists besides its own files."""
        self._mask = mask
        """What takes words out of the texts that a home's listing shows."""
        self._is_shunned = shuns_external

    async def refresh(
        self,
        home: Path,
        *,
        rebuild: bool = False,
        complete: bool = False,
        progress: Progress | None = None,
    ) -> Refreshed:
        """Bring a home's rows up to date with its files, and with those elsewhere that it refers to.

        `rebuild` forgets what was known; `complete` reads large files whole instead of looking at both ends.
        """
        root, referred = self._key(home), self._referred(home)
        mask = await anyio.to_thread.run_sync(self._mask, home)
        if rebuild:
            await self._database.write(lambda tx: tx.execute("threads.drop_home", home=root))
        known, threads = await self._database.read(lambda tx: _stamps(tx, root))
        found = await anyio.to_thread.run_sync(_walk, home, referred)
        stale = [file for file in found if _is_stale(file, known.get(file.name), complete=complete)]
        gone = known.keys() - {file.name for file in found}
        for start in range(0, len(stale), _BATCH):
            batch = stale[start : start + _BATCH]
            old = await self._database.read(lambda tx, batch=batch: [_row_of(tx, root, file.name) for file in batch])
            rows = await anyio.to_thread.run_sync(self._survey, batch, old, home, complete)
            rows = _masked(rows, mask)
            await self._database.write(lambda tx, rows=rows: self._put(tx, rows, _left_out(home, referred)))
            if progress is not None:
                progress(start + len(batch), len(stale))
        called = await anyio.to_thread.run_sync(thread_names.read, home)
        called = {key: name for key, name in called.items() if stale or key in threads}
        if stale or gone or called != await self._database.read(lambda tx: _names(tx, root)):
            decided = await anyio.to_thread.run_sync(decisions.modes, home)
            await self._database.write(lambda tx: _settle(tx, root, sorted(gone), called, decided))
        count = (await self._database.read(lambda tx: tx.query("threads.count", home=root)))[0]
        skipped = len(found) - count["files"]
        return Refreshed(len(found), count["threads"], count["bytes"], skipped, len(stale))

    async def stamps(self, home: Path) -> dict[str, tuple[int, int]]:
        """Return size and time of every file that is listed, as it was when it was looked at."""
        rows = await self._database.read(lambda tx: tx.query("threads.stamps", home=self._key(home)))
        return {row["path"]: (row["size"], row["mtime_ns"]) for row in rows}

    async def differences(self, home: Path) -> tuple[int, int, int]:
        """Return how many files changed and how many are gone since the last refresh, and how many there are."""
        known, _ = await self._database.read(lambda tx: _stamps(tx, self._key(home)))
        found = await anyio.to_thread.run_sync(_walk, home, self._referred(home))
        stale = sum(_is_stale(file, known.get(file.name), complete=False) for file in found)
        return stale, len(known.keys() - {file.name for file in found}), len(found)

    async def page(
        self,
        home: Path,
        *,
        limit: int = 25,
        cursor: str | None = None,
        cwd: str | None = None,
        source: str | None = None,
        archived: bool = False,
        since_s: int | None = None,
        reverse: bool = False,
    ) -> ThreadPage:
        """Return a page of a home's threads, newest first (with `reverse`, oldest first).

        Raises:
            BadInput: the cursor is not one that an earlier page gave.
        """
        values: dict[str, Any] = {"home": self._key(home), "limit": limit + 1, "archived": int(archived)}
        narrowed = {"source": source or None, "cwd": cwd, "since": since_s}
        values |= {name: value for name, value in narrowed.items() if value is not None}
        chosen = [name for name in narrowed if name in values] + ([] if source else ["root"])
        if cursor is not None:
            values["before"], values["before_id"] = parse_cursor(cursor)
            chosen.append("after")
        query = "threads.page_oldest" if reverse else "threads.page"
        rows = await self._database.read(lambda tx: tx.query(query, *chosen, **values))
        threads, more = [listed_row(row) for row in rows[:limit]], len(rows) > limit
        return ThreadPage(threads, f"{threads[-1].updated_at}|{threads[-1].thread_id}" if more else None)

    async def find(self, home: Path, text: str) -> Path | None:
        """Return the file of the thread with this id, name or unique id prefix.

        Raises:
            AmbiguousThread: several threads match.
        """
        found = await self._database.read(lambda tx: _matches(tx, self._key(home), text))
        rows = list({row["thread_id"]: row for row in reversed(found)}.values())[::-1]  # a copied file counts once
        if len(rows) > 1:
            raise ambiguous(text, [str(row["thread_id"]) for row in rows])
        return Path(rows[0]["path"]) if rows else None

    async def touch(self, home: Path, path: Path) -> None:
        """Bring one file's row up to date, after it was written or moved."""
        root, resolved = self._key(home), path.resolve()
        old = await self._database.read(lambda tx: _row_of(tx, root, str(resolved)))
        if not resolved.exists():
            await self._database.write(lambda tx: _drop(tx, root, str(resolved)))
            return
        status = resolved.stat()
        archived = resolved.parent.name == layout.ARCHIVED
        file = FoundFile(str(resolved), status.st_size, status.st_mtime_ns, archived)
        rows = await anyio.to_thread.run_sync(self._survey, [file], [old], home, False)
        rows = _masked(rows, await anyio.to_thread.run_sync(self._mask, home))
        called = await anyio.to_thread.run_sync(thread_names.read, home)
        for fresh in rows:
            fresh.values["name"] = called.get(fresh.values["thread_id"])
        decided = await anyio.to_thread.run_sync(decisions.modes, home)

        def body(tx: Transaction) -> None:
            self._put(tx, rows)
            _decide(tx, {key: mode for row in rows if (mode := decided.get(key := row.values["thread_id"]))})

        await self._database.write(body)

    async def row(self, home: Path, path: Path) -> ThreadRow | None:
        """Return what a home lists of a file; None if it does not list it."""
        root, name = self._key(home), str(path.resolve())
        row = await self._database.read(lambda tx: _row_of(tx, root, name))
        return None if row is None else listed_row(row)

    async def release(self, home: Path, path: Path, reason: str) -> None:
        """Remove a file from a home's listing permanently, though the file still exists."""
        root, name = self._key(home), str(path.resolve())

        def body(tx: Transaction) -> None:
            row = _row_of(tx, root, name)
            if row is not None:
                import_files.note(tx, root, [ImportedFile(name, "codex", row["size"], row["mtime_ns"], reason=reason)])
                _drop(tx, root, name)

        await self._database.write(body)

    async def mask_texts(self, home: Path) -> int:
        """Mask forgotten words in every row of a home's listing, as for new files; return how many rows changed."""
        root, mask = self._key(home), await anyio.to_thread.run_sync(self._mask, home)
        if mask is None:
            return 0
        known = await self._database.read(lambda tx: tx.query("threads.texts", home=root))
        told = [
            {"home": root, **row, "title": _clean(row["title"], mask), "preview": mask(row["preview"])} for row in known
        ]
        changed = [new for old, new in zip(known, told, strict=True) if {**old, "home": root} != new]
        await self._database.write(lambda tx: tx.execute_many("threads.retell", changed) if changed else None)
        return len(changed)

    async def set_mode(self, thread_id: str, mode: str) -> None:
        """Mirror the memory mode of a thread."""
        await self._database.write(lambda tx: tx.execute("threads.set_mode", thread_id=thread_id, memory_mode=mode))

    async def forks_of(self, thread_id: str, rollout_ids: list[str]) -> list[str]:
        """Return the threads that continue any of these files by reference."""
        rows = await self._database.read(
            lambda tx: [
                row
                for rollout_id in rollout_ids
                for row in tx.query("threads.forks_of", rollout_id=rollout_id, thread_id=thread_id)
            ]
        )
        return sorted({str(row["thread_id"]) for row in rows})

    async def children_of(self, home: Path, thread_id: str) -> list[str]:
        """Return the sub-agents that a thread started, oldest first."""
        key = self._key(home)
        rows = await self._database.read(lambda tx: tx.query("threads.children", home=key, parent_id=thread_id))
        return [str(row["thread_id"]) for row in rows]

    def _survey(self, files: list[FoundFile], old: list[Row | None], home: Path, complete: bool) -> list[FileRow]:
        """Return the rows of files, each with whose session it is."""
        rows = external_threads.read(self._is_shunned, files, old, home, self._key(home), complete)
        if self._person is not None:
            for row in rows:
                row.person = self._person(row.values["cwd"])
        return rows

    def _put(self, tx: Transaction, rows: list[FileRow], why_not: LeftOut = lambda _: None) -> None:
        rows = [row for row in rows if not _is_left_out(tx, row, why_not)]
        tx.execute_many("threads.put", [row.values for row in rows])
        places = [{"home": row.values["home"], "path": row.values["path"]} for row in rows]
        tx.execute_many("threads.restore_learned_of", places)
        whose = [{**place, "person": row.person} for place, row in zip(places, rows, strict=True) if row.person]
        tx.execute_many("threads.set_person", whose)
        external_threads.mark(tx, rows, self._memory)
        refs = [{"sha256": name, "path": row.values["path"]} for row in rows for name in row.blobs]
        tx.execute_many("blobs.put", refs)

    async def referenced_blobs(self, home: Path | None = None) -> set[str]:
        """Return every blob that an indexed file, or one of a home, refers to."""
        values = {} if home is None else {"home": self._key(home)}
        rows = await self._database.read(lambda tx: tx.query("blobs.referenced", *values, **values))
        return {str(row["sha256"]) for row in rows}


def _stamps(tx: Transaction, home: str) -> tuple[dict[str, tuple[int, int, bool]], set[str]]:
    """Return what tells whether files changed, and the ids of the threads."""
    rows = tx.query("threads.stamps", home=home)
    known = {row["path"]: (row["size"], row["mtime_ns"], bool(row["is_complete"])) for row in rows}
    for row in tx.query("imports.left_out", home=home):
        known.setdefault(row["path"], (row["size"], row["mtime_ns"], True))
    return known, {row["thread_id"] for row in rows}


def _walk(home: Path, referred: ReferredFiles | None) -> list[FoundFile]:
    """Return the session files of a home, then those that it refers to; each once."""
    found = {file.name: file for root in (referred.roots if referred else ()) for file in layout.walk_any(root)}
    for file in layout.walk(home.resolve()):
        found[file.name] = file
    return list(found.values())


def _is_stale(file: FoundFile, known: tuple[int, int, bool] | None, *, complete: bool) -> bool:
    if known is None or known[:2] != (file.size, file.mtime_ns):
        return True
    return complete and not known[2]


def _row_of(tx: Transaction, home: str, path: str) -> Row | None:
    rows = tx.query("threads.by_path", home=home, path=path)
    return rows[0] if rows else None


def _masked(rows: list[FileRow], mask: Mask | None) -> list[FileRow]:
    if mask is None:
        return rows
    for row in rows:
        row.values["title"], row.values["preview"] = _clean(row.values["title"], mask), mask(row.values["preview"])
    return rows


def _clean(text: str | None, mask: Mask | None) -> str | None:
    return mask(text) if text and mask is not None else text


def _left_out(home: Path, referred: ReferredFiles | None) -> LeftOut:
    """Return the function that says why a row of a file that a home refers to is not wanted."""
    place = home_identity.folder(home)
    return lambda row: None if referred is None or layout.is_under(row["path"], place) else referred.why_not(row)


def _is_left_out(tx: Transaction, row: FileRow, why_not: LeftOut) -> bool:
    """Note a file that is referred to but not wanted, so that nobody looks at it again until it changes."""
    values = row.values
    reason = why_not(values)
    if reason is not None:
        left_out = ImportedFile(values["path"], "codex", values["size"], values["mtime_ns"], reason=reason)
        import_files.note(tx, values["home"], [left_out])
        _drop(tx, values["home"], values["path"])
    return reason is not None


def _drop(tx: Transaction, home: str, path: str) -> None:
    tx.execute("threads.drop", home=home, path=path)
    tx.execute("blobs.drop", path=path)


def _names(tx: Transaction, home: str) -> dict[str, str]:
    return {row["thread_id"]: row["name"] for row in tx.query("threads.names", home=home)}


def _decide(tx: Transaction, decided: dict[str, str]) -> None:
    """Mirror the decisions of people about threads."""
    rows = [{"thread_id": thread_id, "memory_mode": mode} for thread_id, mode in decided.items()]
    if rows:
        tx.execute_many("threads.mirror_mode", rows)


def _settle(tx: Transaction, home: str, gone: list[str], called: dict[str, str], decided: dict[str, str]) -> None:
    for path in gone:
        _drop(tx, home, path)
    tx.execute("blobs.drop_home")
    tx.execute("threads.unname", home=home)
    tx.execute_many("threads.rename", [{"home": home, "thread_id": key, "name": name} for key, name in called.items()])
    tx.execute("threads.mark_replaced", home=home)
    _decide(tx, decided)


def _matches(tx: Transaction, home: str, text: str) -> list[Row]:
    lowered = text.lower()
    if is_uuid(lowered):
        return tx.query("threads.by_id", home=home, thread_id=lowered)
    if named := tx.query("threads.by_name", home=home, name=text):
        return named
    if lowered and all(char in "0123456789abcdef-" for char in lowered):
        return tx.query("threads.by_prefix", home=home, low=lowered, high=lowered + "g")
    return []

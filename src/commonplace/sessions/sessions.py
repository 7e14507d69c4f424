"""The threads of a home: list, show, fork, roll back, compact, archive, rename, delete, import.

Whatever only reads works on any session file, ours or not; whatever changes one works on ours alone. Ledgers change
first and the index after them: a stale index repairs itself, a lost line would not come back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import anyio.to_thread
import msgspec

from commonplace.errors import BadInput, StateError
from commonplace.projects import assignment
from commonplace.protocol import events
from commonplace.protocol.ids import wire_time
from commonplace.rollout import archive, thread_names
from commonplace.rollout.recorder import Recorder
from commonplace.sessions import index
from commonplace.sessions.open_thread import OpenThread, open_head, open_thread, read_thread
from commonplace.sessions.resolve import SessionFile, resolve
from commonplace.state.home import Home
from commonplace.state.thread_pages import ThreadPage
from commonplace.state.threads import Progress, Refreshed, ThreadIndex

if TYPE_CHECKING:
    from commonplace.sessions.compact import CompactionReport, CompactionRequest
    from commonplace.sessions.imports import Importer, ImportReport
    from commonplace.sessions.inspection import Context, Shown, Verified
    from commonplace.sessions.turn_list import StoredTurn, ThreadDescription

MAX_NAME_CHARS = 200
"""The longest name of a thread."""


class Snapshots(Protocol):
    """The snapshots of working trees that turns take: what `undo` and `delete` need of them."""

    def delete_files(self, home: Path, thread_id: str, files: list[Path]) -> None:
        """Remove a thread's files and the snapshots that they name."""
        ...

    async def undo(self, home: Home, path: Path, *, redo: bool) -> dict[str, Any]:
        """Restore the files as they were before a thread's last turn, or after it."""
        ...

    async def preview(self, home: Home, path: Path, *, redo: bool) -> dict[str, Any]:
        """Return what `undo` would change."""
        ...


class Forked(msgspec.Struct):
    """A new thread made from another (the JSON of `sessions fork`)."""

    thread_id: str
    path: str
    forked_from: str


class Sessions:
    """The threads of a home, and any other session file by its path."""

    def __init__(self, home: Home, importer: Callable[[], Importer], snapshots: Snapshots) -> None:
        self._home = home
        self._importer = importer
        self._snapshots = snapshots

    async def list(
        self,
        home: Path | None = None,
        *,
        limit: int = 25,
        cursor: str | None = None,
        cwd: str | None = None,
        source: str | None = None,
        archived: bool = False,
        since_s: int | None = None,
        reverse: bool = False,
        refresh: bool = True,
        progress: Progress | None = None,
    ) -> ThreadPage:
        """Return a page of threads, newest first, or with `reverse` oldest first.

        `refresh` first looks for files that changed.
        """
        place = _existing(home) if home else self._home.path
        folder = str(Path(cwd).absolute()) if cwd else None

        if refresh and place == self._home.path:
            await self._home.list_store()

        async def page(threads: ThreadIndex) -> ThreadPage:
            if refresh and (await threads.refresh(place, progress=progress)).read and place == self._home.path:
                await assignment.settle(self._home)
            return await threads.page(
                place,
                limit=limit,
                cursor=cursor,
                cwd=folder,
                source=source,
                archived=archived,
                since_s=since_s,
                reverse=reverse,
            )

        return await index.use(self._home, page)

    async def reindex(self, home: Path | None = None, *, progress: Progress | None = None) -> Refreshed:
        """Build the index of a home again, from its files alone."""
        place = _existing(home) if home else self._home.path
        if place == self._home.path:
            await self._home.list_store()

        async def build(threads: ThreadIndex) -> Refreshed:
            refreshed = await threads.refresh(place, rebuild=True, complete=True, progress=progress)
            if place == self._home.path:
                await assignment.settle(self._home)
            return refreshed

        return await index.use(self._home, build)

    async def context(self, thread: str, home: Path | None = None) -> Context:
        """Return exactly the items that the next request would carry, and the receipt of how they were found."""
        from commonplace.sessions import inspection

        target = await resolve(self._home, thread, home)
        return await read_thread(self._home, target, home, lambda each: inspection.context(each.ledger, each.store))

    async def show(self, thread: str, home: Path | None = None, *, with_items: bool = False) -> Shown:
        """Return a thread from its first line to its last."""
        from commonplace.sessions import inspection

        target = await resolve(self._home, thread, home)

        def read(opened: OpenThread) -> Shown:
            shown = inspection.show(opened.ledger, with_items=with_items)
            if opened.source:
                shown.path, shown.sidechains = str(target.path), opened.sidechains
            return shown

        shown = await read_thread(self._home, target, home, read)
        shown.project = await self._project(target) or shown.project
        return shown

    async def describe(self, thread: str) -> ThreadDescription:
        """Return what a thread says of itself, without what happened in it."""
        from commonplace.sessions import turn_list

        target = await resolve(self._home, thread, None)
        row = await index.use(self._home, lambda threads: threads.row(self._home.path, target.path))
        return await anyio.to_thread.run_sync(turn_list.describe, self._home, target, row)

    async def turns(self, thread: str) -> Sequence[StoredTurn]:
        """Return the turns of a thread that were not taken back, oldest first, as a person saw them."""
        from commonplace.sessions import turn_list

        target = await resolve(self._home, thread, None)
        return await read_thread(self._home, target, None, lambda each: turn_list.turns(each.ledger, each.store))

    async def verify(self, thread: str, home: Path | None = None) -> Verified:
        """Check every line and every spilled payload of a thread."""
        from commonplace.sessions import inspection

        target = await resolve(self._home, thread, home)
        return await read_thread(self._home, target, home, lambda each: inspection.verify(each.ledger, each.store))

    async def compact(
        self, thread: str, request: CompactionRequest, home: Path | None = None, *, dry_run: bool = False
    ) -> CompactionReport:
        """Shrink what the next request would carry; the ledger keeps everything (raises BadInput, WindowTooSmall)."""
        from commonplace.sessions import compact

        request = request.filled(self._home.settings)
        target = await resolve(self._home, thread, home)
        if not dry_run:
            target.must_be_ours("compacted")
        async with compact.summariser(self._home.settings, request, self._home.environment) as by:
            with contextlib.ExitStack() as stack:
                opened = await anyio.to_thread.run_sync(open_thread, self._home, target, home, stack)
                if dry_run:
                    return await compact.preview(opened.ledger, opened.store, request, by)
                recording = self._home.recording()
                report = await compact.write(opened.ledger, opened.store, request, recording, by)
        await index.touch(self._home, target.path)
        return report

    async def fork(
        self,
        thread: str,
        home: Path | None = None,
        *,
        copy: bool = False,
        at: str | None = None,
        originator: str | None = None,
    ) -> Forked:
        """Start a thread of our own from another's past, by reference or as a self-contained copy.

        What had to be converted can only be copied: there is no ledger to refer to.
        """
        from commonplace.sessions import fork

        target = await resolve(self._home, thread, home)
        with contextlib.ExitStack() as stack:
            opened = await anyio.to_thread.run_sync(open_thread, self._home, target, home, stack)
            copy = copy or bool(opened.source)
            recording = self._home.recording()
            thread_id, path = await fork.fork(
                opened.ledger, recording, opened.store, copy=copy, at=at, originator=originator
            )
        await index.touch(self._home, path, is_new=True)
        return Forked(thread_id, str(path), opened.ledger.thread_id)

    async def rollback(self, thread: str, turns: int, home: Path | None = None) -> dict[str, Any]:
        """Take back the last user turns; the ledger keeps them, the next request does not carry them."""
        target = await self._ours(thread, home, "rolled back")
        if turns < 1:
            raise BadInput(f"{turns} turns cannot be rolled back.", hint="Give a number of at least 1.")
        async with await Recorder.resume(target.path, self._home.recording()) as recorder:
            recorder.record("event_msg", {"type": events.ROLLED_BACK, "num_turns": turns})
            await recorder.end_turn()
            path = recorder.path
        await index.touch(self._home, path)
        return {"thread_id": recorder.thread_id, "rolled_back": turns, "path": str(path)}

    async def undo(self, thread: str, *, redo: bool = False, dry_run: bool = False) -> dict[str, Any]:
        """Put the files back as they were before the last turn of a thread; its ledger keeps what it says.

        Raises:
            BadInput: there is nothing to undo.
            UndoError: the snapshot is gone, or cannot be restored.
        """
        target = await self._ours(thread, None, "undone")
        if dry_run:
            thread_id = (await open_head(target)).thread_id
            return {"thread_id": thread_id, **await self._snapshots.preview(self._home, target.path, redo=redo)}
        restored = await self._snapshots.undo(self._home, target.path, redo=redo)
        await index.touch(self._home, target.path)
        return restored

    async def archive(self, thread: str, home: Path | None = None) -> dict[str, Any]:
        """Move a thread to the archive."""
        return await self._move(thread, home, to_archive=True)

    async def unarchive(self, thread: str, home: Path | None = None) -> dict[str, Any]:
        """Move a thread back out of the archive."""
        return await self._move(thread, home, to_archive=False)

    async def rename(self, thread: str, name: str, home: Path | None = None) -> dict[str, Any]:
        """Give a thread a name; an empty one takes it away."""
        target = await self._ours(thread, home, "renamed")
        cleaned = " ".join(name.split())
        if len(cleaned) > MAX_NAME_CHARS:
            raise BadInput(f"The name has {len(cleaned)} characters.", hint=f"Use at most {MAX_NAME_CHARS}.")
        ledger = await open_head(target)
        moment = wire_time(self._home.now())
        await anyio.to_thread.run_sync(thread_names.append, self._home.path, ledger.thread_id, cleaned, moment)
        await index.touch(self._home, target.path)
        return {"thread_id": ledger.thread_id, "name": cleaned or None}

    async def delete(self, thread: str, home: Path | None = None) -> dict[str, Any]:
        """Remove a thread: files, name, index rows, and payloads that nothing else refers to.

        With an imported thread go its sub-agents. One that is only referred to keeps its file; it is no longer listed
        or learned from.
        """
        from commonplace.sessions import delete

        return await delete.delete(self._home, thread, home, self._snapshots.delete_files)

    async def import_(
        self, source: str | None = None, paths: Sequence[Path] = (), *, progress: Progress | None = None
    ) -> ImportReport:
        """Bring in other agents' sessions: from the paths that are given, else from every usual place there is."""
        from commonplace.sessions import imports

        chosen = imports.choose(source, [*paths], self._home.environment)
        return await self._importer().run(chosen, progress)

    async def _ours(self, thread: str, home: Path | None, action: str) -> SessionFile:
        target = await resolve(self._home, thread, home)
        target.must_be_ours(action)
        return target

    async def _move(self, thread: str, home: Path | None, *, to_archive: bool) -> dict[str, Any]:
        target = await self._ours(thread, home, "archived" if to_archive else "unarchived")
        thread_id = (await open_head(target)).thread_id
        files = await anyio.to_thread.run_sync(archive.files_of, self._home.path, thread_id)
        move = archive.archive if to_archive else archive.unarchive
        moved = await anyio.to_thread.run_sync(move, self._home.path, thread_id, files or [target.path])
        for path in [*files, *moved]:
            await index.touch(self._home, path, is_new=path in moved)
        current = next((path for path in moved if path.name == target.path.name), moved[-1])
        return {"thread_id": thread_id, "archived": to_archive, "path": str(current)}

    async def _project(self, target: SessionFile) -> str | None:
        """Return the project of a thread as the listing has it: others may know more than the thread noted itself."""
        if not self._home.has_index():
            return None
        try:
            row = await (await self._home.index()).row(self._home.path, target.path)
        except StateError:
            return None
        return None if row is None else row.project


def _existing(home: Path) -> Path:
    if not home.is_dir():
        raise BadInput(f"There is no folder {home}.", hint="Give the folder that contains sessions/.")
    return home

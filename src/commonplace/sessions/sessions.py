"""What can be done with threads. Surfaces parse, call one of these, and print what comes back.

Everything that only looks works on any session file, ours or not; everything that changes one works on ours alone.
Ledgers are changed first, the index after: a stale index repairs itself, a lost line would not come back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.from_thread
import anyio.to_thread
import msgspec

from commonplace.errors import BadInput, StateError, ThreadInUse
from commonplace.importers import sources
from commonplace.projects import assignment
from commonplace.protocol import events
from commonplace.protocol.ids import wire_time
from commonplace.rollout import archive as shelf
from commonplace.rollout import decisions, layout, sidechains, thread_names
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import Ledger, open_ledger
from commonplace.rollout.chain_blobs import ChainStore
from commonplace.rollout.recorder import Options, Recorder
from commonplace.sessions import foreign, imports, inspection
from commonplace.sessions import fork as forks
from commonplace.sessions.foreign import Opened
from commonplace.sessions.inspection import Context, Shown, Verified
from commonplace.sessions.resolve import Target, resolve
from commonplace.state import outputs
from commonplace.state.threads import Page, Progress, Refreshed, ThreadIndex

if TYPE_CHECKING:
    from commonplace.app.book import Book
    from commonplace.search.hits import Hit
    from commonplace.search.search import Wish
    from commonplace.sessions.compact import Report
    from commonplace.sessions.compact import Wish as Compaction

MAX_NAME_CHARS = 200
T = TypeVar("T")


class Forked(msgspec.Struct):
    """A new thread made from another (the JSON of `sessions fork`)."""

    thread_id: str
    path: str
    forked_from: str


class Sessions:
    """The threads of a book, and any other session file by its path."""

    def __init__(self, book: Book) -> None:
        self._book = book

    async def list(
        self,
        home: Path | None = None,
        *,
        limit: int = 25,
        cursor: str | None = None,
        cwd: str | None = None,
        source: str | None = None,
        archived: bool = False,
        refresh: bool = True,
        progress: Progress | None = None,
    ) -> Page:
        """Return a page of threads, newest first; `refresh` first looks for files that changed."""
        place = _existing(home) if home else self._book.home
        folder = str(Path(cwd).absolute()) if cwd else None

        async def page(index: ThreadIndex) -> Page:
            if refresh and (await index.refresh(place, progress=progress)).read and place == self._book.home:
                await assignment.settle(self._book)
            return await index.page(place, limit=limit, cursor=cursor, cwd=folder, source=source, archived=archived)

        return await self._indexed(page)

    async def reindex(self, home: Path | None = None, *, progress: Progress | None = None) -> Refreshed:
        """Build the index of a home again, from its files alone."""
        place = _existing(home) if home else self._book.home

        async def build(index: ThreadIndex) -> Refreshed:
            found = await index.refresh(place, rebuild=True, complete=True, progress=progress)
            if place == self._book.home:
                await assignment.settle(self._book)
            return found

        return await self._indexed(build)

    async def context(self, thread: str, home: Path | None = None) -> Context:
        """Return exactly the items that the next request would carry, and the receipt of how they were found."""
        target = await resolve(self._book, thread, home)
        return await self._looking(target, home, lambda found: inspection.context(found.ledger, found.store))

    async def show(self, thread: str, home: Path | None = None, *, with_items: bool = False) -> Shown:
        """Tell a thread from its first line to its last."""
        target = await resolve(self._book, thread, home)

        def tell(found: Opened) -> Shown:
            shown = inspection.show(found.ledger, with_items=with_items)
            if found.source:
                shown.path, shown.sidechains = str(target.path), found.sidechains
            return shown

        shown = await self._looking(target, home, tell)
        shown.project = await self._project(target) or shown.project
        return shown

    async def verify(self, thread: str, home: Path | None = None) -> Verified:
        """Check every line and every spilled payload of a thread."""
        target = await resolve(self._book, thread, home)
        return await self._looking(target, home, lambda found: inspection.verify(found.ledger, found.store))

    async def search_in(
        self,
        thread: str,
        wish: Wish,
        home: Path | None = None,
        *,
        exact: bool = False,
        ignore_case: bool = False,
    ) -> list[Hit]:
        """Search one thread, ours or any agent's file (raises BadInput)."""
        from commonplace.search import within

        wish.check()
        target, clean = await resolve(self._book, thread, home), self._book.search.cleaner()

        def look(found: Opened) -> list[Hit]:
            if exact:
                return within.word_for_word(found.ledger, found.store, wish, clean, ignore_case=ignore_case)
            return within.ranked(found.ledger, wish, clean)

        return await self._looking(target, home, look)

    async def compact(
        self, thread: str, wish: Compaction, home: Path | None = None, *, dry_run: bool = False
    ) -> Report:
        """Shrink what the next request would carry; the ledger keeps everything (raises BadInput, WindowTooSmall)."""
        from commonplace.sessions import compact as compacting

        wish = wish.filled(self._book.settings)
        target = await resolve(self._book, thread, home)
        if not dry_run:
            target.must_be_ours("compacted")
        by_whom = compacting.summariser(self._book.settings, wish, self._book.environment)
        async with by_whom as by:
            with contextlib.ExitStack() as stack:
                found = await anyio.to_thread.run_sync(self._opened, target, home, stack)
                if dry_run:
                    return await compacting.look(found.ledger, found.store, wish, by)
                report = await compacting.write(target.path, found.ledger, found.store, wish, self.options(), by)
        await self.touch(target.path)
        return report

    async def fork(self, thread: str, home: Path | None = None, *, copy: bool = False, at: str | None = None) -> Forked:
        """Start a thread of our own from another's past, by reference or as a self-contained copy.

        What had to be converted can only be copied: there is no ledger to refer to.
        """
        target = await resolve(self._book, thread, home)
        with contextlib.ExitStack() as stack:
            found = await anyio.to_thread.run_sync(self._opened, target, home, stack)
            copy = copy or bool(found.source)
            thread_id, path = await forks.fork(found.ledger, self.options(), found.store, copy=copy, at=at)
        await self.touch(path, is_new=True)
        return Forked(thread_id, str(path), found.ledger.thread_id)

    async def rollback(self, thread: str, turns: int, home: Path | None = None) -> dict[str, Any]:
        """Take back the last user turns; the ledger keeps them, the next request does not carry them."""
        target = await self._ours(thread, home, "rolled back")
        if turns < 1:
            raise BadInput(f"{turns} turns cannot be rolled back.", hint="Give a number of at least 1.")
        async with await Recorder.resume(target.path, self.options()) as recorder:
            recorder.record("event_msg", {"type": events.ROLLED_BACK, "num_turns": turns})
            await recorder.end_turn()
            path = recorder.path
        await self.touch(path)
        return {"thread_id": recorder.thread_id, "rolled_back": turns, "path": str(path)}

    async def undo(self, thread: str, *, redo: bool = False, dry_run: bool = False) -> dict[str, Any]:
        """Put the files back as they were before the last turn of a thread; what its record says stays.

        Raises:
            BadInput: there is nothing to undo.
            UndoError: the snapshot is gone, or cannot be restored.
        """
        from commonplace.agent.undo import undo_turn

        target = await self._ours(thread, None, "undone")
        if dry_run:
            thread_id = (await self._open_alone(target)).thread_id
            return {"thread_id": thread_id, **await undo_turn.preview(self._book, target.path, redo=redo)}
        return await undo_turn.undo_last(self._book, target.path, redo=redo)

    async def archive(self, thread: str, home: Path | None = None) -> dict[str, Any]:
        """Move a thread to the archive."""
        return await self._move(thread, home, archive=True)

    async def unarchive(self, thread: str, home: Path | None = None) -> dict[str, Any]:
        """Move a thread back out of the archive."""
        return await self._move(thread, home, archive=False)

    async def rename(self, thread: str, name: str, home: Path | None = None) -> dict[str, Any]:
        """Give a thread a name; an empty one takes it away."""
        target = await self._ours(thread, home, "renamed")
        cleaned = " ".join(name.split())
        if len(cleaned) > MAX_NAME_CHARS:
            raise BadInput(f"The name has {len(cleaned)} characters.", hint=f"Use at most {MAX_NAME_CHARS}.")
        ledger = await self._open_alone(target)
        moment = wire_time(self._book.settings.now())
        await anyio.to_thread.run_sync(thread_names.append, self._book.home, ledger.thread_id, cleaned, moment)
        await self.touch(target.path)
        return {"thread_id": ledger.thread_id, "name": cleaned or None}

    async def delete(self, thread: str, home: Path | None = None) -> dict[str, Any]:
        """Remove a thread: files, name, index rows, and payloads that nothing else refers to.

        With an imported thread go its sub-agents. One that is only referred to keeps its file; it is no longer listed
        or learned from.
        """
        target = await resolve(self._book, thread, home)
        if not target.is_ours and await (await self._book.index()).lists(self._book.home, target.path):
            return await self._let_go(target)
        target.must_be_ours("deleted")
        ledger = await self._open_alone(target)
        files = await anyio.to_thread.run_sync(shelf.files_of, self._book.home, ledger.thread_id)
        files = files or [target.path]
        await self._indexed(lambda index: index.refresh(self._book.home, complete=True))
        index = await self._book.index()
        rollouts = [named.rollout_id for path in files if (named := layout.parse_name(path.name))]
        if forked := await index.forks_of(ledger.thread_id, rollouts):
            raise ThreadInUse(
                f"Thread {ledger.thread_id} is continued by {len(forked)} fork(s): {', '.join(forked[:5])}.",
                hint="Delete those first, or make copies of them: commonplace sessions fork ID --copy",
                forks=forked,
            )
        gone: list[Path] = []
        if ledger.meta.imported is not None:
            await self._bury(ledger.thread_id)
            for child in await anyio.to_thread.run_sync(self._sub_agents, ledger):
                gone.extend(await self._remove(child))
        gone.extend(await self._remove(ledger.thread_id, files))

        def referenced() -> set[str]:  # asked while no writer can add a reference, of the files as they are then
            return anyio.from_thread.run(self._referenced, index)

        collected = await anyio.to_thread.run_sync(self._store().collect, referenced)
        return {
            "thread_id": ledger.thread_id,
            "deleted": [str(path) for path in gone],
            "blobs_removed": len(collected),
        }

    def _sub_agents(self, ledger: Ledger) -> list[str]:
        """Return the threads of a thread's sub-agents in our home."""
        found = sidechains.find(ledger, wire_time(self._book.settings.now()))
        home = str(self._book.home.resolve())
        return [each.thread_id for each in found if layout.is_under(str(Path(each.path).resolve()), home)]

    async def _remove(self, thread_id: str, files: list[Path] | None = None) -> list[Path]:
        """Remove a thread and what it taught; return the files that were its."""
        from commonplace.agent.undo import undo_turn

        home = self._book.home
        files = files or await anyio.to_thread.run_sync(shelf.files_of, home, thread_id)
        await self._forget(thread_id)
        await anyio.to_thread.run_sync(undo_turn.delete, home, thread_id, files)
        await anyio.to_thread.run_sync(thread_names.remove, home, thread_id)
        for path in files:
            await self.touch(path)
        return files

    async def _let_go(self, target: Target) -> dict[str, Any]:
        """Forget a thread whose file is another program's."""
        thread_id = (await self._open_alone(target)).thread_id
        await self._forget(thread_id)
        await self._bury(thread_id)
        await anyio.to_thread.run_sync(thread_names.remove, self._book.home, thread_id)
        await (await self._book.index()).let_go(self._book.home, target.path, "deleted")
        return {"thread_id": thread_id, "deleted": [], "kept": str(target.path)}

    async def _bury(self, thread_id: str) -> None:
        """See to it that another agent's session does not come back with the next import."""
        moment = wire_time(self._book.settings.now())
        await anyio.to_thread.run_sync(
            lambda: decisions.append(self._book.home, "tombstone", moment, thread_id=thread_id)
        )

    def options(self) -> Options:
        """Return what a recorder in our home needs."""
        return self._book.recording()

    async def import_(
        self, source: str | None = None, paths: Sequence[Path] = (), *, progress: Progress | None = None
    ) -> imports.Report:
        """Bring in other agents' sessions: as told, else from every usual place there is."""
        chosen = imports.choose(source, [*paths], self._book.environment)
        return await imports.run(self._book, chosen, progress)

    async def _looking(self, target: Target, home: Path | None, look: Callable[[Opened], T]) -> T:
        """Look at a thread, on a thread of its own."""

        def work() -> T:
            with contextlib.ExitStack() as stack:
                return look(self._opened(target, home, stack))

        return await anyio.to_thread.run_sync(work)

    def _opened(self, target: Target, home: Path | None, stack: contextlib.ExitStack) -> Opened:
        """Open a thread, in whatever form its file has; `stack` ends what was made for that."""
        source = None if target.is_ours else sources.detect(target.path)
        if source is not None and source != sources.CODEX:
            return stack.enter_context(foreign.converted(target.path, source, self._book.settings))
        homes = [self._book.home, *([home] if home else [])]
        ledger = open_ledger(target.path, homes)
        return Opened(ledger, ChainStore(self._blobs(target), ledger), "", [])

    async def _open_alone(self, target: Target) -> Ledger:
        """Open a thread that is about to go: what it inherits need not be there any more."""
        from commonplace.rollout.chain import Part, read_head

        head, meta = await anyio.to_thread.run_sync(read_head, target.path)
        return Ledger(target.path, meta, head, (Part(target.path, None),))

    async def _ours(self, thread: str, home: Path | None, action: str) -> Target:
        target = await resolve(self._book, thread, home)
        target.must_be_ours(action)
        return target

    async def _move(self, thread: str, home: Path | None, *, archive: bool) -> dict[str, Any]:
        target = await self._ours(thread, home, "archived" if archive else "unarchived")
        thread_id = (await self._open_alone(target)).thread_id
        files = await anyio.to_thread.run_sync(shelf.files_of, self._book.home, thread_id)
        move = shelf.archive if archive else shelf.unarchive
        moved = await anyio.to_thread.run_sync(move, self._book.home, thread_id, files or [target.path])
        for path in [*files, *moved]:
            await self.touch(path, is_new=path in moved)
        current = next((path for path in moved if path.name == target.path.name), moved[-1])
        return {"thread_id": thread_id, "archived": archive, "path": str(current)}

    async def _forget(self, thread_id: str) -> None:
        """Forget what a thread taught, before the thread itself goes."""
        root, now = str(self._book.home.resolve()), int(self._book.settings.now().timestamp())
        database = await self._book.database()
        await database.write(lambda tx: outputs.delete_thread(tx, thread_id, root=root, now=now))

    async def _referenced(self, index: ThreadIndex) -> set[str]:
        """Return the payloads to keep: all of them, while a file of ours cannot be asked what it refers to."""
        await index.refresh(self._book.home, complete=True)
        known = await index.stamps(self._book.home)
        here = await anyio.to_thread.run_sync(lambda: [*layout.walk(self._book.home.resolve())])
        if unread := [file.name for file in here if file.size and file.name not in known]:
            self._book.warn(f"No payloads were removed: {len(unread)} file(s) cannot be read, {unread[0]} among them.")
            return await anyio.to_thread.run_sync(self._store().names)
        return await index.referenced_blobs()

    async def _project(self, target: Target) -> str | None:
        """Return the project of a thread as the listing has it: others may know more than the thread noted itself."""
        if not self._book.has_index():
            return None
        try:
            return await (await self._book.index()).project_of(self._book.home, target.path)
        except StateError:
            return None

    async def touch(self, path: Path, *, is_new: bool = False) -> None:
        """Mirror a change that the files already have; if that fails, the next listing finds it."""
        try:
            await (await self._book.index()).touch(self._book.home, path)
            if is_new:
                await assignment.settle(self._book)
        except StateError as error:
            self._book.warn(f"The index was not brought up to date: {error}")

    async def _indexed(self, action: Callable[[ThreadIndex], Awaitable[T]]) -> T:
        """Do something with the index; if its database fails meanwhile, once more from the files."""
        try:
            return await action(await self._book.index())
        except StateError as error:
            await self._book.degrade(str(error).rstrip("."))
            return await action(await self._book.index())

    def _blobs(self, target: Target) -> BlobStore:
        """Return the store that a thread's payloads are in: that of the home it stands in."""
        return BlobStore(self._book.home if target.is_ours else target.home)

    def _store(self) -> BlobStore:
        return BlobStore(self._book.home)


def _existing(home: Path) -> Path:
    if not home.is_dir():
        raise BadInput(f"There is no folder {home}.", hint="Give the folder that contains sessions/.")
    return home

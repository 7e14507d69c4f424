"""Bringing in other agents' sessions: converted into our home, or (Codex) referred to where they are.

Sources are only read. What is imported is decided by settings (`memory.exclude`), by what a person deleted here, and by
what earlier imports noted; the ledgers themselves are the truth, the notes only spare reading them again.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
import msgspec

from commonplace.errors import BadInput, StateError
from commonplace.importers import codex, sources
from commonplace.importers.converter import SessionHead
from commonplace.importers.forks import OriginIndex
from commonplace.importers.ledger_writer import LedgerDestination, is_there
from commonplace.importers.run import ImportedBatch, ImportOutcome, SourceImport
from commonplace.importers.session_citations import CitingAnswer
from commonplace.projects import assignment, scope
from commonplace.projects.identity import Repositories
from commonplace.protocol.ids import wire_time
from commonplace.protocol.remotes import remote_identity
from commonplace.rollout import decisions, layout, locks
from commonplace.state import import_files, usage
from commonplace.state.database import Transaction
from commonplace.state.home import Home
from commonplace.state.import_files import ImportedFile
from commonplace.state.threads import Progress

LOCK = "imports"
_TOLD_FILES = 100
"""After so many files that were found, progress is told."""
T = TypeVar("T")


class ImportReport(msgspec.Struct):
    """What was imported (the JSON of `sessions import`)."""

    sources: list[ImportOutcome]
    warnings: list[str]


def choose(name: str | None, paths: list[Path], environment: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return which sources to import from where: as told, else every usual place that exists.

    Raises:
        BadInput: a place is missing, or nobody knows what is in it.
    """
    if not paths:
        names = [name] if name else list(sources.NAMES)
        usual = [(each, place) for each in names if (place := sources.default_folder(each, environment)) is not None]
        found = [(each, place) for each, place in usual if place.is_dir()]
        if not found:
            looked = ", ".join(str(place) for _, place in usual) or "no usual place"
            raise BadInput(f"There are no sessions to import (looked at {looked}).", hint="Name a place with --path.")
        return found
    chosen: list[tuple[str, Path]] = []
    for path in paths:
        place = path.expanduser().absolute()
        if not place.exists():
            raise BadInput(f"There is no {path}.", hint="Check the path.")
        found = name or sources.detect(place)
        if found is None:
            raise BadInput(f"{path} holds no sessions that are known.", hint="Say whose they are with --from.")
        chosen.append((found, place))
    return chosen


def _found_files(name: str, path: Path, progress: Progress | None) -> list[Path]:
    """Return the session files of a source; `progress` hears how many there are so far, of no known total (0)."""
    files: list[Path] = []
    for file in sources.find(name, path):
        files.append(file)
        if progress is not None and len(files) % _TOLD_FILES == 0:
            progress(len(files), 0)
    return files


class CountCitations(Protocol):
    """Counts the entries that imported answers cite by their lines."""

    async def __call__(self, answers: Sequence[CitingAnswer], oldest_ns: int) -> None:
        """Count them; `oldest_ns` is when the oldest of their files was written."""
        ...


class Importer:
    """Imports other agents' sessions into one home."""

    def __init__(self, home: Home, count_citations: CountCitations) -> None:
        self._home = home
        self._count_citations = count_citations

    async def run(self, chosen: Sequence[tuple[str, Path]], progress: Progress | None = None) -> ImportReport:
        """Import from each source and place in turn; only one process imports into a home at a time."""
        report = ImportReport([], [])
        with contextlib.ExitStack() as stack:
            alone = locks.shared(self._home.path, LOCK, exclusive=True)
            await anyio.to_thread.run_sync(lambda: stack.enter_context(alone))
            for name, path in chosen:
                if name == sources.CODEX:
                    report.sources.append(await self._steadily(lambda path=path: self._refer(path, progress)))
                else:
                    report.sources.append(await self._convert(name, path, report.warnings, progress))
            await self._steadily(self._settle)
        return report

    async def _steadily(self, action: Callable[[], Awaitable[T]]) -> T:
        """Run an action; if the database fails meanwhile, run it again without the database."""
        try:
            return await action()
        except StateError as error:
            await self._home.degrade(str(error).rstrip("."))
            return await action()

    async def _settle(self) -> None:
        self._home.ledger_changed()
        await (await self._home.index()).refresh(self._home.path)
        await assignment.settle(self._home)

    async def _convert(self, name: str, path: Path, warnings: list[str], progress: Progress | None) -> ImportOutcome:
        """Convert the sessions of one source into ledgers of our own."""
        outcome = ImportOutcome(name, str(path))
        known = await self._steadily(self._known)
        files = await anyio.to_thread.run_sync(_found_files, name, path, progress)
        sync = (lambda: None) if self._home.settings.fsync == "never" else os.sync
        stamp = functools.partial(sources.stamp, name)
        place = self._place(known, has_copies=name in sources.WITH_COPIES)
        running = SourceImport(outcome, sources.converter(name), place, known, sync, stamp)

        def note(noted: ImportedBatch) -> None:
            anyio.from_thread.run(self._note, noted)

        stop = threading.Event()
        await _to_its_end(lambda: running.run(files, note, progress, stop.is_set), stop)
        warnings.extend(running.warnings)
        return outcome

    async def _known(self) -> dict[str, ImportedFile]:
        """Return what earlier imports noted, but not what settings or decisions left out: those may have changed."""
        database = await self._home.database()
        await database.write(lambda tx: import_files.forget_left_out(tx, self._home.key))
        return await database.read(lambda tx: import_files.read(tx, self._home.key))

    async def _note(self, noted: ImportedBatch) -> None:
        """Note what became of some files; without a database they are read again next time."""
        try:
            database = await self._home.database()
            await database.write(lambda tx: _store(tx, self._home.key, noted, self._home.now_s()))
        except StateError as error:
            self._home.warn(f"What was imported could not be noted: {error}")
            return
        if answers := [each for each in noted.cited if each.places]:
            await self._count_citations(answers, min(row.mtime_ns for row in noted.rows))

    def _place(self, rows: dict[str, ImportedFile], *, has_copies: bool) -> LedgerDestination:
        settings = self._home.settings
        origins = OriginIndex()
        owners: dict[str, str] = {}
        for row in rows.values():
            if row.thread_id and row.ledger:
                owner = owners.get(row.thread_id)
                if owner is None or not is_there(owner):
                    owners[row.thread_id] = row.path
                origins.note(row.thread_id, Path(row.ledger), row.first_record, row.first_answer)
        look = Repositories()
        return LedgerDestination(
            home=settings.home,
            now=settings.now,
            bound=settings.blob_bytes,
            ledgers=_ledgers(settings.home),
            why_not=self._why_not(look, _referred(self._home.path) if has_copies else frozenset[str]()),
            owners=owners,
            project=lambda cwd: look(cwd).identity,
            origins=origins,
        )

    def _why_not(self, look: Repositories, referred: Container[str]) -> Callable[[SessionHead], str | None]:
        deleted = decisions.tombstones(self._home.path)
        patterns = self._home.settings.memory.exclude

        def why_not(head: SessionHead) -> str | None:
            if head.thread_id in deleted or (head.parent is not None and head.parent in deleted):
                return "deleted"
            if head.thread_id in referred:
                return "copy"
            noted = remote_identity(head.repository) if head.repository else None
            project = noted or (look(head.cwd).identity if head.cwd and patterns else None) or head.cwd
            left_out = any(
                scope.excluded(patterns, source=source, project=project, cwd=head.cwd, path=head.path)
                for source in (head.source, head.via)
                if source
            )
            return "excluded" if left_out else None

        return why_not

    async def _refer(self, path: Path, progress: Progress | None) -> ImportOutcome:
        """List the sessions of a Codex home (or a part of one) as our own, where they are."""
        home, place, now = self._home, path.resolve(), self._home.now()
        outcome = ImportOutcome(sources.CODEX, str(path))
        if not any(place == known or known in place.parents for known in decisions.referred_paths(home.path)):
            await anyio.to_thread.run_sync(
                lambda: decisions.append(home.path, "refer", wire_time(now), path=str(place))
            )
        database, index = await home.database(), await home.index()
        await database.write(lambda tx: import_files.forget_left_out(tx, home.key))
        await index.refresh(home.path, progress=progress)
        listed = await index.stamps(home.path)
        known = await database.read(lambda tx: import_files.read(tx, home.key))
        citing = (await database.read(lambda tx: tx.query("outputs.count")))[0]["outputs"] > 0
        files = (file for file in layout.walk_any(place) if not layout.is_under(file.name, home.folder))
        noted = await anyio.to_thread.run_sync(lambda: codex.count_files(outcome, files, listed, known, citing=citing))
        await database.write(lambda tx: _store(tx, home.key, noted, int(now.timestamp())))
        return outcome


async def _to_its_end(work: Callable[[], None], stop: threading.Event) -> None:
    """Work on a thread; somebody who cancels stops it, and what it did until then is noted before anything ends."""
    ended = threading.Event()

    def inside() -> None:
        try:
            work()
        finally:
            ended.set()

    try:
        await anyio.to_thread.run_sync(inside)
    except anyio.get_cancelled_exc_class():
        stop.set()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(ended.wait)
        raise


def _store(tx: Transaction, root: str, noted: ImportedBatch, now: int) -> None:
    import_files.note(tx, root, noted.rows)
    usage.record_outputs(tx, "cited", (thread for each in noted.cited for thread in each.threads), now=now)


def _referred(home: Path) -> frozenset[str]:
    """Return the threads that are listed where they are."""
    files = (file.path.name for place in decisions.referred_paths(home) for file in layout.walk_any(place))
    return frozenset(named.thread_id for file in files if (named := layout.parse_name(file)) is not None)


def _ledgers(home: Path) -> dict[str, Path]:
    """Return the newest file of each thread of a home."""
    newest: dict[str, tuple[bool, str, Path]] = {}
    for file in layout.walk(home):
        named = layout.parse_name(file.path.name)
        if named is not None:
            rank = (named.rollout_id != named.thread_id, named.rollout_id, file.path)
            newest[named.thread_id] = max(newest.get(named.thread_id, rank), rank)
    return {thread_id: path for thread_id, (_, _, path) in newest.items()}

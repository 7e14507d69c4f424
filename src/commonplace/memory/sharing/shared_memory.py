"""The memory that a home shares: what others published is taken in, and what a person did here is published.

    sync      edits by hand become notes → inputs from here are merged and published → newer files take their place here
    refresh   the same, if one row says that there is something newer
    publish   with a consolidation: its files, in the transaction that stores its entries

A published file is replaced only by a consolidation, or where nobody else changed it since this home had it. Files are
replaced here as by a consolidation: the whole workspace at once, and not at all if somebody changed it meanwhile. Where
the database cannot be used, what was published last is what the home has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import anyio.to_thread
import msgspec

from commonplace.errors import CommonplaceError, WorkspaceBusy, WorkspaceChanged
from commonplace.memory.edits import forget, history, manual_edits
from commonplace.memory.recall import section_cache
from commonplace.memory.sharing import decision_lines, inventory, workspace_update
from commonplace.memory.sharing import merge as merging
from commonplace.memory.sharing.inventory import ACCEPTED, INSIDE, CommonState, FileContent
from commonplace.memory.workspace import baseline, layout, staging
from commonplace.projects import people
from commonplace.projects.people import Person
from commonplace.protocol.ids import wire_time
from commonplace.redact import redact
from commonplace.rollout import decisions, journal
from commonplace.state import consolidation_jobs, shared_memory
from commonplace.state.database import Row, Transaction
from commonplace.state.home import Home
from commonplace.state.shared_memory import SharedFile, Version

_TRIES: Final = 5
"""How often it begins again because a person, or another host, changed something meanwhile."""
_LOCK: Final = "shared_memory"


class Publication(msgspec.Struct):
    """The accepted state of a memory, as a consolidation publishes it."""

    files: dict[str, FileContent]
    base: CommonState
    """What this home had in common with the others when the consolidation began."""
    owned: set[str]
    """Files that a person made theirs."""


class _Here(msgspec.Struct):
    """What a home has before it is compared with what is published."""

    base: CommonState
    files: dict[str, FileContent]
    owned: set[str]
    lines: list[str]

    def inputs(self) -> dict[str, FileContent]:
        """Return the files that people wrote."""
        is_input = inventory.is_input(self.owned)
        return {path: each for path, each in self.files.items() if is_input(path)}


class _Published(msgspec.Struct):
    """What is published."""

    version: Version
    files: dict[str, SharedFile]
    lines: list[str]


class SharedMemory:
    """The part of a home in a memory that several homes share."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._path = home.path
        self._root = home.path / layout.FOLDER

    def guard(self) -> AbstractContextManager[None]:
        """Keep other processes of this home from replacing the files of the memory."""
        return journal.changing(self._path, _LOCK)

    async def refresh(self) -> bool:
        """Take in what others published, if there is anything newer; return whether there was.

        Raises:
            StateError: the database cannot be used.
        """
        database, key = await self._home.database(), self._home.memory_key
        if self._home.is_degraded:
            return False
        base = await anyio.to_thread.run_sync(inventory.read_state, self._path, key)
        newest = await database.read(lambda tx: shared_memory.version(tx, key))
        return newest != base.version and await self.sync()

    async def sync(self) -> bool:
        """Publish what a person did here, and take in what others published; return whether all of it was.

        Raises:
            StateError: the database cannot be used.
            WorkspaceError: the memory's folder cannot be used.
        """
        for _ in range(_TRIES):
            try:
                await self._sync()
            except WorkspaceChanged:
                continue
            except WorkspaceBusy:  # a consolidation in this home is at it, and begins with the newest state
                return False
            return True
        return False

    async def _sync(self) -> None:
        database = await self._home.database()
        if self._home.is_degraded:
            return
        here = await anyio.to_thread.run_sync(self._collect)
        known = await database.read(shared_memory.files)
        inputs = here.inputs()
        doubtful = {
            known[path].sha256
            for path, each in inputs.items()
            if path in known and each.sha256 != known[path].sha256 and path == merging.EDITS
        }
        contents = await database.read(lambda tx: shared_memory.contents(tx, doubtful))
        published = await database.write(lambda tx: self._put(tx, here, inputs, contents))
        held = {each.sha256 for each in here.files.values()}
        missing = {each.sha256 for each in published.files.values()} - held
        fetched = await database.read(lambda tx: shared_memory.contents(tx, missing))
        if missing - fetched.keys():
            raise WorkspaceChanged("Another host published meanwhile.", hint="Try again.", path=str(self._root))
        new = await anyio.to_thread.run_sync(self._take, here, published, fetched)
        if any(decision_lines.is_about_words(line) for line in new):
            await (await self._home.index()).mask_texts(self._path)
            await anyio.to_thread.run_sync(section_cache.clear, str(self._path))

    # Here

    def _collect(self) -> _Here:
        """Turn edits by hand into notes, and return what is here."""
        with self.guard():
            moment = self._home.now()
            staging.recover(self._root)
            layout.ensure(self._root)
            baseline.ensure(self._root, moment)
            manual_edits.adopt(self._path, self._root, moment)
            self._redact_notes()
            base = inventory.read_state(self._path, self._home.memory_key)
            lines = decision_lines.shared_lines(self._path)
            return _Here(base, self._files(), decisions.owned_files(self._path), lines)

    def _redact_notes(self) -> None:
        """Take secrets out of notes that a person wrote with an editor, before they leave this host."""
        for place in (self._root / layout.NOTES).glob("*.md"):
            text = place.read_bytes().decode("utf-8", "replace")
            clean = redact(text)
            if clean != text:
                staging.put(place, clean)

    def _files(self) -> dict[str, FileContent]:
        return {**inventory.working_files(self._root), **inventory.files_beside(self._path)}

    # Publishing

    def _put(
        self, tx: Transaction, here: _Here, inputs: Mapping[str, FileContent], contents: Mapping[str, bytes]
    ) -> _Published:
        """Publish what a person wrote and decided here, and return what is published then."""
        key = self._home.memory_key
        shared_memory.serialise(tx)
        there = shared_memory.files(tx)
        is_input = inventory.is_input(here.owned)
        is_same = shared_memory.version(tx, key).follows(here.base.version)  # else nothing is known to be removed there
        base = {path: name for path, name in here.base.files.items() if is_input(path)} if is_same else {}
        hashes = {path: each.sha256 for path, each in there.items()}
        merged = merging.merge(base, inputs, hashes, contents, self._mark())
        known = set(shared_memory.decisions(tx))
        lines = [line for line in here.lines if line not in known]
        lines += [self._own(path) for path in merged.renamed.values() if path.startswith(INSIDE + layout.SKILLS)]
        author = people.encode(self._author()) if merged.changed else None
        files = [_shared(path, each, author) for path, each in merged.changed.items()]
        data = {each.sha256: each.data for each in merged.changed.values()}
        version = shared_memory.change(tx, key, files, data, merged.removed, lines)
        if files or merged.removed or lines:
            consolidation_jobs.enqueue(tx, key, self._home.now_s())
        files_now = {path: each for path, each in shared_memory.files(tx).items() if inventory.is_place(path)}
        return _Published(version, files_now, shared_memory.decisions(tx))

    def _mark(self) -> str:
        return self._home.key.removeprefix("home:")[:4]

    def _own(self, path: str) -> str:
        fields = {"time": wire_time(self._home.now()), "kind": "own", "path": path.removeprefix(INSIDE)}
        return msgspec.json.encode(fields).decode()

    def _author(self) -> Person:
        """Return who writes notes in this home."""
        return people.of_folder(str(self._path), self._home.environment) or Person()

    # Taking in

    def _take(self, here: _Here, published: _Published, fetched: Mapping[str, bytes]) -> list[str]:
        """Put what is published in the place of what is here; return the decisions that were new."""
        with self.guard():
            base = inventory.read_state(self._path, here.base.root)
            if base.version != here.base.version and not published.version.follows(base.version):
                return []  # another process of this home was faster
            now = self._files()
            if {path: each.sha256 for path, each in now.items()} != {
                path: each.sha256 for path, each in here.files.items()
            }:
                raise WorkspaceChanged(
                    "Somebody changed the memory meanwhile.", hint="Try again.", path=str(self._root)
                )
            new = decision_lines.take(self._path, published.lines)
            files = {path: each for path, each in published.files.items() if path != ACCEPTED}
            contents = {each.sha256: each.data for each in here.files.values()} | dict(fetched)
            if ACCEPTED in published.files:
                accepted = contents[published.files[ACCEPTED].sha256].decode()
                workspace_update.replace(self._root, files, contents, here.files, accepted, self._home.now())
                self._put_beside(files, contents, here, is_first=not base.files)
            else:  # nothing is put together yet, or any more: the notes of others are all there is
                if ACCEPTED in base.files:
                    workspace_update.clear(self._root, here.inputs())
                workspace_update.replace_inputs(self._root, files, contents, here.inputs())
            if new:
                forget.rewrite_history(self._path)
            hashes = {path: each.sha256 for path, each in published.files.items()}
            authors = {path.removeprefix(INSIDE): each.person for path, each in files.items() if each.person}
            inventory.write_state(self._path, CommonState(here.base.root, published.version, hashes, authors))
            return new

    def _put_beside(
        self, files: Mapping[str, SharedFile], contents: Mapping[str, bytes], here: _Here, *, is_first: bool
    ) -> None:
        """Replace the files beside the workspace; a home that joins brings its history along."""
        for name in inventory.BESIDE:
            if name not in files:
                continue
            data, own = contents[files[name].sha256], here.files.get(name)
            if name == history.FILE and is_first and own is not None:
                data = merging.union(own.data, data)
            if own is None or own.data != data:
                staging.put(self._path / name, data)

    # With a consolidation

    def people(self, rows: Iterable[Row]) -> dict[str, Person]:
        """Return whose the sessions and notes are that a consolidation has."""
        state = inventory.read_state(self._path, self._home.memory_key)
        told = {**{row["thread_id"]: row["person"] for row in rows}, **state.authors}
        found = {key: people.decode(text) for key, text in told.items()}
        return {key: person for key, person in found.items() if person is not None}

    def publication(self, known: Mapping[str, Person]) -> Publication:
        """Return the state that was accepted, to be published; the guard of a consolidation is its claim."""
        base = inventory.read_state(self._path, self._home.memory_key)
        forget.rewrite_history(self._path)
        inventory.write_people(self._path, known)
        files = {**inventory.accepted_files(self._root), **inventory.files_beside(self._path)}
        return Publication(files, base, decisions.owned_files(self._path))

    def publish(self, tx: Transaction, publication: Publication) -> CommonState:
        """Publish a state; return what this home has in common with the others then.

        What other hosts published meanwhile stays: their notes are no part of this state, and part of the next.
        """
        key, base = self._home.memory_key, publication.base
        shared_memory.serialise(tx)
        there, before = shared_memory.files(tx), shared_memory.version(tx, key)
        is_input = inventory.is_input(publication.owned)
        changed = {
            path: each
            for path, each in publication.files.items()
            if each.sha256 != (there[path].sha256 if path in there else None)
            and not (is_input(path) and path in there and there[path].sha256 != base.files.get(path))
        }
        removed = [
            path
            for path, each in there.items()
            if path not in publication.files and (not is_input(path) or each.sha256 == base.files.get(path))
        ]
        files = [_shared(path, each, None) for path, each in changed.items()]
        after = shared_memory.change(tx, key, files, {each.sha256: each.data for each in changed.values()}, removed)
        hashes = {path: each.sha256 for path, each in publication.files.items()}
        return CommonState(base.root, after if before == base.version else base.version, hashes, base.authors)

    def keep(self, state: CommonState) -> None:
        """Note what this home has in common with the others."""
        inventory.write_state(self._path, state)


def _shared(path: str, each: FileContent, author: str | None) -> SharedFile:
    person = author if path.startswith(INSIDE + layout.NOTES) else None
    return SharedFile(path, each.sha256, each.mtime_ns, each.is_program, person)


async def refresh(home: Home) -> None:
    """Take in what other hosts published, where a memory is shared; a failure is a warning."""
    if home.is_shared:
        try:
            await SharedMemory(home).refresh()
        except (CommonplaceError, OSError) as error:
            home.warn(f"What other hosts published could not be taken in: {error}")


async def sync(home: Home) -> None:
    """Publish what a person did here and take in what others published; a failure is a warning."""
    if home.is_shared:
        try:
            await SharedMemory(home).sync()
        except (CommonplaceError, OSError) as error:
            home.warn(f"What was done here is not published yet: {error}")


def of_home(home: Home) -> SharedMemory | None:
    """Return the shared memory of a home; None if its memory is its own."""
    return SharedMemory(home) if home.is_shared else None


def known_people(home: Path) -> dict[str, Person]:
    """Return whose the sessions and notes are, as they were published last."""
    return inventory.read_people(home)

"""Notes, pins, the history of changes, and resetting the memory."""

from __future__ import annotations

import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio.to_thread
import msgspec

from commonplace.errors import BadInput, StateError, WorkspaceError
from commonplace.memory import listing
from commonplace.memory.edits import history, meant_entries, notes
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.edits.history import EntryChange
from commonplace.memory.entries import GLOBAL, Entry
from commonplace.memory.recall import section_cache
from commonplace.memory.store import KnownEntry, MemoryStore
from commonplace.memory.workspace import layout, staging
from commonplace.projects import lookup
from commonplace.projects.identity import identify
from commonplace.protocol.ids import wire_time
from commonplace.redact import redact
from commonplace.rollout import decisions
from commonplace.state import entries as rows
from commonplace.state import outputs, postings, shared_memory
from commonplace.state.database import Transaction
from commonplace.state.home import Home


class NoteRequest(msgspec.Struct, kw_only=True, frozen=True):
    """The content and scope of a note that a person wants written."""

    text: str
    project: str | None = None
    everywhere: bool = False
    change: str | None = None
    forget: bool = False


async def note(store: MemoryStore, request: NoteRequest, folder: Path) -> Path:
    """Write a note of what a person wants remembered, changed or forgotten; return its file.

    Without a project it is for the one that `folder` is in, if it is in one.

    Raises:
        BadInput: it says nothing, or names a project that nobody knows.
    """
    text = " ".join(redact(request.text).split())
    if not text:
        raise BadInput("The note is empty.", hint="Say what to remember, change or forget.")
    if request.change is not None and request.forget:
        raise BadInput("A note either changes something or forgets it.", hint="Leave out --change or --forget.")
    if request.project is not None and request.everywhere:
        raise BadInput("A note is for one project or for all.", hint="Leave out --project or --global.")
    found = await store.known_entries()
    meant = _meant(request.change, found) if request.change is not None else None
    scope = await _scope(store, request, meant, found, folder)
    target = redact(note_words(meant) if meant is not None else " ".join((request.change or "").split()))
    action: notes.Action = "forget" if request.forget else "change" if target else "remember"
    written = notes.text_of(action, text, target=target, scope=scope)
    return await anyio.to_thread.run_sync(write_note, store.home.path, store.home.now(), written, text)


async def note_instead(store: MemoryStore, known: KnownEntry, text: str) -> Path:
    """Write a note that puts other words in the place of an entry or a candidate; return its file.

    Raises:
        BadInput: the note says nothing.
    """
    flat = " ".join(redact(text).split())
    if not flat:
        raise BadInput("The note is empty.", hint="Say what is to be remembered instead.")
    written = notes.text_of("change", flat, target=redact(note_words(known)), scope=known.entry.scope)
    return await anyio.to_thread.run_sync(write_note, store.home.path, store.home.now(), written, flat)


async def note_of(store: MemoryStore, entry: Entry) -> Path:
    """Write a note with the words of an entry, for its project; return its file."""
    written = notes.text_of("remember", entry.text, scope=entry.scope)
    return await anyio.to_thread.run_sync(write_note, store.home.path, store.home.now(), written, entry.text)


def _meant(text: str, entries: list[KnownEntry]) -> KnownEntry | None:
    """Return the entry that is to be changed; None if no entry matches, and the text stands for itself (raises
    BadInput: several match).
    """
    return meant_entries.only(text, entries) if listing.matching_entries(text, entries) else None


def note_words(entry: KnownEntry) -> str:
    """Return how a note names an entry: by the words that taught it last."""
    sources = [source for source in entry.entry.sources if source.note or source.is_by_person]
    newest = max(sources, key=lambda source: source.updated_s, default=None)
    return newest.quote.removesuffix("…") if newest is not None else entry.entry.text


async def _scope(
    store: MemoryStore, request: NoteRequest, meant: KnownEntry | None, entries: list[KnownEntry], folder: Path
) -> str:
    if request.everywhere:
        return GLOBAL
    if request.project is not None:
        return await lookup.named_scope(store.home, request.project, (each.entry.scope for each in entries))
    if meant is not None:
        return meant.entry.scope
    return await anyio.to_thread.run_sync(identify, folder) or GLOBAL


def write_note(home: Path, now: datetime, written: str, text: str) -> Path:
    """Write the text of a note into the memory of a home, newer than every note and every forgetting of its words.

    Raises:
        WorkspaceError: the memory folder is a link.
    """
    root = home / layout.FOLDER
    _refuse_link(root)
    staging.recover(root)
    after = Forgotten.load(home).forgotten_within(text) or 0
    moment = notes.moment(root, now, after=after)
    return root / notes.write(root, notes.name_for(root, moment, text), written)


def _refuse_link(root: Path) -> None:
    if root.is_symlink():
        raise WorkspaceError(
            f"The memory folder {root} is a link.",
            hint="Replace it by a folder, or set COMMONPLACE_HOME to the place it leads to.",
            path=str(root),
        )


async def pin(store: MemoryStore, text: str, *, pinned: bool = True) -> dict[str, Any]:
    """Pin an entry and its sources, so that they do not age, or unpin them.

    Raises:
        BadInput: nothing in memory is meant, or several entries.
    """
    found = await store.known_entries()
    chosen = meant_entries.only(text, found)
    chosen.entry.pinned = pinned
    moment = wire_time(store.home.now())
    await anyio.to_thread.run_sync(
        lambda: decisions.append(store.home.path, "pin", moment, entry_id=chosen.entry.id, is_pinned=pinned)
    )
    kept = {source.thread_id for each in found if each.entry.pinned for source in each.entry.sources}
    root = store.home.memory_key

    def body(tx: Transaction) -> None:
        rows.pin(tx, root, chosen.entry.id, pinned=pinned)
        for thread_id in sorted({source.thread_id for source in chosen.entry.sources if source.thread_id}):
            outputs.pin(tx, thread_id, pinned=thread_id in kept)

    await (await store.home.database()).write(body)
    return {"id": chosen.entry.id, "pinned": pinned}


def changes(home: Path, text: str | None) -> list[EntryChange]:
    """Return how the memory changed, oldest first; of one entry if one is named by its id or the beginning of it.

    Raises:
        BadInput: no entry ever had this id.
    """
    found = history.read(home)
    if text is None:
        return found
    chosen = [change for change in found if change.entry_id.startswith(text.strip().lower() or "-")]
    if not chosen:
        raise BadInput(f"No entry ever had the id {text!r}.", hint="`commonplace memory history` shows all changes.")
    return chosen


async def reset(store: MemoryStore) -> dict[str, int]:
    """Empty the workspace and delete every row about it; modes, pins and forget decisions stay.

    Raises:
        WorkspaceError: the workspace is a link.
    """
    root, moment = store.root, wire_time(store.home.now())
    _refuse_link(root)
    held = {each.entry.id: each.entry.text for each in await store.known_entries()}
    if store.home.has_index():
        key = store.home.key

        def body(tx: Transaction) -> None:
            outputs.clear(tx)
            rows.clear(tx, store.home.memory_key)
            if store.home.is_shared:
                shared_memory.clear(tx, store.home.memory_key)
            postings.clear(tx, key, "memory")

        await (await store.home.database()).write(body)
    await anyio.to_thread.run_sync(section_cache.clear, str(store.home.path))
    files = await anyio.to_thread.run_sync(_empty, root)
    last = history.current(await anyio.to_thread.run_sync(history.read, store.home.path))
    gone = [
        EntryChange(time=moment, entry_id=key, before=text, after=None, cause="reset")
        for key, text in {**held, **last}.items()
    ]
    await anyio.to_thread.run_sync(history.append, store.home.path, gone)
    await scrub(store.home)
    return {"removed": len(held), "files": files}


async def scrub(home: Home) -> None:
    """Make deleted data unreadable in the database's files; if other processes use the database, warn and go on."""
    if not home.has_index():
        return
    try:
        await (await home.database()).scrub()
    except StateError as error:
        home.warn(f"What was deleted may still be in free space of the database: {error.sentence()}")


def _empty(root: Path) -> int:
    """Remove everything in the workspace, the baseline too, and what a crash left beside it; return how many files."""
    if not root.is_dir():
        return 0
    staging.recover(root)
    count = sum(
        len(files) for folder, _, files in os.walk(root) if layout.GIT not in Path(folder).relative_to(root).parts
    )
    for place in sorted(root.iterdir()):
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()
    return count

"""A person's hand on the memory: notes, pins, the history of changes, and beginning anew."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import msgspec

from commonplace.errors import BadInput, StateError, WorkspaceError
from commonplace.memory import listing
from commonplace.memory.edits import history, notes
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.edits.history import Change
from commonplace.memory.entries import GLOBAL
from commonplace.memory.listing import Known
from commonplace.memory.workspace import layout, staging
from commonplace.protocol.ids import wire_time
from commonplace.redact import redact
from commonplace.rollout import decisions
from commonplace.state import entries as rows
from commonplace.state import outputs, postings
from commonplace.state.database import Transaction

if TYPE_CHECKING:
    from commonplace.app.book import Book


class Told(msgspec.Struct, kw_only=True, frozen=True):
    """What a person wants noted."""

    text: str
    project: str | None = None
    everywhere: bool = False
    change: str | None = None
    forget: bool = False


async def note(book: Book, told: Told, folder: Path) -> Path:
    """Write a note of what a person wants remembered, changed or forgotten; return its file.

    Without a project it is for the one that `folder` is in, if it is in one.

    Raises:
        BadInput: it says nothing, or names a project that nobody knows.
    """
    text = " ".join(redact(told.text).split())
    if not text:
        raise BadInput("The note is empty.", hint="Say what to remember, change or forget.")
    if told.change is not None and told.forget:
        raise BadInput("A note either changes something or forgets it.", hint="Leave out --change or --forget.")
    if told.project is not None and told.everywhere:
        raise BadInput("A note is for one project or for all.", hint="Leave out --project or --global.")
    found = await listing.known(book)
    meant = _meant(told.change, found) if told.change is not None else None
    scope = await _scope(book, told, meant, found, folder)
    target = redact(_words(meant) if meant is not None else " ".join((told.change or "").split()))
    action: notes.Action = "forget" if told.forget else "change" if target else "remember"
    written = notes.text_of(action, text, target=target, scope=scope)
    return await anyio.to_thread.run_sync(_write, book, written, text)


def _meant(text: str, found: list[Known]) -> Known | None:
    """Return the entry that is to be changed; a text that none says is taken for itself."""
    matches = listing.named(text, found)
    return listing.one(text, found)[0] if matches else None


def _words(known: Known) -> str:
    """Return how a note names an entry: by the words that taught it last."""
    sources = [source for source in known.entry.sources if source.note or "by the user" in source.how]
    newest = max(sources, key=lambda source: source.updated_s, default=None)
    return newest.quote.removesuffix("…") if newest is not None else known.entry.text


async def _scope(book: Book, told: Told, meant: Known | None, found: list[Known], folder: Path) -> str:
    if told.everywhere:
        return GLOBAL
    if told.project is not None:
        return await listing.scope_of(book, told.project, (each.entry.scope for each in found))
    if meant is not None:
        return meant.entry.scope
    from commonplace.projects.identity import identify

    return await anyio.to_thread.run_sync(identify, folder) or GLOBAL


def _write(book: Book, written: str, text: str) -> Path:
    root = book.home / layout.FOLDER
    _refuse_link(root)
    staging.recover(root)
    after = Forgotten.of(book.home).within(text) or 0
    moment = notes.moment(root, book.settings.now(), after=after)
    return root / notes.write(root, notes.name_for(root, moment, text), written)


def _refuse_link(root: Path) -> None:
    if root.is_symlink():
        raise WorkspaceError(
            f"The memory folder {root} is a link.",
            hint="Replace it by a folder, or set COMMONPLACE_HOME to the place it leads to.",
            path=str(root),
        )


async def pin(book: Book, text: str, *, pinned: bool = True) -> dict[str, Any]:
    """Keep an entry and what it rests on from ageing, or no longer.

    Raises:
        BadInput: nothing in memory is meant.
    """
    found = await listing.known(book)
    chosen, _ = listing.one(text, found)
    chosen.entry.pinned = pinned
    moment = wire_time(book.settings.now())
    await anyio.to_thread.run_sync(
        lambda: decisions.append(book.home, "pin", moment, entry_id=chosen.entry.id, is_pinned=pinned)
    )
    kept = {source.thread_id for each in found if each.entry.pinned for source in each.entry.sources}
    home = str(book.home.resolve())

    def body(tx: Transaction) -> None:
        rows.pin(tx, home, chosen.entry.id, pinned=pinned)
        for thread_id in sorted({source.thread_id for source in chosen.entry.sources if source.thread_id}):
            outputs.pin(tx, thread_id, pinned=thread_id in kept)

    await (await book.database()).write(body)
    return {"id": chosen.entry.id, "pinned": pinned}


def changes(book: Book, text: str | None) -> list[Change]:
    """Return how the memory changed, oldest first; of one entry if one is named by its id or the beginning of it.

    Raises:
        BadInput: no entry ever had this id.
    """
    found = history.read(book.home)
    if text is None:
        return found
    chosen = [change for change in found if change.entry_id.startswith(text.strip().lower() or "-")]
    if not chosen:
        raise BadInput(f"No entry ever had the id {text!r}.", hint="`commonplace memory history` shows all changes.")
    return chosen


async def reset(book: Book) -> dict[str, int]:
    """Begin anew: empty the workspace and forget every row about it; modes, pins and what was forgotten stay.

    Raises:
        WorkspaceError: the workspace is a link.
    """
    root, moment = book.home / layout.FOLDER, wire_time(book.settings.now())
    _refuse_link(root)
    held = {each.entry.id: each.entry.text for each in await listing.known(book)}
    if book.has_index():
        home = str(book.home.resolve())

        def body(tx: Transaction) -> None:
            outputs.clear(tx)
            rows.clear(tx, home)
            postings.clear(tx, home, "memory")

        await (await book.database()).write(body)
    files = await anyio.to_thread.run_sync(_empty, root)
    last = history.current(await anyio.to_thread.run_sync(history.read, book.home))
    gone = [
        Change(time=moment, entry_id=key, before=text, after=None, cause="reset")
        for key, text in {**held, **last}.items()
    ]
    await anyio.to_thread.run_sync(history.append, book.home, gone)
    await scrub(book)
    return {"removed": len(held), "files": files}


async def scrub(book: Book) -> None:
    """Let nothing that was deleted be read from the database's files; where others use it, say so and go on."""
    if not book.has_index():
        return
    try:
        await (await book.database()).scrub()
    except StateError as error:
        book.warn(f"What was deleted may still be in free space of the database: {error.sentence()}")


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

"""Forgetting: a text is removed from files, rows, history and baseline, and is not learned again.

    find the text → collect its wordings → write a decision (hashes only) → read every session that said it again
        without it → remove notes → rebuild the memory → history, counters and listings → scrub the database

The decision is written first and is durable: if anything after it is interrupted, the next run of learning leaves the
text out. Session ledgers keep it, so a later note can bring it back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

import anyio.to_thread
import msgspec

from commonplace.errors import CommonplaceError, WorkspaceError
from commonplace.memory import listing
from commonplace.memory.edits import edits, history, manual_edits, meant_entries, notes, rehearsal, removal
from commonplace.memory.edits.forgotten import Forgotten, decision
from commonplace.memory.entries import Entry
from commonplace.memory.files import lesson_parser
from commonplace.memory.files.raw_memories import RawMemory
from commonplace.memory.lessons import SessionLesson
from commonplace.memory.recall import section_cache
from commonplace.memory.restore import restore_outputs
from commonplace.memory.store import KnownEntry, MemoryStore
from commonplace.memory.workspace import baseline, layout, staging
from commonplace.patterns import regex
from commonplace.projects import assignment
from commonplace.protocol.ids import parse_time, wire_time
from commonplace.rollout import decisions
from commonplace.state import outputs, postings, shared_memory, usage
from commonplace.state.database import Row, Transaction
from commonplace.state.home import Home
from commonplace.state.outputs import Output

_QUOTED: Final = regex(r'"([^"]{3,})"')
_ENOUGH: Final = 3
"""A text of at least this many words is forgotten itself, not only the entry that it names."""
_DONE: Final = ("succeeded", "unchanged")


class Forgot(msgspec.Struct):
    """The result of forgetting (the JSON of `memory forget`)."""

    removed: list[str]
    files: list[str]
    others: list[listing.Listed] = []
    """Other entries that the text may have meant; they stay."""
    entries: list[listing.Listed] = []
    """The entries that are removed, as they were."""


class _Plan(msgspec.Struct):
    """What is to be forgotten, and the remaining outputs of the sessions that said it."""

    decision: dict[str, Any]
    time: str
    before: dict[str, KnownEntry]
    """All entries and candidates, by their ids."""
    meant: list[str]
    others: list[KnownEntry]
    outputs: dict[str, Output]
    """By thread, for those that change."""

    def result(self, store: MemoryStore, removed: list[str], files: list[str]) -> Forgot:
        """Return what was forgotten, as people are told."""
        gone = [listing.listed_entry(self.before[key]) for key in removed if key in self.before]
        others = [listing.listed_entry(each) for each in self.others]
        return Forgot(removed, [str(store.home.path / path) for path in files], others, gone)

    def forgotten(self, home: Path) -> Forgotten:
        """Return everything that is forgotten once this plan is carried out."""
        line = msgspec.convert({"time": self.time, "kind": "forget", **self.decision}, decisions.DecisionLine)
        return Forgotten([*decisions.forgotten(home), line])


class Relearning(Protocol):
    """The operations of learning that forgetting needs: read a session again, and rebuild the memory."""

    async def reread(self, path: Path, project: str, forgotten: Forgotten) -> Output | None:
        """Return what a session teaches without what was forgotten; None where only a model could read it again."""
        ...

    async def rebuild(self) -> str:
        """Make the memory's files anew, after any running consolidation; return the result."""
        ...

    def rehearse(self, home: Path, rows: list[Row], mirrored: str | None, forgotten: Forgotten) -> list[Entry]:
        """Make the memory's files anew in a copy of a home; return the entries and candidates that there are then."""
        ...


async def forget(store: MemoryStore, relearning: Relearning, text: str, *, dry_run: bool = False) -> Forgot:
    """Forget what a text means: an entry by its id or words, else whatever holds the text.

    Raises:
        BadInput: nothing in memory is meant; nothing was changed.
        WorkspaceError: the memory could not be made anew; what is left to do happens at the next run.
    """
    if not dry_run:
        await anyio.to_thread.run_sync(_adopt, store)
    plan = await _plan(store, relearning, text, is_looking=dry_run)
    if dry_run:
        return await _foretell(store, relearning, plan)
    root = store.root
    old = await anyio.to_thread.run_sync(_stamps, store.home.path)
    await anyio.to_thread.run_sync(lambda: decisions.append(store.home.path, "forget", plan.time, **plan.decision))
    now = store.home.now_s()
    database = await store.home.database()

    def body(tx: Transaction) -> None:
        for thread_id, left in plan.outputs.items():
            outputs.replace(tx, thread_id, left, now=now)

    await database.write(body)
    await anyio.to_thread.run_sync(section_cache.clear, str(store.home.path))
    status = await relearning.rebuild()
    after = {each.entry.id for each in await _everything(store)}
    removed = sorted({*plan.before, *plan.meant} - after)
    await anyio.to_thread.run_sync(rewrite_history, store.home.path)
    await database.write(lambda tx: _forget_rows(tx, store.home, removed))
    await (await store.home.index()).mask_texts(store.home.path)
    await edits.scrub(store.home)
    if status not in _DONE:
        raise WorkspaceError(
            f"It is not learned again, but the memory in {root} could not be made anew ({status}).",
            hint="Run `commonplace memory run`; it says what is in the way.",
        )
    new = await anyio.to_thread.run_sync(_stamps, store.home.path)
    files = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
    return plan.result(store, removed, files)


def _forget_rows(tx: Transaction, home: Home, removed: list[str]) -> None:
    """Delete the counters and the index documents of forgotten entries, also those that other homes have of a shared
    memory; the next search indexes the rest again.
    """
    for key in removed:
        usage.forget_entry(tx, key)
    for key in shared_memory.homes(tx) if home.is_shared else [home.key]:
        postings.clear(tx, key, "memory")


def _adopt(store: MemoryStore) -> None:
    """Turn manual edits that no run has seen into notes, so that the decision is newer than they are."""
    root = store.root
    if not root.is_symlink() and (root / layout.GIT).is_dir():
        staging.recover(root)
        manual_edits.adopt(store.home.path, root, store.home.now())
        for change in baseline.status(root):  # what was said there is in notes now, and must not be noted again
            text = baseline.content(root, change.path)
            if change.letter == "M" and text is not None and manual_edits.is_rewritten(change.path):
                staging.put(root / change.path, text)


# What is meant


async def _plan(store: MemoryStore, relearning: Relearning, text: str, *, is_looking: bool) -> _Plan:
    root = store.root
    if root.is_symlink():
        raise WorkspaceError(f"The memory folder {root} is a link.", hint="Replace it by a folder.", path=str(root))
    wanted = " ".join(text.split())
    if not wanted or not (root.exists() or store.home.has_index()):
        raise meant_entries.nothing(text)
    if not is_looking or not store.home.has_index():
        await (await store.home.index()).refresh(store.home.path)
        await assignment.settle(store.home)
    await restore_outputs(store.home)
    database = await store.home.database()
    taught = await database.read(outputs.everything)
    found = await _everything(store)
    told = await anyio.to_thread.run_sync(notes.read, root)
    past = await anyio.to_thread.run_sync(history.read, store.home.path)
    matches = listing.matching_entries(wanted, found) if wanted else []
    if len(matches) > 1 and all(each.entry.id.startswith(wanted.lower()) for each in matches):
        listing.single_entry(wanted, found)  # it says why not
    held = meant_entries.saying(wanted, matches)
    is_id = bool(matches) and matches[0].entry.id.startswith(wanted.lower())
    if not is_id and len(held) > 1:
        raise meant_entries.several(text, held)
    chosen = matches[:1] if is_id else held
    texts = set(_of_entry(chosen[0], taught, past, told)) if chosen else set(_holding(wanted, taught, told, past))
    if not texts and len(matches) > 1:
        raise meant_entries.several(text, matches)
    if not texts and matches:
        chosen, texts = matches, set(_of_entry(matches[0], taught, past, told))
    if not texts:
        raise meant_entries.nothing(text)
    if not is_id and (not chosen or len(wanted.split()) >= _ENOUGH):
        texts.add(wanted)
    plan = _Plan(
        decision(sorted(texts)),
        wire_time(_moment(store, told)),
        {each.entry.id: each for each in found},
        [each.entry.id for each in chosen],
        [each for each in matches if each not in chosen],
        {},
    )
    rests_on = {
        source.thread_id
        for each in found
        if each.entry.id in plan.meant
        for source in each.entry.sources
        if source.thread_id
    }
    plan.outputs = await _read_again(store, relearning, plan.forgotten(store.home.path), taught, rests_on)
    return plan


async def _everything(store: MemoryStore) -> list[KnownEntry]:
    """Return all entries and candidates."""
    return [*await store.known_entries(), *await store.candidates()]


def _moment(store: MemoryStore, told: list[notes.Note]) -> datetime:
    """Return the time of the decision: not before any note that it is about."""
    newest = max((note.seconds for note in told), default=0)
    return max(store.home.now(), datetime.fromtimestamp(newest, UTC))


def _of_entry(
    chosen: KnownEntry, taught: dict[str, Output], past: list[history.EntryChange], told: list[notes.Note]
) -> Iterator[str]:
    """Yield every wording of an entry: its present text, its quotations, and its earlier texts.

    Entries that it replaced are forgotten, too: somebody who forgets a wish does not want the earlier one back.
    """
    entry = chosen.entry
    yield from _wordings(entry.text)
    spoken = [source for source in entry.sources if source.note or source.is_by_person]
    yield from (source.quote.removesuffix("…").rstrip() for source in spoken)
    places = {(source.thread_id, source.byte_start, source.quote) for source in entry.sources}
    for thread_id in {source.thread_id for source in entry.sources if source.thread_id in taught}:
        for lesson in _lessons(thread_id, taught[thread_id]):
            at = {(source.thread_id, source.byte_start, source.quote) for source in lesson.sources[:1]}
            if (at & places and lesson.kind == entry.kind) or lesson.entry_text == entry.text:
                yield from _wordings(lesson.words)
                yield from _wordings(lesson.entry_text)
    files = {source.note for source in entry.sources if source.note}
    yield from (note.target for note in told if note.path in files and note.target)
    gone = {change.entry_id for change in past if change.cause == f"superseded by {entry.id}"}
    for change in past:
        if change.entry_id in gone or change.entry_id == entry.id:
            yield from (word for text in (change.before, change.after) if text for word in _wordings(text))


def _wordings(text: str) -> Iterator[str]:
    """Yield a text, and what stands in quotation marks in it."""
    if text != history.FORGOTTEN:
        yield text
        yield from _QUOTED.findall(text)


def _lessons(thread_id: str, output: Output) -> list[SessionLesson]:
    source = RawMemory(
        thread_id, 0, "", "", None, output.raw_memory, output.rollout_summary, output.rollout_slug, output.lessons
    )
    return lesson_parser.of_input(source, "")


def _holding(
    wanted: str, taught: dict[str, Output], told: list[notes.Note], past: list[history.EntryChange]
) -> Iterator[str]:
    """Yield every lesson, note and earlier entry that contains a text."""
    lower = wanted.lower()
    if not lower:
        return
    for thread_id, found in taught.items():
        for lesson in _lessons(thread_id, found):
            if lower in lesson.text.lower():
                yield from _wordings(lesson.entry_text)
                yield lesson.words
        if lower in f"{found.raw_memory}\n{found.rollout_summary}".lower():
            yield wanted
    for note in told:
        if lower in note.text.lower():
            yield note.text
    for change in past:
        for text in (change.before, change.after):
            if text and (lower in text.lower() or change.entry_id == lower):
                yield from _wordings(text)


async def _read_again(
    store: MemoryStore, relearning: Relearning, forgotten: Forgotten, taught: dict[str, Output], rests_on: set[str]
) -> dict[str, Output]:
    """Return the outputs of the sessions that said it: extracted again without it, or with it cut out.

    Forgetting never waits for a server, so outputs that a model made are cut.
    """
    said = {key for key, each in taught.items() if key in rests_on or removal.output(each, forgotten) is not each}
    root = store.home.key
    rows: list[Row] = await (await store.home.database()).read(lambda tx: tx.query("threads.current", home=root))
    ledgers = {row["thread_id"]: row for row in rows}
    left: dict[str, Output] = {}
    for key in sorted(said):
        row = ledgers.get(key)
        again = None
        if row is not None:
            with contextlib.suppress(CommonplaceError, OSError):
                again = await relearning.reread(Path(row["path"]), row["project"], forgotten)
        if again is None:
            again = removal.output(taught[key], forgotten)
        if again != taught[key]:
            left[key] = again
    return left


# What changes


def _stamps(home: Path) -> dict[str, bytes]:
    """Return what the files hold that forgetting may change, by their paths below the home."""
    root = home / layout.FOLDER
    found = {f"{layout.FOLDER}/{path}": data for path, data in _contents(root)}
    if (home / history.FILE).is_file():
        found[history.FILE] = (home / history.FILE).read_bytes()
    return found


def _contents(root: Path) -> Iterable[tuple[str, bytes]]:
    for place in sorted(root.rglob("*")):
        path = place.relative_to(root)
        if layout.GIT not in path.parts and place.is_file() and not place.is_symlink():
            yield path.as_posix(), place.read_bytes()


async def _foretell(store: MemoryStore, relearning: Relearning, plan: _Plan) -> Forgot:
    """Return what would be forgotten: the same work on a copy of the home that is thrown away."""
    stored = await rehearsal.stored_rows(store)
    left: list[Row] = [
        {**row, **msgspec.structs.asdict(plan.outputs.get(row["thread_id"]) or outputs.of_row(row))}
        for row in stored.rows
    ]
    kept = [row for row in left if row["raw_memory"] or row["lessons"]]
    return await anyio.to_thread.run_sync(_rehearse, store, relearning, plan, kept, stored.mirrored)


def _rehearse(store: MemoryStore, relearning: Relearning, plan: _Plan, rows: list[Row], mirrored: str | None) -> Forgot:
    forgotten = plan.forgotten(store.home.path)
    old = _stamps(store.home.path)
    with rehearsal.copied_home(store) as copy:
        removal.workspace(copy / layout.FOLDER, forgotten)
        held = relearning.rehearse(copy, rows, mirrored, forgotten)
        rewrite_history(copy, forgotten)
        new = _stamps(copy)
    after = {entry.id for entry in held}
    files = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
    removed = sorted({*plan.before, *plan.meant} - after)
    if removed and history.FILE not in files:
        files.append(history.FILE)
    return plan.result(store, removed, files)


def rewrite_history(home: Path, forgotten: Forgotten | None = None) -> None:
    """Remove forgotten texts from the history; a text that a later note brought back stays."""
    known = forgotten or Forgotten.load(home)

    def is_forgotten(text: str, change: history.EntryChange) -> bool:
        when, moment = known.forgotten_within(text), parse_time(change.time)
        return when is not None and (moment is None or int(moment.timestamp()) <= when)

    history.rewrite(home, is_forgotten)

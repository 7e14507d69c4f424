"""Forgetting: a thing goes out of files, rows, history and baseline, and is not learned again.

    what is meant → all its wordings → a decision (hashes only) → every session that said it is read again without it
        → notes that say it go → the memory is made anew → history, counters and listings → the database's free space

The decision comes first and is durable: whatever is cut short after it, the next run of learning leaves the thing out.
Session ledgers keep what was said, so a note can bring it back.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
import msgspec

from commonplace.app import doctor
from commonplace.errors import BadInput, CommonplaceError, WorkspaceError
from commonplace.learning import lessons, providers, run
from commonplace.learning.consolidate import consolidation_input, phase2, provenance
from commonplace.learning.consolidate.consolidator import Embedded
from commonplace.learning.extract import phase1
from commonplace.learning.extract.rules import Embedded as Reader
from commonplace.memory import listing
from commonplace.memory.edits import edits as hand
from commonplace.memory.edits import history, manual_edits, notes, removal
from commonplace.memory.edits.forgotten import Forgotten, decision
from commonplace.memory.files import raw_memories
from commonplace.memory.files.raw_memories import Input
from commonplace.memory.listing import Known
from commonplace.memory.workspace import baseline, layout, staging
from commonplace.projects import assignment
from commonplace.protocol.ids import parse_time, wire_time
from commonplace.rollout import decisions
from commonplace.state import entries as mirror
from commonplace.state import jobs, outputs, postings, usage
from commonplace.state.database import Row, Transaction
from commonplace.state.outputs import Output

if TYPE_CHECKING:
    from commonplace.app.book import Book

_QUOTED: Final = re.compile(r'"([^"]{3,})"')
_ENOUGH: Final = 3
"""A text of so many words or more is forgotten itself, not only the entry that it names."""
_DONE: Final = ("succeeded", "unchanged")


class Forgot(msgspec.Struct):
    """What is gone (the JSON of `memory forget`)."""

    removed: list[str]
    files: list[str]
    others: list[listing.Listed] = []
    """What else the text may have meant; it stays."""


class _Plan(msgspec.Struct):
    """What is to be forgotten, and what is left of the sessions that said it."""

    decision: dict[str, Any]
    time: str
    before: set[str]
    """The ids of all entries."""
    meant: list[str]
    others: list[Known]
    outputs: dict[str, Output]
    """By thread, for those that change."""

    def forgotten(self, home: Path) -> Forgotten:
        """Return all that is forgotten once this is."""
        line = msgspec.convert({"time": self.time, "kind": "forget", **self.decision}, decisions.Decision)
        return Forgotten([*decisions.forgotten(home), line])


async def forget(book: Book, text: str, *, dry_run: bool = False) -> Forgot:
    """Forget what a text means: an entry by its id or words, else whatever holds the text.

    Raises:
        BadInput: nothing in memory is meant; nothing was changed.
        WorkspaceError: the memory could not be made anew; what is left to do happens at the next run.
    """
    if not dry_run:
        await anyio.to_thread.run_sync(_adopt, book)
    plan = await _plan(book, text, is_looking=dry_run)
    if dry_run:
        return await _foretell(book, plan)
    root = book.home / layout.FOLDER
    old = await anyio.to_thread.run_sync(_stamps, book.home)
    await anyio.to_thread.run_sync(lambda: decisions.append(book.home, "forget", plan.time, **plan.decision))
    now = int(book.settings.now().timestamp())
    database = await book.database()

    def body(tx: Transaction) -> None:
        for thread_id, left in plan.outputs.items():
            outputs.replace(tx, thread_id, left, now=now)

    await database.write(body)
    status = await _consolidate(book)
    after = {each.entry.id for each in await listing.known(book)}
    removed = sorted({*plan.before, *plan.meant} - after)
    await anyio.to_thread.run_sync(_rewrite_history, book.home)
    await database.write(lambda tx: _forget_rows(tx, str(book.home.resolve()), removed))
    await (await book.index()).retell(book.home)
    await hand.scrub(book)
    if status not in _DONE:
        raise WorkspaceError(
            f"It is not learned again, but the memory in {root} could not be made anew ({status}).",
            hint="Run `commonplace memory run`; it says what is in the way.",
        )
    new = await anyio.to_thread.run_sync(_stamps, book.home)
    files = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
    return Forgot(removed, [str(book.home / path) for path in files], [each.listed() for each in plan.others])


def _forget_rows(tx: Transaction, root: str, removed: list[str]) -> None:
    """Forget how often entries were of use, and where their words are found: the next search makes that anew."""
    for key in removed:
        usage.forget_entry(tx, key)
    postings.clear(tx, root, "memory")


def _adopt(book: Book) -> None:
    """Make notes of what a person changed in the files and no run has seen, so that the decision comes after it."""
    root = book.home / layout.FOLDER
    if not root.is_symlink() and (root / layout.GIT).is_dir():
        staging.recover(root)
        manual_edits.adopt(book.home, root, book.settings.now())
        for change in baseline.status(root):  # what was said there is in notes now, and must not be noted again
            text = baseline.content(root, change.path)
            if change.letter == "M" and text is not None and manual_edits.is_told(change.path):
                staging.put(root / change.path, text)


async def _consolidate(book: Book) -> str:
    """Make the memory anew, after whoever is at it; return how that went."""
    report = run.Report()
    phase = phase2.Phase(book.settings, await book.database(), Embedded(), jobs.this_process(), background=False)
    await run.consolidate_now(phase, report)
    for warning in report.warnings:
        book.warn(warning)
    return report.consolidation.status


# What is meant


async def _plan(book: Book, text: str, *, is_looking: bool) -> _Plan:
    root = book.home / layout.FOLDER
    if root.is_symlink():
        raise WorkspaceError(f"The memory folder {root} is a link.", hint="Replace it by a folder.", path=str(root))
    wanted = " ".join(text.split())
    if not wanted or not (root.exists() or book.has_index()):
        raise _nothing(text)
    if not is_looking or not book.has_index():
        await (await book.index()).refresh(book.home)
        await assignment.settle(book)
    await doctor.restore_learned(book)
    database = await book.database()
    taught = await database.read(outputs.everything)
    found = await listing.known(book)
    told = await anyio.to_thread.run_sync(notes.read, root)
    past = await anyio.to_thread.run_sync(history.read, book.home)
    matches = listing.named(wanted, found) if wanted else []
    if len(matches) > 1 and all(each.entry.id.startswith(wanted.lower()) for each in matches):
        listing.one(wanted, found)  # it says why not
    held = [each for each in matches if wanted.lower() in _all_of(each)]
    chosen = matches[:1] if held or (matches and matches[0].entry.id.startswith(wanted.lower())) else []
    texts = set(_of_entry(chosen[0], taught, past, told)) if chosen else set(_holding(wanted, taught, told, past))
    if not texts and matches:
        chosen, texts = matches[:1], set(_of_entry(matches[0], taught, past, told))
    if not texts:
        raise _nothing(text)
    is_id = bool(chosen) and chosen[0].entry.id.startswith(wanted.lower())
    if not is_id and (not chosen or (len(wanted.split()) >= _ENOUGH and not held[1:])):
        texts.add(wanted)
    plan = _Plan(
        decision(sorted(texts)),
        wire_time(_moment(book, told)),
        {each.entry.id for each in found},
        [each.entry.id for each in chosen],
        [each for each in matches if each not in chosen],
        {},
    )
    plan.outputs = await _read_again(book, plan.forgotten(book.home), taught, plan.meant, found)
    return plan


def _nothing(text: str) -> BadInput:
    return BadInput(f"Nothing in memory is called or says {text!r}.", hint="`commonplace memory list` shows it all.")


def _moment(book: Book, told: list[notes.Note]) -> datetime:
    """Return the time of the decision: not before any note that it is about."""
    newest = max((note.seconds for note in told), default=0)
    return max(book.settings.now(), datetime.fromtimestamp(newest, UTC))


def _all_of(each: Known) -> str:
    return "\n".join(" ".join(text.split()) for text in (each.entry.text, *listing.wordings(each.entry))).lower()


def _of_entry(
    chosen: Known, taught: dict[str, Output], past: list[history.Change], told: list[notes.Note]
) -> Iterator[str]:
    """Yield every wording of an entry: as it is told, as it was said, and as it was told before.

    What it took the place of goes too: nobody who forgets a wish wants the one before it back.
    """
    entry = chosen.entry
    yield from _wordings(entry.text)
    spoken = [source for source in entry.sources if source.note or "by the user" in source.how]
    yield from (source.quote.removesuffix("…").rstrip() for source in spoken)
    places = {(source.thread_id, source.byte_start, source.quote) for source in entry.sources}
    for thread_id in {source.thread_id for source in entry.sources if source.thread_id in taught}:
        for lesson in _lessons(thread_id, taught[thread_id]):
            at = {(source.thread_id, source.byte_start, source.quote) for source in lesson.sources[:1]}
            if (at & places and lesson.kind == entry.kind) or lesson.told == entry.text:
                yield from _wordings(lesson.words)
                yield from _wordings(lesson.told)
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


def _lessons(thread_id: str, found: Output) -> list[lessons.Lesson]:
    source = Input(thread_id, 0, "", "", None, found.raw_memory, found.rollout_summary, found.rollout_slug)
    return lessons.of_input(source, "")


def _holding(
    wanted: str, taught: dict[str, Output], told: list[notes.Note], past: list[history.Change]
) -> Iterator[str]:
    """Yield whatever holds a text: lessons, notes, and what was known before."""
    lower = wanted.lower()
    if not lower:
        return
    for thread_id, found in taught.items():
        for lesson in _lessons(thread_id, found):
            if lower in lesson.text.lower():
                yield from _wordings(lesson.told)
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
    book: Book, forgotten: Forgotten, taught: dict[str, Output], meant: list[str], found: list[Known]
) -> dict[str, Output]:
    """Return what is left of the sessions that said it: read again without it, or cut where that cannot be.

    Forgetting waits for no server and costs nothing, so what a model read is cut.
    """
    rests_on = {source.thread_id for each in found if each.entry.id in meant for source in each.entry.sources}
    said = {key for key, each in taught.items() if key in rests_on or removal.output(each, forgotten) is not each}
    home = str(book.home.resolve())
    rows: list[Row] = await (await book.database()).read(lambda tx: tx.query("threads.current", home=home))
    ledgers = {row["thread_id"]: row for row in rows}
    extractor = Reader() if book.settings["memory.extract_model"] == providers.EMBEDDED else None
    left: dict[str, Output] = {}
    for key in sorted(said):
        row = ledgers.get(key)
        try:
            if row is None or extractor is None:
                raise BadInput("The session cannot be read again.")
            again = await phase1.one(extractor, Path(row["path"]), row["project"], forgotten)
        except (CommonplaceError, OSError):
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


async def _foretell(book: Book, plan: _Plan) -> Forgot:
    """Return what would go: the same work, on a copy that is thrown away."""
    home, now = str(book.home.resolve()), int(book.settings.now().timestamp())
    database = await book.database()
    rows = await database.read(
        lambda tx: outputs.select(
            tx,
            home,
            limit=book.settings["memory.max_raw_memories"],
            max_unused_days=book.settings["memory.max_unused_days"],
            now=now,
        )
    )
    mirrored = await database.read(lambda tx: mirror.mirrored(tx, home))
    left: list[Row] = [
        {**row, **msgspec.structs.asdict(plan.outputs.get(row["thread_id"]) or _output(row))} for row in rows
    ]
    kept = [row for row in left if row["raw_memory"]]
    return await anyio.to_thread.run_sync(_rehearse, book, plan, kept, mirrored)


def _output(row: Row) -> Output:
    return Output(row["raw_memory"], row["rollout_summary"], row["rollout_slug"])


def _rehearse(book: Book, plan: _Plan, rows: list[Row], mirrored: str | None) -> Forgot:
    forgotten = plan.forgotten(book.home)
    old = _stamps(book.home)
    with tempfile.TemporaryDirectory(prefix="commonplace-forget-") as folder:
        home = Path(folder)
        root = home / layout.FOLDER
        if (book.home / layout.FOLDER).is_dir():
            shutil.copytree(book.home / layout.FOLDER, root, symlinks=True)
        for name in (history.FILE, decisions.FILE):
            if (book.home / name).is_file():
                shutil.copy(book.home / name, home / name)
        layout.ensure(root)
        if (root / layout.GIT).is_dir():
            manual_edits.adopt(home, root, book.settings.now())
        removal.workspace(root, forgotten)
        desk = consolidation_input.of_rows(home, root, rows)
        desk.forgotten = forgotten
        desk.is_kept = provenance.is_others(root, mirrored)
        raw_memories.sync(root, desk.inputs)
        held = Embedded().consolidate(desk).entries
        _rewrite_history(home, forgotten)
        new = _stamps(home)
    after = {entry.id for entry in held}
    files = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
    removed = sorted({*plan.before, *plan.meant} - after)
    if removed and history.FILE not in files:
        files.append(history.FILE)
    return Forgot(removed, [str(book.home / path) for path in files], [each.listed() for each in plan.others])


def _rewrite_history(home: Path, forgotten: Forgotten | None = None) -> None:
    """Take what was forgotten out of the history; what a note brought back since stays."""
    known = forgotten or Forgotten.of(home)

    def is_forgotten(text: str, change: history.Change) -> bool:
        when, moment = known.within(text), parse_time(change.time)
        return when is not None and (moment is None or int(moment.timestamp()) <= when)

    history.rewrite(home, is_forgotten)

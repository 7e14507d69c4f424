"""What the memory holds, as people ask for it: a list, one thing by its id or its words, and what it rests on.

Rows mirror the files. Where there are none (no database yet, or none that can be used), the files are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
import msgspec

from commonplace.app.memory import LIMIT
from commonplace.errors import BadInput, CommonplaceError
from commonplace.memory import similarity
from commonplace.memory.edits import notes
from commonplace.memory.entries import GLOBAL, KINDS, Entry, Kind, Source
from commonplace.memory.files import raw_memories
from commonplace.memory.workspace import layout, staging
from commonplace.protocol.ids import wire_second
from commonplace.protocol.rollout import Line
from commonplace.rollout import decisions, reader
from commonplace.state import entries as rows
from commonplace.state.database import Row, Transaction

if TYPE_CHECKING:
    from commonplace.app.book import Book

_GROUP: Final = re.compile(r"^task_group: (.+)$", re.MULTILINE)
_APART: Final = re.compile(r"[`()]+|…")
_WORD: Final = re.compile(r"\w+")
_SOURCES: Final = msgspec.json.Decoder(list[Source])
_ENOUGH: Final = 0.6
_HINT: Final = "`commonplace memory list` shows what there is."


class Listed(msgspec.Struct, kw_only=True):
    """One entry (the JSON of `memory list`)."""

    id: str
    scope: str
    project: str | None
    kind: Kind
    text: str
    support: int
    sources: list[str]
    pinned: bool
    first_seen: str
    last_seen: str
    retrieved: int = 0
    injected: int = 0
    cited: int = 0


class Page(msgspec.Struct):
    """A stretch of the list and where the next one begins."""

    entries: list[Listed]
    next_cursor: str | None


class Link(msgspec.Struct, kw_only=True):
    """One thing that an entry rests on: the words, and where they stand."""

    summary_file: str | None
    thread_id: str | None
    path: str | None
    turn: int | None
    byte_start: int | None
    byte_end: int | None
    quote: str


class Why(msgspec.Struct):
    """What an entry rests on."""

    entry: Listed
    chain: list[Link]
    missing: list[int]
    """The places in the chain whose words are not where they were."""
    others: list[Listed]
    """What else the question may have meant."""


class Known(msgspec.Struct):
    """An entry, and how often it was of use."""

    entry: Entry
    retrieved: int = 0
    injected: int = 0
    cited: int = 0

    def listed(self) -> Listed:
        """Return what a listing shows of it."""
        entry = self.entry
        named = dict.fromkeys(source.note or source.thread_id or "" for source in entry.sources)
        return Listed(
            id=entry.id,
            scope=entry.scope,
            project=None if entry.is_global else entry.scope,
            kind=entry.kind,
            text=entry.text,
            support=entry.support,
            sources=[name for name in named if name],
            pinned=entry.pinned,
            first_seen=wire_second(entry.first_seen_s),
            last_seen=wire_second(entry.last_seen_s),
            retrieved=self.retrieved,
            injected=self.injected,
            cited=self.cited,
        )


async def known(book: Book) -> list[Known]:
    """Return what the memory holds, the most useful first."""
    if book.has_index():
        root = str(book.home.resolve())
        database = await book.database()
        found = await database.read(lambda tx: None if rows.mirrored(tx, root) is None else rows.everything(tx, root))
        if found is not None:
            return [_known(row) for row in found]
    return [Known(entry) for entry in await anyio.to_thread.run_sync(_of_files, book.home)]


def _known(row: Row) -> Known:
    entry = Entry(
        row["entry_id"],
        row["scope"],
        row["kind"],
        row["text"],
        row["support"],
        _SOURCES.decode(row["sources"]),
        row["first_seen_s"],
        row["last_seen_s"],
        bool(row["is_pinned"]),
    )
    return Known(entry, row["retrieved"], row["injected"], row["cited"])


def _of_files(home: Path) -> list[Entry]:
    """Return what the workspace's files make, as the consolidator would."""
    from commonplace.learning.consolidate.consolidator import Desk, entries_of
    from commonplace.memory.edits.forgotten import Forgotten

    root = home / layout.FOLDER
    if not root.is_dir() or root.is_symlink():
        return []
    staging.recover(root)
    taught = raw_memories.read(home)
    groups = {one.thread_id: _GROUP.search(one.raw_memory) for one in taught}
    projects = {key: found[1].strip() for key, found in groups.items() if found}
    forgotten, pinned, owned = Forgotten.of(home), decisions.pins(home), decisions.owned(home)
    return entries_of(Desk(root, taught, projects, notes.read(root), forgotten, pinned, owned))


async def page(
    book: Book, *, project: str | None = None, kind: str | None = None, limit: int = LIMIT, cursor: str | None = None
) -> Page:
    """Return some of what the memory holds.

    Raises:
        BadInput: there is no such kind, no such project, or the cursor is none that an earlier page gave.
    """
    if kind is not None and kind not in KINDS:
        raise BadInput(f"{kind!r} is no kind of entry.", hint=f"Use {', '.join(KINDS)}.")
    if cursor is not None and not cursor.isdecimal():
        raise BadInput(f"{cursor!r} is not a cursor.", hint="Use the next_cursor of an earlier page.")
    if limit < 1:
        raise BadInput("A list needs a limit of 1 or more.", hint="Leave --limit out.")
    found = await known(book)
    scope = await scope_of(book, project, (each.entry.scope for each in found)) if project is not None else None
    first = int(cursor or 0)
    chosen = [
        (place, each)
        for place, each in enumerate(found)
        if place >= first and scope in (None, each.entry.scope) and kind in (None, each.entry.kind)
    ]
    more = str(chosen[limit][0]) if len(chosen) > limit else None
    return Page([each.listed() for _, each in chosen[:limit]], more)


async def scope_of(book: Book, text: str, known_scopes: Iterable[str]) -> str:
    """Return the scope that a text names: an identity, the last part of one, an address, or a folder.

    Raises:
        BadInput: it names none, or several.
    """
    from commonplace.projects.identity import identify
    from commonplace.protocol.remotes import remote_identity

    current: list[Row] = []
    if book.has_index():
        home = str(book.home.resolve())
        current = await (await book.database()).read(lambda tx: tx.query("threads.current", home=home))
    scopes = sorted({*known_scopes, *(row["project"] for row in current), GLOBAL} - {""})
    wanted = text.strip().rstrip("/").lower()
    same = [scope for scope in scopes if scope.lower() == wanted]
    short = [scope for scope in scopes if scope.lower().rstrip("/").rpartition("/")[2] == wanted]
    if same or len(short) == 1:
        return (same or short)[0]
    if len(short) > 1:
        raise BadInput(f"{text!r} names {len(short)} projects: {', '.join(short)}.", hint="Give the whole identity.")
    place = Path(text).expanduser()
    if place.is_dir() or text.startswith(("/", "~", ".")):
        folder = place.absolute()
        identity = await anyio.to_thread.run_sync(identify, folder)
        noted = next((row["project"] for row in current if row["cwd"] == str(folder)), None)
        return identity or noted or str(folder.resolve())
    identity = remote_identity(text) or (wanted if wanted.count("/") >= 2 else None)
    if identity is None:
        names = ", ".join(scope for scope in scopes if scope != GLOBAL)
        raise BadInput(f"No project is called {text!r}.", hint=f"Known are: {names}." if names else _HINT)
    return identity


def named(text: str, found: list[Known]) -> list[Known]:
    """Return the entries that a text names, the best first: by id, by its words, else by what it is about."""
    wanted = " ".join(text.split())
    same = [each for each in found if each.entry.id == wanted.lower()]
    if same or not wanted:
        return same
    begun = [each for each in found if len(wanted) > 1 and each.entry.id.startswith(wanted.lower())]
    if begun:
        return begun
    held = [each for each in found if _holds(each.entry, wanted.lower())]
    if held:
        return sorted(held, key=lambda each: _distance(each.entry, wanted))
    about = similarity.words(wanted)
    near = [(score, -place) for place, each in enumerate(found) if (score := _nearness(each.entry, about)) >= _ENOUGH]
    return [found[-place] for _, place in sorted(near, reverse=True)]


def _holds(entry: Entry, wanted: str) -> bool:
    return any(wanted in " ".join(text.split()).lower() for text in (entry.text, *wordings(entry)))


def wordings(entry: Entry) -> list[str]:
    """Return the words that taught an entry."""
    return list(dict.fromkeys(source.quote for source in entry.sources))


def _distance(entry: Entry, wanted: str) -> tuple[bool, int]:
    flat = " ".join(entry.text.split())
    return (wanted.lower() not in flat.lower(), abs(len(flat) - len(wanted)))


def _nearness(entry: Entry, about: similarity.Words) -> float:
    best = 0.0
    for text in (entry.text, *wordings(entry)):
        own = similarity.words(text)
        shared, least = len(own.about & about.about), min(len(own.about), len(about.about))
        if similarity.is_same(own, about):
            best = max(best, 0.7 + 0.3 * shared / max(1, least))
        elif shared > 1:
            best = max(best, shared / least)
    return best


def one(text: str, found: list[Known]) -> tuple[Known, list[Known]]:
    """Return the entry that a text names, and the others that it may mean.

    Raises:
        BadInput: it names none, or is the beginning of several ids.
    """
    matches = named(text, found)
    if not matches:
        raise BadInput(f"Nothing in memory is called or says {text!r}.", hint=_HINT)
    begins = text.strip().lower()
    if len(matches) > 1 and all(each.entry.id.startswith(begins) for each in matches):
        ids = ", ".join(each.entry.id for each in matches[:5])
        raise BadInput(f"{text!r} is the beginning of {len(matches)} ids: {ids}.", hint="Give more of the id.")
    return matches[0], matches[1:]


async def why(book: Book, text: str) -> Why:
    """Return what an entry rests on, and whether the words are still where they were.

    Raises:
        BadInput: nothing in memory is meant.
    """
    chosen, others = one(text, await known(book))
    taught = await anyio.to_thread.run_sync(raw_memories.read, book.home)
    by_thread = {each.thread_id: each for each in taught}
    names = raw_memories.stems(taught)
    paths = await _paths(book, {source.thread_id for source in chosen.entry.sources if source.thread_id})
    chain: list[Link] = []
    for source in chosen.entry.sources:
        thread = source.thread_id or ""
        known_path = paths.get(thread) or (by_thread[thread].rollout_path if thread in by_thread else None)
        file = f"{layout.SUMMARIES}/{names[thread]}.md" if thread in names else None
        chain.append(
            Link(
                summary_file=None if source.note else file,
                thread_id=None if source.note else source.thread_id,
                path=str(book.home / layout.FOLDER / source.note) if source.note else known_path,
                turn=source.turn,
                byte_start=source.byte_start,
                byte_end=source.byte_end,
                quote=source.quote,
            )
        )
    missing = await anyio.to_thread.run_sync(lambda: [place for place, link in enumerate(chain) if not _stands(link)])
    return Why(chosen.listed(), chain, missing, [each.listed() for each in others])


async def _paths(book: Book, threads: set[str]) -> dict[str, str]:
    """Return the ledgers of threads, as far as the index knows them."""
    if not book.has_index() or not threads:
        return {}
    home = str(book.home.resolve())

    def body(tx: Transaction) -> dict[str, str]:
        found = {key: tx.query("threads.by_id", home=home, thread_id=key) for key in sorted(threads)}
        return {key: lines[0]["path"] for key, lines in found.items() if lines}

    return await (await book.database()).read(body)


def _stands(link: Link) -> bool:
    """Say whether a quotation is where it was: in the bytes of a ledger, or in a note."""
    from commonplace.redact import redact

    words = _flat(link.quote).removesuffix("…").rstrip()
    if link.thread_id is None:
        try:
            text = Path(link.path or "").read_bytes().decode("utf-8", "replace")
        except OSError:
            return False
        return words in _flat(redact(text))
    if link.path is None or link.byte_start is None:
        return False
    try:
        line = next(iter(reader.forward(Path(link.path), start=link.byte_start)), None)
    except (CommonplaceError, OSError):
        return False
    if not isinstance(line, Line) or line.offset != link.byte_start:
        return False
    told = _flat(redact("\n".join(_strings(msgspec.json.decode(line.payload)))))
    if words in told or words.partition(" -> ")[0] in told or _only_words(words) in _only_words(told):
        return True
    # Of a change to a file, the quotation names the file and what was written into it.
    parts = [part.strip() for part in _APART.split(words)]
    return len(parts) > 1 and all(part in told for part in parts)


def _strings(value: Any) -> Iterable[str]:
    """Yield every text in a JSON value; arguments of calls are JSON within a text."""
    if isinstance(value, str):
        yield value
        if value.startswith(("{", "[")):
            try:
                yield from _strings(msgspec.json.decode(value))
            except (msgspec.DecodeError, RecursionError):
                return
    elif isinstance(value, dict):
        for each in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _strings(each)


def _only_words(text: str) -> str:
    """Return a text without its marks: what was said in a list is quoted without its bullets."""
    return f" {' '.join(_WORD.findall(text))} "


def _flat(text: str) -> str:
    return " ".join(text.split())

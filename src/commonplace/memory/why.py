"""Why an entry is believed: the chain from it to the summary, thread, turn, bytes and words that it rests on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import msgspec

from commonplace.errors import CommonplaceError
from commonplace.memory.files import raw_memories
from commonplace.memory.listing import Listed, listed_entry, single_entry
from commonplace.memory.store import MemoryStore
from commonplace.memory.workspace import layout
from commonplace.protocol.rollout import Line
from commonplace.redact import redact
from commonplace.rollout import reader
from commonplace.state.database import Transaction
from commonplace.state.home import Home

_APART: Final = re.compile(r"[`()]+|…")
_WORD: Final = re.compile(r"\w+")


class Link(msgspec.Struct, kw_only=True):
    """One source of an entry: the words, and where they stand."""

    summary_file: str | None
    thread_id: str | None
    path: str | None
    turn: int | None
    byte_start: int | None
    byte_end: int | None
    quote: str


class Why(msgspec.Struct):
    """The sources of an entry."""

    entry: Listed
    chain: list[Link]
    missing: list[int]
    """The places in the chain whose words are not where they were."""
    others: list[Listed]
    """What else the question may have meant."""


async def why(store: MemoryStore, text: str) -> Why:
    """Return what an entry rests on, and whether the words are still where they were.

    Raises:
        BadInput: nothing in memory is meant.
    """
    chosen, others = single_entry(text, await store.known_entries())
    taught = await anyio.to_thread.run_sync(raw_memories.read, store.home.path)
    by_thread = {each.thread_id: each for each in taught}
    names = raw_memories.stems(taught)
    paths = await _paths(store.home, {source.thread_id for source in chosen.entry.sources if source.thread_id})
    chain: list[Link] = []
    for source in chosen.entry.sources:
        thread = source.thread_id or ""
        known_path = paths.get(thread) or (by_thread[thread].rollout_path if thread in by_thread else None)
        file = f"{layout.SUMMARIES}/{names[thread]}.md" if thread in names else None
        chain.append(
            Link(
                summary_file=None if source.note else file,
                thread_id=None if source.note else source.thread_id,
                path=str(store.home.path / layout.FOLDER / source.note) if source.note else known_path,
                turn=source.turn,
                byte_start=source.byte_start,
                byte_end=source.byte_end,
                quote=source.quote,
            )
        )
    missing = await anyio.to_thread.run_sync(lambda: [place for place, link in enumerate(chain) if not _stands(link)])
    return Why(listed_entry(chosen), chain, missing, [listed_entry(each) for each in others])


async def _paths(home: Home, threads: set[str]) -> dict[str, str]:
    """Return the ledgers of threads, as far as the index knows them."""
    if not home.has_index() or not threads:
        return {}
    root = home.key

    def body(tx: Transaction) -> dict[str, str]:
        found = {key: tx.query("threads.by_id", home=root, thread_id=key) for key in sorted(threads)}
        return {key: lines[0]["path"] for key, lines in found.items() if lines}

    return await (await home.database()).read(body)


def _stands(link: Link) -> bool:
    """Say whether a quotation is where it was: in the bytes of a ledger, or in a note."""
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

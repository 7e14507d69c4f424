"""Why an entry is believed: the chain from it to the summary, thread, turn, bytes and words that it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import msgspec
from msgspec import UNSET

from commonplace.errors import CommonplaceError
from commonplace.memory import evidence
from commonplace.memory.evidence import Link
from commonplace.memory.listing import Listed, known_titles, listed_entry, single_entry
from commonplace.memory.store import MemoryStore
from commonplace.patterns import regex
from commonplace.protocol.rollout import Line
from commonplace.redact import redact
from commonplace.rollout import reader

_APART: Final = regex(r"[`()]+|…")
_WORD: Final = regex(r"\w+")


class Why(msgspec.Struct):
    """The sources of an entry."""

    entry: Listed
    chain: list[Link]
    missing: list[int]
    """The places in the chain whose words are not where they were."""
    others: list[Listed]
    """What else the question may have meant."""


async def why(store: MemoryStore, text: str) -> Why:
    """Return what an entry or a candidate rests on, and whether the words are still where they were.

    Raises:
        BadInput: nothing in memory is meant.
    """
    entries, candidates = await store.known_entries(), await store.candidates()
    chosen, others = single_entry(text, entries, candidates)
    (chain,) = await evidence.chains(store, [chosen.entry])
    missing = await anyio.to_thread.run_sync(
        lambda: [place for place, link in enumerate(chain) if link.host is UNSET and not _stands(link)]
    )
    titles = await known_titles(store)
    return Why(listed_entry(chosen, titles), chain, missing, [listed_entry(each, titles) for each in others])


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

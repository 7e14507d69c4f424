"""Citations: the hidden receipt at the end of an answer that names the memories it used.

    <oai-mem-citation>
    <citation_entries>
    MEMORY.md:12-15|note=[why it helped]
    </citation_entries>
    <rollout_ids>
    01a1dddc-5c08-7863-8c91-eb8a612fb6a1
    </rollout_ids>
    </oai-mem-citation>

Tags are literal, do not nest, and a block that is cut off by the end of the text counts. What cannot be parsed is
passed over: a model wrote it.
"""

from __future__ import annotations

import re
import uuid
from typing import Final

import msgspec

OPEN: Final = "<oai-mem-citation>"
CLOSE: Final = "</oai-mem-citation>"
_MAX_LINE: Final = 2**32 - 1
_NUMBER: Final = re.compile(r"\+?0*([0-9]{1,10})")


class Entry(msgspec.Struct, frozen=True, rename="camel"):
    """A stretch of a memory file that an answer used."""

    path: str
    line_start: int
    line_end: int
    note: str


class Citation(msgspec.Struct, frozen=True, rename="camel"):
    """What an answer used."""

    entries: list[Entry]
    rollout_ids: list[str]


def strip(text: str) -> tuple[str, list[str]]:
    """Return what a person sees of an answer, and the bodies of its citation blocks."""
    visible: list[str] = []
    bodies: list[str] = []
    rest = text
    while True:
        before, opened, rest = rest.partition(OPEN)
        visible.append(before)
        if not opened:
            return "".join(visible), bodies
        body, _, rest = rest.partition(CLOSE)
        bodies.append(body)


def parse(bodies: list[str]) -> Citation | None:
    """Return what the bodies of citation blocks name; None if that is nothing."""
    entries: list[Entry] = []
    named: dict[str, None] = {}
    for body in bodies:
        lines = (_section(body, "citation_entries") or "").splitlines()
        entries.extend(entry for line in lines if (entry := _entry(line)) is not None)
        listed = _section(body, "rollout_ids")
        if listed is None:
            listed = _section(body, "thread_ids")  # what it was called before
        named.update(dict.fromkeys(line.strip() for line in (listed or "").splitlines() if line.strip()))
    return Citation(entries, list(named)) if entries or named else None


def cited_threads(text: str) -> list[str]:
    """Return the threads that an answer's citations name, each once."""
    if OPEN not in text:
        return []
    found = parse(strip(text)[1])
    threads = (_thread(name) for name in (found.rollout_ids if found else ()))
    return list(dict.fromkeys(thread for thread in threads if thread is not None))


def _thread(name: str) -> str | None:
    try:
        return str(uuid.UUID(name))
    except ValueError:
        return None


def _section(body: str, tag: str) -> str | None:
    _, opened, rest = body.partition(f"<{tag}>")
    inside, closed, _ = rest.partition(f"</{tag}>")
    return inside if opened and closed else None


def _entry(line: str) -> Entry | None:
    location, marked, note = line.strip().rpartition("|note=[")
    if not marked or not note.endswith("]"):
        return None
    path, colon, lines = location.rpartition(":")
    first, dash, last = lines.partition("-")
    start, end = _line_number(first), _line_number(last)
    if not colon or not dash or start is None or end is None:
        return None
    return Entry(path.strip(), start, end, note[:-1].strip())


def _line_number(text: str) -> int | None:
    found = _NUMBER.fullmatch(text.strip())
    value = int(found[1]) if found else None
    return value if value is not None and value <= _MAX_LINE else None

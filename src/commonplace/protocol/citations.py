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
passed over: a model wrote it. A person sees the answer without the block, while it streams and when it is finished; the
ledger keeps the block in the item, and beside it an event with what was seen and what was cited.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from commonplace.patterns import regex
from commonplace.protocol.hidden_tags import HiddenTags, Tag

OPEN: Final = "<oai-mem-citation>"
CLOSE: Final = "</oai-mem-citation>"
TAG: Final = Tag("citation", OPEN, CLOSE)
_MAX_LINE: Final = 2**32 - 1
_NUMBER: Final = regex(r"\+?(?>(?:0(?!\Z))*)([0-9]{1,10})")
_HYPHENATED: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_UUID: Final = regex(
    rf"(?:urn:uuid:)?({_HYPHENATED})|\{{({_HYPHENATED})\}}|([0-9a-f]{{32}})|\{{([0-9a-f]{{32}})\}}", re.ASCII
)


class CitedEntry(msgspec.Struct, frozen=True, rename="camel"):
    """A stretch of a memory file that an answer used."""

    path: str
    line_start: int
    line_end: int
    note: str


class Citation(msgspec.Struct, frozen=True, rename="camel"):
    """What an answer used."""

    entries: list[CitedEntry]
    rollout_ids: list[str]


class FinishedAnswer(msgspec.Struct, frozen=True):
    """A finished answer: what a person sees, and what it used."""

    visible: str
    citation: Citation | None


class CitationStripper:
    """Takes citation blocks out of one answer while it streams."""

    def __init__(self) -> None:
        self._tags = HiddenTags([TAG])

    @property
    def bodies(self) -> list[str]:
        """What stood in the blocks that have ended so far."""
        return [body.text for body in self._tags.found]

    def push(self, chunk: str) -> str:
        """Take the next piece; return what of the answer can be shown now."""
        return self._tags.push(chunk)

    def finish(self) -> str:
        """End the answer; return what was held back and turned out to be text."""
        return self._tags.finish()


class AnswerStreams:
    """The answers of one response while they stream, each told apart by its item's id.

    A text that came with the item's announcement is the beginning of its stream: what was held back of it is shown with
    a later piece, once.
    """

    def __init__(self) -> None:
        self._open: dict[str, CitationStripper] = {}

    def added(self, item_id: str, text: str) -> str:
        """Take an item that was announced, with the beginning of its text; return what can be shown of it."""
        return self.delta(item_id, text)

    def delta(self, item_id: str, text: str) -> str:
        """Take more of an item's text; return what can be shown now. An empty text is not worth an event."""
        return self._open.setdefault(item_id, CitationStripper()).push(text)

    def done(self, item_id: str) -> str:
        """Take the end of an item; return what is left to be shown of it."""
        stripper = self._open.pop(item_id, None)
        return stripper.finish() if stripper is not None else ""

    def flush(self) -> dict[str, str]:
        """Take the end of the response; return what is left to be shown of each item, if anything is."""
        rest = {item_id: self.done(item_id) for item_id in list(self._open)}
        return {item_id: text for item_id, text in rest.items() if text}


def strip(text: str) -> tuple[str, list[str]]:
    """Return what a person sees of an answer, and the bodies of its citation blocks."""
    if OPEN not in text:
        return text, []
    stripper = CitationStripper()
    visible = stripper.push(text) + stripper.finish()
    return visible, stripper.bodies


def finished(text: str) -> FinishedAnswer:
    """Return what a person sees of a finished answer (all its text parts together) and what it used."""
    visible, bodies = strip(text)
    return FinishedAnswer(visible, parse(bodies))


def parse(bodies: list[str]) -> Citation | None:
    """Return what the bodies of citation blocks name; None if that is nothing."""
    entries: list[CitedEntry] = []
    named: dict[str, None] = {}
    for body in bodies:
        lines = (_section(body, "citation_entries") or "").split("\n")
        entries.extend(entry for line in lines if (entry := _entry(line)) is not None)
        listed = _section(body, "rollout_ids")
        if listed is None:
            listed = _section(body, "thread_ids")  # what it was called before
        named.update(dict.fromkeys(line.strip() for line in (listed or "").split("\n") if line.strip()))
    return Citation(entries, list(named)) if entries or named else None


def cited_threads(text: str) -> list[str]:
    """Return the threads that an answer's citations name, each once."""
    if OPEN not in text:
        return []
    found = parse(strip(text)[1])
    threads = (thread_of(name) for name in (found.rollout_ids if found else ()))
    return list(dict.fromkeys(thread for thread in threads if thread is not None))


def thread_of(name: str) -> str | None:
    """Return the id that a name spells, in any of the ways to write a UUID; None if it is none."""
    found = _UUID.fullmatch(name.strip().lower())
    if found is None:
        return None
    plain = next(group for group in found.groups() if group).replace("-", "")
    return "-".join((plain[:8], plain[8:12], plain[12:16], plain[16:20], plain[20:]))


def _section(body: str, tag: str) -> str | None:
    _, opened, rest = body.partition(f"<{tag}>")
    inside, closed, _ = rest.partition(f"</{tag}>")
    return inside if opened and closed else None


def _entry(line: str) -> CitedEntry | None:
    location, marked, note = line.strip().rpartition("|note=[")
    if not marked or not note.endswith("]"):
        return None
    path, colon, lines = location.rpartition(":")
    first, dash, last = lines.partition("-")
    start, end = _line_number(first), _line_number(last)
    if not colon or not dash or start is None or end is None:
        return None
    return CitedEntry(path.strip(), start, end, note[:-1].strip())


def _line_number(text: str) -> int | None:
    found = _NUMBER.fullmatch(text.strip())
    value = int(found[1]) if found else None
    return value if value is not None and value <= _MAX_LINE else None

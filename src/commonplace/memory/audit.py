"""Findings about a memory: six kinds, and the checks that need the files alone.

    duplicates   two entries that say the same
    stale        an entry that names a path that is gone, or a command that no longer resolves
    unused       an entry that nobody asked for since it was learned, and that is old
    secrets      a credential in a file (where it stands and of which kind, never what it is)
    unsourced    an entry or a line that rests on nothing
    loops        something that was learned from what memory itself told

An audit reports; it changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from commonplace.memory.entries import Entry
from commonplace.memory.files import handbook
from commonplace.memory.recall.receipts import WorkspaceFiles, lesson_words, read
from commonplace.memory.workspace import layout
from commonplace.patterns import regex
from commonplace.protocol.citations import OPEN
from commonplace.protocol.memory_traces import SECTION_OPENING, is_memory_text
from commonplace.redact import find, redact

CLOSING: Final = "</commonplace_memory>"
_MARK: Final = regex(handbook.MARK)
_POINTER: Final = "- Related skill: "
_SHOWN_CHARS: Final = 160
"""How many characters of a text a finding shows."""


class Finding(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One problem of the memory."""

    id: str | None
    """The entry; None where a line belongs to none."""
    problem: str
    text: str = ""
    """What the entry or the line says, without secrets."""
    file: str | None = None
    line: int | None = None
    other: str | None = None
    """The entry that says the same."""
    name: str | None = None
    """The path or the command that is gone."""
    kind: str | None = None
    """Of a secret."""
    last_seen: str | None = None


class Audit(msgspec.Struct):
    """The problems of a memory (the JSON of `memory audit`)."""

    duplicates: list[Finding] = []
    stale: list[Finding] = []
    unused: list[Finding] = []
    secrets: list[Finding] = []
    unsourced: list[Finding] = []
    loops: list[Finding] = []


def files(root: Path) -> list[str]:
    """Return the files of a workspace, without hidden ones and links, in their order."""
    found: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        below = Path(folder).relative_to(root)
        found += [(below / name).as_posix() for name in names if not name.startswith(".")]
    return sorted(found)


def shown_text(text: str) -> str:
    """Return a text as a finding may show it: short, and without secrets."""
    flat = " ".join(redact(text).split())
    return flat if len(flat) <= _SHOWN_CHARS else flat[: _SHOWN_CHARS - 1] + "…"


def secrets(shelf: WorkspaceFiles, paths: Iterable[str]) -> Iterator[Finding]:
    """Yield the credentials in files: where each stands and of which kind it is."""
    by_line = shelf.lessons()
    for path in paths:
        text = read(shelf.root, path)
        for each in find(text) if text else ():
            line = text.count("\n", 0, each.start) + 1 if text else 0
            ids = by_line.get(line, []) if path == layout.MEMORY else []
            yield Finding(
                id=ids[0] if ids else None,
                problem=f"a secret of kind {each.kind}",
                file=path,
                line=line,
                kind=each.kind,
            )


def unsourced_entries(entries: Iterable[Entry], is_there: Iterable[str]) -> Iterator[Finding]:
    """Yield the entries that rest on no session and on no existing note."""
    there = set(is_there)
    for entry in entries:
        named = [source for source in entry.sources if source.thread_id or source.note]
        if not named:
            yield Finding(
                id=entry.id, problem="no session and no note is named as its source", text=shown_text(entry.text)
            )
        elif all(source.note and source.note not in there for source in named):
            yield Finding(
                id=entry.id,
                problem="the note that it rests on is gone",
                text=shown_text(entry.text),
                file=named[0].note,
            )


def unsourced_lines(shelf: WorkspaceFiles, *, has_entries: bool) -> Iterator[Finding]:
    """Yield the lessons of `MEMORY.md` that are no entry; where there are no entries, those that name no task."""
    known = shelf.lessons()
    for block in handbook.parse(shelf.text(layout.MEMORY) or "")[0]:
        sources = any(task.parts.get(handbook.FILES) or task.parts.get(handbook.RESOURCES) for task in block.tasks)
        for line in (line for section in block.lessons.values() for line in section):
            if not line.text.startswith("- ") or line.text.startswith(_POINTER) or line.number in known:
                continue
            if has_entries or not (sources and _MARK.search(line.text)):
                problem = "no entry stands behind this line" if has_entries else "this line names no source"
                yield Finding(
                    id=None,
                    problem=problem,
                    text=shown_text(lesson_words(line.text)),
                    file=layout.MEMORY,
                    line=line.number,
                )


def looping_files(shelf: WorkspaceFiles, paths: Iterable[str]) -> Iterator[Finding]:
    """Yield notes and summaries that repeat what memory told, or that cite themselves."""
    for path in paths:
        if not path.startswith((f"{layout.SUMMARIES}/", f"{layout.NOTES}/")):
            continue
        text = read(shelf.root, path) or ""
        if SECTION_OPENING in text or is_memory_text(text):
            yield Finding(id=None, problem="it holds a section that memory put into a prompt", file=path)
        elif f"{path}:" in text and (OPEN in text or "|note=[" in text):
            yield Finding(id=None, problem="it cites itself", file=path)


def is_recalled(quote: str, text: str) -> bool:
    """Say whether words occur in a text only inside memory sections."""
    if SECTION_OPENING in text:
        outside = "\n".join(_outside(text))
        return _flat(quote) in _flat(text) and _flat(quote) not in _flat(outside)
    return is_memory_text(text) and _flat(quote) in _flat(text)


def _outside(text: str) -> Iterator[str]:
    """Yield what of a text stands outside of sections; one without an end goes on to the end."""
    place = 0
    while (start := text.find(SECTION_OPENING, place)) >= 0:
        yield text[place:start]
        end = text.find(CLOSING, start)
        if end < 0:
            return
        place = end + len(CLOSING)
    yield text[place:]


def _flat(text: str) -> str:
    return " ".join(text.split()).removesuffix("…").rstrip()

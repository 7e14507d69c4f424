"""What of the memory is searched: each entry, and each line of the summaries of single sessions.

An entry is found by its own words and by those that taught it. Of a summary, the head is left out, and so are the
references at its end, which say again what the lines above them say.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from commonplace.memory.entries import Entry
from commonplace.memory.workspace import layout
from commonplace.patterns import regex
from commonplace.search.rank.build import Passage
from commonplace.search.rank.segment import Document

__all__ = ["ENTRY", "SUMMARY", "Document", "digest", "lines", "of_entry", "of_summary", "summaries", "thread_of"]

ENTRY: Final = "entry"
SUMMARY: Final = "summary"
_THREAD: Final = regex(r"\Athread_id: (\S+)$", re.MULTILINE)
_REFERENCES: Final = regex(r"^#*[ \t]*References:?[ \t\r]*$", re.MULTILINE | re.IGNORECASE)
_MAX_BYTES: Final = 4 * 2**20
"""How much of a summary is indexed."""
_QUOTED: Final = 1_000
"""How many characters of an entry's quotations are indexed."""
_LABEL: Final = 2
"""Lines of no more words only say what stands below them."""


def of_entry(entry: Entry) -> list[Passage]:
    """Return the one passage of an entry."""
    quotes = dict.fromkeys(source.quote for source in entry.sources)
    other = " ".join(quote for quote in quotes if quote not in entry.text)[:_QUOTED]
    return [Passage(entry.text, 0, also=other, seconds=entry.last_seen_s)]


def digest(*texts: str) -> int:
    """Return a number that changes with the texts."""
    return int.from_bytes(hashlib.blake2b("\0".join(texts).encode("utf-8", "replace"), digest_size=7).digest(), "big")


def summaries(root: Path) -> Iterator[tuple[str, Path, int, int]]:
    """Yield the summaries of single sessions: path below the workspace, file, size and time."""
    folder = root / layout.SUMMARIES
    if not folder.is_dir() or folder.is_symlink():
        return
    for place in sorted(folder.iterdir()):
        if place.suffix == ".md" and not place.name.startswith(".") and place.is_file() and not place.is_symlink():
            status = place.stat()
            yield f"{layout.SUMMARIES}/{place.name}", place, status.st_size, status.st_mtime_ns


def of_summary(place: Path) -> Iterator[Passage]:
    """Yield the lines of a summary; each is known by its number."""
    for number, text in lines(place).items():
        yield Passage(text, number)


def lines(place: Path) -> dict[int, str]:
    """Return the lines of a summary that say something, by their numbers."""
    with place.open("rb") as file:
        text = file.read(_MAX_BYTES).decode("utf-8", "replace")
    head = text.find("\n\n") if _THREAD.match(text) else -1
    end = found.start() if (found := _REFERENCES.search(text, max(head, 0))) else len(text)
    said: dict[int, str] = {}
    begin = 0
    for number, line in enumerate(text.split("\n"), 1):
        if head < begin < end and len(line.split()) > _LABEL and not line.rstrip().endswith(":"):
            said[number] = line.strip()
        begin += len(line) + 1
    return said


def thread_of(place: Path) -> str:
    """Return the thread that a summary is of; nothing if it does not say."""
    try:
        with place.open("rb") as file:
            found = _THREAD.match(file.read(200).decode("utf-8", "replace"))
    except OSError:
        return ""
    return found[1] if found else ""

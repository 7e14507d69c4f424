"""People's decisions about a memory, as lines that every home which shares it has in its `decisions.jsonl`.

What is decided about entries and projects is shared. What is decided about this host (where sessions are, which
commands may run, which agents may read, the mode of a session) stays here.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from commonplace.memory.workspace.staging import put
from commonplace.rollout import decisions, journal

_SHARED: Final = frozenset({"forget", "pin", "own", "review", "merge", "split"})


class _Head(msgspec.Struct):
    time: str
    kind: str


_head: Final = msgspec.json.Decoder(_Head)


def shared_lines(home: Path) -> list[str]:
    """Return the lines of a home that others need, oldest first."""
    return [line for line in _lines(home) if _is_shared(line)]


def take(home: Path, lines: Iterable[str]) -> list[str]:
    """Add the lines that a home does not have, in the order of their times; return them.

    The newest decision about a thing counts, so lines from elsewhere cannot simply be appended. Whatever else stands in
    the database (which commands may run, say), no other decision is taken from there.
    """
    with journal.changing(home, decisions.FILE):
        own = _lines(home)
        known = set(own)
        new = sorted({line for line in lines if line not in known and _is_shared(line)})
        if new:
            timed: list[tuple[str, str]] = []
            last = ""
            for line in own:  # what nobody understands stays behind the line that it followed
                head = _of(line)
                last = max(last, head.time) if head is not None else last
                timed.append((last, line))
            timed += [(head.time, line) for line in new if (head := _of(line)) is not None]
            timed.sort(key=lambda pair: pair[0])
            put(home / decisions.FILE, "".join(f"{line}\n" for _, line in timed))
    return new


def is_about_words(line: str) -> bool:
    """Say whether a line forgets something."""
    head = _of(line)
    return head is not None and head.kind == "forget"


def _is_shared(line: str) -> bool:
    head = _of(line)
    return head is not None and head.kind in _SHARED and "\n" not in line


def _lines(home: Path) -> list[str]:
    try:
        data = (home / decisions.FILE).read_bytes()
    except FileNotFoundError:
        return []
    return [line for line in data.decode("utf-8", "surrogateescape").split("\n") if line]


def _of(line: str) -> _Head | None:
    try:
        return _head.decode(line.encode())
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return None

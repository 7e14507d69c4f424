"""What a person decided and no text can rebuild: `decisions.jsonl`, append-only; rows mirror it.

One line per decision: `{"time", "kind", …}`. Kinds so far: `mode {thread_id, memory_mode}`, `refer {path}` (sessions
there are listed and learned from where they are), `tombstone {thread_id}` (a session of another agent that was deleted
here and must not come back), `forget {salt, hashes, words, sizes}` (what may not be learned again, without its text),
`pin {entry_id, is_pinned}`, `own {path}` (a file of the memory that a person made theirs), `allow {path, words}` (which
commands may run in a project, by their first words), `review {entry_id, entry_kind, verdict}` (a person kept or dropped
an entry, or left it open again), `agree {provider}` (a person's own agent may read their sessions), `merge {projects}`
(two projects are one, and the first gives the name), `split {path}` (a folder is a project of its own, with everything
below it), `migrated {path}` (an older memory of this home was taken over). The newest decision about a thing counts;
lines that nobody understands are kept and passed over.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.rollout import journal

FILE: Final = "decisions.jsonl"


class DecisionLine(msgspec.Struct):
    """One line."""

    time: str
    kind: str
    thread_id: str | None = None
    memory_mode: str | None = None
    path: str | None = None
    entry_id: str | None = None
    is_pinned: bool | None = None
    entry_kind: str | None = None
    verdict: str | None = None
    salt: str | None = None
    hashes: list[str] = []
    words: list[list[str]] = []
    sizes: list[int] = []
    projects: list[str] = []
    provider: str | None = None


class Review(msgspec.Struct, frozen=True):
    """A person's decision about an entry."""

    is_kept: bool
    entry_kind: str


_decision = msgspec.json.Decoder(DecisionLine)


def append(home: Path, kind: str, time: str, **fields: Any) -> None:
    """Note a decision, durably."""
    journal.append(home, FILE, msgspec.json.encode({"time": time, "kind": kind, **fields}))


def read(home: Path) -> list[DecisionLine]:
    """Return every decision that this program understands, oldest first."""
    try:
        lines = (home / FILE).read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    found: list[DecisionLine] = []
    for raw in lines:
        try:
            found.append(_decision.decode(raw))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return found


def modes(home: Path) -> dict[str, str]:
    """Return what memory may do with each thread that somebody decided about."""
    return {
        line.thread_id: line.memory_mode
        for line in read(home)
        if line.kind == "mode" and line.thread_id and line.memory_mode in ("enabled", "disabled")
    }


def enabled_since(home: Path) -> dict[str, str]:
    """Return since when memory may use the threads that somebody allowed it to use."""
    decided = {line.thread_id: line for line in read(home) if line.kind == "mode" and line.thread_id}
    return {key: line.time for key, line in decided.items() if line.memory_mode == "enabled"}


def referred_paths(home: Path) -> list[Path]:
    """Return the places whose sessions are listed where they are."""
    return list(dict.fromkeys(Path(line.path) for line in read(home) if line.kind == "refer" and line.path))


def tombstones(home: Path) -> set[str]:
    """Return the threads of other agents that were deleted here."""
    return {line.thread_id for line in read(home) if line.kind == "tombstone" and line.thread_id}


def allowed_commands(home: Path, folder: str) -> list[tuple[str, ...]]:
    """Return the commands that a person allowed in a folder: the path of a program, then words that follow it."""
    lines = [line for line in read(home) if line.kind == "allow" and line.path == folder]
    return list(dict.fromkeys(tuple(words) for line in lines for words in line.words if words))


def pins(home: Path) -> set[str]:
    """Return the entries that a person asked to keep."""
    decided = {line.entry_id: line.is_pinned for line in read(home) if line.kind == "pin" and line.entry_id}
    return {name for name, is_pinned in decided.items() if is_pinned}


def reviews(home: Path) -> dict[str, Review]:
    """Return what a person decided about single entries, by their ids."""
    found: dict[str, Review] = {}
    for line in read(home):
        if line.kind == "review" and line.entry_id and line.verdict in ("keep", "drop"):
            found[line.entry_id] = Review(line.verdict == "keep", line.entry_kind or "")
        elif line.kind == "review" and line.entry_id and line.verdict == "open":
            found.pop(line.entry_id, None)
    return found


def agreed_providers(home: Path) -> set[str]:
    """Return the agents of a person that may read their sessions."""
    return {line.provider for line in read(home) if line.kind == "agree" and line.provider}


def migrated(home: Path) -> set[str]:
    """Return the folders whose memories were taken over by themselves."""
    return {line.path for line in read(home) if line.kind == "migrated" and line.path is not None}


def owned_files(home: Path) -> set[str]:
    """Return the files of the memory that a person made theirs."""
    return {line.path for line in read(home) if line.kind == "own" and line.path}


def forgotten(home: Path) -> list[DecisionLine]:
    """Return what may not be learned again."""
    return [line for line in read(home) if line.kind == "forget" and line.salt]


def project_merges(home: Path) -> list[tuple[str, str]]:
    """Return the pairs of projects that are one, oldest first; a later split of one of them ends that."""
    return _project_decisions(home)[0]


def project_splits(home: Path) -> list[str]:
    """Return the folders that are projects of their own, oldest first; a later merge of one ends that."""
    return _project_decisions(home)[1]


def _project_decisions(home: Path) -> tuple[list[tuple[str, str]], list[str]]:
    merges: list[tuple[str, str]] = []
    splits: list[str] = []
    for line in read(home):
        if line.kind == "merge" and len(line.projects) == 2:
            kept, other = line.projects
            splits = [path for path in splits if path not in (kept, other)]
            merges = [*(pair for pair in merges if set(pair) != {kept, other}), (kept, other)]
        elif line.kind == "split" and line.path:
            merges = [pair for pair in merges if line.path not in pair]
            splits = [*(path for path in splits if path != line.path), line.path]
    return merges, splits

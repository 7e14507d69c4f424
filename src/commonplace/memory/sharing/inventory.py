"""What a home has of its memory: files by the hashes of their contents, and what it last had in common with the others.

The files of the workspace are of two kinds. *Rewritten* ones are made by each consolidation: of two states the newer
one counts. *Inputs* are what people wrote (notes, resources, skills that they took over, direct edits): they are merged
file by file, with the state that the home last had in common with the others (`shared.json`) as the base.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

import msgspec

from commonplace.memory.edits import history, manual_edits
from commonplace.memory.workspace import baseline, layout
from commonplace.memory.workspace.staging import put
from commonplace.projects import people
from commonplace.projects.people import Person
from commonplace.state.shared_memory import SharedFile, Version

FILE: Final = "shared.json"
PEOPLE: Final = "memory_people.json"
"""Whose the sessions and notes are that the memory rests on, for a host that cannot reach the database."""
ACCEPTED: Final = ".accepted"
"""Stands for what the baseline says of the published state; it is no file."""
INSIDE: Final = f"{layout.FOLDER}/"
BESIDE: Final = (history.FILE, PEOPLE)
"""Files of the home, beside the workspace, that are published with it."""


class CommonState(msgspec.Struct):
    """What a home last had in common with the others (`shared.json`)."""

    root: str = ""
    version: Version = Version()
    files: dict[str, str] = {}
    """The hash of each file, by its path below the home."""
    authors: dict[str, str] = {}
    """Who wrote each note, as JSON, by the note's path below the workspace."""


class FileContent(msgspec.Struct, frozen=True):
    """What a file holds."""

    data: bytes
    mtime_ns: int = 0
    is_program: bool = False

    @property
    def sha256(self) -> str:
        """The hash of it."""
        return digest(self.data)


def digest(data: bytes) -> str:
    """Return the name of a content."""
    return hashlib.sha256(data).hexdigest()


def read_state(home: Path, root: str) -> CommonState:
    """Return what a home last had in common with the others of a root; nothing if it never had."""
    try:
        found = msgspec.json.decode((home / FILE).read_bytes(), type=CommonState)
    except (FileNotFoundError, msgspec.MsgspecError):
        return CommonState(root)
    return found if found.root == root else CommonState(root)


def write_state(home: Path, state: CommonState) -> None:
    """Keep what a home has in common with the others."""
    put(home / FILE, msgspec.json.encode(state))


def read_people(home: Path) -> dict[str, Person]:
    """Return whose the sessions and notes of a shared memory are; nothing for a memory of one home."""
    try:
        return msgspec.json.decode((home / PEOPLE).read_bytes(), type=dict[str, Person])
    except (FileNotFoundError, msgspec.MsgspecError):
        return {}


def write_people(home: Path, known: Mapping[str, Person]) -> None:
    """Keep whose the sessions and notes of the memory are."""
    put(home / PEOPLE, msgspec.json.encode(dict(sorted(known.items()))))


def is_place(path: str) -> bool:
    """Say whether a published path is one that a home may be given: inside the workspace, or a file beside it.

    Who can write to the database must not be able to write elsewhere on every host.
    """
    parts = path.split("/")
    is_plain = not any(part in ("", ".", "..", layout.GIT) or "\\" in part or "\0" in part for part in parts)
    is_plain = is_plain and path.isprintable()  # a name that is no text cannot be stored
    return path in (*BESIDE, ACCEPTED) or (is_plain and len(parts) > 1 and path.startswith(INSIDE))


def authors(files: Collection[SharedFile]) -> dict[str, Person]:
    """Return who wrote the published notes, by their paths below the workspace."""
    found = {file.path.removeprefix(INSIDE): people.decode(file.person) for file in files}
    return {path: person for path, person in found.items() if person is not None}


def is_input(owned: Collection[str]) -> Callable[[str], bool]:
    """Return the function that says whether a file, by its path below the home, is an input."""

    def check(path: str) -> bool:
        if not path.startswith(INSIDE):
            return False
        inner = path.removeprefix(INSIDE)
        is_made = inner.startswith(f"{layout.SKILLS}/") and inner not in owned
        return not (manual_edits.is_rewritten(inner) or is_made)

    return check


def working_files(root: Path) -> dict[str, FileContent]:
    """Return the files of a workspace as they are now, by their paths below the home."""
    return {
        INSIDE + path: FileContent(data, _time(root / path), is_program)
        for path, is_program, data in baseline.working_files(root)
        if is_place(INSIDE + path)
    }


def accepted_files(root: Path) -> dict[str, FileContent]:
    """Return the files of a workspace as they were accepted last, and what its baseline says."""
    found = {
        INSIDE + path: FileContent(data, _time(root / path), is_program)
        for path, is_program, data in baseline.accepted_files(root)
        if is_place(INSIDE + path)
    }
    return {**found, ACCEPTED: FileContent((baseline.message(root) or "").encode())}


def files_beside(home: Path) -> dict[str, FileContent]:
    """Return what is published of the home beside the workspace."""
    return {
        name: FileContent((home / name).read_bytes(), _time(home / name)) for name in BESIDE if (home / name).is_file()
    }


def _time(place: Path) -> int:
    try:
        return place.stat().st_mtime_ns
    except OSError:
        return 0

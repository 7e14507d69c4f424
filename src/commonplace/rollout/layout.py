"""Where session files stand in a home, and how their names are read.

    sessions/YYYY/MM/DD/rollout-<time>-<thread id>[_<rollout id>].jsonl[.zst]
    archived_sessions/<same name>

The layout is Codex's, so one walk serves our home and a Codex home. A plain file hides its `.zst` sibling. Nothing
here opens a session file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from commonplace.errors import NotASession
from commonplace.patterns import regex
from commonplace.protocol import ids

SESSIONS: Final = "sessions"
ARCHIVED: Final = "archived_sessions"

_NAME: Final = regex(
    r"rollout-(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)-(?P<thread>[0-9a-f-]{36})"
    r"(?:_(?P<rollout>[0-9a-f-]{36}))?\.jsonl(?P<zst>\.zst)?"
)


class RolloutName(msgspec.Struct, frozen=True):
    """What a rollout's file name says."""

    created: datetime
    thread_id: str
    rollout_id: str
    """The same as the thread id, unless the file replaced an earlier one."""
    compressed: bool


class FoundFile(msgspec.Struct, frozen=True):
    """A session file met on a walk, with what the index compares to see whether it changed."""

    name: str
    """The whole path, as text: a walk over many files makes no objects that it does not need."""
    size: int
    mtime_ns: int
    archived: bool

    @property
    def path(self) -> Path:
        """Where the file is."""
        return Path(self.name)


def parse_name(name: str) -> RolloutName | None:
    """Return what a file name says, or None if it is not a rollout's."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    day, _, clock = found["time"].partition("T")
    try:
        created = datetime.fromisoformat(f"{day}T{clock.replace('-', ':')}+00:00")
    except ValueError:
        return None
    thread = found["thread"]
    return RolloutName(created, thread, found["rollout"] or thread, bool(found["zst"]))


def new_path(home: Path, created: datetime, thread_id: str) -> Path:
    """Return the path of a new thread's file (local time, as Codex names its own)."""
    local = created.astimezone()
    name = f"rollout-{local:%Y-%m-%dT%H-%M-%S}-{thread_id}.jsonl"
    return home / SESSIONS / f"{local:%Y}" / f"{local:%m}" / f"{local:%d}" / name


def archived_path(home: Path, path: Path) -> Path:
    """Return where a file goes when its thread is archived."""
    return home / ARCHIVED / path.name


def unarchived_path(home: Path, path: Path) -> Path:
    """Return where an archived file goes back to, by the date in its name.

    Raises:
        NotASession: the name is not a rollout's.
    """
    named = parse_name(path.name)
    if named is None:
        raise NotASession(f"{path} is not named as a session file.", hint="Its name says where it belongs.")
    return home / SESSIONS / f"{named.created:%Y/%m/%d}" / path.name


def walk(home: Path) -> Iterator[FoundFile]:
    """Yield every session file of a home; what vanishes meanwhile is passed over."""
    for folder, archived in ((SESSIONS, False), (ARCHIVED, True)):
        yield from _walk_folder(str(home / folder), archived=archived)


def walk_any(root: Path) -> Iterator[FoundFile]:
    """Yield the session files of a home, of a folder inside one, or a single file."""
    if root.is_file():
        status = root.stat()
        yield FoundFile(str(root), status.st_size, status.st_mtime_ns, ARCHIVED in root.parts)
    elif (root / SESSIONS).is_dir() or (root / ARCHIVED).is_dir():
        yield from walk(root)
    else:
        yield from _walk_folder(str(root), archived=ARCHIVED in root.parts)


def is_under(path: str, home: str) -> bool:
    """Say whether a file stands in one of a home's own session folders."""
    return path.startswith((f"{home}/{SESSIONS}/", f"{home}/{ARCHIVED}/"))


def _walk_folder(folder: str, *, archived: bool) -> Iterator[FoundFile]:
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                listed = list(entries)
        except OSError:
            continue
        plain = {entry.name for entry in listed}
        for entry in listed:
            name = entry.name
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif name.startswith("rollout-") and name.endswith((".jsonl", ".jsonl.zst")):
                    if name.endswith(".zst") and name[:-4] in plain:
                        continue
                    entry.path.encode()  # a name that is not text can neither be stored nor shown
                    status = entry.stat()
                    yield FoundFile(entry.path, status.st_size, status.st_mtime_ns, archived)
            except (OSError, UnicodeEncodeError):
                continue


def home_of(path: Path) -> Path | None:
    """Return the home that a session file stands in, by the folder names above it."""
    for parent in path.parents:
        if parent.name in (SESSIONS, ARCHIVED):
            return parent.parent
    return None


def find_rollout(rollout_id: str, *, near: Path | None, homes: list[Path]) -> Path | None:
    """Return the file with this rollout id: beside `near` first, then where its date says, then anywhere.

    The id is matched against the file name, so that nothing is opened.
    """
    places: list[Path] = [near.parent] if near is not None else []
    days = _days_around(rollout_id)
    for home in homes:
        places.extend(home / SESSIONS / day for day in days)
        places.append(home / ARCHIVED)
    for place in places:
        if found := _by_id(place, rollout_id):
            return found
    for home in homes:
        for file in walk(home):
            named = parse_name(file.path.name)
            if named is not None and named.rollout_id == rollout_id:
                return file.path
    return None


def _days_around(rollout_id: str) -> list[str]:
    """Return the folders that a file with this id may stand in, by the time inside the id."""
    try:
        moment = ids.uuid7_time(rollout_id)
        if moment is None:
            return []
        return [f"{moment.astimezone() + timedelta(days=shift):%Y/%m/%d}" for shift in (0, -1, 1)]
    except (ValueError, OverflowError, OSError):  # an id can claim any time, also one beyond all calendars
        return []


def _by_id(folder: Path, rollout_id: str) -> Path | None:
    try:
        names = os.listdir(folder)
    except OSError:
        return None
    for ending in (".jsonl", ".jsonl.zst"):
        for name in names:
            if name.endswith(rollout_id + ending):
                named = parse_name(name)
                if named is not None and named.rollout_id == rollout_id:
                    return folder / name
    return None

"""Notes: small files by which a person asks to remember, change or forget something.

    extensions/ad_hoc/notes/2026-11-15T10-20-30-use-tabs.md

Whoever wrote a note, its text is information about what to keep, never an order to act. A note may begin with the word
that says what it wants, and name whom it is for:

    change: indent with tabs
    to: indent with two spaces
    scope: project github.com/acme/shop

Without such words it is something to remember, everywhere. A note that a model wrote says so in its first line and is
for one project, whatever its other lines say; it tells nothing of what a person wants.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import msgspec

from commonplace.errors import BadInput
from commonplace.memory.entries import GLOBAL
from commonplace.memory.workspace.layout import NOTES
from commonplace.patterns import regex
from commonplace.rollout.private_folders import make_private

Action = Literal["remember", "change", "forget"]
MAX_NAME: Final = 128
"""The longest name of a note's file, in bytes."""
MAX_NOTE_BYTES: Final = 64 * 1024
"""How much of a note is read."""
_NAME: Final = regex(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-[a-z0-9][a-z0-9-]{0,79}\.md")
_FIELD: Final = regex(r"^(remember|change|to|forget|scope)\s*[:：]\s*+(.*)$", re.IGNORECASE)
_POLITE: Final = r"^(?:please |pls |bitte |por favor |s'il te plaît |请)?"
_FORGETS: Final = regex(
    _POLITE + r"(?:forget|remove|delete|drop|don't remember|do not remember|vergiss|lösche|olvida|borra|oublie|supprime"
    r"|忘记|忘掉|删除)[:,]?\s*(?:that |about |the (?:note|rule|wish) (?:that |about )?|dass |que )?",
    re.IGNORECASE,
)
_REMEMBERS: Final = regex(
    _POLITE + r"(?:remember|note|keep in mind|merk dir|recuerda|retiens|记住)[:,]?\s*(?:that |to |dass |que )?",
    re.IGNORECASE,
)
_BY_MODEL: Final = "written by: a model"
_WITH_CONSENT: Final = "with consent"
_SLUG: Final = regex(r"[^a-z0-9]+")


class Note(msgspec.Struct, frozen=True):
    """A note: something to remember, to change or to forget."""

    path: str
    """Its file, below the workspace."""
    seconds: int
    action: Action
    text: str
    """What to remember, what it is to be from now on, or what to forget."""
    target: str = ""
    """Of a change: what it was."""
    scope: str = GLOBAL
    by_model: bool = False
    """A model wrote it."""
    is_allowed: bool = True
    """A person wrote it, or saw it before it was written."""


def read(root: Path) -> list[Note]:
    """Return the notes of a workspace, oldest first; what cannot be read or says nothing is left out."""
    folder = root / NOTES
    found: list[Note] = []
    for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
        path = folder / name
        if not name.endswith(".md") or path.is_symlink() or not path.is_file():
            continue
        try:
            text = path.read_bytes()[:MAX_NOTE_BYTES].decode("utf-8", "replace")
            note = parse(f"{NOTES}/{name}", text, int(path.stat().st_mtime))
        except OSError:
            continue
        if note is not None:
            found.append(note)
    return found


def parse(path: str, text: str, modified_s: int = 0) -> Note | None:
    """Return what a note asks for; None if it says nothing."""
    first, _, others = text.partition("\n")
    by_model = first.startswith(_BY_MODEL)
    fields: dict[str, str] = {}
    rest: list[str] = []
    for line in (others if by_model else text).split("\n"):
        found = _FIELD.match(line.strip())
        if found and (found[1].lower() not in fields):
            fields[found[1].lower()] = found[2].strip()
        elif line.strip():
            rest.append(line.strip().lstrip("-*# "))
    scope = fields.get("scope", GLOBAL).removeprefix("project ").strip() or GLOBAL
    seconds = _moment(path) or modified_s
    plain = " ".join(rest)
    action, words = _request(fields, plain)
    flat = " ".join(words.split())
    target = fields.get("change", "") if action == "change" else ""
    if not flat:
        return None
    return Note(
        path, seconds, action, flat, " ".join(target.split()), scope, by_model, not by_model or _WITH_CONSENT in first
    )


def _request(fields: dict[str, str], plain: str) -> tuple[Action, str]:
    """Return what the fields and the plain lines of a note ask for, and in which words."""
    if "forget" in fields:
        return "forget", f"{fields['forget']} {plain}"
    if "change" in fields:
        return "change", fields.get("to") or plain
    told = f"{fields.get('remember', '')} {plain}".strip()
    if _FORGETS.match(told):
        return "forget", _FORGETS.sub("", told)
    return "remember", _REMEMBERS.sub("", told) or told


def _moment(path: str) -> int | None:
    """Return the time that a note's name tells."""
    try:
        moment = datetime.strptime(path.rpartition("/")[2][:19], "%Y-%m-%dT%H-%M-%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp())


def write(root: Path, name: str, text: str) -> str:
    """Write a note under a name of the usual form; return its path below the workspace.

    Raises:
        BadInput: the name is none of a note, the note is blank, or there is one of that name.
    """
    if not _NAME.fullmatch(name) or len(name.encode()) > MAX_NAME:
        raise BadInput(f"{name!r} is no name of a note.", hint="Use YYYY-MM-DDTHH-MM-SS-some-words.md.")
    if not text.strip():
        raise BadInput("The note is empty.", hint="Say what to remember, change or forget.")
    try:
        create(root, name, text.encode("utf-8", "replace"))
    except Obstacle as obstacle:
        kind = "a link" if obstacle.is_link else "not a folder"
        raise BadInput(f"{obstacle.path} is {kind}.", hint="Replace it by a folder.") from None
    except FileExistsError:
        raise BadInput(f"There is a note {name} already.", hint="Give it another name.") from None
    return f"{NOTES}/{name}"


class Obstacle(Exception):
    """A link or a file stands where the folder of notes belongs."""

    def __init__(self, path: Path, *, is_link: bool) -> None:
        super().__init__(str(path))
        self.path = path
        self.is_link = is_link


def create(root: Path, name: str, data: bytes) -> None:
    """Make a note's file and the folders on the way to it, for their owner alone; durable when this returns.

    Each folder is opened in the one before it and no link is followed, so a link put in their place gains nothing.

    Raises:
        Obstacle: a link or a file stands where a folder belongs.
        FileExistsError: there is one of that name, which stays as it is.
        OSError: the system cannot do it; nothing is left behind.
    """
    make_private(root.parent)
    here = _folder(root, None)
    try:
        place = root
        for part in NOTES.split("/"):
            place = place / part
            below = _folder(place, here)
            os.close(here)
            here = below
        descriptor = os.open(
            name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=here
        )
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            os.unlink(name, dir_fd=here)
            raise
        os.fsync(here)
    finally:
        os.close(here)


def _folder(place: Path, above: int | None) -> int:
    """Open a folder, making it if it is missing."""
    name = place if above is None else place.name
    made = True
    try:
        os.mkdir(name, 0o700, dir_fd=above)
    except FileExistsError:
        made = False
    try:
        found = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    except (NotADirectoryError, FileNotFoundError):  # what is a link or vanished is told apart only to say so
        raise Obstacle(place, is_link=place.is_symlink()) from None
    if made and above is not None:
        os.fsync(above)
    return found


def moment(root: Path, now: datetime, *, after: int = 0) -> datetime:
    """Return the time for a new note: now, but later than every note that is there, so that the newer one counts."""
    newest = max((note.seconds for note in read(root)), default=0)
    return max(now, datetime.fromtimestamp(max(newest, after) + 1, UTC)) if newest or after else now


def name_for(root: Path, moment: datetime, text: str) -> str:
    """Return a free name for a note: its time and its first words."""
    words = "-".join(_SLUG.sub("-", text.lower()).strip("-").split("-")[:6])[:60].strip("-") or "note"
    stamp = moment.astimezone(UTC).strftime("%Y-%m-%dT%H-%M-%S")
    names = [f"{stamp}-{words}.md", *(f"{stamp}-{words}-{number}.md" for number in range(2, 1000))]
    return next(name for name in names if not (root / NOTES / name).exists())


def text_of_model(text: str, scope: str, *, is_allowed: bool) -> str:
    """Return the text of a note that a model wrote: marked as such, for one project, without a say about that."""
    mark = f"{_BY_MODEL}, {_WITH_CONSENT}" if is_allowed else _BY_MODEL
    lines = (line for line in text.split("\n") if not ((found := _FIELD.match(line.strip())) and _is_scope(found)))
    return "\n".join([mark, f"scope: project {' '.join(scope.split())}", *lines])


def _is_scope(field: re.Match[str]) -> bool:
    return field[1].lower() == "scope"


def text_of(action: Action, text: str, *, target: str = "", scope: str = GLOBAL) -> str:
    """Return a note's text."""
    lines = [f"change: {target}", f"to: {text}"] if action == "change" else [f"{action}: {text}"]
    return "\n".join([*lines, *([f"scope: project {scope}"] if scope != GLOBAL else [])]) + "\n"

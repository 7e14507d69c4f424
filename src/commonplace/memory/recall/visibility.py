"""Which parts of the memory one project may see: its own, those for all projects, and those that name no project.

    MEMORY.md               blocks that say `scope: project X`
    memory_summary.md       sections under a project's name, with everything below them
    raw_memories.md         the blocks of single sessions
    rollout_summaries/      one session each, so a whole file
    skills/<name>/          for the project that its SKILL.md names, the whole folder
    extensions/ad_hoc/notes/    notes that say `scope: project X`

Lines of other projects become blank, so that numbers of lines hold. Who owns a session is what its raw memory says in
`task_group`, if that is a project's name, else what its working directory belongs to. Whatever cannot be understood has
no scope. Codex writes free text after `scope:`; only `project` and a name that looks like one count. The list of
changes for a consolidation holds everybody's lines mixed, so no project sees any of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Final

import msgspec

from commonplace.memory.edits import notes
from commonplace.memory.entries import GLOBAL
from commonplace.memory.files import handbook, skills
from commonplace.memory.workspace.layout import DIFF, MEMORY, NOTES, RAW, SKILLS, SUMMARIES, SUMMARY
from commonplace.patterns import regex

NOBODY: Final = "\0"
"""The owner of what no project may see."""
_THREAD: Final = regex(r"^## Thread `([^`\n]+)`", re.MULTILINE)
_FIELD: Final = regex(r"^(thread_id|task_group|cwd|rollout_summary_file): (.*?)\r?$", re.MULTILINE)
_SCOPE: Final = regex(r"^[ \t]*(?:[-*] )?scope:[ \t]*project[ \t](.*)$", re.IGNORECASE)
_HEADING: Final = regex(r"^(#{1,6}) (.+)$")
_COMMIT: Final = regex(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DRIVE: Final = regex(r"[A-Za-z]:[\\/]")
_SOURCE: Final = regex(rf"^- {SUMMARIES}/(\S++)(?:.*?\bcwd=([^,;)]+))?")
_EVERYBODY: Final = "every project"


def _unknown(cwd: str) -> str | None:
    del cwd
    return None


class Visibility(msgspec.Struct, frozen=True):
    """What a reader may see."""

    scope: str | None = None
    """The identity of a project; None shows everything."""
    project_of: Callable[[str], str | None] = _unknown
    """The project that a working directory belongs to, if that is known."""
    is_allowed: bool = False
    """A person sees each note before it is written."""

    def shows(self, owner: str | None) -> bool:
        """Say whether something with that owner may be seen."""
        return self.scope is None or owner in (None, "", GLOBAL, self.scope)


class SessionOwners(msgspec.Struct, frozen=True):
    """The projects of sessions, as `raw_memories.md` names them."""

    by_thread: dict[str, str] = {}
    by_file: dict[str, str] = {}
    """By the name of the summary's file."""


class OwnershipFiles:
    """The files that tell the project of another file; each is read when it is first needed."""

    def __init__(self, read: Callable[[str], str | None], sessions: SessionOwners | None = None) -> None:
        self._read = read
        self._skills: dict[str, str | None] = {}
        self._given = sessions

    @cached_property
    def sessions(self) -> SessionOwners:
        """Whose sessions are whose."""
        return self._given if self._given is not None else sessions(self._read(RAW) or "")

    @cached_property
    def _memory(self) -> str:
        return self._read(MEMORY) or ""

    @cached_property
    def titles(self) -> Mapping[str, str]:
        """The projects that blocks of `MEMORY.md` are for, by the blocks' titles in lower case."""
        found: dict[str, str] = {}
        for block in handbook.parse(self._memory)[0]:
            owner = _of_block(block)
            if owner:
                found[block.title.lower()] = owner
        return found

    def skill(self, folder: str) -> str | None:
        """Return the project that a skill is for."""
        if folder not in self._skills:
            path = f"{SKILLS}/{folder}/{skills.FILE}"
            text = self._read(path)
            told = skills.of_text(path, text).scope if text is not None else None
            told = told if told and (is_identity(told) or told == GLOBAL) else self._pointed(path)
            self._skills[folder] = told
        return self._skills[folder]

    def _pointed(self, path: str) -> str | None:
        """Return the project of a block of `MEMORY.md` that points to a file."""
        lines = zip(self._memory.split("\n"), _of_memory(self._memory), strict=True)
        return next((owner for line, owner in lines if owner and path in line), None)

    def text(self, path: str) -> str | None:
        """Return the text of a file."""
        return self._read(path)


def is_identity(name: str) -> bool:
    """Say whether a name can be a project's: a remote's, a commit or a path; not words of a sentence."""
    first = name.split(maxsplit=1)[0] if name.strip() else ""
    return "/" in first or bool(_DRIVE.match(first)) or bool(_COMMIT.fullmatch(name.strip()))


def sessions(raw: str) -> SessionOwners:
    """Return whose sessions are whose by a text of `raw_memories.md`; those that do not say are left out."""
    found = SessionOwners({}, {})
    marks = [*_THREAD.finditer(raw)]
    for place, mark in enumerate(marks):
        end = marks[place + 1].start() if place + 1 < len(marks) else len(raw)
        fields = _fields(raw, mark.end(), end)
        told = _task_group(fields)
        if told:
            found.by_thread[_meaning(mark[1])] = told
            found.by_file[fields.get("rollout_summary_file", "")] = told
    return found


def owner(view: Visibility, path: str, text: str | None, beside: OwnershipFiles) -> str | None:
    """Return the project that a whole file or folder is for; None if it is for all, for several, or does not say.

    Without its text, a file is looked up, and read only if nothing else tells.
    """
    parts = path.split("/")
    top = parts[0].lower()
    if path.lower() == DIFF:
        return NOBODY
    if top == SKILLS and len(parts) > 1:
        return beside.skill(parts[1])
    if top == SUMMARIES and len(parts) > 1:
        known = beside.sessions.by_file.get("/".join(parts[1:])) if text is None else None
        return known or _of_summary(view, text if text is not None else beside.text(path) or "", beside)
    if path.lower().startswith(f"{NOTES}/") and path.lower().endswith(".md"):
        told = text if text is not None else beside.text(path)
        note = notes.parse(path, told) if told else None
        return note.scope if note is not None and is_identity(note.scope) else None
    return None


def visible_lines(view: Visibility, path: str, text: str, beside: OwnershipFiles) -> list[bool] | None:
    """Say of each line of a file whether it may be seen; None if all may. Lines end with `\\n` alone."""
    if view.scope is None:
        return None
    if not view.shows(owner(view, path, text, beside)):
        return [False] * (text.count("\n") + 1)
    named = path.lower()  # some file systems do not tell cases apart
    if named == MEMORY.lower():
        owners = _of_handbook(view, text, beside)
    elif named == SUMMARY:
        owners = _of_digest(view, text, beside)
    elif named == RAW:
        owners = _of_raw(view, text, beside)
    else:
        return None
    shown = [view.shows(each) for each in owners]
    return None if all(shown) else shown


def visible_text(view: Visibility, path: str, text: str, beside: OwnershipFiles) -> str:
    """Return a file's text with the lines of other projects blank."""
    shown = visible_lines(view, path, text, beside)
    if shown is None:
        return text
    return "\n".join(line if shows else "" for line, shows in zip(text.split("\n"), shown, strict=True))


def _of_memory(text: str) -> Iterator[str | None]:
    owners = {block.first: _of_block(block) for block in handbook.parse(text.removeprefix("\ufeff"))[0]}
    current: str | None = None
    for number in range(1, text.count("\n") + 2):
        current = owners.get(number, current)
        yield current


def _of_handbook(view: Visibility, text: str, beside: OwnershipFiles) -> Iterator[str | None]:
    """Yield the owner of each line of `MEMORY.md`.

    What holds everywhere may rest on sessions of several projects. Its lessons are for all; the lines that name a
    session are for that session's project, and a task's title and keywords for nobody who may not see all of them.
    """
    mixed: dict[int, str] = {}
    for block in handbook.parse(text.removeprefix("\ufeff"))[0]:
        if block.scope != GLOBAL:
            continue
        for task in block.tasks:
            owners = {line.number: _of_source(view, line.text, beside) for line in task.parts.get(handbook.FILES, [])}
            hidden = {number: owner for number, owner in owners.items() if owner and not view.shows(owner)}
            mixed |= hidden
            if hidden:
                mixed |= {line.number: NOBODY for line in task.parts.get(handbook.KEYWORDS, [])}
                mixed[task.first] = NOBODY
    for number, owner in enumerate(_of_memory(text), 1):
        yield mixed.get(number, owner)


def _of_source(view: Visibility, line: str, beside: OwnershipFiles) -> str | None:
    """Return the project of the session that a line of sources names."""
    named = _SOURCE.match(line)
    if named is None:
        return None
    known = beside.sessions.by_file.get(named[1])
    return known or (view.project_of(named[2]) or named[2] if named[2] else None)


def _of_block(block: handbook.HandbookBlock) -> str | None:
    """Return a block's project; None if it is for all or does not say."""
    said = next((found for line in block.head if (found := _SCOPE.match(line.text))), None)
    named = said[1].strip() if said else ""
    return named if is_identity(named) else None


def _of_digest(view: Visibility, text: str, beside: OwnershipFiles) -> Iterator[str | None]:
    """Yield the owner of each line of `memory_summary.md`: a heading's, until one that stands as high or higher."""
    current: str | None = None
    level = 0
    for line in text.split("\n"):
        heading = _HEADING.match(line)
        if heading and (len(heading[1]) <= level or current is None):
            current, level = _of_heading(view, heading[2].strip(), beside), len(heading[1])
        yield current


def _of_heading(view: Visibility, title: str, beside: OwnershipFiles) -> str | None:
    named = title.removeprefix("project ").removeprefix("cwd=").strip("` ")
    if named.lower() == _EVERYBODY:
        return None
    if named.lower() in beside.titles:
        return beside.titles[named.lower()]
    if named.startswith(("/", "~")) or _DRIVE.match(named):
        return view.project_of(named) or named
    return named if " " not in named and ("/" in named or _COMMIT.fullmatch(named)) else None


def _of_raw(view: Visibility, text: str, beside: OwnershipFiles) -> Iterator[str | None]:
    marks = [*_THREAD.finditer(text)]
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    starts = {mark.start(): (mark, end) for mark, end in zip(marks, ends, strict=True)}
    current: str | None = None
    place = 0
    for line in text.split("\n"):
        if place in starts:
            mark, end = starts[place]
            current = _of_session(view, _meaning(mark[1]), _fields(text, mark.end(), end), beside)
        yield current
        place += len(line) + 1


def _of_summary(view: Visibility, text: str, beside: OwnershipFiles) -> str | None:
    head = text.replace("\r\n", "\n").partition("\n\n")[0]
    fields = _fields(head, 0, len(head))
    return _of_session(view, _meaning(fields.get("thread_id", "")), fields, beside)


def _of_session(view: Visibility, thread_id: str, fields: Mapping[str, str], beside: OwnershipFiles) -> str | None:
    known = beside.sessions.by_thread.get(thread_id) or _task_group(fields)
    cwd = _meaning(fields.get("cwd", ""))
    return known or (view.project_of(cwd) or cwd if cwd else None)


def _task_group(fields: Mapping[str, str]) -> str | None:
    """Return the project that a session names; models write words of their own there, which name none."""
    told = fields.get("task_group", "").strip()
    host, _, rest = told.partition("/")
    is_remote = " " not in told and bool(rest) and ("." in host or "/" in rest)
    return told if is_remote or told.startswith("/") or _DRIVE.match(told) or _COMMIT.fullmatch(told) else None


def _fields(text: str, start: int, end: int) -> dict[str, str]:
    """Return the fields of a stretch of text, each as it is told first; looks no further than it must."""
    found: dict[str, str] = {}
    for field in _FIELD.finditer(text, start, end):
        found.setdefault(field[1], field[2])
        if "task_group" in found:
            break
    return found


def _meaning(written: str) -> str:
    """Return a value as it was before it was written on one line."""
    if not written.startswith('"'):
        return written
    try:
        return msgspec.json.decode(written, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return written

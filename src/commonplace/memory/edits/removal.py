"""Removing forgotten texts from extractions and from the files of the workspace.

A bullet that says something forgotten is removed as a whole, with the references that only it names; so are names,
keywords and file names that contain its words. An extraction without bullets teaches nothing. Notes that say it are
removed, too, unless they are newer than the decision: that is how a person brings a text back.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from commonplace.memory import lessons
from commonplace.memory.edits import notes
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.edits.notes import Note
from commonplace.memory.entries import normal
from commonplace.memory.files import lesson_text
from commonplace.memory.workspace import layout
from commonplace.memory.workspace.staging import put
from commonplace.patterns import regex
from commonplace.state import outputs
from commonplace.state.database import Row
from commonplace.state.outputs import Output

_REFERENCE: Final = regex(r"^- \[(\d+)\] turn ")
_NUMBER: Final = regex(r"\[(\d+)\]")
_NUMBERS: Final = regex(r"(?:(?<!\s)\s+)?(?:\[\d{1,9}\]){1,99}\s*$")
_QUOTED: Final = regex(r'"([^"]+)"')
_TAKEAWAY: Final = " Best takeaway: "
_SECTION: Final = regex(
    r"^(?:Preference signals:|Reusable knowledge:|Failures and how to do differently:|References:?|Key steps:)$"
)
_NAMED: Final = regex(r"^(task: |#{1,3} Task \d+: |# |description: )(.*)$")
_KEYWORDS: Final = "keywords: "
_UNNAMED: Final = "session"
_FEW: Final = 3
"""A name that is the beginning of something forgotten is recognised by so many words."""
_WRITTEN: Final = (layout.MEMORY, layout.SUMMARY, layout.RAW)


def output(found: Output, forgotten: Forgotten) -> Output:
    """Return an extraction without what was forgotten; the same object if nothing of it was."""
    parts = (found.raw_memory, found.rollout_summary, (found.rollout_slug or "").replace("_", " "), found.lessons or "")
    whole = "\n".join(parts)
    if not forgotten or found.is_empty or not forgotten.may_hold(whole):
        return found
    if found.lessons is not None and (left := _lessons(found.lessons, forgotten)) is not None:
        return left
    cut = _BulletRemover(forgotten)
    raw, summary = cut.text(found.raw_memory), cut.text(found.rollout_summary)
    raw, summary = cut.names(raw), cut.names(summary)
    if not any(line.startswith("- ") and not _REFERENCE.match(line) for line in raw.split("\n")):
        return Output("", "")
    slug = found.rollout_slug if found.rollout_slug and not cut.is_told_by(found.rollout_slug) else None
    cleaned = Output(raw, summary, slug)
    return found if cleaned == found else cleaned


def _lessons(stored: str, forgotten: Forgotten) -> Output | None:
    """Return lessons without what was forgotten, rendered anew; None if their text still holds some of it."""
    session = lessons.decode(stored)
    cut = _BulletRemover(forgotten)
    tasks = [
        msgspec.structs.replace(
            task,
            lessons=tuple(each for each in task.lessons if not cut.takes(each.text)),
            steps=tuple(step for step in task.steps if not cut.takes(f"`{step}`")),
        )
        for task in session.tasks
    ]
    for task in tasks:
        for lesson in task.lessons:
            cut.keep(lesson.text)
    session = msgspec.structs.replace(
        session,
        tasks=tuple(msgspec.structs.replace(task, name=cut.name(task.name)) for task in tasks),
        keywords=tuple(word for word in session.keywords if not cut.is_only_theirs(word)),
        title=forgotten.without_forgotten(session.title),
        refused=tuple(each for each in session.refused if not cut.takes(f'{each.text} "{each.quote}"')),
        sentences=(),
        runs=_without(session.runs, cut),
        slug=None if session.slug and cut.is_told_by(session.slug) else session.slug,
    )
    left = lesson_text.output(session)
    text = f"{left.raw_memory}\n{left.rollout_summary}"
    return left if left.is_empty or cut.text(text) == text else None


def _without(runs: dict[str, Any], cut: _BulletRemover) -> dict[str, Any]:
    """Return the stored runs of commands without those that hold something forgotten."""
    return {
        name: [each for each in cast("list[Any]", value) if not cut.takes(_told(each))]
        if isinstance(value, list)
        else value
        for name, value in runs.items()
    }


def _told(value: Any) -> str:
    """Return every text of a value, one to a line."""
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        return "\n".join((*held, *map(_told, held.values())))
    if isinstance(value, list):
        return "\n".join(map(_told, cast("list[Any]", value)))
    return value if isinstance(value, str) else ""


def rows(found: list[Row], forgotten: Forgotten) -> tuple[list[Row], dict[str, Output]]:
    """Return the usable rows, and the corrected outputs of rows that another process may have written meanwhile."""
    if not forgotten:
        return found, {}
    kept: list[Row] = []
    cleaned: dict[str, Output] = {}
    for row in found:
        known = outputs.of_row(row)
        left = output(known, forgotten)
        if left is not known:
            cleaned[row["thread_id"]] = left
        if not left.is_empty:
            kept.append({**row, **msgspec.structs.asdict(left)})
    return kept, cleaned


class _BulletRemover:
    """Removes bullets from texts, and then the traces of their words elsewhere."""

    def __init__(self, forgotten: Forgotten) -> None:
        self._forgotten = forgotten
        self._gone: list[str] = []
        self._kept: set[str] = set()

    def text(self, text: str) -> str:
        lines: list[str] = []
        for line in text.split("\n"):
            if line.startswith("- ") and self._is_gone(line[2:]):
                self._gone.append(normal(_NUMBERS.sub("", line[2:])))
            else:
                lines.append(line)
        lines = _tidy(lines)
        bullets = [line for line in lines if line.startswith("- ") and not _REFERENCE.match(line)]
        self._kept |= {word for line in bullets for word in normal(line).split()}
        return "\n".join(lines)

    def _is_gone(self, bullet: str) -> bool:
        told = _NUMBERS.sub("", bullet)
        if self._forgotten.forgotten_within(told) is not None:
            return True
        return any(said in self._forgotten for said in _QUOTED.findall(told))

    def takes(self, bullet: str) -> bool:
        """Say whether a bullet goes, and remember its words if it does."""
        if not self._is_gone(bullet):
            return False
        self._gone.append(normal(bullet))
        return True

    def keep(self, bullet: str) -> None:
        """Remember the words of a bullet that stays."""
        self._kept |= set(normal(bullet).split())

    def name(self, name: str) -> str:
        """Return a task's name without what is gone."""
        return _UNNAMED if self._is_part(name) else self._forgotten.without_forgotten(name, _UNNAMED) or _UNNAMED

    def names(self, text: str) -> str:
        return "\n".join(self._name(line) for line in text.split("\n"))

    def _name(self, line: str) -> str:
        if line.startswith("- "):
            return line
        if line.startswith(_KEYWORDS):
            words = line.removeprefix(_KEYWORDS).split(", ")
            return _KEYWORDS + ", ".join(word for word in words if not self.is_only_theirs(word))
        named = _NAMED.match(line)
        if not named:
            return self._forgotten.without_forgotten(line)
        lead, told = named[1], named[2]
        done, between, best = told.partition(_TAKEAWAY)
        if between and (self._is_gone(best) or self._is_part(best)):
            between = best = ""
        if self._is_part(re.sub(r"[:(] ?\w+\)?\.?$", "", done)):
            done = _UNNAMED
        return lead + (self._forgotten.without_forgotten(done, _UNNAMED) or _UNNAMED) + between + best

    def is_only_theirs(self, keyword: str) -> bool:
        """Say whether a keyword stands only in what is gone."""
        words = set(normal(keyword).split())
        gone = {word for text in self._gone for word in text.split()}
        return keyword in self._forgotten or (bool(words) and words <= gone - self._kept)

    def _is_part(self, name: str) -> bool:
        """Say whether a name is a piece of what is gone, perhaps cut at its end."""
        plain = normal(name.rstrip("…")).rstrip(".")
        return len(plain.split()) >= _FEW and any(plain in text for text in self._gone)

    def is_told_by(self, slug: str) -> bool:
        words = [word for word in re.split(r"[_-]+", slug) if word]
        gone = {part for text in self._gone for word in text.split() for part in re.split(r"[\W_]+", word)}
        theirs = [word for word in words if word in gone]
        return self._forgotten.forgotten_within(" ".join(words)) is not None or len(theirs) * 2 > len(words)


def _tidy(lines: list[str]) -> list[str]:
    """Take out references that nothing names any more, and headings that nothing stands under."""
    named = {
        number
        for line in lines
        if line.startswith("- ") and not _REFERENCE.match(line) and (tail := _NUMBERS.search(line))
        for number in _NUMBER.findall(tail[0])
    }
    kept = [line for line in lines if not (found := _REFERENCE.match(line)) or found[1] in named]
    tidy: list[str] = []
    for place, line in enumerate(kept):
        following = kept[place + 1] if place + 1 < len(kept) else ""
        if _SECTION.match(line) and not following.startswith("- "):
            while tidy and not tidy[-1]:
                tidy.pop()
            continue
        tidy.append(line)
    return tidy


def workspace(root: Path, forgotten: Forgotten) -> list[str]:
    """Remove forgotten texts from the files that are not rewritten; return the paths of those that changed or were
    removed.

    Files that are rewritten from the rows are not touched: the memory's own files, and those of single sessions.
    """
    if not forgotten:
        return []
    told = {note.path: note for note in notes.read(root)}
    changed: list[str] = []
    for path in _texts(root):
        text = (root / path).read_bytes().decode("utf-8", "replace")
        note = told.get(path)
        left = _note(note, text, forgotten) if note is not None else _lines(text, forgotten)
        if left == text:
            continue
        if left is None:
            (root / path).unlink(missing_ok=True)
        else:
            put(root / path, left)
        changed.append(path)
    return changed


def _note(note: Note, text: str, forgotten: Forgotten) -> str | None:
    """Return what is left of a note: all of it if it is newer, nothing if it says what was forgotten."""
    said = max(
        (at for each in _wordings(note.text) if (at := forgotten.forgotten_within(each)) is not None), default=None
    )
    if said is not None and (said >= note.seconds or note.action == "forget"):
        return None
    if note.target and forgotten.forgotten_within(note.target) is not None:
        return notes.text_of("remember", note.text, scope=note.scope)
    return text


def _wordings(text: str) -> list[str]:
    return [text, *_QUOTED.findall(text)]


def _lines(text: str, forgotten: Forgotten) -> str:
    if not forgotten.may_hold(text):
        return text
    kept = [
        line
        for line in text.split("\n")
        if forgotten.forgotten_within(line) is None or line.startswith(("---", "name:"))
    ]
    return forgotten.without_forgotten("\n".join(kept))


def _texts(root: Path) -> list[str]:
    """Return the text files of a workspace that are not written anew from the rows."""
    found: list[str] = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name != layout.GIT)
        for name in sorted(files):
            path = Path(folder, name).relative_to(root).as_posix()
            is_anew = path in _WRITTEN or path.split("/")[0] == layout.SUMMARIES
            if not is_anew and not layout.is_part(name):
                found.append(path)
    return [path for path in found if not (root / path).is_symlink()]

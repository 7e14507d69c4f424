"""Manual edits: changes of a person in the workspace's files become notes before anything is rewritten.

The baseline tells which lines were ours. An added line is something to remember; a removed line is something to forget;
an added line that replaces a removed one is a change. The section of a line tells its scope, so moving a line from a
project to the global section is an edit, too. Order and layout do not count. A skill that a person changed or removed
belongs to them from then on. A file that is missing or empty says nothing about its former content; it is rewritten.
Files that the program never rewrites are left as they are.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from commonplace.memory import similarity
from commonplace.memory.edits import notes
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.entries import GLOBAL
from commonplace.memory.files.handbook import MARK
from commonplace.memory.workspace import baseline, layout
from commonplace.patterns import regex
from commonplace.protocol.ids import wire_time
from commonplace.redact import redact
from commonplace.rollout import decisions

_MARKS: Final = regex(rf"(?:(?<!\s)\s+)?(?:{MARK}|\[\d+\])")
_EXITED: Final = regex(r" \(exit 0(?: here)?\)$")
_QUOTED: Final = regex(r'^(?:[^"`]{0,80}: )?"(?P<quote>.+?)"(?: -> (?s:.*))?\Z')
_FRAME: Final = regex(
    r"^(?:#|scope:|applies_to:|- rollout_summaries/|- extensions/|v1$|---$|\s*- desc: |- \[\d+\] turn |"
    r"- \d+ more: read |"
    r"(?:description|task|task_group|task_outcome|cwd|keywords|updated_at|rollout_path|rollout_summary_file|thread_id|"
    r"git_branch|Rollout context|Outcome): |"
    r"(?:Preference signals|Reusable knowledge|Failures and how to do differently|References|Key steps):?$|"
    r"What single sessions taught|No raw memories yet|Nothing is known yet)"
)
_SCOPE: Final = regex(r"^scope: (?:project )?(.+)$")
_GROUP: Final = regex(r"^task_group: (.+)$", re.MULTILINE)
_LEARNINGS: Final = regex(r"^\s*- learnings: ")
_INDEX: Final = "## What's in Memory"
_UNTOLD: Final = (
    "### keywords",
    "### rollout_summary_files",
    "### extension_resource_files",
    "Key steps:",
    "References",
)
"""Sections that only the program writes; lines in them are no edits."""
_ALIKE: Final = 0.4
"""A removed and an added line this close are one changed line."""


class _StatedBullet(msgspec.Struct, frozen=True):
    """One statement of a file, and its scope."""

    scope: str
    text: str


class _ChangedBullet(msgspec.Struct, frozen=True):
    was: str
    now: str
    scope: str


def adopt(home: Path, root: Path, moment: datetime) -> list[str]:
    """Turn a person's changes since the baseline into notes and decisions; return the notes' paths."""
    changes = {change.path: change.letter for change in baseline.status(root)}
    if not changes:
        return []
    _note_owned_skills(home, root, changes.keys(), moment)
    raw = baseline.content(root, layout.RAW) or ""
    found: list[_ChangedBullet] = []
    for path, letter in sorted(changes.items()):
        if is_rewritten(path) and letter == "M":
            old = baseline.content(root, path) or ""
            new = (root / path).read_bytes().decode("utf-8", "replace")
            found += _edits(list(_statements(path, old, raw)), list(_statements(path, new, raw))) if new.strip() else []
    return _write(home, root, list(dict.fromkeys(found)), moment)


def is_rewritten(path: str) -> bool:
    """Say whether the program rewrites a file, so that changed lines in it become notes."""
    return path in (layout.MEMORY, layout.SUMMARY, layout.RAW) or path.startswith(f"{layout.SUMMARIES}/")


def _note_owned_skills(home: Path, root: Path, changed: Iterable[str], moment: datetime) -> None:
    """Note the skills that are a person's now; a folder that they emptied goes."""
    known = decisions.owned_files(home)
    for path in sorted(changed):
        if path.startswith(f"{layout.SKILLS}/"):
            if path not in known:
                decisions.append(home, "own", wire_time(moment), path=path)
            with contextlib.suppress(OSError):  # it is not empty, or not there
                (root / path).parent.rmdir()


def _write(home: Path, root: Path, edits: list[_ChangedBullet], moment: datetime) -> list[str]:
    """Write the notes: first what is to go, so that what is to stay is newer."""
    if not edits:
        return []
    forgotten = Forgotten.load(home)
    after = max((when for edit in edits if (when := forgotten.forgotten_within(edit.now)) is not None), default=0)
    first = notes.moment(root, moment, after=after)
    made: list[str] = []
    known = notes.read(root)
    for edit in sorted((_without_forgotten(each, forgotten) for each in edits), key=lambda each: bool(each.now)):
        if not (edit.was or edit.now) or _is_noted(edit, known):
            continue
        action: notes.Action = "change" if edit.was and edit.now else "remember" if edit.now else "forget"
        text = notes.text_of(action, edit.now or edit.was, target=edit.was if edit.now else "", scope=edit.scope)
        when = first + timedelta(seconds=1) if edit.now else first
        name = notes.name_for(root, when, redact(f"edit {edit.now or edit.was}"))
        made.append(notes.write(root, name, redact(text)))
    return made


def _without_forgotten(edit: _ChangedBullet, forgotten: Forgotten) -> _ChangedBullet:
    """Return an edit without texts that were forgotten before: no note may name them."""
    is_gone = bool(edit.was) and forgotten.forgotten_within(edit.was) is not None
    return _ChangedBullet("", edit.now, edit.scope) if is_gone else edit


def _is_noted(edit: _ChangedBullet, known: list[notes.Note]) -> bool:
    """Say whether a run that was cut short made a note of an edit, and nothing was said about it since."""
    about = [note for note in known if {note.text, note.target} & {edit.was, edit.now} - {""}]
    last = max(about, key=lambda note: (note.seconds, note.path), default=None)
    if last is None or last.scope != edit.scope:
        return False
    return (last.target, last.text) == (edit.was, edit.now) if edit.now else last.text == edit.was and _forgets(last)


def _forgets(note: notes.Note) -> bool:
    return note.action == "forget"


def _edits(old: list[_StatedBullet], new: list[_StatedBullet]) -> Iterator[_ChangedBullet]:
    """Yield removed and added statements, in pairs where one replaces the other."""
    was, now = Counter(old), Counter(new)
    gone = [each for each in dict.fromkeys(old) if each not in now]
    for added in [each for each in dict.fromkeys(new) if each not in was]:
        near = [each for each in gone if each.scope == added.scope and _nearness(each.text, added.text) >= _ALIKE]
        best = max(near, key=lambda each: _nearness(each.text, added.text), default=None)
        if best is not None:
            gone.remove(best)
        yield _ChangedBullet(best.text if best is not None else "", added.text, added.scope)
    for removed in gone:
        yield _ChangedBullet(removed.text, "", removed.scope)


def _nearness(old: str, new: str) -> float:
    one, two = similarity.words(old).about, similarity.words(new).about
    return len(one & two) / min(len(one), len(two)) if one and two else float(old == new)


def _statements(path: str, text: str, raw: str) -> Iterator[_StatedBullet]:
    """Yield the statements of a file."""
    if path == layout.SUMMARY:
        yield from _of_summary(text)
    elif path == layout.RAW:
        for thread in re.split(r"(?m)^(?=## Thread `)", text):
            yield from _of_lines(thread, _group(thread))
    elif path == layout.MEMORY:
        yield from _of_lines(text, GLOBAL)
    else:
        thread_id = text.partition("\n")[0].removeprefix("thread_id: ")
        block = next((each for each in re.split(r"(?m)^(?=## Thread `)", raw) if f"`{thread_id}`" in each[:200]), "")
        yield from _of_lines(text, _group(block))


def _group(block: str) -> str:
    """Return the project that a session's part of `raw_memories.md` is about."""
    found = _GROUP.search(block)
    return found[1].strip() if found else GLOBAL


def _of_lines(text: str, scope: str) -> Iterator[_StatedBullet]:
    is_told = True
    for line in text.split("\n"):
        found = _SCOPE.match(line)
        if found:
            scope = found[1].strip()
        elif line.startswith(_UNTOLD):
            is_told = False
        elif line.startswith("#") or (line and not line.startswith("-")):
            is_told = True
        if is_told and (said := statement_of(line)):
            yield _StatedBullet(scope, said)


def _of_summary(text: str) -> Iterator[_StatedBullet]:
    scope, in_index = GLOBAL, False
    for line in text.split("\n"):
        if line.startswith("## "):
            scope, in_index = GLOBAL, line == _INDEX
        elif line.startswith(("### ", "#### ")) and not re.fullmatch(r"#### \d{4}-\d\d-\d\d", line):
            title = line.lstrip("# ").strip()
            scope = GLOBAL if title in ("every project", "Older Memory Topics") else title
        elif in_index and _LEARNINGS.match(line):
            parts = _LEARNINGS.sub("", line).split("; ")
            yield from (_StatedBullet(scope, said) for part in parts if (said := statement_of(part.rstrip("…"))))
        elif not (in_index and _is_topic(line, scope)) and (said := statement_of(line)):
            yield _StatedBullet(scope, said)


def _is_topic(line: str, scope: str) -> bool:
    name = line.removeprefix("- ").partition(": ")[0]
    return name in (scope, scope.rstrip("/").rpartition("/")[2], "every project")


def statement_of(line: str) -> str:
    """Return the statement of a line of the memory; empty for headings and the like."""
    if _FRAME.match(line) or _FRAME.match(line.strip()):
        return ""
    told = _EXITED.sub("", _MARKS.sub("", line.strip().removeprefix("- ")).strip())
    quoted = _QUOTED.match(told)
    return quoted["quote"] if quoted else told

"""What a memory of another program, or of an older version, says: each statement with its scope, and what is left over.

    a folder of Codex, version 1    MEMORY.md in blocks, notes, skills, extensions; its summary repeats MEMORY.md
    a folder of Codex, version 2    memory_summary.md alone: profile, preferences, tips, and the learnings of its index
    older headings, free text       any other Markdown or text, also beside those files and below `user/memory`

Every bullet and every paragraph is a statement; a bullet that goes on in indented lines is one. Nothing is dropped: a
file that is no statement (an index, a skill, a resource, a text that is too long for a note) is a `LeftOver`. Files
are only read, links are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from commonplace.memory.edits import notes
from commonplace.memory.edits.manual_edits import statement_of
from commonplace.memory.entries import GLOBAL
from commonplace.memory.files import raw_memories
from commonplace.memory.workspace import layout
from commonplace.patterns import regex
from commonplace.projects.identity import look

MARKS: Final = (layout.MEMORY, layout.SUMMARY, layout.RAW, layout.SUMMARIES)
"""Files and folders by which a memory of Codex is known."""
_TEXTS: Final = (".md", ".markdown", ".txt")
_SEEDED: Final = f"{layout.EXTENSIONS}/ad_hoc/{layout.INSTRUCTIONS}"
"""What programs themselves say about notes."""
_INDEX: Final = "what's in memory"
_LISTS: Final = ("rollout_summary_files", "keywords", "extension_resource_files", "rollout summary files")
"""Headings in `MEMORY.md` whose bullets point at other files."""
_CWD: Final = regex(r"cwd=([^;,]+)")
_FRONT: Final = regex(r"\A---\n.*?\n---\n", re.DOTALL)
_BULLET: Final = regex(r"\A[ \t]*+(?:[-*+]|[0-9]{1,3}[.)])[ \t]++(?=\S)")
_LEARNINGS: Final = "learnings:"
_LONGEST: Final = 2_000
"""How many characters a note may have; a longer text is kept whole, beside the memory."""
_DEEPEST: Final = 10_000
"""How many files of one memory are looked at."""


class OlderStatement(msgspec.Struct, frozen=True):
    """One statement of the other memory."""

    text: str
    scope: str
    moment: datetime
    action: notes.Action = "remember"
    target: str = ""
    path: str = ""
    """The file that says it, from the memory's folder."""


class LeftOver(msgspec.Struct, frozen=True):
    """A file, or the part of one, that is no statement; `text` is None if it need not or cannot be kept."""

    path: str
    reason: str
    text: str | None = None


def read(source: Path) -> Iterator[OlderStatement | LeftOver]:
    """Yield what the memory in a folder says; what sessions taught (`raw_memories.md`) is read by others."""
    for note in notes.read(source):
        moment = datetime.fromtimestamp(note.seconds, UTC)
        yield OlderStatement(note.text, note.scope, moment, note.action, note.target, layout.NOTES)
    taught = raw_memories.session_files(source).values()
    read_elsewhere = {layout.RAW, _SEEDED, *(f"{layout.SUMMARIES}/{each.summary}" for each in taught)}
    has_handbook = is_own_file(source / layout.MEMORY)
    for path in files(source):
        name = path.relative_to(source).as_posix()
        first = name.partition("/")[0]
        if name in read_elsewhere or name.startswith(f"{layout.NOTES}/"):
            continue
        if first in (layout.SKILLS, layout.EXTENSIONS, layout.SUMMARIES):
            yield _left_over(path, name, "a file to look up")
        elif path.suffix.lower() not in _TEXTS:
            yield _left_over(path, name, "not a text")
        elif name == layout.SUMMARY and has_handbook:
            yield LeftOver(name, "it repeats MEMORY.md")
        else:
            yield from _statements(path, name)


def is_own_file(path: Path) -> bool:
    """Return whether a file stands there, and no link."""
    return path.is_file() and not path.is_symlink()


def files(source: Path) -> Iterator[Path]:
    """Yield the files of a memory, sorted; neither links nor hidden ones, and not what a run left behind."""
    found = (path for path in sorted(source.rglob("*")) if is_own_file(path))
    for count, path in enumerate(found):
        parts = path.relative_to(source).parts
        hidden = any(part.startswith(".") for part in parts)
        linked = any(parent.is_symlink() for parent in path.parents if parent.is_relative_to(source))
        if not hidden and not linked and parts[-1] != layout.DIFF and count < _DEEPEST:
            yield path


def _left_over(path: Path, name: str, reason: str) -> LeftOver:
    data = path.read_bytes() if path.stat().st_size <= raw_memories.MAX_FILE_BYTES else b""
    try:
        text = data.decode("utf-8") if data and b"\0" not in data else None
    except UnicodeDecodeError:
        text = None
    return LeftOver(name, reason, text)


class _Block(msgspec.Struct):
    """Where in a text a piece stands: its scope, the heading above it, and whether that is part of an index."""

    scope: str = GLOBAL
    heading: str = ""
    is_index: bool = False

    def take(self, line: str) -> bool:
        """Note what a line says about the pieces below it; return whether it is such a line."""
        if line.startswith("#"):
            self.heading = line.strip("# \t").casefold()
            self.is_index = self.is_index or self.heading.startswith(_INDEX)
            if line.startswith("# "):
                self.scope = GLOBAL
            elif self.is_index and line.startswith("### "):
                self.scope = _project(line.strip("# \t`"))
        elif line.startswith("scope: project "):
            self.scope = line.removeprefix("scope: project ").strip()
        elif line.startswith("applies_to: "):
            found = _CWD.search(line)
            self.scope = _project(found[1].strip()) if found and self.scope == GLOBAL else self.scope
        else:
            return line.startswith("scope: ")
        return True

    @property
    def is_list(self) -> bool:
        """Whether the pieces only point at other files."""
        return self.heading in _LISTS or self.heading.startswith("task ")


def _statements(path: Path, name: str) -> Iterator[OlderStatement | LeftOver]:
    """Yield the bullets and paragraphs of a text, each with the scope of its block."""
    moment = datetime.fromtimestamp(int(path.stat().st_mtime), UTC)
    text = path.read_bytes()[: raw_memories.MAX_FILE_BYTES].decode("utf-8", "replace").replace("\r\n", "\n")
    if name == layout.SUMMARY:
        text = text.removeprefix("v1\n")
    block = _Block()
    for piece in _pieces(_FRONT.sub("", text)):
        if block.take(piece[0]) or block.is_list:
            continue
        said = _said(piece)
        if block.is_index:
            said = said.removeprefix(_LEARNINGS).strip() if said.startswith(_LEARNINGS) else ""
        if len(said) > _LONGEST:
            yield LeftOver(name, "too long for a note", "\n".join(piece))
        elif said:
            yield OlderStatement(said, block.scope, moment, path=name)
    if block.is_index:
        yield LeftOver(name, "an index; what it calls learnings was taken")


def _pieces(text: str) -> Iterator[list[str]]:
    """Yield a text in pieces: a heading, a named line, a bullet with the lines that go on with it, a paragraph."""
    piece: list[str] = []
    for line in text.split("\n"):
        alone = line.startswith(("#", "scope: ", "applies_to: "))
        goes_on = bool(piece) and not alone and not _BULLET.match(line) and not piece[0].startswith("#")
        if line.strip() and goes_on:
            piece.append(line)
            continue
        if piece:
            yield piece
        piece = [line] if line.strip() else []
        if alone:
            yield piece
            piece = []
    if piece:
        yield piece


def _said(piece: list[str]) -> str:
    """Return what a piece says; a line that only introduces the bullets after it says nothing."""
    if _BULLET.match(piece[0]):
        first = f"- {_BULLET.sub('', piece[0], count=1)}"
        return statement_of(" ".join([first, *(line.strip() for line in piece[1:])]))
    said = " ".join(line.strip() for line in piece)
    return "" if said.endswith(":") else said


def _project(cwd: str) -> str:
    """Return the project of a folder that a block names; what is no folder means every project."""
    place = cwd.removeprefix("cwd=").strip()
    return (look(place).identity or place) if place.startswith("/") else GLOBAL

"""Skills that a memory offers: `skills/<name>/SKILL.md`, known by the name and description in its first lines.

Only those lines are read to offer a skill; the steps are opened when they are wanted. Whoever wrote the file, what can
be told of it is told: a missing name is its folder's, a missing description its first sentence. Whom a skill is for
stands in its first lines (`scope:`), in its text (`only in …`), or in the block of `MEMORY.md` that points to it; a
skill that says nothing of that is for everybody.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from commonplace.memory.entries import GLOBAL
from commonplace.memory.files import handbook
from commonplace.memory.files.handbook import HandbookBlock
from commonplace.memory.recall import receipts
from commonplace.memory.workspace import layout
from commonplace.patterns import regex

FILE: Final = "SKILL.md"
_FIELD: Final = regex(r"^([A-Za-z][\w-]*):[ \t]*+(.*)$")
_ONLY: Final = regex(r"^- only in (\S+); ", re.MULTILINE)
_POINTER: Final = regex(r"\bskills/[\w./-]{1,200}/SKILL\.md\b")
_FOLDED: Final = (">", "|", ">-", "|-", ">+", "|+")


class Skill(msgspec.Struct, frozen=True):
    """The name, description and scope of a skill."""

    name: str
    description: str
    path: str
    """Of its file, below the workspace."""
    scope: str | None = None
    """`global`, a project's identity, or None if it does not say."""

    def is_for(self, scope: str | None) -> bool:
        """Say whether it may be offered in a project."""
        return self.scope in (None, GLOBAL, scope)


ScopeOf = Callable[[HandbookBlock], str | None]


def declared_scope(block: HandbookBlock) -> str | None:
    """Return the scope that a block says itself, in our words; others describe it in prose."""
    lines = [line.text.strip() for line in block.head]
    is_ours = any(line.startswith("scope: project ") or line == f"scope: {GLOBAL}" for line in lines)
    return block.scope if is_ours else None


def read(root: Path, scope_of: ScopeOf = declared_scope) -> list[Skill]:
    """Return the skills of a workspace by their names; what cannot be read is not offered."""
    folder = root / layout.SKILLS
    try:
        names = sorted(place.name for place in folder.iterdir()) if not folder.is_symlink() else []
    except OSError:
        return []
    pointed = pointers(receipts.read(root, layout.MEMORY) or "", scope_of)
    found: list[Skill] = []
    for name in names:
        path = f"{layout.SKILLS}/{name}/{FILE}"
        text = receipts.read(root, path)
        if text is not None:
            found.append(of_text(path, text, pointed.get(path)))
    return found


def of_text(path: str, text: str, pointed: str | None = None) -> Skill:
    """Return what a skill's file says of itself; `pointed` is the scope of the block that points to it."""
    fields, body = _front(text)
    only = _ONLY.search(body)
    scope = fields.get("scope", "").removeprefix("project ").strip() or (only[1] if only else None) or pointed
    first = next((line.strip(" -*") for line in body.split("\n") if line.strip(" -*") and line[0] != "#"), "")
    name = fields.get("name") or path.split("/")[-2]
    return Skill(_flat(name), _flat(fields.get("description") or first), path, scope)


def pointers(memory: str, scope_of: ScopeOf = declared_scope) -> dict[str, str]:
    """Return the skills that blocks of a `MEMORY.md` point to, with the scopes of the blocks that say theirs."""
    found: dict[str, str] = {}
    for block in handbook.parse(memory)[0]:
        lines = [line.text for section in block.lessons.values() for line in section] + [
            line.text for line in block.strays
        ]
        scope = scope_of(block)
        for path in (each for line in lines for each in _POINTER.findall(line)):
            if scope:
                found.setdefault(path, scope)
    return found


def _front(text: str) -> tuple[dict[str, str], str]:
    """Return the fields before a text, and the text; values may be quoted, or go on over indented lines."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if not lines or lines[0].rstrip() != "---":
        return {}, text
    end = next((place for place, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        return {}, text
    fields: dict[str, str] = {}
    key = ""
    for line in lines[1:end]:
        named = _FIELD.match(line)
        if named:
            key = named[1].lower()
            value = named[2].strip()
            fields[key] = "" if value in _FOLDED else value
        elif key and line.strip():
            fields[key] = f"{fields[key]} {line.strip()}".strip()
    return {name: _unquoted(value) for name, value in fields.items()}, "\n".join(lines[end + 1 :])


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _flat(text: str) -> str:
    return " ".join(text.split())

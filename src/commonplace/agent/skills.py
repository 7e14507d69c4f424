"""Skills of the person and of the project: folders with a `SKILL.md`, told by name and description, opened on demand.

The person's stand in `home/skills`, a project's in the folders that agents know, from the project's root down to the
working directory; what stands nearer wins over what has the same name further away. Only the first lines of a file are
read to offer it. The list is bounded, and says how many were left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from commonplace.context import instructions, regular_files
from commonplace.context.injected_messages import Injected
from commonplace.context.sections import Standing
from commonplace.context.world_state import Name
from commonplace.memory.files import skills as files

PROJECT_FOLDERS: Final = (".agents/skills", ".codex/skills", ".claude/skills", ".commonplace/skills")
MOST: Final = 100
_HEAD_BYTES: Final = 8_192
_DESCRIPTION: Final = 300
_HOW: Final = (
    "A skill is a folder with instructions for one kind of task. When a task fits a skill's description, or the person "
    "names it, read its SKILL.md before you begin and follow it; files that it names are beside it."
)
_NONE: Final = "There are no skills any more."


class Skill(msgspec.Struct, frozen=True):
    """A skill that is offered."""

    name: str
    description: str
    path: str


def find(home: Path, cwd: Path) -> list[Skill]:
    """Return the skills that are at hand in a folder, by their names."""
    found: dict[str, Skill] = {}
    for folder in _folders(home, cwd):
        for skill in _in(folder):
            found[skill.name] = skill
    return [found[name] for name in sorted(found)]


def _folders(home: Path, cwd: Path) -> Iterable[Path]:
    yield home / "skills"
    for place in instructions.folders(cwd, instructions.ROOT_MARKERS):
        for name in PROJECT_FOLDERS:
            yield place / name


def _in(folder: Path) -> Iterable[Skill]:
    try:
        names = sorted(place.name for place in folder.iterdir())
    except OSError:
        return
    for name in names[:MOST]:
        path = folder / name / files.FILE
        head = regular_files.read(path, _HEAD_BYTES)
        if isinstance(head, regular_files.Refused):
            continue
        said = files.of_text(f"{name}/{files.FILE}", head.data.decode("utf-8", "replace"))
        yield Skill(said.name[:100], said.description[:_DESCRIPTION], str(path))


def section(found: Sequence[Skill]) -> Standing:
    """Return the skills as a section of the world."""
    lines = [f"- {skill.name}: {skill.description} (file: {skill.path})" for skill in found[:MOST]]
    if len(found) > MOST:
        lines.append(f"- … and {len(found) - MOST} more")
    body = "\n".join([_HOW, *lines]) if lines else ""
    text = f"<skills_instructions>\n{body or _NONE}\n</skills_instructions>"
    told = Injected("developer", text, "host_skills.instructions")
    remembered = {"body": body} if body else None
    return Standing(
        name=Name("host_skills", "skills"), remembered=remembered, text=told if lines else None, ending=told
    )

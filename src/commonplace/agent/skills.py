"""Skills of the person and of the project: folders with a `SKILL.md` that the model is offered by name and description.

The person's skills are in `home/skills`, a project's in the folders of known agents, from the project's root down to
the working directory; of two skills with one name the nearer wins. Only the first bytes of a file are read to offer it.
The list is bounded, and says how many skills were left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from commonplace.context import instructions, regular_files
from commonplace.context.injected_messages import InjectedText, inert
from commonplace.context.sections import StandingText
from commonplace.context.world_state import SectionName
from commonplace.memory.files import skills as files
from commonplace.patterns import regex

PROJECT_FOLDERS: Final = (".agents/skills", ".codex/skills", ".claude/skills", ".commonplace/skills")
MOST: Final = 100
"""How many skills are offered."""
_HEAD_BYTES: Final = 8_192
"""How many bytes of a skill's file are read for its name and description."""
_DESCRIPTION: Final = 300
"""How many characters of a skill's description a prompt holds."""
_WHOLE_BYTES: Final = 32_768
"""How many bytes of a skill that a message names a prompt holds."""
_MOST_NAMED: Final = 20
"""How many skills one message may name."""
_MENTION: Final = regex(r"(?<![\w$])\$([A-Za-z0-9][\w:-]*+)")
"""A skill that a message names, as in Codex: `$deploy`."""
_HOW: Final = (
    "A skill is a folder with instructions for one kind of task. When a task fits a skill's description, or the person "
    "names it, read its SKILL.md before you begin and follow it; files that it names are beside it."
)
_NONE: Final = "There are no skills any more."


class OfferedSkill(msgspec.Struct, frozen=True):
    """A skill that is offered."""

    name: str
    description: str
    path: str
    root: str = ""
    """The project that its links must not leave; empty for a skill of the person."""


def find(home: Path, cwd: Path, warn: Callable[[str], None] | None = None) -> list[OfferedSkill]:
    """Return the skills for a working folder, sorted by name; `warn` is told of those that a link leads out of it."""
    by_name: dict[str, OfferedSkill] = {}
    for folder, root in _folders(home, cwd):
        for skill in _in(folder, root, warn):
            by_name[skill.name] = skill
    return [by_name[name] for name in sorted(by_name)]


def _folders(home: Path, cwd: Path) -> Iterable[tuple[Path, Path | None]]:
    """Yield folders of skills, and the project's root that their links must not leave; a person's own have none."""
    yield home / "skills", None
    project = instructions.folders(cwd, instructions.ROOT_MARKERS)
    for place in project:
        for name in PROJECT_FOLDERS:
            yield place / name, project[0]


def _in(folder: Path, root: Path | None, warn: Callable[[str], None] | None) -> Iterable[OfferedSkill]:
    try:
        names = sorted(place.name for place in folder.iterdir())
    except OSError:
        return
    for name in names[:MOST]:
        path = folder / name / files.FILE
        if root is not None and (why := _leads_away(path, root)):
            if warn is not None:
                warn(f"The skill {path} is not offered: a link leads {why}, to {os.path.realpath(path)}.")
            continue
        head = regular_files.read(path, _HEAD_BYTES)
        if isinstance(head, regular_files.ReadRefused):
            continue
        skill = files.of_text(f"{name}/{files.FILE}", head.data.decode("utf-8", "replace"))
        yield OfferedSkill(skill.name[:100], skill.description[:_DESCRIPTION], str(path), str(root or ""))


def _leads_away(path: Path, root: Path) -> str:
    """Return where a link leads a skill of a project that it must not; empty if it stays."""
    end, top = Path(os.path.realpath(path)), Path(os.path.realpath(root))
    if not end.is_relative_to(top):
        return "out of the project"
    return "to a private file" if regular_files.is_private(end.relative_to(top)) else ""


def named(words: str, offered: Sequence[OfferedSkill]) -> list[InjectedText]:
    """Return the skills that a message names as `$name`, each whole, in the order of the list; bounded.

    A file that cannot be read any more, or whose links now lead out of its project, is left out: its name is still in
    the list that the model has.
    """
    names = set(_MENTION.findall(words))
    texts: list[InjectedText] = []
    for skill in offered:
        if skill.name in names and len(texts) < _MOST_NAMED:
            path = Path(skill.path)
            whole = regular_files.read(path, _WHOLE_BYTES)
            is_away = bool(skill.root and _leads_away(path, Path(skill.root)))  # after reading: a link set since shows
            if not (is_away or isinstance(whole, regular_files.ReadRefused)):
                texts.append(_injected(skill, whole))
    return texts


def _injected(skill: OfferedSkill, whole: regular_files.FilePrefix) -> InjectedText:
    """Return a skill with its instructions, in a block that its text cannot end."""
    text = whole.data.decode("utf-8", "replace")
    if whole.size > len(whole.data):
        text += f"\n[… {whole.size - len(whole.data)} more bytes are in the file]"
    head = f"<name>{inert(skill.name)}</name>\n<path>{inert(skill.path)}</path>"
    return InjectedText("user", f"<skill>\n{head}\n{inert(text)}\n</skill>", "skills.skill", alone=True)


def section(offered: Sequence[OfferedSkill]) -> StandingText:
    """Return the skills as a section of the prompt."""
    lines = [_line(skill) for skill in offered[:MOST]]
    if len(offered) > MOST:
        lines.append(f"- … and {len(offered) - MOST} more")
    body = "\n".join([_HOW, *lines]) if lines else ""
    text = f"<skills_instructions>\n{body or _NONE}\n</skills_instructions>"
    injected = InjectedText("developer", text, "host_skills.instructions")
    remembered = {"body": body} if body else None
    return StandingText(
        name=SectionName("host_skills", "skills"),
        remembered=remembered,
        text=injected if lines else None,
        ending=injected,
    )


def _line(skill: OfferedSkill) -> str:
    """Return a skill on one line, which cannot end the block that it stands in."""
    return inert(" ".join(f"- {skill.name}: {skill.description} (file: {skill.path})".split()))

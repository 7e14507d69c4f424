"""The two texts of an answer, taken apart: tasks with their bullets, and the references that each task names.

Nothing is judged here, and what is read is bounded. Both texts have the same skeleton (a heading for each task,
sections, bullets that end with numbers, numbered references), so one reader serves both. Numbers are looked up in their
own task first, since a model may begin to count anew in each, and then in the whole text.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from commonplace.memory.files import output_shape
from commonplace.state.outputs import Output

MAX_LINE: Final = 4_000
"""Characters of a line that are read."""
MAX_BULLETS: Final = 400
"""Bullets of one text that are read."""
MAX_REFERENCES: Final = 8
"""References of one bullet that are looked for."""
PREFERENCES: Final = "Preference signals:"
KNOWLEDGE: Final = "Reusable knowledge:"
FAILURES: Final = "Failures and how to do differently:"
STEPS: Final = "Key steps:"
REFERENCES: Final = "References:"
_SECTIONS: Final = {name.rstrip(":").lower(): name for name in (PREFERENCES, KNOWLEDGE, FAILURES, STEPS, REFERENCES)}
_TASK: Final = re.compile(r"^#{2,3} Task (\d{1,9}): (.+)$")
_BULLET: Final = re.compile(r"^[-*] ++(.*)$")
_NUMBERS: Final = re.compile(r"\d+(?:, ?\d+)*")
_REFERENCE: Final = re.compile(
    r"^[-*]? *\[(?P<n>\d{1,9})\] *+(?:turn (?P<turn>\d{1,9}+))?+(?P<rest>.*)$", re.IGNORECASE
)
_QUOTED: Final = re.compile(r"[^\"“„«]*+[\"“„«](?P<quote>.*)[\"”“»]\.?$")
_CONTEXT: Final = "Rollout context:"


class Reference(msgspec.Struct, frozen=True):
    """What a model says it saw, and where."""

    turn: int | None
    quote: str


class DraftBullet(msgspec.Struct, frozen=True):
    """One bullet of a model's answer, with its references."""

    section: str
    text: str
    references: tuple[Reference, ...]


class DraftTask(msgspec.Struct):
    """One task of a model's answer."""

    number: int
    name: str
    group: str = ""
    outcome: str = "uncertain"
    bullets: list[DraftBullet] = []


class Draft(msgspec.Struct):
    """A model's answer before it is verified."""

    head: dict[str, str]
    """The front matter of `raw_memory`."""
    title: str
    context: str
    memory: list[DraftTask]
    """The tasks of `raw_memory`."""
    summary: list[DraftTask]
    """The tasks of `rollout_summary`."""
    slug: str | None


def from_output(output: Output) -> Draft:
    """Take an answer apart that has the right shape."""
    head, _, body = output.raw_memory.removeprefix("---\n").partition("\n---\n")
    pairs = (line.partition(":") for line in head.split("\n"))
    lines = output.rollout_summary.split("\n")
    begins = next((place for place, line in enumerate(lines) if _TASK.match(line)), len(lines))
    before = [line.strip() for line in lines[1:begins] if line.strip()]
    context = " ".join(before).partition(_CONTEXT)[2].strip()
    return Draft(
        {key: value.strip() for key, _, value in pairs},
        lines[0].removeprefix("# ").strip(),
        context,
        _tasks(body.split("\n")),
        _tasks(lines[begins:]),
        output.rollout_slug,
    )


class _Reading(msgspec.Struct):
    task: DraftTask
    bullets: list[tuple[str, str]] = []
    references: dict[int, Reference] = {}


def _tasks(lines: list[str]) -> list[DraftTask]:
    found: list[_Reading] = []
    section = ""
    for whole in lines:
        line = whole[:MAX_LINE]
        heading = _TASK.match(line)
        if heading:
            found.append(_Reading(DraftTask(int(heading[1]), heading[2].strip())))
            section = ""
        elif found:
            section = _line(line, section, found[-1])
    everywhere = {number: each for one in found for number, each in one.references.items()}
    left = MAX_BULLETS
    for one in found:
        one.task.bullets = [_bullet(name, text, one.references, everywhere) for name, text in one.bullets[:left]]
        left -= len(one.task.bullets)
    return [one.task for one in found]


def _line(line: str, section: str, into: _Reading) -> str:
    """Take in one line of a task; return the section that the next one stands in."""
    named = _SECTIONS.get(line.strip().strip("*#").strip().rstrip(":").lower())
    if named is not None:
        return named
    bullet = _BULLET.match(line)
    if section == REFERENCES:
        found = _REFERENCE.match(line.strip())
        if found:
            into.references[int(found["n"])] = _reference(found)
    elif section and bullet:
        into.bullets.append((section, bullet[1].strip()))
    elif section and line.startswith((" ", "\t")) and line.strip() and into.bullets:
        name, text = into.bullets[-1]  # a bullet that goes on in the next line
        into.bullets[-1] = (name, f"{text} {line.strip()}"[:MAX_LINE])
    elif not section:
        _field(line, into.task)
    return section


def _field(line: str, task: DraftTask) -> None:
    key, _, value = line.partition(":")
    value = value.strip()
    if key in ("task_outcome", "Outcome") and value in output_shape.OUTCOMES:
        task.outcome = value
    elif key == "task_group":
        task.group = value


def _reference(match: re.Match[str]) -> Reference:
    rest = match["rest"].strip()
    quoted = _QUOTED.match(rest)
    words = quoted["quote"] if quoted else rest.lstrip(",:;- ").strip("`")
    return Reference(int(match["turn"]) if match["turn"] else None, words.replace('\\"', '"').strip())


def _bullet(section: str, text: str, own: dict[int, Reference], everywhere: dict[int, Reference]) -> DraftBullet:
    told, numbers = _tail(text)
    named = (own.get(number) or everywhere.get(number) for number in dict.fromkeys(numbers))
    return DraftBullet(
        section, " ".join(told.split()), tuple(each for each in named if each is not None)[:MAX_REFERENCES]
    )


def _tail(text: str) -> tuple[str, list[int]]:
    """Return a bullet without the numbers in brackets at its end, and those; read from the end, so in linear time."""
    rest = text.rstrip(" \t,")
    rest = rest[:-1] if rest.endswith("].") else rest
    found: list[str] = []
    while rest.endswith("]"):
        start = rest.rfind("[")
        inner = rest[start + 1 : -1]
        if start < 0 or not _NUMBERS.fullmatch(inner):
            break
        found.append(inner)
        rest = rest[:start].rstrip(" \t,")
    if not found:
        return text, []
    return rest, [int(number) for inner in reversed(found) for number in re.findall(r"\d{1,9}", inner)]

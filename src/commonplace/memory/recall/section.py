"""The memory section of a prompt: packed under a budget, with the same bytes each time.

It contains guidance of at most ten lines, the person's profile, global entries, this project's entries, skills by name
and the names of other projects. Below each heading checks come first, then the most useful entries, as consolidation
ranked them; what does not fit is left out and reported, in the text and in the receipt. A small budget first drops
entries, then guidance, then the section. Only agents that take citations out of their answers are asked for them.

Entries are data. Each is one line, its secrets and forgotten words are removed again, and no text can close the section
or open a citation. Nothing here depends on the time or on counters.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable
from functools import cache
from itertools import accumulate
from typing import Final

import msgspec

from commonplace import package_files
from commonplace.context.truncate import BYTES_PER_TOKEN, approximate_tokens
from commonplace.memory.audience import Audience
from commonplace.memory.entries import SECTION_OF, Entry, Section
from commonplace.memory.files.skills import Skill
from commonplace.patterns import regex
from commonplace.protocol.memory_traces import SECTION_OPENING
from commonplace.redact import redact

CLOSING: Final = "</commonplace_memory>"
TOOLS: Final = frozenset({"search", "read", "find"})
NOTE_TOOL: Final = "add_ad_hoc_note"
_TAGS: Final = regex(
    r"<(?=[\s/]*(?:commonplace_memory|oai-mem-citation|citation_entries|rollout_ids|thread_ids)\b)", re.IGNORECASE
)
_UNSAFE: Final = regex(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_PLACE: Final = regex(r"\$([a-z]+)")
_MAX_ENTRY_BYTES: Final = 1_200
"""How many bytes of an entry a prompt holds."""
_MAX_PROFILE_BYTES: Final = 800
"""How many bytes of the profile."""
_MAX_DESCRIPTION_BYTES: Final = 240
"""How many bytes of a skill's description."""
_MAX_NAME_BYTES: Final = 120
"""How many bytes of the name of a project or a skill."""
_SKILLS_SHARE: Final = 0.15
"""The share of the section for skills."""
_NAMES_SHARE: Final = 0.08
"""The share of the section for the names of other projects."""
_LOOKED: Final = 4
_LOOKED_BYTES: Final = 16_384
"""How much of what is known is looked at to fill a budget: so many times the budget, and at least so much."""
_GUIDE_SHARE: Final = 0.4
"""Above this share of the budget, guidance is told briefly so that memory has the room."""
_SECTIONS: Final[tuple[Section, ...]] = (
    "User preferences", "Reusable knowledge", "Failures and how to do differently",
)  # fmt: skip


class LeftOutEntry(msgspec.Struct, frozen=True):
    """An entry that is not in a prompt, and why: `budget`, `other_project`, `said_by_others`, `doubtful`,
    `forgotten`.
    """

    id: str
    reason: str


class Prompt(msgspec.Struct):
    """A section and its receipt (the JSON of `memory prompt`)."""

    text: str
    tokens: int
    scope: str | None
    included: list[str]
    left_out: list[LeftOutEntry]


class SectionInput(msgspec.Struct, kw_only=True):
    """The material of a section."""

    root: str
    """The memory's folder."""
    scope: str | None
    """The project's identity; None outside of any project."""
    entries: list[Entry] = []
    """Everything that is known, the most useful first."""
    lines: dict[str, int] = {}
    """Where in `MEMORY.md` an entry stands."""
    profile: str = ""
    summary: list[str] = []
    """Lines of a summary that somebody else wrote; they come first."""
    skills: list[Skill] = []
    others: list[str] = []
    """Names of other projects."""
    tools: Collection[str] = ()
    """The memory tools that the agent has, by the names that it knows."""
    cites: bool = False
    """The agent takes citations out of its answers before a person sees them."""
    audience: Audience = Audience()
    """Who is told."""
    clean: Callable[[str], str] = str
    """Takes secrets and forgotten words out of a text."""


class _SectionLine(msgspec.Struct, frozen=True):
    """A line that may go into the section."""

    id: str
    heading: str
    text: str
    is_check: bool = False

    @property
    def size(self) -> int:
        return len(self.text.encode()) + 1


def build(material: SectionInput, budget: int) -> Prompt:
    """Return the section for a project within a budget of tokens; an empty one if there is nothing to say."""
    page = _page(material, budget * BYTES_PER_TOKEN)
    if not (page.lines or page.beyond or material.profile or material.skills or material.others):
        return Prompt("", 0, material.scope, [], page.left)
    for guide in ("full", "brief", ""):
        found = _packed(material, page, guide, budget)
        if found is not None:
            return found
    return Prompt("", 0, material.scope, [], _left_out(material, page, []))


def harmless(text: str, most: int = _MAX_ENTRY_BYTES) -> str:
    """Return a text as one line that cannot end the section, open another or steer a terminal."""
    flat = " ".join(_UNSAFE.sub(" ", text).split())
    flat = _TAGS.sub("‹", flat)
    data = flat.encode()
    return flat if len(data) <= most else data[: most - 3].decode(errors="ignore").rstrip() + "…"


class _SectionLines(msgspec.Struct):
    """The lines that may go in, the most useful first; those that may not; and those too far down to be considered."""

    lines: list[_SectionLine] = []
    left: list[LeftOutEntry] = []
    beyond: list[str] = []


def _unmarked(line: str) -> str:
    """Return a heading as a line that ends with a colon; other lines as they are."""
    return f"{line.lstrip('#').lstrip(' ').rstrip(':')}:" if line.startswith("#") else line


def _page(material: SectionInput, size: int) -> _SectionLines:
    page = _SectionLines()
    for line in material.summary:
        told = _unmarked(harmless(material.clean(line)))
        if told:
            page.lines.append(_SectionLine("", _SUMMARY, told))
    enough = max(_LOOKED_BYTES, _LOOKED * size)
    for entry in material.entries:
        if not entry.is_global and entry.scope != material.scope:
            page.left.append(LeftOutEntry(entry.id, "other_project"))
            continue
        if not material.audience.may_be_told(entry):
            page.left.append(LeftOutEntry(entry.id, "said_by_others"))
            continue
        if not entry.is_told:
            page.left.append(LeftOutEntry(entry.id, "doubtful"))
            continue
        if enough <= 0:
            page.beyond.append(entry.id)
            continue
        told = harmless(material.clean(entry.text))
        if not told.strip(" \"'`.,;:-"):
            page.left.append(LeftOutEntry(entry.id, "forgotten"))
            continue
        place = f"L{material.lines[entry.id]} " if entry.id in material.lines else ""
        page.lines.append(
            _SectionLine(
                entry.id, _heading(entry), f"- {place}{told}{material.audience.credit(entry)}", entry.kind == "verify"
            )
        )
        enough -= page.lines[-1].size
    return page


def _heading(entry: Entry) -> str:
    where = "everywhere" if entry.is_global else "this project"
    return f"## {SECTION_OF[entry.kind]}, {where}"


_SUMMARY: Final = "## From the summary"
_ORDER: Final = (
    _SUMMARY,
    *(f"## {section}, {where}" for where in ("everywhere", "this project") for section in _SECTIONS),
)


def _packed(material: SectionInput, page: _SectionLines, guide: str, budget: int) -> Prompt | None:
    """Return the section with some guidance and as many lines as fit; None if other guidance would serve better."""
    fixed = _SectionFrame(_opening(material), *_around(material, guide, budget * BYTES_PER_TOKEN))
    total = len(page.lines) + len(page.beyond)
    reserve = _missing(material, total)  # for the line that says what was left out
    room = budget * BYTES_PER_TOKEN - len(fixed.with_lines([], reserve).encode())
    chosen: list[_SectionLine] = []
    headings: set[str] = set()
    for place, line in enumerate(page.lines):
        cost = line.size + (0 if line.heading in headings else len(line.heading.encode()) + 2)
        if cost <= room and (line.id or len(chosen) == place):  # a summary is told from its beginning
            chosen.append(line)
            headings.add(line.heading)
            room -= cost
    is_whole = room >= 0 and len(chosen) == total
    if guide and not is_whole and approximate_tokens(fixed.guide) > _GUIDE_SHARE * budget:
        return None
    while True:
        if not chosen and (total or not guide):
            return None
        text = redact(fixed.with_lines(chosen, _missing(material, total - len(chosen))))
        tokens = approximate_tokens(text)
        if tokens <= budget:
            break
        if not chosen:
            return None
        chosen.pop()
    included = [line.id for line in chosen if line.id]
    return Prompt(text, tokens, material.scope, included, _left_out(material, page, chosen))


def _left_out(material: SectionInput, page: _SectionLines, chosen: list[_SectionLine]) -> list[LeftOutEntry]:
    """Return what is not in the section and why, in the order of its usefulness."""
    inside = {line.id for line in chosen}
    left = [*page.left, *(LeftOutEntry(line.id, "budget") for line in page.lines if line.id and line.id not in inside)]
    left += [LeftOutEntry(name, "budget") for name in page.beyond]
    if sum(not line.id for line in chosen) < sum(not line.id for line in page.lines):
        left.append(LeftOutEntry("memory_summary.md", "budget"))
    places = {entry.id: place for place, entry in enumerate(material.entries)}
    return sorted(left, key=lambda each: places.get(each.id, len(places)))


class _SectionFrame(msgspec.Struct, frozen=True):
    """The text around the lines."""

    opening: str
    before: list[str]
    after: list[str]
    guide: str

    def with_lines(self, chosen: list[_SectionLine], missing: list[str] | None = None) -> str:
        """Return the whole section."""
        parts = [self.opening, *([self.guide, ""] if self.guide else []), *self.before]
        for heading in _ORDER:
            own = sorted((line for line in chosen if line.heading == heading), key=lambda line: not line.is_check)
            parts += [heading, *(line.text for line in own), ""] if own else []
        parts += [*(missing or []), *self.after]
        while parts[-1] == "":
            parts.pop()
        return "\n".join([*parts, CLOSING] if self.guide else [*filter(None, parts), CLOSING])


def _opening(material: SectionInput) -> str:
    named = harmless(material.clean(material.scope or ""), _MAX_NAME_BYTES)
    named = named.replace('"', "'").replace("<", "‹").replace(">", "›")
    return f'{SECTION_OPENING} project="{named}">' if named else f"{SECTION_OPENING}>"


def _around(material: SectionInput, guide: str, size: int) -> tuple[list[str], list[str], str]:
    """Return what stands before the lines, what stands after them, and the guidance."""
    if not guide:
        return [], [], ""
    profile = harmless(material.clean(material.profile), _MAX_PROFILE_BYTES)
    before = ["## The user", profile, ""] if profile else []
    after = _skills(material, int(size * _SKILLS_SHARE)) + _others(material, int(size * _NAMES_SHARE))
    return before, after, _guide(material, guide).strip("\n")


def _missing(material: SectionInput, count: int) -> list[str]:
    more = "1 more line" if count == 1 else f"{count} more lines"
    return [f"Left out for lack of room: {more}; {_say(material, 'more')}.", ""] if count else []


def _skills(material: SectionInput, size: int) -> list[str]:
    own = [skill for skill in material.skills if skill.is_for(material.scope)]
    lines = [
        f"- {harmless(material.clean(skill.name), _MAX_NAME_BYTES)}: "
        f"{harmless(material.clean(skill.description), _MAX_DESCRIPTION_BYTES)} "
        f"(`{harmless(skill.path, 2 * _MAX_NAME_BYTES)}`)"
        for skill in own
    ]
    shown = _fitting(lines, size)
    more = [f"- {len(own) - len(shown)} more in `skills/`"] if len(own) > len(shown) else []
    return ["## Skills (open the file when one fits)", *shown, *more, ""] if own else []


def _others(material: SectionInput, size: int) -> list[str]:
    names = [name for each in material.others if (name := harmless(material.clean(each), _MAX_NAME_BYTES))]
    shown = _fitting(names, size)
    if not shown:
        return []
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ["## Other projects", f"{', '.join(shown)}{more}. {_say(material, 'others')}", ""]


def _fitting(texts: list[str], size: int) -> list[str]:
    """Return the first texts that fit."""
    taken = list(accumulate(len(text.encode()) + 2 for text in texts))
    return [text for text, end in zip(texts, taken, strict=True) if end <= size]


@cache
def _texts() -> dict[str, str]:
    data = package_files.text("memory/recall/guide.toml")
    return tomllib.loads(data)


def _named(tools: Iterable[str]) -> dict[str, str]:
    """Return the memory tools that an agent has, each with the name by which it knows it (`memories.search`)."""
    return {name.rpartition(".")[2]: name for name in tools}


def _say(material: SectionInput, what: str) -> str:
    tools = _named(material.tools)
    text = _texts()[f"{what}_with_{'tools' if tools.keys() >= TOOLS else 'files'}"]
    return _PLACE.sub(lambda found: tools.get(found[1], found[0]), text)


def _note(material: SectionInput) -> str:
    """Return how the agent asks for a change of the memory."""
    tools = _named(material.tools)
    if NOTE_TOOL in tools:
        return _texts()["note_with_tools"].replace("$adding", tools[NOTE_TOOL])
    return _texts()["note_with_command" if tools else "note_with_files"]


def _guide(material: SectionInput, name: str) -> str:
    """Return how to use the memory, in many words, few or none; what is filled in is not looked at again."""
    if not name:
        return ""
    root = harmless(material.root, 1_000)
    cite = _texts()["cite"].rstrip("\n") if material.cites else ""
    values = {"root": root, "look": _say(material, "look"), "note": _note(material), "cite": cite}
    values = {key: value.replace("$root", root) for key, value in values.items()}
    return _PLACE.sub(lambda found: values[found[1]], _texts()[name])

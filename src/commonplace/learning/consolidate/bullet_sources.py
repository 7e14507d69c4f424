"""From the bullets of a memory back to what was learned: whoever worded them, each rests on what sessions taught.

A bullet that says what an entry says, in the same scope, is that entry. One that a model reworded, or made of several,
rests on the entries that share most of its words; it keeps the id of the nearest, so that what is known about an entry
(pins, history, use) stays with it. Entries that were superseded are known too, so that a bullet that says only what no
longer holds can be told.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final, cast

import msgspec

from commonplace.learning.consolidate.merge import MergedLessons
from commonplace.memory import similarity
from commonplace.memory.entries import GLOBAL, SECTION_OF, Entry, Kind, Section, Source, entry_id, normal
from commonplace.memory.files import existing_handbook
from commonplace.memory.files import handbook as reader
from commonplace.memory.similarity import ComparedWords
from commonplace.patterns import regex

_SHARE: Final = 0.6
"""How much of the shorter of two texts the longer one must hold, by the weight of its words."""
_SHARED: Final = 2
"""How many words a bullet and an entry must share, unless one of them has fewer."""
_WORDINGS: Final = 12
"""How many wordings of an entry are compared: sessions say the same in few ways."""
_NEAR: Final = 24
"""How many of the nearest entries are compared in full."""
_LOOKED: Final = 600
"""How many entries are counted before rare words alone must do."""
_MARK: Final = regex(r"\[Task (\d+)\]")
_SKILL: Final = "- Related skill: "
_PLAINEST: Final[dict[Section, Kind]] = {
    "User preferences": "preference",
    "Reusable knowledge": "environment",
    "Failures and how to do differently": "failure",
}


Key = tuple[str, str, str]
"""What makes a bullet another one: whom it is for, its section, and its words."""


class HandbookBullet(msgspec.Struct, frozen=True):
    """One bullet of `MEMORY.md`, and its position."""

    scope: str
    section: Section
    line: int
    text: str
    """The line as it stands."""
    statement: str
    """What it says, as an entry has it."""
    block: int
    """Which block it stands in, counted from 0."""

    @property
    def key(self) -> Key:
        """What makes it another bullet: whom it is for, what it is, and its words; not the tasks that it names."""
        return (self.scope, self.section, self.statement)

    @property
    def marks(self) -> list[int]:
        """The tasks that it names."""
        return [int(number) for number in _MARK.findall(self.text)]


def bullets(text: str) -> list[HandbookBullet]:
    """Return what a `MEMORY.md` says, line by line."""
    return [
        HandbookBullet(
            block.scope or GLOBAL,
            cast("Section", section),
            line.number,
            line.text,
            existing_handbook.bullet_text(line.text),
            place,
        )
        for place, block in enumerate(reader.parse(text)[0])
        for section, lines in block.lessons.items()
        for line in lines
        if line.text.startswith("- ") and not line.text.startswith(_SKILL)
    ]


class SourcedBullet(msgspec.Struct):
    """A bullet, its entry, and the learned entries that it rests on."""

    bullet: HandbookBullet
    entry: Entry
    rests: list[Entry]
    """What was learned; empty if that cannot be told."""


class LearnedEntries:
    """Everything that sessions and notes taught, searchable by the words of a bullet."""

    def __init__(self, merged: MergedLessons, others: Iterable[Entry] = ()) -> None:
        self._entries = [*merged.entries, *others]
        self._live = len(self._entries)
        self._entries += [old for old, _ in merged.replaced]
        self._gone = {id(entry) for entry in self._entries[self._live :]}
        self._exact: dict[tuple[str, str], int] = {}
        self._by_word: dict[tuple[str, str], list[int]] = defaultdict(list)
        for number, entry in enumerate(self._entries):
            self._exact.setdefault((entry.scope, normal(entry.text)), number)
            for word in {word for words in wordings(entry) for word in words.handles}:
                self._by_word[(entry.scope, word)].append(number)

    def entries_behind(self, bullet: HandbookBullet) -> list[Entry]:
        """Return the entries that a bullet rests on, the nearest first; replaced ones only if there are no others."""
        exact = self._exact.get((bullet.scope, normal(bullet.statement)))
        if exact is not None and exact < self._live:
            return [self._entries[exact]]
        numbers = self._near(bullet)
        if exact is not None:
            numbers.insert(0, exact)
        live = [number for number in numbers if number < self._live]
        return [self._entries[number] for number in (live or numbers)]

    def is_over(self, bullet: HandbookBullet) -> bool:
        """Say whether a bullet says only what no longer holds."""
        found, said = self.entries_behind(bullet), similarity.words(bullet.statement)
        return bool(found) and all(
            id(entry) in self._gone
            and (entry.text == bullet.statement or any(similarity.is_same(each, said) for each in wordings(entry)))
            for entry in found
        )

    def _near(self, bullet: HandbookBullet) -> list[int]:
        told, said = bullet.statement, similarity.words(bullet.statement)
        shared: Counter[int] = Counter()
        looked = 0
        listed = sorted((self._by_word.get((bullet.scope, word), []) for word in said.handles), key=len)
        for numbers in listed:  # the rare words first
            looked += len(numbers)
            if looked > _LOOKED and shared:
                break
            shared.update(numbers)
        ranked = sorted(shared, key=lambda number: (-shared[number], number))[:_NEAR]
        close = {number: closeness(told, self._entries[number]) for number in ranked}
        fitting = [number for number in ranked if close[number] >= _SHARE]
        return sorted(fitting, key=lambda number: (-close[number], -shared[number], number))


def wordings(entry: Entry) -> list[ComparedWords]:
    """Return in which words an entry is known: its own, and those that taught it."""
    texts = dict.fromkeys([entry.text, *(source.quote for source in entry.sources)])
    return [similarity.words(text) for text in list(texts)[:_WORDINGS] if text]


def closeness(told: str, entry: Entry) -> float:
    """Return how near a bullet is to the nearest wording of an entry; nothing if they contradict.

    Only what people say contradicts; of what commands showed, the numbers and names tell whether it is the same.
    """
    is_said = any(source.is_by_person for source in entry.sources)
    return max((_nearness(told, each, is_said=is_said) for each in wordings(entry)), default=0.0)


def _nearness(told: str, taught: ComparedWords, *, is_said: bool) -> float:
    """Return how much of the shorter of two texts the other holds; nothing if they share too little or contradict.

    What a bullet says before and after its arrow is looked at apart: a denial does not reach across it.
    """
    said = similarity.words(told)
    shared = said.about & taught.about
    least = min(len(said.about), len(taught.about))
    if not least or len(shared) < min(_SHARED, least):
        return 0.0
    if is_said and _contradicts(told, taught):
        return 0.0
    return similarity.weight(shared) / min(said.weight, taught.weight)


def _contradicts(told: str, taught: ComparedWords) -> bool:
    """Say whether a bullet wants what somebody refused, or refuses what they wanted."""
    for place, part in enumerate(told.split("->")):
        said = similarity.words(part)
        wanted, refused = said.denied & taught.about, taught.denied & said.about
        if wanted and not wanted & taught.denied:
            return True
        if place == 0 and refused and not refused & said.denied:  # after the arrow may stand what to do instead
            return True
        if said.about and similarity.clash(taught, said):
            return True
    return False


def trace(
    handbook_bullets: list[HandbookBullet],
    learned: LearnedEntries,
    fallback: dict[Key, Entry],
    settled: dict[Key, SourcedBullet] | None = None,
) -> list[SourcedBullet]:
    """Return the entries that bullets are.

    Args:
        found: the bullets.
        learned: what they may rest on.
        fallback: what bullets are that rest on nothing known, by their keys.
        settled: bullets of which it is known already; they stay what they are.
    """
    known = settled or {}
    rests = [known[each.key].rests if each.key in known else learned.entries_behind(each) for each in handbook_bullets]
    taken = {known[each.key].entry.id for each in handbook_bullets if each.key in known}
    is_exact = [
        bool(own) and normal(own[0].text) == normal(each.statement)
        for each, own in zip(handbook_bullets, rests, strict=True)
    ]
    traced: dict[int, SourcedBullet] = {}
    for place in sorted(
        range(len(handbook_bullets)), key=lambda place: not is_exact[place]
    ):  # who says just that comes first
        bullet, own = handbook_bullets[place], rests[place]
        if bullet.key in known:
            traced[place] = SourcedBullet(bullet, known[bullet.key].entry, own)
        elif not own:
            traced[place] = SourcedBullet(bullet, fallback[bullet.key], own)
        else:
            spare = next((each.id for each in own if each.id not in taken), None)
            entry = _entry(bullet, own, spare or entry_id(bullet.scope, _PLAINEST[bullet.section], bullet.statement))
            taken.add(entry.id)
            traced[place] = SourcedBullet(bullet, entry, own)
    return [traced[place] for place in range(len(handbook_bullets))]


def _entry(bullet: HandbookBullet, rests: list[Entry], name: str) -> Entry:
    main = rests[0]
    if (
        len(rests) == 1
        and main.id == name
        and main.text == bullet.statement
        and SECTION_OF[main.kind] == bullet.section
    ):
        return main
    kinds: list[Kind] = [each.kind for each in rests if SECTION_OF[each.kind] == bullet.section]
    sources = list(dict.fromkeys(source for each in rests for source in each.sources))
    return Entry(
        name,
        bullet.scope,
        kinds[0] if kinds else _PLAINEST[bullet.section],
        bullet.statement,
        len({_origin(source) for source in sources}),
        sources,
        min(each.first_seen_s for each in rests),
        max(each.last_seen_s for each in rests),
    )


def _origin(source: Source) -> str:
    return source.note or source.thread_id or ""

"""Packing a digest: choosing what a session will need next, within a number of bytes.

The person's words, what they laid down, the plan and the last answer come first, each with its share. Then everything
else competes: a line gains, for each name in it, the chance that the name is used again, times how much better it is
told than before; whatever gains most for its bytes goes in until nothing fits. Greedy, lazy, the same every time.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final, Literal

import msgspec

from commonplace.context.digest import constraints, plain_words
from commonplace.context.digest.names import Kind
from commonplace.context.digest.tally import CommandRun, Tally

BARE: Final = 0.5
"""What a name counts for that stands alone, beside one that a line tells something about."""
_SAID: Final = 0.45
"""The share of a digest for the person's messages."""
_FIRST: Final = 0.03
"""The share of a digest for the very first message."""
_LAID_DOWN: Final = 0.10
"""The share of a digest for constraints from messages that are not kept whole."""
_PLAN: Final = 0.06
"""The share of a digest for the open plan."""
_LAST: Final = 0.05
"""The share of a digest for the last answers."""
_TOP: Final = 400
"""For this many names, the likeliest to be needed, lines of outputs are considered."""
_CONTEXT_LINE: Final = 170
"""How many characters of an output's line are shown."""
_ROOMY: Final = 600
"""If more bytes than this are left, the last calls and outputs are added."""
_FINDING: Final = (
    "because",
    "found",
    "cause",
    "fixed",
    "works",
    "turns out",
    "instead",
    "decided",
    "root",
    "needs",
    "is that",
)
Section = Literal["findings", "commands", "errors", "files", "also"]


class DigestLine(msgspec.Struct):
    """A line that competes for room in a digest."""

    section: Section
    text: str
    names: tuple[int, ...]
    step: int
    level: float
    bonus: float = 0.0
    file: int | None = None

    @property
    def size(self) -> int:
        """How many bytes it takes with its line break and its mark."""
        return len(self.text.encode("utf-8", "replace")) + 3


class DigestContents(msgspec.Struct):
    """The contents of a digest."""

    messages: list[tuple[int, str]] = []
    """The person's messages: step and text, oldest first."""
    constraint_lines: list[str] = []
    plan: list[tuple[bool, str]] = []
    last: list[str] = []
    lines: list[DigestLine] = []
    bare: list[int] = []
    """Names without a line, the most needed first."""
    recent: list[str] = []
    """What happened last, where there is room for it."""


class _Room:
    def __init__(self, size: int, chances: list[float]) -> None:
        self.left = size
        self.chances = chances
        self.levels = [0.0] * len(chances)

    def take(self, text: str, overhead: int = 3) -> bool:
        """Take room for a text if there is any."""
        cost = len(text.encode("utf-8", "replace")) + overhead
        if cost > self.left:
            return False
        self.left -= cost
        return True

    def tell(self, names: Iterable[int], level: float) -> None:
        """Note that names are told now."""
        for name in names:
            if name < len(self.levels):
                self.levels[name] = max(self.levels[name], level)

    def gain(self, line: DigestLine) -> float:
        """Return what a line would bring."""
        levels, chances = self.levels, self.chances
        return line.bonus + sum(
            chances[name] * (line.level - levels[name])
            for name in line.names
            if name < len(levels) and levels[name] < line.level
        )


class DigestMaterial(msgspec.Struct, frozen=True):
    """The material of digests of one moment, whatever their size."""

    chances: list[float]
    lines: list[DigestLine]


def material(tally: Tally, chances: list[float]) -> DigestMaterial:
    """Return what digests of a session, as it is now, are made of."""
    return DigestMaterial(chances, list(_candidates(tally, chances)))


def pack(tally: Tally, known: DigestMaterial, size: int, beside: Sequence[str] = ()) -> DigestContents:
    """Choose what goes into a digest of so many bytes; messages that stand beside it are told already."""
    room = _Room(size, known.chances)
    packed = DigestContents()
    for text in beside:
        room.tell(tally.names.count(text), 1.0)
    _say(tally, packed, room, size, set(beside))
    _lay_down(tally, packed, room, size, beside)
    _plan(tally, packed, room, size)
    _last(tally, packed, room, size)
    _compete(tally, packed, room, known.lines)
    if room.left > _ROOMY:
        for said in reversed(tally.recent):
            if not room.take(said.text):
                break
            packed.recent.insert(0, said.text)
    return packed


def clipped(text: str, size: int) -> str:
    """Return a text in at most so many bytes: its head, a mark, and its tail."""
    data = text.encode("utf-8", "replace")
    if len(data) <= size:
        return text
    if size < 24:
        return data[:size].decode(errors="ignore")
    head = int((size - 5) * 0.7)
    tail = size - 5 - head
    return (
        f"{data[:head].decode(errors='ignore').rstrip()} … {data[len(data) - tail :].decode(errors='ignore').lstrip()}"
    )


def _say(tally: Tally, packed: DigestContents, room: _Room, size: int, beside: Set[str]) -> None:
    """Keep the person's messages, the newest first, and the very first."""
    share = int(_SAID * size)
    chosen: dict[int, str] = {}
    left = [said for said in tally.said if said.text not in beside]
    first = tally.first_said
    if first is not None and first.text not in beside and first is not (left[-1] if left else None):
        chosen[first.step] = clipped(first.text, max(int(_FIRST * size), 40))
        share -= len(chosen[first.step].encode())
    for place, said in enumerate(reversed(left)):
        text = clipped(said.text, int(share_of(place) * _SAID * size))
        cost = len(text.encode("utf-8", "replace")) + 3
        earlier = len(chosen.get(said.step, "").encode())
        if cost - earlier <= share:
            chosen[said.step] = text
            share -= cost - earlier
    for step in sorted(chosen):
        if room.take(chosen[step]):
            packed.messages.append((step, chosen[step]))
            room.tell(tally.names.count(chosen[step]), 1.0)


def share_of(place: int) -> float:
    """Return how much of the messages' room one may have: the newest half, others a quarter."""
    return 0.5 if place == 0 else 0.25


def _lay_down(tally: Tally, packed: DigestContents, room: _Room, size: int, beside: Sequence[str]) -> None:
    """Keep what the person laid down in messages that are not here whole."""
    whole = "\n".join([*beside, *(text for _, text in packed.messages)])
    left = int(_LAID_DOWN * size)
    for said in reversed(tally.said):
        for sentence in constraints.constraints_in(said.text):
            cost = len(sentence.encode("utf-8", "replace")) + 3
            if (
                sentence not in whole
                and sentence not in packed.constraint_lines
                and cost <= left
                and room.take(sentence)
            ):
                packed.constraint_lines.append(sentence)
                left -= cost
                room.tell(tally.names.count(sentence), 1.0)
    packed.constraint_lines.reverse()


def _plan(tally: Tally, packed: DigestContents, room: _Room, size: int) -> None:
    left = int(_PLAN * size)
    for is_open, step in sorted(tally.plan, key=lambda each: not each[0]):
        cost = len(step.encode("utf-8", "replace")) + 6
        if cost <= left and room.take(step, 6):
            packed.plan.append((is_open, step))
            left -= cost
            room.tell(tally.names.count(step), 1.0)


def _last(tally: Tally, packed: DigestContents, room: _Room, size: int) -> None:
    """Keep the last answer, and the last long one."""
    answers = [each for each in (tally.long_answer, *list(tally.answers)[-1:]) if each is not None]
    texts = list(dict.fromkeys(each.text for each in answers))
    for text in reversed(texts):
        short = clipped(text, int(_LAST * size / max(len(texts), 1)))
        if short and room.take(short):
            packed.last.insert(0, short)
            room.tell(tally.names.count(short), 1.0)


def _compete(tally: Tally, packed: DigestContents, room: _Room, lines: list[DigestLine]) -> None:
    """Let everything else compete for what room is left."""
    headers: set[int] = set()
    heap: list[tuple[float, int, DigestLine | int]] = []
    for place, line in enumerate(lines):
        gain = room.gain(line)
        if gain > 0:
            heap.append((-gain / line.size, place, line))
    known = tally.names.known
    for number, chance in enumerate(room.chances):
        if chance > 0 and room.levels[number] < BARE and known[number].kind is not Kind.MESSAGE:
            heap.append((-BARE * chance / (len(known[number].text) + 1), -number - 1, number))
    heapq.heapify(heap)
    while heap and room.left > 0:
        value, place, item = heapq.heappop(heap)
        fresh = _worth(item, room, tally, headers)
        if fresh <= 0:
            continue
        if heap and fresh < -heap[0][0]:
            heapq.heappush(heap, (-fresh, place, item))
            continue
        del value
        if isinstance(item, int):
            if room.take(known[item].text, 1):
                packed.bare.append(item)
                room.tell((item,), BARE)
            continue
        if room.take(item.text, 3 + _header(item, tally, headers)):
            packed.lines.append(item)
            room.tell(item.names, item.level)
            if item.file is not None:
                headers.add(item.file)
                room.tell((item.file,), item.level)


def _worth(item: DigestLine | int, room: _Room, tally: Tally, headers: set[int]) -> float:
    """Return what something brings now for each of its bytes."""
    if isinstance(item, int):
        return room.chances[item] * max(0.0, BARE - room.levels[item]) / (len(tally.names.known[item].text) + 1)
    return room.gain(item) / (item.size + _header(item, tally, headers))


def _header(line: DigestLine, tally: Tally, headers: set[int]) -> int:
    if line.file is None or line.file in headers:
        return 0
    return len(tally.names.known[line.file].text) + 8


def _fade(tally: Tally, step: int, steps: float) -> float:
    return 2.718281828 ** (-(tally.step - step) / steps)


def _level(text: str) -> float:
    return 1.0 if plain_words.says_something(text) else BARE


def _candidates(tally: Tally, chances: list[float]) -> Iterator[DigestLine]:
    for told in tally.sentences:
        low = told.text.lower()
        weight = 0.03 * _fade(tally, told.step, 25) * min(1.0, len(told.text) / 120)
        bonus = weight if any(word in low for word in _FINDING) else 0.0
        yield DigestLine("findings", told.text, tally.names_in(told), told.step, _level(told.text), bonus)
    for ran in tally.commands.values():
        yield _command(tally, ran)
    for told in tally.errors:
        bonus = 0.05 * _fade(tally, told.step, 15)
        yield DigestLine("errors", told.text, tally.names_in(told), told.step, _level(told.text), bonus)
    for told in (*tally.edits, *tally.definitions):
        bonus = 0.02 * _fade(tally, told.step, 10) if told.is_first else 0.0
        names = tally.names_in(told) if told.file is None else (told.file, *tally.names_in(told))
        yield DigestLine("files", told.text, names, told.step, _level(told.text), bonus, told.file)
    yield from _context(tally, chances)


def _command(tally: Tally, ran: CommandRun) -> DigestLine:
    mark = {True: " → ok", False: " → FAILED", None: " →" if ran.error else ""}[ran.ok]
    text = f"{ran.line}{mark} {ran.error[:110]}".rstrip()
    return DigestLine(
        "commands", text, (ran.name, *tally.names.count(text)), ran.step, 1.0, 0.02 * _fade(tally, ran.step, 25)
    )


def _context(tally: Tally, chances: list[float]) -> Iterator[DigestLine]:
    """Yield, for the names that are most likely to be needed, the newest lines of output that hold them."""
    top = sorted(range(len(chances)), key=lambda number: -chances[number])[:_TOP]
    wanted = dict.fromkeys(top, 2)
    for told in tally.shown_lines():
        names = tally.names_in(told)
        held = [name for name in names if wanted.get(name, 0) > 0]
        if held:
            for name in held:
                wanted[name] -= 1
            yield DigestLine("findings", told.text[:_CONTEXT_LINE], names, told.step, _level(told.text))
        if not any(wanted.values()):
            return

"""How many ways can a regular expression match the same text? An exact test on its automaton, without a clock.

Python's `re` tries the ways one after the other. Where the number of ways grows with the length of a text, the time
grows faster than the text. `findings` reads an expression with Python's own parser and builds its position automaton:
one state for each character that it can take. Two properties make an expression slow (Weber and Seidl 1991):

    exponential   a state comes back to itself by two different paths that read the same text
    polynomial    two loops read the same text, and one leads to the other, so the border can be anywhere between them

A `search` tries every start, which is a loop before the expression: `\\s+x` is quadratic although it is not ambiguous.

The test errs on the strict side. A repeat with an upper bound counts as one without, because `{0,40}` is slow long
before it is infinite. Lower bounds above two and fixed counts above eight are shortened. A back reference reads
whatever its group reads. Repeats that give nothing back (`++`, `{0,9}+`) and atomic groups end at one place for each
start, so two paths that part inside of one do not count; their inside is tested by itself. A loop that may end anywhere
cannot fail, and what cannot fail is not tried again.
"""

# pyright: basic, reportPrivateUsage=false
from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cache
from re import _compiler, _constants, _parser  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from typing import Any, Final, NamedTuple, TypeVar

_C: Final[Any] = _constants
_PARSER: Final[Any] = _parser
_COMPILER: Final[Any] = _compiler
LONG: Final = 1024
"""A searched expression may look this far at every place; a repeat with a higher bound counts as endless there."""
_FIXED: Final = 8
_LEAST: Final = 2
_SHORT: Final = 4
"""A repeat of at most so many is written out, a longer one counts as endless."""
_SIZE: Final = 4000
"""An automaton with more states is an error of the test and not a verdict."""
_REPEATS: Final = (_C.MAX_REPEAT, _C.MIN_REPEAT, _C.POSSESSIVE_REPEAT)
_SAMPLES: Final = "".join(map(chr, range(0x180))) + "ʼ\u0301\u0660Жж\u2003\u2014\u2028→↵\u3000中\uff1a\uff10\U0001f600"
"""Characters that stand for all of Unicode; those that an expression names are added."""


Node = TypeVar("Node", bound=Hashable)


class Ambiguity(NamedTuple):
    """Why an expression is slow: the degree, and a text whose repetition shows it."""

    degree: str
    pump: str


class Gap(NamedTuple):
    """A way to match nothing: which characters may follow and precede, whether the text may end, what else is asked."""

    follows: int
    precedes: int
    ends: bool = True
    asks: bool = False


class _Edge(NamedTuple):
    """A step from a state to another: what is read, and what must have been read before."""

    before: int
    after: int
    reads: int
    asks: int


class _Part(NamedTuple):
    """A part of an expression: how it matches nothing, the states that begin it, the states that end it."""

    gaps: list[Gap]
    first: list[tuple[int, Gap]]
    last: list[tuple[int, Gap]]


class _Automaton:
    """The position automaton of an expression; sets of characters are bits of integers."""

    def __init__(self, alphabet: str | bytes, *, endless: int) -> None:
        self.alphabet = alphabet
        self.full = (1 << len(alphabet)) - 1
        self.endless = endless
        self.reads: list[int] = []
        self.inside: list[frozenset[int]] = []
        self.edges: list[_Edge] = []
        self.groups: dict[int, Any] = {}
        self.bodies: list[tuple[Any, int]] = []
        self.free = Gap(self.full, self.full)
        self._atoms: list[int] = []
        self._atom_count = 0

    def state(self, reads: int) -> _Part:
        assert len(self.reads) < _SIZE
        self.reads.append(reads)
        self.inside.append(frozenset(self._atoms))
        place = len(self.reads) - 1
        return _Part([], [(place, self.free)], [(place, self.free)])

    def join(self, last: list[tuple[int, Gap]], first: list[tuple[int, Gap]]) -> None:
        for before, end in last:
            for after, begin in first:
                gap = _both(end, begin)
                reads = self.reads[after] & gap.follows
                if reads and self.reads[before] & gap.precedes:
                    self.edges.append(_Edge(before, after, reads, gap.precedes))

    def sequence(self, parts: Iterable[_Part]) -> _Part:
        whole = _Part([self.free], [], [])
        for part in parts:
            self.join(whole.last, part.first)
            whole = _Part(
                _few(_both(one, two) for one in whole.gaps for two in part.gaps),
                whole.first + [(at, _both(gap, one)) for at, one in part.first for gap in whole.gaps],
                part.last + [(at, _both(one, gap)) for at, one in whole.last for gap in part.gaps],
            )
        return whole

    def either(self, parts: list[_Part]) -> _Part:
        return _Part(
            _few(gap for part in parts for gap in part.gaps),
            [one for part in parts for one in part.first],
            [one for part in parts for one in part.last],
        )

    def start(self, part: _Part) -> int:
        """Add the state in which a search is before the expression begins, and return it."""
        state = self.state(self.full)
        self.join(state.last, state.first)
        self.join(state.last, part.first)
        return state.first[0][0]

    def build(self, items: Any, flags: int) -> _Part:
        return self.sequence([self._item(kind, value, flags) for kind, value in items])

    def _item(self, kind: Any, value: Any, flags: int) -> _Part:
        if kind in (_C.LITERAL, _C.NOT_LITERAL, _C.ANY, _C.IN):
            return self.state(_reads(self.alphabet, kind, _key(value), flags))
        if kind in _REPEATS:
            return self._repeat(kind, value, flags)
        if kind is _C.BRANCH:
            return self.either([self.build(one, flags) for one in value[1]])
        if kind is _C.SUBPATTERN:
            number, added, dropped, items = value
            self.groups[number] = (items, (flags | added) & ~dropped)
            return self.build(items, (flags | added) & ~dropped)
        if kind is _C.ATOMIC_GROUP:
            return self._atomic(value, flags)
        if kind in (_C.ASSERT, _C.ASSERT_NOT):
            return self._look(value, flags, wanted=kind is _C.ASSERT)
        if kind is _C.AT:
            return _Part(self._anchor(value, flags), [], [])
        if kind is _C.GROUPREF:
            items, flags = self.groups[value]
            return self.build(items, flags)
        if kind is _C.GROUPREF_EXISTS:
            return self.either([self.build(one, flags) for one in value[1:] if one is not None] or [self._nothing()])
        raise AssertionError(f"an expression with {kind}")

    def _nothing(self) -> _Part:
        return _Part([self.free], [], [])

    def _atomic(self, items: Any, flags: int) -> _Part:
        if len(items) == 1 and items[0][0] is _C.MAX_REPEAT:  # `(?>a*)` is `a*+`
            return self._repeat(_C.POSSESSIVE_REPEAT, items[0][1], flags)
        self.bodies.append((items, flags))
        self._atom_count += 1
        self._atoms.append(self._atom_count)
        part = self.build(items, flags)
        self._atoms.pop()
        return part

    def _repeat(self, kind: Any, value: Any, flags: int) -> _Part:
        least, most, items = value
        if kind is _C.POSSESSIVE_REPEAT:
            self.bodies.append((items, flags))
            self._atom_count += 1
            self._atoms.append(self._atom_count)
            part = self._repeat(_C.MAX_REPEAT, value, flags)
            self._atoms.pop()
            return part
        copies = [self.build(items, flags) for _ in range(min(least, _FIXED if least == most else _LEAST))]
        if most == least:
            return self.sequence(copies)
        rest = self._nothing()
        for _ in range(1 if most >= self.endless else min(most - least, _SHORT)):
            body = self.sequence([self.build(items, flags), rest])
            rest = _Part(_few([self.free, *body.gaps]), body.first, body.last)
        if most >= self.endless:
            self.join(rest.last, rest.first)
        return self.sequence([*copies, rest])

    def _look(self, value: Any, flags: int, *, wanted: bool) -> _Part:
        """An expression that is looked at without being read: a path that leads nowhere."""
        direction, items = value
        alone = _one_character(items)
        if alone is not None:
            reads = 0
            for kind, inner in alone:
                reads |= _reads(self.alphabet, kind, _key(inner), flags)
            allowed = reads if wanted else self.full & ~reads
            gap = Gap(allowed, self.full, ends=not wanted) if direction > 0 else Gap(self.full, allowed)
            return _Part([gap], [], [])
        if direction < 0:
            nearest = _one_character(items[-1:]) if wanted and len(items) else None
            before = 0
            for kind, inner in nearest or ():
                before |= _reads(self.alphabet, kind, _key(inner), flags)
            return _Part([Gap(self.full, before or self.full, asks=True)], [], [])
        part = self.build(items, flags)
        return _Part([Gap(self.full, self.full, asks=True)], part.first, [])

    def _anchor(self, value: Any, flags: int) -> list[Gap]:
        full, line = self.full, _reads(self.alphabet, _C.LITERAL, 10, flags)
        if value in (_C.AT_BEGINNING, _C.AT_BEGINNING_STRING):
            many = value is _C.AT_BEGINNING and flags & re.MULTILINE
            return [Gap(full, line if many else 0)]
        if value in (_C.AT_END, _C.AT_END_STRING):
            many = value is _C.AT_END and flags & re.MULTILINE
            return [Gap(line if many else 0, full)]
        word = _reads(self.alphabet, _C.IN, ((_C.CATEGORY, _C.CATEGORY_WORD),), flags)
        other = full & ~word
        if value is _C.AT_BOUNDARY:
            return [Gap(word, other, ends=False), Gap(other, word)]
        return [Gap(word, word, ends=False), Gap(other, other)]


def _both(one: Gap, two: Gap) -> Gap:
    return Gap(one.follows & two.follows, one.precedes & two.precedes, one.ends and two.ends, one.asks or two.asks)


def _few(gaps: Iterable[Gap]) -> list[Gap]:
    """Keep each way to match nothing at most twice: more ways say nothing new."""
    kept: list[Gap] = []
    for gap in gaps:
        if kept.count(gap) < 2:
            kept.append(gap)
    return kept


def _key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _one_character(items: Any) -> list[tuple[Any, Any]] | None:
    """Return the alternatives of an expression that is always one character, or None."""
    if len(items) != 1:
        return None
    kind, value = items[0]
    if kind in (_C.LITERAL, _C.NOT_LITERAL, _C.ANY, _C.IN):
        return [(kind, value)]
    if kind is _C.SUBPATTERN and not value[1] and not value[2]:
        return _one_character(value[3])
    if kind is _C.BRANCH:
        found = [_one_character(one) for one in value[1]]
        return None if None in found else [one for part in found for one in part or ()]
    return None


@cache
def _reads(alphabet: str | bytes, kind: Any, value: Any, flags: int) -> int:
    """Return which characters of the alphabet one element reads, asked of Python itself."""
    state = _PARSER.State()
    state.flags = flags
    state.str = alphabet
    items = _PARSER.SubPattern(state, [(kind, list(value) if isinstance(value, tuple) and kind is _C.IN else value)])
    pattern: Any = _COMPILER.compile(items, flags)
    found = 0
    for place in range(len(alphabet)):
        if pattern.match(alphabet[place : place + 1]):
            found |= 1 << place
    return found


def _named(items: Any) -> Iterator[int]:
    """Yield the characters that an expression names, and their neighbours."""
    for kind, value in items:
        if kind in (_C.LITERAL, _C.NOT_LITERAL):
            yield value
        elif kind is _C.RANGE:
            yield from (value[0] - 1, *value, value[1] + 1)
        elif kind is _C.IN:
            yield from _named(value)
        elif kind is _C.BRANCH:
            for one in value[1]:
                yield from _named(one)
        elif kind is _C.SUBPATTERN:
            yield from _named(value[3])
        elif kind in _REPEATS:
            yield from _named(value[2])
        elif kind in (_C.ASSERT, _C.ASSERT_NOT):
            yield from _named(value[1])
        elif kind is _C.ATOMIC_GROUP:
            yield from _named(value)


def has_possessive_groups(pattern: str | bytes, flags: int = 0) -> bool:
    """Say whether an expression has a group that is repeated and gives nothing back (`(?:ab)*+`)."""
    return any(map(_is_possessive_group, _nodes(_PARSER.parse(pattern, flags))))


def _is_possessive_group(node: Any) -> bool:
    return node[0] is _C.POSSESSIVE_REPEAT and not _COMPILER._simple(node[1][2])


def _nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every node of a parsed expression: an operation and what it is about."""
    if isinstance(value, _PARSER.SubPattern):
        for node in value:
            yield node
            yield from _nodes(node[1])
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _nodes(one)


def findings(pattern: str | bytes, flags: int = 0, *, searched: bool = True, whole: bool = False) -> list[Ambiguity]:
    """Return why an expression may take more than linear time; nothing if it cannot.

    It may be searched for, or tried at one place only; and it may have to match to the end of the text.
    """
    parsed = _PARSER.parse(pattern, flags)
    flags = parsed.state.flags
    if whole:
        parsed = [(_C.SUBPATTERN, (None, 0, 0, parsed)), (_C.AT, _C.AT_END_STRING)]
    alphabet: str | bytes = bytes(range(256))
    if isinstance(pattern, str):
        more = {chr(one) for one in _named(parsed) if 0 < one < 0x110000} - set(_SAMPLES)
        alphabet = _SAMPLES + "".join(sorted(more))
    found: list[Ambiguity] = []
    pending = [(parsed, flags)]
    while pending:
        items, own = pending.pop()
        automaton = _Automaton(alphabet, endless=_SHORT + 1)
        part = automaton.build(items, own)
        found += _Graph(automaton, part).ambiguities()
        pending += automaton.bodies
    if searched:
        automaton = _Automaton(alphabet, endless=LONG)
        part = automaton.build(parsed, flags)
        start = automaton.start(part)
        found += _Graph(automaton, part).restarts(start)
    return list(dict.fromkeys(found))


class _Graph:
    """An automaton as a graph whose edges carry sets of characters; paths that read the same text are compared."""

    def __init__(self, automaton: _Automaton, part: _Part) -> None:
        self.full = automaton.full
        self.alphabet = automaton.alphabet
        self.copies = _split(automaton)
        """For each state of the automaton the states that stand for it, one for each set of characters it may read."""
        self.reads = [reads for copies in self.copies for reads in copies.values()]
        self.origin = [at for at, copies in enumerate(self.copies) for _ in copies]
        self.inside = [automaton.inside[at] for at, copies in enumerate(self.copies) for _ in copies]
        self.after: list[list[tuple[int, int]]] = [[] for _ in self.reads]
        for edge in automaton.edges:
            for before, read in self.copies[edge.before].items():
                for after, reads in self.copies[edge.after].items():
                    if read & edge.asks and reads & edge.reads:
                        self.after[before].append((after, reads & edge.reads))
        count = len(self.reads)
        self.component = components({at: {one for one, _ in self.after[at]} for at in range(count)})
        self.loops: dict[int, list[int]] = {}
        """The states of each component that can be gone through again and again."""
        for at in range(count):
            if any(self.component[one] == self.component[at] for one, _ in self.after[at]):
                self.loops.setdefault(self.component[at], []).append(at)
        quiet = {copy for at, gap in part.last for copy in self.copies[at] if self._is_enough(copy, gap)}
        inner = {at: {one for one, _ in self.after[at] if one not in quiet} for at in range(count) if at not in quiet}
        groups: dict[int, list[int]] = {}
        for at, number in components(inner).items():
            groups.setdefault(number, []).append(at)
        self.failing = [members for members in groups.values() if len(members) > 1 or members[0] in inner[members[0]]]
        """The loops that can fail: those that can be gone through without ever having matched."""

    def _is_enough(self, at: int, gap: Gap) -> bool:
        """Say whether the expression has matched for certain once a state is reached.

        Something may be asked of what follows a loop of one state. It is there if the loop reads it, so that giving
        back one character is enough, or if the loop reads everything else, so that it is there when the loop ends.
        """
        if gap == Gap(self.full, self.full):
            return True
        mine = [(one, reads) for one, reads in self.after[at] if self.component[one] == self.component[at]]
        if gap.asks or any(self.origin[one] != self.origin[at] for one, _ in mine) or self.reads[at] & ~gap.precedes:
            return False
        reads = 0
        for _, one in mine:
            reads |= one
        return bool(reads) and (not reads & ~gap.follows or (gap.ends and not self.full & ~reads & ~gap.follows))

    def ambiguities(self) -> list[Ambiguity]:
        """Return the ambiguities of a match that begins at one place."""
        twice = (self._exponential(members) for members in self.failing)
        border = (
            self._polynomial(loop, members)
            for number, loop in self.loops.items()
            for members in self.failing
            if self.component[members[0]] != number
        )
        return [
            *(Ambiguity("exponential", pump) for pump in twice if pump),
            *(Ambiguity("polynomial", pump) for pump in border if pump),
        ]

    def restarts(self, start: int) -> list[Ambiguity]:
        """Return the loops that a search enters again and again; the state before the expression is given."""
        starts = list(self.copies[start])
        again = (self._polynomial(starts, members) for members in self.failing if members[0] not in starts)
        return [Ambiguity("quadratic search", pump) for pump in again if pump]

    def _parts_inside(self, at: int, one: int, two: int) -> bool:
        """Say whether two paths part inside of something that gives nothing back, so that only one of them is taken."""
        inside = self.inside
        return bool(inside[at] & (inside[one] | inside[two]) or inside[one] & inside[two])

    def _exponential(self, members: list[int]) -> str | None:
        """Return a character at which two paths of a loop part that meet again."""
        within = set(members)
        parting: dict[tuple[int, int], set[tuple[int, int]]] = {}
        queue = [(at, at) for at in members]
        for one, two in queue:
            if (one, two) in parting:
                continue
            targets: set[tuple[int, int]] = set()
            parting[one, two] = targets
            for place, (to_one, reads_one) in enumerate(self.after[one]):
                for other, (to_two, reads_two) in enumerate(self.after[two]):
                    if not reads_one & reads_two or not within.issuperset((to_one, to_two)):
                        continue
                    if one == two and place != other and self._parts_inside(one, to_one, to_two):
                        continue
                    if one == two and place < other and to_one == to_two:
                        return self._text([reads_one & reads_two])
                    targets.add((to_one, to_two))
            queue.extend(targets)
        shared = components(parting)
        for (one, two), component in shared.items():
            if one != two and any(shared[at, at] == component for at in members):
                return self._text([self.reads[one] & self.reads[two]])
        return None

    def _polynomial(self, begin: list[int], end: list[int]) -> str | None:
        """Return a text that loops in one set of states, leads from it to another, and loops there."""
        here, there = set(begin), set(end)
        pairs: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for first in begin:
            for last in end:
                pairs[first, last] = {
                    (to_first, to_last)
                    for to_first, reads in self.after[first]
                    for to_last, too in self.after[last]
                    if reads & too and to_first in here and to_last in there
                }
        shared = components(pairs)
        tried: set[int] = set()
        for pair, targets in pairs.items():
            if shared[pair] not in tried and any(shared[target] == shared[pair] for target in targets):
                tried.add(shared[pair])
                if pump := self._between(*pair, here, there):
                    return pump
        return None

    def _between(self, one: int, two: int, here: set[int], there: set[int]) -> str | None:
        """Return a text that leads from a state to itself and to another one, and from that to itself."""
        start, goal = (one, one, two), (one, two, two)
        came: dict[tuple[int, int, int], tuple[tuple[int, int, int], int] | None] = {start: None}
        queue = [start]
        for at in queue:
            for first, reads_first in self.after[at[0]]:
                for last, reads_last in self.after[at[2]]:
                    both = reads_first & reads_last
                    if not both or first not in here or last not in there:
                        continue
                    for middle, reads_middle in self.after[at[1]]:
                        node = (first, middle, last)
                        if not both & reads_middle or (node in came and node != goal):
                            continue
                        if at[0] == at[1] and first != middle and self._parts_inside(at[0], first, middle):
                            continue
                        if node == goal:
                            return self._path(came, at, both & reads_middle)
                        came[node] = (at, both & reads_middle)
                        queue.append(node)
        return None

    def _path(self, came: dict[Any, tuple[Any, int] | None], at: Any, reads: int) -> str:
        letters = [reads]
        while (step := came[at]) is not None:
            at, reads = step
            letters.append(reads)
        return self._text(letters[::-1])

    def _text(self, letters: list[int]) -> str:
        """Return one character of each set, as Python would write them."""
        alphabet = self.alphabet
        printable = _bits(alphabet, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ .,-")
        places = [((one & printable or one) & -(one & printable or one)).bit_length() - 1 for one in letters]
        return ascii("".join(chr(one) if isinstance(one := alphabet[at], int) else one for at in places))


@cache
def _bits(alphabet: str | bytes, characters: str) -> int:
    known = alphabet if isinstance(alphabet, str) else alphabet.decode("latin-1")
    return sum(1 << known.index(one) for one in characters)


def _split(automaton: _Automaton) -> list[dict[int, int]]:
    """Number the states anew, one for each set of characters between which the next step makes a difference."""
    asked: dict[int, set[int]] = {}
    for edge in automaton.edges:
        asked.setdefault(edge.before, set()).add(edge.asks)
    copies: list[dict[int, int]] = []
    count = 0
    for at, reads in enumerate(automaton.reads):
        sets = [reads]
        for asks in asked.get(at, ()):
            sets = [part for one in sets for part in (one & asks, one & ~asks) if part]
        copies.append({count + number: one for number, one in enumerate(sets)})
        count += len(sets)
    return copies


def components(after: Mapping[Node, set[Node]]) -> dict[Node, int]:
    """Return the number of the strongly connected component of each node (Tarjan, without recursion)."""
    order: dict[Node, int] = {}
    low: dict[Node, int] = {}
    number: dict[Node, int] = {}
    stack: list[Node] = []
    work: list[tuple[Node, Iterator[Node]]] = []

    def enter(node: Node) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        work.append((node, iter(after[node])))

    for root in after:
        if root not in order:
            enter(root)
        while work:
            node, rest = work[-1]
            one = next(rest, None)
            if one is not None:
                if one not in order:
                    enter(one)
                elif one not in number:
                    low[node] = min(low[node], order[one])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == order[node]:
                member = None
                found = len(number)
                while member != node:
                    member = stack.pop()
                    number[member] = found
    return number

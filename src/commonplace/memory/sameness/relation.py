"""Deciding whether two lessons are the same, whether the newer replaces the older, or whether both hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from commonplace.memory.sameness import lexicon
from commonplace.memory.sameness.sentence import ComparedSentence, Token, read

_SOLID: Final = 2
"""So many words must be common to two lessons that are about one thing."""
_OLDER_SHARE: Final = 0.6
_NEWER_SHARE: Final = 0.5
"""A denial speaks of a lesson if so much of both is common."""
_CHANGED_OLDER_SHARE: Final = 0.5
_CHANGED_NEWER_SHARE: Final = 0.35
"""With words that announce a change, so much is enough."""
_LONGER: Final = 4
"""A lesson that is longer than this many times another says too much else to support it."""
_ASKING: Final = frozenset({"wait", "ask", "approve"})


class Relation(Enum):
    """What a newer lesson is to an older one."""

    SAME = "same"
    REPLACES = "replaces"
    DIFFERENT = "different"


class Pair(NamedTuple):
    """A token of the older lesson and the token of the newer that says the same."""

    older: Token
    newer: Token


class _Match:
    """Two sentences side by side: which tokens say the same, and what is left over."""

    def __init__(self, older: ComparedSentence, newer: ComparedSentence) -> None:
        self.older, self.newer = older, newer
        self.pairs = _pairs(older, newer)
        left = {pair.older.place for pair in self.pairs}
        right = {pair.newer.place for pair in self.pairs}
        is_changed = self.is_announced
        rest = _rest(older, left, is_changed), _rest(newer, right, is_changed)
        if not is_changed:
            bare = tuple([token for token in each if not token.is_light] for each in rest)
            rest = bare[0] if not rest[1] else rest[0], bare[1] if not rest[0] else rest[1]
        self.rest: tuple[list[Token], list[Token]] = rest
        self.solid = sum(not pair.older.is_weak and not pair.newer.is_weak for pair in self.pairs)

    @property
    def is_announced(self) -> bool:
        """Whether only the newer says that something changes."""
        return self.newer.has_change and not self.older.has_change

    def share(self, sentence: ComparedSentence) -> float:
        """Return how much of a sentence is common."""
        return self.solid / max(1, sum(not token.is_weak for token in sentence.tokens))


def compare(older: ComparedSentence, newer: ComparedSentence) -> Relation:
    """Return what a newer lesson is to an older one; when in doubt they are different."""
    relation = _compare(older, newer)
    if relation is Relation.SAME or not (older.clauses or newer.clauses):
        return relation
    by_clause = _compare_clauses(older, newer)  # a complaint beside a wish sounds like a change of it
    return by_clause if by_clause is Relation.SAME or relation is Relation.DIFFERENT else relation


def _compare_clauses(older: ComparedSentence, newer: ComparedSentence) -> Relation:
    """Compare clause by clause: two lessons are the same if a clause of both is, and the rest of one adds nothing."""
    ones = [read(clause) for clause in older.clauses] or [older]
    twos = [read(clause) for clause in newer.clauses] or [newer]
    for one in ones:
        for two in twos:
            if one.is_subordinate or two.is_subordinate or _shares_less(one, two, _SOLID):
                continue
            if not newer.has_change and (_unmatched(one, two) or _unmatched(two, one)):
                continue
            match = _Match(one, two)
            if match.solid < _SOLID:
                continue
            if _is_same(match) and _is_rest_empty(ones, one, twos, two):
                return Relation.SAME
            if newer.has_change and (_is_other_number(match) or _is_other_value(match)):
                return Relation.REPLACES
    return Relation.DIFFERENT


def _is_rest_empty(
    ones: list[ComparedSentence], one: ComparedSentence, twos: list[ComparedSentence], two: ComparedSentence
) -> bool:
    """Say whether the clauses beside two that are the same add nothing in one of the sentences, and agree."""
    rests = [each for each in ones if each is not one], [each for each in twos if each is not two]
    hard = [any(token.is_hard for each in rest for token in each.tokens) for rest in rests]
    return not all(hard) and any(all(map(_is_aside, rest)) for rest in rests)


def _is_aside(clause: ComparedSentence) -> bool:
    """Say whether a clause asks for nothing: it gives a reason, or has hardly a word of its own."""
    solid = [token for token in clause.tokens if not token.is_weak and not token.is_light]
    return not any(token.is_hard for token in solid) and (clause.is_reason or len(solid) <= 1)


def _shares_less(one: ComparedSentence, two: ComparedSentence, count: int) -> bool:
    """Say whether two sentences surely have fewer words in common; cheap, and mostly true."""
    return one.language is two.language and len(one.keys & two.keys) < count


def _unmatched(one: ComparedSentence, two: ComparedSentence) -> list[Token]:
    """Return needed tokens of a sentence that surely match nothing in another; none where the languages differ."""
    if one.language is not two.language:
        return []
    return [token for token, keys in one.needed if keys.isdisjoint(two.keys)]


def _is_surely_different(older: ComparedSentence, newer: ComparedSentence) -> bool:
    """Say whether both sentences say too much that the other does not: then no rule holds, and nothing is matched."""
    if newer.has_change:
        return False
    left = _unmatched(older, newer)
    right = _unmatched(newer, older) if left else []
    if not left or not right:
        return False
    return any(sum(token.kind != "number" for token in rest) > 1 for rest in (left, right))


def _compare(older: ComparedSentence, newer: ComparedSentence) -> Relation:
    if _shares_less(older, newer, 1) or _is_surely_different(older, newer):
        return Relation.DIFFERENT
    match = _Match(older, newer)
    if not match.pairs:
        return Relation.DIFFERENT
    if _is_same(match):
        return Relation.SAME
    if older.is_question or newer.is_question or _is_order_against(match):
        return Relation.DIFFERENT
    return Relation.REPLACES if any(rule(match) for rule in _REPLACING) else Relation.DIFFERENT


def is_supported_by(shorter: ComparedSentence, longer: ComparedSentence) -> bool:
    """Say whether a longer lesson says, among other things, what a shorter one does."""
    match = _Match(shorter, longer)
    core = [token for token in shorter.tokens if not token.is_weak and not token.is_light]
    matched = {pair.older.place for pair in match.pairs}
    return (
        len(core) >= _SOLID
        and all(token.place in matched for token in core)
        and len(longer.tokens) <= _LONGER * len(shorter.tokens)
        and not _is_turned(match)
        and _is_polarity_equal(match)
        and not _is_order_against(match)
    )


def _pairs(older: ComparedSentence, newer: ComparedSentence) -> list[Pair]:
    """Match tokens one to one: the same text first, then the same idea, the same stem, a stem of the same idea."""
    pairs: list[Pair] = []
    left, right = list(older.tokens), list(newer.tokens)
    for key in _EQUAL_BY:
        waiting: defaultdict[str, list[Token]] = defaultdict(list)
        for token in reversed(right):
            if name := key(token):
                waiting[name].append(token)
        matched = [Pair(token, waiting[name].pop()) for token in left if (name := key(token)) and waiting.get(name)]
        if matched:
            pairs += matched
            left = _without(left, {pair.older.place for pair in matched})
            right = _without(right, {pair.newer.place for pair in matched})
    for token in left:
        other = next((each for each in right if _is_of_idea(token, each, older)), None)
        if other is not None:
            pairs.append(Pair(token, other))
            right.remove(other)
    return pairs


def _without(tokens: list[Token], places: set[int]) -> list[Token]:
    return [token for token in tokens if token.place not in places]


def _is_of_idea(one: Token, two: Token, sentence: ComparedSentence) -> bool:
    stems = sentence.language.idea_stems
    if one.is_hard or two.is_hard:
        return False
    return (bool(one.idea) and not two.idea and two.stem in stems.get(one.idea, ())) or (
        bool(two.idea) and not one.idea and one.stem in stems.get(two.idea, ())
    )


_EQUAL_BY: Final[tuple[Callable[[Token], str], ...]] = (
    lambda token: token.text,
    lambda token: token.idea,
    lambda token: token.stem if token.kind in ("word", "name") else "",
)
"""What two tokens that say the same have in common, the surest first."""


def _rest(sentence: ComparedSentence, matched: set[int], is_changed: bool) -> list[Token]:
    """Return what of a sentence the other has not; light verbs do not count where a change is announced."""
    return [
        token
        for token in sentence.tokens
        if token.place not in matched and not token.is_weak and not (is_changed and token.is_light)
    ]


def _is_same(match: _Match) -> bool:
    if match.rest[0] or match.rest[1] or not match.solid:
        return False
    if _is_turned(match) or _is_order_against(match) or _is_inverted(match):
        return False
    older, newer = match.older, match.newer
    if older.is_conditional != newer.is_conditional:
        return _is_asking(match, newer if older.is_conditional else older)
    if older.is_released != newer.is_released or sum(older.denials) != sum(newer.denials):
        return False
    return _is_polarity_equal(match) and (older.is_only == newer.is_only or older.is_conditional)


def _is_asking(match: _Match, other: ComparedSentence) -> bool:
    """Say whether a sentence asks for something first in other words than a conditional denial does."""
    if other.is_negative or _have_one_head(match):
        return False
    return other.is_only or other.asks_first or any(token.idea in _ASKING for token in other.tokens)


def _have_one_head(match: _Match) -> bool:
    """Say whether both name the same thing as what comes later."""
    matched = {pair.older.place: pair.newer.place for pair in match.pairs}
    later = {mark.head for mark in match.newer.orders if mark.is_before}
    return any(mark.is_before and matched.get(mark.head or 0) in later for mark in match.older.orders)


def _is_turned(match: _Match) -> bool:
    """Say whether one rules out what the other wants."""
    return any(pair.older.is_ruled_out != pair.newer.is_ruled_out for pair in match.pairs)


def _is_polarity_equal(match: _Match) -> bool:
    older, newer = match.older, match.newer
    if older.is_released != newer.is_released:
        return False
    return all(bool(older.denials[one.segment]) == bool(newer.denials[two.segment]) for one, two in match.pairs)


def _is_order_against(match: _Match) -> bool:
    """Say whether one puts before what the other puts after."""
    forward = {pair.older.place: pair.newer.place for pair in match.pairs}
    backward = {new: old for old, new in forward.items()}
    return _is_against(match.older, match.newer, forward) or _is_against(match.newer, match.older, backward)


def _is_against(one: ComparedSentence, two: ComparedSentence, places: dict[int, int]) -> bool:
    for mark in one.orders:
        head = places.get(mark.head) if mark.head is not None else None
        for other in two.orders:
            if mark.is_before == other.is_before:
                if head is not None and other.part and head not in other.part:
                    return True
            elif head is None or not other.part or head in other.part:
                return True
    return False


def _is_inverted(match: _Match) -> bool:
    """Say whether two sequences go the other way round."""
    if not (match.older.is_sequence or match.newer.is_sequence):
        return False
    places = [pair.newer.place for pair in sorted(match.pairs, key=lambda pair: pair.older.place)]
    couples = [(one, two) for at, one in enumerate(places) for two in places[at + 1 :]]
    return bool(couples) and 2 * sum(one > two for one, two in couples) >= len(couples)


def _is_held_otherwise(match: _Match) -> bool:
    """What was wanted is ruled out now, or the other way round."""
    return _is_turned(match) and match.solid >= _SOLID and not match.rest[0] and len(match.rest[1]) <= _SOLID


def _is_denied(match: _Match) -> bool:
    """One of them denies the other."""
    older, newer = match.older, match.newer
    if older.is_negative == newer.is_negative and older.is_conditional == newer.is_conditional:
        return False
    if match.solid < _SOLID or (match.rest[0] and match.rest[1]):
        return False
    return match.share(older) >= _OLDER_SHARE and match.share(newer) >= _NEWER_SHARE


def _is_opposite(match: _Match) -> bool:
    """All but one word is the same, light verbs and numbers aside, and that word is the opposite."""
    rests = [[token for token in rest if token.kind != "number" and not token.is_light] for rest in match.rest]
    is_about_one = match.solid or match.is_announced
    if not is_about_one or len(rests[0]) != 1 or len(rests[1]) != 1:
        return False
    one, two = rests[0][0], rests[1][0]
    names = [frozenset((first, second)) for first in _names(one) for second in _names(two)]
    return any(name in lexicon.opposites() for name in names)


def _names(token: Token) -> tuple[str, ...]:
    return (token.text, token.idea, token.stem) if token.idea else (token.text, token.stem)


def _is_other_number(match: _Match) -> bool:
    """All but one number is the same."""
    if match.solid < _SOLID or len(match.rest[0]) != 1 or len(match.rest[1]) != 1:
        return False
    return match.rest[0][0].kind == match.rest[1][0].kind == "number" and _is_polarity_equal(match)


def _is_other_value(match: _Match) -> bool:
    """A change is announced, and of what has one value both name another: a name, a path, a number, a command."""
    if not match.newer.has_change or match.solid < 1:
        return False
    hard = [[token for token in rest if token.is_hard] for rest in match.rest]
    if len(hard[0]) != 1 or len(hard[1]) != 1 or hard[0][0].kind != hard[1][0].kind:
        return False
    if match.is_announced and len(match.rest[0]) == len(match.rest[1]) == 1:
        return True
    is_about_one = match.solid >= _SOLID and match.share(match.older) >= _CHANGED_OLDER_SHARE
    return is_about_one and match.share(match.newer) >= _CHANGED_NEWER_SHARE


def _is_announced(match: _Match) -> bool:
    """A change is announced of something that both speak of."""
    if not match.is_announced or match.solid < _SOLID:
        return False
    hard = sum(token.is_hard for token in match.rest[0])
    return (
        match.share(match.older) >= _CHANGED_OLDER_SHARE
        and match.share(match.newer) >= _CHANGED_NEWER_SHARE
        and hard <= (1 if match.newer.is_change_faint else _SOLID)
    )


_REPLACING: Final = (
    _is_held_otherwise,
    _is_denied,
    _is_opposite,
    _is_other_number,
    _is_other_value,
    _is_announced,
)

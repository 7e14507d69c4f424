"""Which of many expressions may match a text: a look at the letters that each of them needs, in one pass for all.

Most sentences meet none of the expressions that are tried on them, and trying each takes most of the time. Of an
expression the letters are known of which every match has some: `from (?:now|here) on` needs `from `. An automaton of
Aho and Corasick finds all such letters of all expressions at once. An expression that needs no certain letters, or is
written in a way that is not understood here, is always tried; so the answer of a search is the same with and without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, cast

import ahocorasick

_SIGNS: Final = frozenset(".^$")
_QUANTIFIERS: Final = "*+?{"
_LOOKS: Final = ("(?=", "(?!", "(?<=", "(?<!")
_GROUPS: Final = ("(?:", "(?>")
_SHORTEST: Final = 2
"""One letter of the Latin alphabet is in every sentence; of Chinese, one is a word."""

Literals = frozenset[str]
"""Texts of which each match has one; none if that is not known."""
_UNKNOWN: Final[Literals] = frozenset()


class LiteralGate:
    """Tells which of some named expressions may match a text."""

    def __init__(self, expressions: Mapping[str, Iterable[str]]) -> None:
        """Take expressions, each as a list of alternatives."""
        always: set[str] = set()
        names: dict[str, set[str]] = {}
        for name, alternatives in expressions.items():
            found = [needed(each) for each in alternatives]
            if not all(found):
                always.add(name)
                continue
            for literal in _UNKNOWN.union(*found):
                names.setdefault(literal, set()).add(name)
        self._always: Final = frozenset(always)
        automaton = cast("Any", ahocorasick).Automaton()
        for literal, holders in names.items():
            automaton.add_word(literal, tuple(holders))
        automaton.make_automaton()
        self._hits: Final = cast("Callable[[str], Iterator[tuple[int, tuple[str, ...]]]]", automaton.iter)
        self._has_any: Final = bool(names)

    def open_for(self, text: str) -> frozenset[str]:
        """Return the names of the expressions that may match a text; others surely do not."""
        if not self._has_any:
            return self._always
        return self._always.union(*{holders for _, holders in self._hits(text)})


def needed(expression: str) -> Literals:
    """Return texts of which every match of an expression has one; nothing if that cannot be told."""
    try:
        found, end = _alternatives(expression, 0)
    except (IndexError, ValueError):
        return _UNKNOWN
    return found if end == len(expression) else _UNKNOWN


def _alternatives(text: str, at: int) -> tuple[Literals, int]:
    """Read alternatives up to the end of their group; return what they need and where they end."""
    every: list[Literals] = []
    while True:
        found, at = _sequence(text, at)
        every.append(found)
        if at >= len(text) or text[at] == ")":
            return (frozenset[str]().union(*every) if all(every) else _UNKNOWN), at
        at += 1  # the `|`


def _sequence(text: str, at: int) -> tuple[Literals, int]:
    """Read one alternative; return the best of what its parts need."""
    parts: list[Literals] = []
    run = ""
    while at < len(text) and text[at] not in "|)":
        letter, group, at = _atom(text, at)
        is_optional, is_repeated, at = _quantifier(text, at)
        if letter and not is_optional:
            run += letter
        if not letter or is_optional or is_repeated:
            parts.append(frozenset({run}))
            run = ""
        if not is_optional:
            parts.append(group)
    parts.append(frozenset({run}))
    return max(filter(_is_telling, parts), key=_worth, default=_UNKNOWN), at


def _is_telling(literals: Literals) -> bool:
    return bool(literals) and all(len(each) >= _SHORTEST or (each and not each.isascii()) for each in literals)


def _worth(literals: Literals) -> tuple[int, int, list[str]]:
    return min(map(len, literals)), -len(literals), sorted(literals)


def _atom(text: str, at: int) -> tuple[str, Literals, int]:
    """Read one part: return its letter if it is one, what it needs if it is a group, and where it ends."""
    sign = text[at]
    if sign == "\\":
        return _escape(text, at)
    if sign == "[":
        return "", _UNKNOWN, _behind_class(text, at)
    if sign == "(":
        return _group(text, at)
    return ("" if sign in _SIGNS else sign), _UNKNOWN, at + 1


def _escape(text: str, at: int) -> tuple[str, Literals, int]:
    sign = text[at + 1]
    if sign.isalnum():  # a class, a boundary or a code; codes of other signs are not understood
        if sign not in "bBwWdDsSAZ":
            raise ValueError(text)
        return "", _UNKNOWN, at + 2
    return sign, _UNKNOWN, at + 2


def _behind_class(text: str, at: int) -> int:
    """Return where a class of letters ends."""
    at += 2 if text[at + 1] == "^" else 1
    at += text[at] == "]"
    while text[at] != "]":
        at += 2 if text[at] == "\\" else 1
    return at + 1


def _group(text: str, at: int) -> tuple[str, Literals, int]:
    opening = next((each for each in (*_LOOKS, *_GROUPS) if text.startswith(each, at)), "(")
    if text.startswith("(?P<", at):
        opening = text[at : text.index(">", at) + 1]
    elif opening == "(" and text[at + 1] == "?":
        raise ValueError(text)  # flags, references
    found, end = _alternatives(text, at + len(opening))
    if text[end] != ")":
        raise ValueError(text)
    return "", (_UNKNOWN if opening in _LOOKS else found), end + 1


def _quantifier(text: str, at: int) -> tuple[bool, bool, int]:
    """Return whether the part before a place may be missing, whether it may come again, and where that is said."""
    if at >= len(text) or text[at] not in _QUANTIFIERS:
        return False, False, at
    sign = text[at]
    least = "1" if sign == "+" else "0"
    if sign == "{":
        end = text.index("}", at)
        least = text[at + 1 : end].partition(",")[0]
        if not least.isdecimal():
            raise ValueError(text)
        at = end
    at += 1
    at += at < len(text) and text[at] in "+?"  # possessive, lazy
    return int(least) == 0, sign != "?", at

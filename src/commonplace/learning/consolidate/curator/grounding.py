"""Whether a text rests on what was learned: by its words, and by every name, path, number and command in it.

A model may say a thing in other words. It may not say another thing: at least half of what its words tell must have
been said before, and whatever stands for one thing only (a path, a version, a flag, a word between backticks) must have
been said exactly so. What tells people what to do must have been said by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from commonplace.learning.consolidate.curator import prompts
from commonplace.memory import similarity
from commonplace.memory.entries import SECTION_OF, Entry, Source, normal
from commonplace.memory.files.handbook import MARK

_SHARE: Final = 0.5
"""The share of a text's weighted words that must occur in its sources."""
_EXACT: Final = re.compile(r"\d|\w[./_:@]\w|^[./~-]+\w")
"""Words that stand for one thing only; plain words with a hyphen do not."""
_CODE: Final = re.compile(r"`([^`]+)`")
_TOKEN: Final = re.compile(r"[^\s`\"'(),;]+")
_EDGES: Final = ".:!?*[]{}<>…"
_MARKS: Final = re.compile(MARK)


def is_by_person(source: Source) -> bool:
    """Say whether a source is a person's own words."""
    return source.is_by_person


def wishes(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries that a person said, and that may tell what to do."""
    return [
        each
        for each in entries
        if any(is_by_person(source) for source in each.sources)
        and (SECTION_OF[each.kind] == "User preferences" or each.kind == "decision")
    ]


def of_entries(entries: Iterable[Entry], *, only_persons: bool = False) -> str:
    """Return the words that entries are known in; of several sources, only a person's if only those count."""
    said: list[str] = []
    for each in entries:
        sources = [source for source in each.sources if is_by_person(source) or not only_persons]
        said += [each.text, *(source.quote for source in sources)]
    return "\n".join(dict.fromkeys(said))


def problem(told: str, words: str, material: str, *, may_order: bool = True) -> str | None:
    """Return why a text does not rest on what was said; None if it does.

    Args:
        told: the text.
        words: what was learned, in the words that taught it.
        material: where the names, numbers and commands of the text must stand; the words are part of it.
        may_order: it may tell what to do although the words do not.
    """
    plain = _MARKS.sub("", told)
    about = similarity.words(plain).about
    known = _about(words)
    if about and similarity.weight(about & known) < _SHARE * similarity.weight(about):
        return "rests on nothing that its sessions taught"
    lower = f"{words}\n{material}".lower()
    strange = next((each for each in _exact(plain) if each.lower() not in lower), None)
    if strange is not None:
        return f"names {strange!r}, which no session of it does"
    order = prompts.orders().search(plain)
    if order and not may_order and not prompts.orders().search(words):
        return f"tells what to do ({order[0]!r}), and nobody said so"
    return None


def reversal(told: str, entries: Iterable[Entry]) -> str | None:
    """Return why a wish may be the opposite of what a person said; None if it is not, or has their own words in it."""
    said = [source.quote for each in entries for source in each.sources if is_by_person(source)]
    plain, head = normal(told), told.partition("->")[0]
    if any(normal(quote) in plain for quote in said):
        return None
    denies = bool(prompts.denials().search(head))
    if any(bool(prompts.denials().search(quote)) == denies for quote in said):
        return None
    return "denies what the person wants" if denies else "leaves out what the person does not want"


def _exact(text: str) -> list[str]:
    """Return the words of a text that stand for one thing only."""
    code = [token for span in _CODE.findall(text) for token in span.split()]
    plain = [token for token in _TOKEN.findall(_CODE.sub(" ", text)) if _EXACT.search(token.strip(_EDGES))]
    return [bare for token in (*code, *plain) if (bare := token.strip(_EDGES))]


@lru_cache(maxsize=256)
def _about(text: str) -> frozenset[str]:
    """Return what a long text is about, line by line."""
    return frozenset(word for line in text.split("\n") for word in similarity.words(line).about)

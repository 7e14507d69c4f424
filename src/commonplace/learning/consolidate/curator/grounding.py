"""Whether a text rests on what was learned: by its words, and by every name, path, number and command in it.

A model may say a thing in other words. It may not say another thing: at least half of what its words tell must have
been said before, and whatever stands for one thing only (a path, a version, a flag, a word between backticks) must have
been said exactly so. What tells people what to do must have been said by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from commonplace.learning.consolidate.curator import prompts
from commonplace.memory import similarity
from commonplace.memory.entries import SECTION_OF, Entry, Source, normal
from commonplace.patterns import regex

_SHARE: Final = 0.5
"""The share of a text's weighted words that must occur in its sources."""
_KEPT: Final = 0.3
"""The share of an entry's weighted words that must occur in its new wording."""
_QUOTED: Final = regex(r"[\"“]([^\"“”]{2,300})[\"”]")
_EXACT: Final = regex(r"\d|\w[./_:@]\w|^[./~-]+\w")
"""Words that stand for one thing only; plain words with a hyphen do not."""
_CODE: Final = regex(r"`([^`]+)`")
_TOKEN: Final = regex(r"[^\s`\"'(),;]+")
_EDGES: Final = ".:!?*[]{}<>…"


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


def problem(text: str, words: str, *, may_order: bool = True) -> str | None:
    """Return why a text does not rest on what was said; None if it does.

    Args:
        text: what a model says.
        words: what was learned, in the words that taught it.
        may_order: it may tell what to do although the words do not.
    """
    about = similarity.words(text).about
    if about and similarity.weight(about & _about(words)) < _SHARE * similarity.weight(about):
        return "its words are others"
    lower, plain = words.lower(), normal(words)
    strange = next((each for each in _exact(text) if not _stands_in(each.lower(), lower)), None)
    if strange is not None:
        return f"it names {strange!r}"
    invented = next((quote for quote in _QUOTED.findall(text) if normal(quote) not in plain), None)
    if invented is not None:
        return f"it quotes {invented!r}"
    order = prompts.orders().search(text)
    if order and not may_order and not prompts.orders().search(words):
        return f"it tells what to do ({order[0]!r})"
    return None


def _stands_in(token: str, lower: str) -> bool:
    """Say whether an exact word stands in a text as a whole: `3.1` does not stand in `3.11`."""
    start = lower.find(token)
    while start >= 0:
        before, after = lower[start - 1 : start], lower[start + len(token) : start + len(token) + 1]
        if not (before.isalnum() and token[0].isalnum()) and not (after.isalnum() and token[-1].isalnum()):
            return True
        start = lower.find(token, start + 1)
    return False


def denies(text: str) -> bool:
    """Say whether a text denies something."""
    return bool(prompts.denials().search(text))


def reversal(text: str, entries: list[Entry]) -> str | None:
    """Return why a text may be the opposite of an entry; None if it is not, or has the entry's own words in it."""
    plain, head = normal(text), text.partition("->")[0]
    sayings = [[each.text, *(source.quote for source in each.sources)] for each in entries]
    if all(any(_is_repeated(normal(saying), plain) for saying in own) for own in sayings):
        return None
    if not any(denies(saying) == denies(head) for own in sayings for saying in own):
        return "it denies what is wanted" if denies(head) else "it leaves out a denial"
    newer = similarity.words(head)
    for own in sayings:
        if all(_contradicts(similarity.words(saying), newer) for saying in own):
            return "it contradicts an entry"
    return None


def _is_repeated(saying: str, plain: str) -> bool:
    """Say whether a text has a saying in it, and denies nothing beside it."""
    before, between, after = plain.partition(saying)
    return bool(saying and between) and not denies(before) and not denies(after)


def _contradicts(older: similarity.ComparedWords, newer: similarity.ComparedWords) -> bool:
    """Say whether a text wants what another denies, or denies what it wants."""
    was, now = older.about - older.denied, newer.about - newer.denied
    named = (newer.denied & was - now) | (older.denied & now - was)
    return similarity.clash(older, newer) or bool(named)


def is_lost(entry: Entry, text: str) -> bool:
    """Say whether a text leaves out a command of an entry, or nearly all of its words."""
    lower = text.lower()
    if any(code.lower() not in lower for code in _CODE.findall(entry.text)):
        return True
    about = similarity.words(entry.text).about
    return bool(about) and similarity.weight(about & _about(text)) < _KEPT * similarity.weight(about)


def _exact(text: str) -> list[str]:
    """Return the words of a text that stand for one thing only."""
    code = [token for span in _CODE.findall(text) for token in span.split()]
    plain = [token for token in _TOKEN.findall(_CODE.sub(" ", text)) if _EXACT.search(token.strip(_EDGES))]
    return [bare for token in (*code, *plain) if (bare := token.strip(_EDGES))]


@lru_cache(maxsize=256)
def _about(text: str) -> frozenset[str]:
    """Return what a long text is about, line by line."""
    return frozenset(word for line in text.split("\n") for word in similarity.words(line).about)

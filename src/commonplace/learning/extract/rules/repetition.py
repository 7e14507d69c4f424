"""What a person had to ask for more than once: a default that nobody told.

The same request in two tasks or more, or again after it was done otherwise, is worth remembering even if no word says
so. Feedback, approvals and plain requests to go on do not count, and neither does a request that names only the thing
at hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from commonplace.learning.extract.rules.findings import FindingEvidence, RuleFinding, SessionTask, quote
from commonplace.learning.extract.rules.preferences import is_about_work, kind_of
from commonplace.learning.reading import exclusions, sentences, tables
from commonplace.learning.reading.sentences import Sentence
from commonplace.learning.reading.session_view import UserText

_WORD: Final = re.compile(r"[A-Za-zÀ-ÿ][\w'./-]+|[\u3400-\u9fff]")
_COMMON: Final = tables.words("common")
_ALIKE: Final = 0.6
_OF_ALL: Final = 0.4
_MIN_SHARED: Final = 2
_MAX_WORDS: Final = 16


class _PersonRequest(msgspec.Struct, frozen=True):
    sentence: Sentence
    said: UserText
    words: frozenset[str]


def of_tasks(tasks: list[SessionTask]) -> Iterator[RuleFinding]:
    """Yield requests that came back in other words or the same."""
    seen: list[_PersonRequest] = []
    told: list[frozenset[str]] = []
    for place, task in enumerate(tasks):
        for asked in _asked(task):
            earlier = next((old for old in seen if old.said is not asked.said and _alike(old.words, asked.words)), None)
            if earlier is not None and not any(_alike(known, asked.words) for known in told):
                told.append(asked.words)
                yield _finding(earlier, asked, place)
            seen.append(asked)


def _asked(task: SessionTask) -> Iterator[_PersonRequest]:
    """Yield the sentences of a task that ask for something about the way of working."""
    for event in task.events:
        if not isinstance(event, UserText) or event.voice != "user" or exclusions.is_text_work(event.text):
            continue
        for sentence in sentences.of_text(event.text):
            heard = sentence.heard
            words = frozenset(word.lower().strip(".,") for word in _WORD.findall(sentence.text)) - _COMMON
            if not _MIN_SHARED <= len(words) <= _MAX_WORDS or sentence.is_question or not is_about_work(heard):
                continue
            if exclusions.is_unfit(sentence.text) or heard.any("rejection", "praise", "problem", "others", "unreal"):
                continue
            if kind_of(sentence, "answering") is None:
                yield _PersonRequest(sentence, event, words)


def _alike(one: frozenset[str], two: frozenset[str]) -> bool:
    shared = len(one & two)
    return shared >= _MIN_SHARED and shared / min(len(one), len(two)) >= _ALIKE and shared / len(one | two) >= _OF_ALL


def _finding(first: _PersonRequest, later: _PersonRequest, place: int) -> RuleFinding:
    evidence = [
        FindingEvidence(first.said.at, quote(first.sentence.text), "said by the user"),
        FindingEvidence(later.said.at, quote(later.sentence.text), "said by the user again"),
    ]
    default = f"do this by default ({quote(first.sentence.text, 120)})"
    words = quote(later.sentence.text)
    return RuleFinding("preference", evidence, place, words=words, lead="asked for again", default=default)

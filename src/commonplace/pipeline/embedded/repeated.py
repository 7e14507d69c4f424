"""What a person had to ask for more than once: a default that nobody told.

The same request in two tasks or more, or again after it was done otherwise, is worth remembering even if no word says
so. Feedback, approvals and plain requests to go on do not count, and neither does a request that names only the thing
at hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from commonplace.pipeline.embedded import cues as languages
from commonplace.pipeline.embedded import guard, sentences, tables
from commonplace.pipeline.embedded.findings import Evidence, Finding, Task, quote
from commonplace.pipeline.embedded.preferences import kind_of
from commonplace.pipeline.embedded.sentences import Sentence
from commonplace.pipeline.view import Said

_WORD: Final = re.compile(r"[A-Za-zÀ-ÿ][\w'./-]+|[\u3400-\u9fff]")
_COMMON: Final = tables.words("common")
_ALIKE: Final = 0.6
_MIN_SHARED: Final = 2


def of_tasks(tasks: list[Task]) -> Iterator[Finding]:
    """Yield requests that came back in other words or the same."""
    seen: list[tuple[Sentence, frozenset[str], int]] = []
    told: list[frozenset[str]] = []
    for place, task in enumerate(tasks):
        for event in task.events:
            if not isinstance(event, Said) or event.voice != "user":
                continue
            cues = languages.of(languages.language_of(event.text))
            if guard.is_text_work(event.text):
                continue
            for sentence in sentences.of_message(event):
                words = _content(sentence.text)
                if len(words) < _MIN_SHARED or sentence.is_question or kind_of(sentence, cues) is not None:
                    continue
                if guard.is_injection(sentence.text) or cues.rejection.search(sentence.text):
                    continue
                earlier = next((old for old in seen if old[0].said is not event and _alike(old[1], words)), None)
                if earlier is not None and not any(_alike(known, words) for known in told):
                    told.append(words)
                    yield _finding(earlier, sentence, place)
                seen.append((sentence, words, place))


def _content(text: str) -> frozenset[str]:
    return frozenset(word.lower().strip(".,") for word in _WORD.findall(text)) - _COMMON


def _alike(one: frozenset[str], two: frozenset[str]) -> bool:
    shared = len(one & two)
    return shared >= _MIN_SHARED and shared / min(len(one), len(two)) >= _ALIKE and shared / len(one | two) >= 0.4


def _finding(earlier: tuple[Sentence, frozenset[str], int], later: Sentence, place: int) -> Finding:
    first = earlier[0]
    evidence = [
        Evidence(first.said.at, quote(first.text), "said by the user"),
        Evidence(later.said.at, quote(later.text), "said by the user again"),
    ]
    text = f'asked for again: "{quote(later.text)}" -> do this by default ({quote(first.text, 120)})'
    return Finding("preference", text, evidence, place)

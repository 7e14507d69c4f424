"""What a person wants by default, and what holds in their project: in their own words.

Looked for in every sentence that is theirs and meant to last (`guard`): standing wishes, norms of a project, habits to
keep or drop, corrections that name what is wanted instead; then what they refused or stopped a turn for, and what they
had to ask for more than once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from commonplace.pipeline.embedded import cues as languages
from commonplace.pipeline.embedded import guard, sentences, tables
from commonplace.pipeline.embedded.cues import Cues
from commonplace.pipeline.embedded.findings import Evidence, Finding, Kind, Task, quote
from commonplace.pipeline.embedded.sentences import Sentence
from commonplace.pipeline.view import Called, Said, Stopped

_THING: Final = tables.pattern("thing")
_INSTEAD: Final = tables.pattern("instead")
_NOT_A_NORM: Final = tables.pattern("not_a_norm")
_MAX_AFTER_STOP: Final = 300
_MIN_CHARS: Final = 8


def of_task(task: Task, place: int) -> Iterator[Finding]:
    """Yield what a task tells about the person's wishes."""
    stopped: Called | Stopped | None = None
    for event in task.events:
        if isinstance(event, Stopped) or (isinstance(event, Called) and event.refused):
            stopped = event
        elif isinstance(event, Said):
            if stopped is not None and (found := _after_stop(event, stopped, place)) is not None:
                yield found
            else:
                yield from _said(event, place)
            stopped = None


def _after_stop(said: Said, stopped: Called | Stopped, place: int) -> Finding | None:
    """Return what a person wants instead of what they stopped or refused: all they said about it."""
    if said.voice == "shell" or guard.is_text_work(said.text):
        return None
    cues = languages.of(languages.language_of(said.text))
    own = [sentence for sentence in sentences.of_message(said) if not sentence.is_question]
    meant = [sentence for sentence in own if not guard.is_injection(sentence.text)]
    text = " ".join(sentence.text for sentence in meant)
    if not meant or len(text) > _MAX_AFTER_STOP or not (_INSTEAD.search(text) or kind_of(meant[0], cues) is not None):
        return None
    if cues.once.search(text) and not cues.standing.search(text):
        return None
    what = f"`{quote(stopped.command or stopped.name, 120)}`" if isinstance(stopped, Called) else "the turn"
    how = f"said by the user after {'refusing' if isinstance(stopped, Called) else 'stopping'} {what}"
    evidence = Evidence(said.at, quote(text), how)
    return Finding("preference", f'{how}: "{quote(text)}"', [evidence], place)


def _said(said: Said, place: int) -> Iterator[Finding]:
    if said.voice == "shell" or guard.is_text_work(said.text):
        return
    cues = languages.of(languages.language_of(said.text))
    for sentence in sentences.of_message(said):
        kind = kind_of(sentence, cues)
        if kind is not None:
            evidence = Evidence(said.at, quote(sentence.text), "said by the user")
            yield Finding(kind, _bullet(sentence, cues), [evidence], place)


def kind_of(sentence: Sentence, cues: Cues) -> Kind | None:
    """Return what kind of wish a sentence tells; None for none."""
    text = sentence.text
    if (len(text) < _MIN_CHARS and not _has_han(text)) or text.endswith((":", "：")):
        return None
    if sentence.is_question and not guard.insists(text):
        return None
    if not guard.is_meant_to_last(sentence, cues):
        return None
    if sentence.is_listed and not cues.transient.search(text):
        return "rule"
    if is_decision(text, cues):
        return None
    if cues.norm.search(text) and not cues.transient.search(text) and _is_norm(text):
        return "rule"
    if cues.standing.search(text) or cues.practice.search(text):
        return "preference"
    if cues.correction.search(text) and not _is_about_a_thing(text):
        return "preference"
    return None


def is_decision(text: str, cues: Cues) -> bool:
    """Say whether a sentence decides something and says why."""
    bare = cues.decision.search(text)
    return (
        bool(bare) and bool(cues.reason.search(text) or re.search(r"\w: \w", text)) and not cues.standing.search(text)
    )


def _is_norm(text: str) -> bool:
    """A norm says what is done; a sentence about what is the case does not."""
    return not _NOT_A_NORM.search(text)


def _is_about_a_thing(text: str) -> bool:
    """A correction of the thing that is made, not of how things are made."""
    return bool(_THING.search(text))


def _has_han(text: str) -> bool:
    return bool(re.search(r"[\u3400-\u9fff]", text))


def _bullet(sentence: Sentence, cues: Cues) -> str:
    default = cues.polite.sub("", sentence.text).strip().rstrip(".!。！ ")
    return f'said by the user: "{quote(sentence.text)}" -> {quote(default, 200)}'

"""Judging what people said again, with all their sessions in view: how they write, and what they ask for repeatedly."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from commonplace.learning.consolidate.command_lessons import ProjectRuns
from commonplace.learning.lasting.features import PersonHabits
from commonplace.learning.lasting.judge import LastingJudge, alone, is_outright, judge, outright
from commonplace.memory.entries import CANDIDATE
from commonplace.memory.lessons import JudgeInput, SessionLesson, WritingSample
from commonplace.projects.people import Person, home_name

FEW: Final = 6
"""A person of fewer sessions is new: how they write and what they repeat is not known yet."""


class TaughtSession(NamedTuple):
    """What a session taught, and how the person wrote in it."""

    thread_id: str
    cwd: str
    lessons: list[SessionLesson]
    sentences: tuple[WritingSample, ...]
    runs: ProjectRuns | None = None
    known: Person | None = None
    """Whose session it is, where that was kept."""

    @property
    def person(self) -> str:
        """What tells whose session it is: sessions of which nobody is known are told apart by their home folders."""
        return self.known.key if self.known is not None else home_name(self.cwd)


def judged(
    sessions: list[TaughtSession], judge_for: Callable[[str], LastingJudge] = lambda _: judge()
) -> Iterator[SessionLesson]:
    """Yield the lessons of sessions, each with how likely it lasts; `judge_for` chooses the judge of a person."""
    people: defaultdict[str, PersonHabits] = defaultdict(PersonHabits)
    counts = Counter(session.person for session in sessions if session.sentences)
    for session in sessions:
        for sample in session.sentences:
            people[session.person].add(session.thread_id, sample)
    for session in sessions:
        person, is_new = people[session.person], counts[session.person] < FEW
        chosen = judge_for(session.person)
        yield from (lesson for lesson in session.lessons if lesson.judged is None)
        for message in _messages(session.lessons):
            yield from _without_parts(_judged(message, person, chosen, is_new=is_new))


def _messages(lessons: list[SessionLesson]) -> Iterable[list[tuple[SessionLesson, JudgeInput]]]:
    """Return the lessons of each message that are judged anew."""
    found: defaultdict[tuple[int, int], list[tuple[SessionLesson, JudgeInput]]] = defaultdict(list)
    for lesson in lessons:
        if lesson.judged is not None:
            first = lesson.sources[0]
            found[first.turn or 0, first.byte_start or 0].append((lesson, lesson.judged))
    return found.values()


def _without_parts(lessons: Iterable[SessionLesson]) -> Iterable[SessionLesson]:
    """Return the lessons of a message; one whose words stand in those of another is no lesson of its own."""
    kept: list[SessionLesson] = []
    for lesson in sorted(lessons, key=lambda each: -len(each.words)):
        place = next((at for at, other in enumerate(kept) if lesson.words in other.words), None)
        if place is None:
            kept.append(lesson)
        elif lesson.confidence > kept[place].confidence:
            kept[place] = msgspec.structs.replace(kept[place], confidence=lesson.confidence)
    return kept


def _judged(
    message: list[tuple[SessionLesson, JudgeInput]], person: PersonHabits, chosen: LastingJudge, *, is_new: bool
) -> Iterator[SessionLesson]:
    """Yield what a message teaches.

    Of a person who is known, that is the best stretch, and each sentence whose words say that it lasts. Of a new one,
    it is each sentence that states something, too.
    """
    likely = [
        round(chosen.probability(judged.sums + chosen.features(person.features(judged.sample))), 3)
        for _, judged in message
    ]
    best = max(range(len(message)), key=lambda place: likely[place])
    for place, (lesson, judged) in enumerate(message):
        sure = (alone if is_new else outright)(likely[place], judged)
        is_order = judged.sample.is_request and sure < CANDIDATE
        if sure > likely[place] or is_order or is_outright(judged):
            yield msgspec.structs.replace(lesson, confidence=sure)
        elif place == best:
            stretch = lesson.stretch or lesson.words
            text = f'{lesson.lead}: "{stretch}"'
            yield msgspec.structs.replace(lesson, confidence=sure, words=stretch, text=text, sentence=lesson.words)

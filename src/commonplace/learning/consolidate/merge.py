"""Lessons become entries: what means the same is one, with all its sources; of what contradicts, the newest holds.

Lessons are taken in the order in which they were learned, whatever the order they arrived in, so that the same lessons
always make the same entries. Wishes of a person are compared across projects: one that comes up in two of them, or that
they said is for everything, is theirs everywhere. All else stays in its project.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from commonplace.learning.consolidate import command_similarity
from commonplace.memory import sameness, similarity
from commonplace.memory.audience import CROWD
from commonplace.memory.entries import CANDIDATE, GLOBAL, LISTED, TOLD, Entry, Source, entry_id, normal
from commonplace.memory.lessons import SessionLesson
from commonplace.memory.sameness import ComparedSentence, Relation
from commonplace.patterns import regex
from commonplace.projects.people import Person

_ANYWHERE: Final = "*"
_QUOTED: Final = regex(r"[\"“„«][^\"“”„«»]{2,}+[\"”“»]")
"""The text of something: it says nothing about whom a wish is for."""
_LONG: Final = 8
"""Nobody says so many words twice in the same way."""
_MAX_LOOKED: Final = 400
"""How many clusters are counted before rare words alone must do."""
_MAX_CANDIDATES: Final = 24
"""How many clusters a lesson is compared with in full."""


class Cluster(msgspec.Struct):
    """Lessons that mean the same."""

    number: int
    lessons: list[SessionLesson]
    wordings: list[ComparedSentence]
    is_said: bool
    """Somebody said it; else commands showed it. What people say may contradict what they said before."""
    replaced_by: Cluster | None = None

    @property
    def last(self) -> SessionLesson:
        """The lesson that was learned last."""
        return self.lessons[-1]

    def projects(self) -> set[str]:
        """Return the projects that taught it."""
        return {lesson.project for lesson in self.lessons}


class MergedLessons(msgspec.Struct):
    """The entries that lessons of many sessions make."""

    entries: list[Entry]
    replaced: list[tuple[Entry, Entry]]
    """What no longer holds, each with what took its place."""
    dropped: list[Entry] = []
    """What a person dropped when they reviewed it."""


def merge(
    lessons: Iterable[SessionLesson],
    is_global: dict[str, str] | None = None,
    people: Mapping[str, Person] | None = None,
) -> MergedLessons:
    """Return the entries that lessons make; `is_global` decides the scope of entries that a person decided about.

    `people` says whose each session and each note is, if several people share the memory.
    """
    clusters, whose = _Clusters(), people or {}
    for lesson in sorted(lessons, key=lambda each: each.order):
        clusters.add(lesson)
    if whose:
        clusters.split_crowds(whose)
    found = {cluster.number: _entry(cluster, is_global or {}, whose) for cluster in clusters.all}
    _replace(clusters, found)
    live = [cluster for cluster in clusters.all if cluster.replaced_by is None]
    replaced = [
        (found[each.number], found[each.replaced_by.number]) for each in clusters.all if each.replaced_by is not None
    ]
    return MergedLessons([found[each.number] for each in live], replaced)


def clusters(lessons: Iterable[SessionLesson]) -> list[list[SessionLesson]]:
    """Return lessons that mean the same together."""
    found = _Clusters()
    for lesson in sorted(lessons, key=lambda each: each.order):
        found.add(lesson)
    return [cluster.lessons for cluster in found.all]


class _Clusters:
    """Clusters by the words they are about, so that a lesson is compared with few."""

    def __init__(self) -> None:
        self.all: list[Cluster] = []
        self._by_word: dict[tuple[str, str], list[int]] = defaultdict(list)

    def add(self, lesson: SessionLesson) -> None:
        words = sameness.read(lesson.compared)
        near = self.near(lesson, words, least=2 if len(words.handles) > 1 else 1)
        same = next((each for each in near if _is_same(each, lesson, words)), None)
        if same is None:
            same = Cluster(len(self.all), [], [], bool(lesson.lead))
            self.all.append(same)
        same.lessons.append(lesson)
        if words not in same.wordings:
            same.wordings.append(words)
        self._list(same, lesson, words)

    def _list(self, cluster: Cluster, lesson: SessionLesson, words: ComparedSentence) -> None:
        """Let a cluster be found by the words of a lesson."""
        places = [lesson.project, _ANYWHERE] if is_personal(lesson) else [lesson.project]
        for word in words.handles:
            for place in places:
                listed = self._by_word[(place, word)]
                if cluster.number not in listed[-1:]:
                    listed.append(cluster.number)

    def split_crowds(self, people: Mapping[str, Person]) -> None:
        """Make what many people said in one project a cluster of its own, where it was said in others, too."""
        for cluster in list(self.all):
            crowds = [
                place
                for place in sorted(cluster.projects() if cluster.is_said else ())
                if len(speakers((each for each in cluster.lessons if each.project == place), people)) >= CROWD
            ]
            for place in crowds if len(cluster.projects()) > 1 else ():
                inside = [each for each in cluster.lessons if each.project == place]
                rest = [each for each in cluster.lessons if each.project != place]
                if rest:
                    cluster.lessons, cluster.wordings = rest, _wordings(rest)
                    self._append(Cluster(len(self.all), inside, _wordings(inside), cluster.is_said))

    def _append(self, cluster: Cluster) -> None:
        self.all.append(cluster)
        for lesson in cluster.lessons:
            self._list(cluster, lesson, sameness.read(lesson.compared))

    def near(self, lesson: SessionLesson, words: ComparedSentence, least: int = 1) -> list[Cluster]:
        """Return the clusters that share the most words with a lesson, the nearest first.

        A person's wishes are looked for in all their projects; all else in its own.
        """
        places = (lesson.project, _ANYWHERE) if is_personal(lesson) else (lesson.project,)
        listed = [self._by_word.get((place, word), ()) for word in sorted(words.handles) for place in places]
        shared: Counter[int] = Counter()
        looked = 0
        for numbers in sorted(listed, key=len):  # the rare words first: what only shares common ones is not near
            looked += len(numbers)
            if looked > _MAX_LOOKED and shared:
                break
            shared.update(numbers)
        is_said = bool(lesson.lead)
        alike_kind = [pair for pair in shared.items() if pair[1] >= least and self.all[pair[0]].is_said == is_said]
        ranked = heapq.nsmallest(_MAX_CANDIDATES, alike_kind, key=lambda pair: (-pair[1], pair[0]))
        return [self.all[number] for number, _ in ranked]


def _wordings(lessons: Iterable[SessionLesson]) -> list[ComparedSentence]:
    """Return what lessons are compared by, each once."""
    found: list[ComparedSentence] = []
    for lesson in lessons:
        words = sameness.read(lesson.compared)
        if words not in found:
            found.append(words)
    return found


def speakers(lessons: Iterable[SessionLesson], people: Mapping[str, Person]) -> set[str]:
    """Return whose the sessions and notes of lessons are, as far as that is known."""
    return {people[lesson.thread_id].key for lesson in lessons if lesson.thread_id in people}


def _is_same(cluster: Cluster, lesson: SessionLesson, words: ComparedSentence) -> bool:
    """Say whether a lesson teaches what a cluster does: by the words that were said, or by the commands that ran."""
    if lesson.lead:
        return any(sameness.compare(known, words) is Relation.SAME for known in cluster.wordings)
    return any(command_similarity.is_same(known, lesson) for known in cluster.lessons[-3:])


def _entry(cluster: Cluster, decided: dict[str, str], people: Mapping[str, Person]) -> Entry:
    first, last = cluster.lessons[0], cluster.last
    told = _telling(cluster)
    name = entry_id(first.project, first.kind, first.words)
    threads = {lesson.thread_id for lesson in cluster.lessons}
    sources = [source for lesson in cluster.lessons for source in lesson.sources] or [
        Source(lesson.words, _how(lesson), lesson.thread_id, updated_s=lesson.updated_s) for lesson in cluster.lessons
    ]
    if people:
        sources = [
            msgspec.structs.replace(each, person=people.get(each.note or each.thread_id or "")) for each in sources
        ]
    is_rule = cluster.is_said and len(speakers(cluster.lessons, people)) >= CROWD and len(cluster.projects()) == 1
    scope = decided.get(name) or (last.project if is_rule else _scope(cluster))
    confidence = max(lesson.confidence for lesson in cluster.lessons)
    is_again = cluster.is_said and len(threads) > 1 and not _is_copied(cluster)
    if is_again and confidence >= CANDIDATE:
        confidence = max(confidence, TOLD if confidence >= LISTED else LISTED)
    return Entry(
        name,
        scope,
        "rule" if is_rule and told.kind == "preference" else told.kind,
        told.entry_text,
        len(threads),
        sources,
        first.updated_s,
        last.updated_s,
        confidence=confidence,
    )


def _is_copied(cluster: Cluster) -> bool:
    """Say whether sessions have the same long words because one goes on where another ended."""
    words = {normal(lesson.words) for lesson in cluster.lessons}
    return len(words) == 1 and len(words.pop().split()) > _LONG


def _how(lesson: SessionLesson) -> str:
    """Return how far a lesson without references can be trusted: by what its bullet says of it."""
    if lesson.lead and "by the user" not in lesson.lead and "user" in lesson.lead.lower():
        return "told to be said by the user"
    return lesson.lead or "learned"


def _telling(cluster: Cluster) -> SessionLesson:
    """Return the lesson that says it best: the most complete wording or check, and of those the newest.

    What stands around a request that was made again is of the moment, so only the request itself counts there.
    """
    if len(cluster.lessons) > 1 and all(lesson.is_request for lesson in cluster.lessons):
        best = max(
            cluster.lessons, key=lambda lesson: (min(len(lesson.compared), 200), -len(lesson.words), lesson.order)
        )
    else:
        best = max(cluster.lessons, key=lambda lesson: (min(len(lesson.words), 200), lesson.order))
    default = best.default or next((each.default for each in reversed(cluster.lessons) if each.default), "")
    return msgspec.structs.replace(best, default=default)


def _scope(cluster: Cluster) -> str:
    """Return whom a cluster is for."""
    projects = cluster.projects()
    if not all(is_personal(lesson) for lesson in cluster.lessons):
        return cluster.last.project
    if len(projects) > 1 or any(is_for_everything(lesson) for lesson in cluster.lessons):
        return GLOBAL
    return cluster.last.project


def is_personal(lesson: SessionLesson) -> bool:
    """Say whether a lesson may be the person's own: a wish, a norm that does not name the project at hand, or what they
    said is for all their projects.
    """
    if lesson.scope == "everywhere":
        return True
    if lesson.kind != "rule":
        return lesson.kind == "preference"
    return not similarity.pattern("of_this_project").search(lesson.words.lower().replace("’", "'"))


def is_for_everything(lesson: SessionLesson) -> bool:
    """Say whether a person said that a wish is for all they do, or is about how they are spoken to."""
    if lesson.scope:
        return lesson.scope == "everywhere"
    lower = _QUOTED.sub(" ", lesson.words.lower().replace("’", "'"))
    if similarity.pattern("everywhere").search(lower):
        return not similarity.pattern("of_this_project").search(lower) or "everywhere" in lower
    if similarity.words(lesson.words).exact or similarity.pattern("of_this_project").search(lower):
        return False
    return bool(similarity.pattern("about_answers").search(lower))


def _are_wishes_of_others(older: Entry, newer: Entry) -> bool:
    """Say whether two wishes are of different people: nobody's wish takes the place of another's."""
    if older.kind != "preference" and not older.is_global:
        return False
    return bool(older.people) and bool(newer.people) and older.people.isdisjoint(newer.people)


def _replace(clusters: _Clusters, entries: dict[int, Entry]) -> None:
    """Mark what no longer holds: of two clusters in one scope that say otherwise, the one that was learned first."""
    for newer in clusters.all:
        if not newer.is_said:
            continue
        for older in clusters.near(newer.last, sameness.read(newer.last.compared)):
            if older is newer or older.last.order >= newer.last.order or older.replaced_by is not None:
                continue
            if entries[older.number].scope != entries[newer.number].scope:
                continue
            if _are_wishes_of_others(entries[older.number], entries[newer.number]):
                continue
            before, now = sameness.read(older.last.compared), sameness.read(newer.last.compared)
            if sameness.compare(before, now) is Relation.REPLACES:
                older.replaced_by = newer

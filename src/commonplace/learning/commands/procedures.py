"""Procedures: steps that sessions take in the same order, to release, to deploy or to migrate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from commonplace.learning.commands import tables
from commonplace.learning.commands.landmarks import Landmark
from commonplace.learning.commands.lines import MAX_TEXT, CommandLine, Source, code, newest_first, source_of
from commonplace.learning.commands.runs import SessionRuns

_GOALS: Final = ("deploy", "release", "migrate")
_LABELS: Final[dict[str, str]] = tables.table("roles")["labels"]
_LONGEST: Final = 6
_BETWEEN: Final = 2
"""How many other steps may stand between two neighbours of a procedure."""
_LEAST_SESSIONS: Final = 2
_MOST: Final = 3

Steps = tuple[str, ...]


def procedure_lines(sessions: Sequence[SessionRuns]) -> list[CommandLine]:
    """Return the lines about a project's procedures, and about steps of git that stand in none of them."""
    shared = _shared_steps(sessions)
    taken: dict[Steps, dict[str, list[Source]]] = defaultdict(dict)
    goals: dict[Steps, str] = {}
    for session in sessions:
        landmarks = [landmark for landmark in session.landmarks if landmark.text in shared]
        if not any(landmark.role in _GOALS for landmark in landmarks):
            continue
        for sequence in _sequences(landmarks):
            steps = tuple(landmark.text for landmark in sequence)
            sources = [source_of(session.thread_id, session.updated_s, landmark.place) for landmark in sequence]
            taken[steps].setdefault(session.thread_id, sources)
            goals[steps] = next(landmark.role for landmark in reversed(sequence) if landmark.role in _GOALS)
    often = {steps: where for steps, where in taken.items() if len(where) >= _LEAST_SESSIONS}
    kept = _longest(often)
    lines = [_line(goals[steps], steps, [s for each in often[steps].values() for s in each]) for steps in kept]
    inside = {step for steps in kept for step in steps}
    return [*lines, *_lone_steps(sessions, shared - inside)]


def _shared_steps(sessions: Sequence[SessionRuns]) -> set[str]:
    """Return the steps that at least two sessions took."""
    counts: dict[str, int] = defaultdict(int)
    for session in sessions:
        for text in {landmark.text for landmark in session.landmarks}:
            counts[text] += 1
    return {text for text, count in counts.items() if count >= _LEAST_SESSIONS}


def _sequences(landmarks: Sequence[Landmark]) -> Iterator[list[Landmark]]:
    """Yield the sequences of two to six different steps with a goal among them and few others in between."""

    def longer(sequence: list[Landmark], last: int) -> Iterator[list[Landmark]]:
        if len(sequence) > 1 and any(landmark.role in _GOALS for landmark in sequence):
            yield sequence
        if len(sequence) == _LONGEST:
            return
        for place in range(last + 1, min(last + 2 + _BETWEEN, len(landmarks))):
            landmark = landmarks[place]
            if all(landmark.text != step.text for step in sequence):
                yield from longer([*sequence, landmark], place)

    for start in range(len(landmarks)):
        yield from longer([landmarks[start]], start)


def _longest(taken: dict[Steps, dict[str, list[Source]]]) -> list[Steps]:
    """Return the longest procedures that can be told, none of which shares half of its steps with another."""
    kept: list[Steps] = []
    for steps in sorted(taken, key=lambda each: (-len(each), -len(taken[each]), each)):
        is_other = all(2 * len(set(steps) & set(other)) < len(steps) for other in kept)
        if is_other and len(_text("release", steps)) <= MAX_TEXT:
            kept.append(steps)
    return kept[:_MOST]


def _lone_steps(sessions: Sequence[SessionRuns], steps: set[str]) -> Iterator[CommandLine]:
    """Yield a line for each step of git or gh that stands in no procedure."""
    found: dict[str, dict[str, Source]] = defaultdict(dict)
    for session in sessions:
        for landmark in session.landmarks:
            if landmark.source == "git" and landmark.text in steps:
                source = source_of(session.thread_id, session.updated_s, landmark.place)
                found[landmark.text].setdefault(session.thread_id, source)
    for text, sources in sorted(found.items()):
        yield _line("release", (text,), list(sources.values()))


def _line(goal: str, steps: Steps, sources: list[Source]) -> CommandLine:
    sessions = len({source.thread_id for source in sources})
    return CommandLine("procedure", goal, _text(goal, steps), steps, newest_first(sources), sessions, is_told=True)


def _text(goal: str, steps: Steps) -> str:
    return f"{_LABELS[goal]}: {', then '.join(map(code, steps))}"

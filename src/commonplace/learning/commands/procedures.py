"""Procedures: steps that sessions take in the same order, to release, to deploy or to migrate."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from commonplace.learning.commands import tables
from commonplace.learning.commands.landmarks import Landmark
from commonplace.learning.commands.lines import MAX_TEXT, CommandLine, CommandSource, code, newest_first, source_of
from commonplace.learning.commands.runs import SessionRuns

_GOALS: Final = ("deploy", "release", "migrate")
_LABELS: Final[dict[str, str]] = tables.table("roles")["labels"]
_LONGEST: Final = 6
_BETWEEN: Final = 2
"""How many other steps may stand between two neighbours of a procedure."""
_LEAST_SESSIONS: Final = 2
_MOST: Final = 3

_MOST_FOLLOWED: Final = 200
"""How many sequences of one length are made longer, the most common ones; it bounds the time."""

Steps = tuple[str, ...]
_Path = tuple[int, ...]
_Taken = list[tuple[SessionRuns, list[Landmark]]]
"""The sessions that took a sequence, each with the steps as it took them."""


def procedure_lines(sessions: Sequence[SessionRuns]) -> list[CommandLine]:
    """Return the lines about a project's procedures, and about steps of git that stand in none of them."""
    shared = _shared_steps(sessions)
    walks = [_SequenceWalk(session, shared) for session in sessions]
    taken = _taken_often([walk for walk in walks if walk.has_goal])
    lines = [_procedure(steps, taken[steps]) for steps in _longest(taken)]
    inside = {step for line in lines for step in line.commands}
    return [*lines, *_lone_steps(sessions, shared - inside)]


def _shared_steps(sessions: Sequence[SessionRuns]) -> set[str]:
    """Return the steps that at least two sessions took."""
    counts: dict[str, int] = defaultdict(int)
    for session in sessions:
        for text in {landmark.text for landmark in session.landmarks}:
            counts[text] += 1
    return {text for text, count in counts.items() if count >= _LEAST_SESSIONS}


class _SequenceWalk:
    """The shared steps of one session, and how sequences of them go on."""

    def __init__(self, session: SessionRuns, shared: set[str]) -> None:
        self.session = session
        self.landmarks = [landmark for landmark in session.landmarks if landmark.text in shared]
        self.paths: dict[Steps, dict[int, _Path]] = {}
        """For each sequence, the places of its steps, by the place of the last."""
        for place, landmark in enumerate(self.landmarks):
            self.paths.setdefault((landmark.text,), {})[place] = (place,)

    @property
    def has_goal(self) -> bool:
        """A step of the session reaches a goal."""
        return any(landmark.role in _GOALS for landmark in self.landmarks)

    def grow(self) -> None:
        """Make each sequence longer by one step that comes soon after it and is not in it."""
        longer: dict[Steps, dict[int, _Path]] = {}
        for steps, ends in self.paths.items():
            for last, path in ends.items():
                for place in range(last + 1, min(last + 2 + _BETWEEN, len(self.landmarks))):
                    text = self.landmarks[place].text
                    if text not in steps:
                        longer.setdefault((*steps, text), {}).setdefault(place, (*path, place))
        self.paths = longer

    def steps_of(self, steps: Steps) -> list[Landmark]:
        """Return where the session took a sequence first."""
        ends = self.paths[steps]
        return [self.landmarks[place] for place in ends[min(ends)]]


def _taken_often(walks: Sequence[_SequenceWalk]) -> dict[Steps, _Taken]:
    """Return the sequences of two to six steps with a goal that at least two sessions took."""
    often: dict[Steps, _Taken] = {}
    for _ in range(_LONGEST - 1):
        counts: Counter[Steps] = Counter()
        for walk in walks:
            walk.grow()
            counts.update(walk.paths.keys())
        ranked = sorted(counts, key=lambda steps: (-counts[steps], steps))[:_MOST_FOLLOWED]
        kept = {steps for steps in ranked if counts[steps] >= _LEAST_SESSIONS}
        for walk in walks:
            walk.paths = {steps: ends for steps, ends in walk.paths.items() if steps in kept}
            for steps in walk.paths:
                taken = walk.steps_of(steps)
                if any(landmark.role in _GOALS for landmark in taken):
                    often.setdefault(steps, []).append((walk.session, taken))
    return often


def _longest(taken: dict[Steps, _Taken]) -> list[Steps]:
    """Return the longest procedures that can be told, none of which shares half of its steps with another."""
    kept: list[Steps] = []
    for steps in sorted(taken, key=lambda each: (-len(each), -len(taken[each]), each)):
        is_other = all(2 * len(set(steps) & set(other)) < len(steps) for other in kept)
        if is_other and len(_text("release", steps)) <= MAX_TEXT:
            kept.append(steps)
    return kept[:_MOST]


def _lone_steps(sessions: Sequence[SessionRuns], steps: set[str]) -> Iterator[CommandLine]:
    """Yield a line for each step of git or gh that stands in no procedure."""
    found: dict[str, dict[str, CommandSource]] = defaultdict(dict)
    for session in sessions:
        for landmark in session.landmarks:
            if landmark.source == "git" and landmark.text in steps:
                source = source_of(session.thread_id, session.updated_s, landmark.place)
                found[landmark.text].setdefault(session.thread_id, source)
    for text, sources in sorted(found.items()):
        yield _line("release", (text,), list(sources.values()))


def _procedure(steps: Steps, taken: _Taken) -> CommandLine:
    sources = [
        source_of(session.thread_id, session.updated_s, landmark.place)
        for session, landmarks in taken
        for landmark in landmarks
    ]
    goal = next(landmark.role for landmark in reversed(taken[0][1]) if landmark.role in _GOALS)
    return _line(goal, steps, sources)


def _line(goal: str, steps: Steps, sources: list[CommandSource]) -> CommandLine:
    sessions = len({source.thread_id for source in sources})
    return CommandLine("procedure", goal, _text(goal, steps), steps, newest_first(sources), sessions, is_told=True)


def _text(goal: str, steps: Steps) -> str:
    return f"{_LABELS[goal]}: {', then '.join(map(code, steps))}"

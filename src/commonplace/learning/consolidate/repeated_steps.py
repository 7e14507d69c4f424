"""Steps that came up in two sessions or more: told by what was run and worked, not by what anybody called it.

Every summary lists the commands that worked, in order. Where two sessions of a project share three or more in the same
order, that is a procedure, whether or not either of them looked like one alone. Checks, commits and the like are in
every session and make none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import lru_cache
from typing import Final

import msgspec

from commonplace.learning.commands.calls import SimpleCommand, without_wrappers
from commonplace.learning.commands.canonical import canonical
from commonplace.learning.commands.roles import Role
from commonplace.learning.reading import commands
from commonplace.memory.files import lesson_parser
from commonplace.memory.files.lesson_text import UNNAMED
from commonplace.memory.files.raw_memories import RawMemory
from commonplace.patterns import regex
from commonplace.protocol import shell

_FEWEST: Final = 3
"""Fewer steps make no procedure."""
_OWN: Final = 2
"""How many steps must be of the procedure's own, neither checks nor bookkeeping."""
_MAX_COMPARED: Final = 48
"""How many procedures a session is compared with, the newest."""
_SHORT: Final = 3
"""Steps of at most this many words are alike if their program is."""
_ALIKE: Final = 0.5
"""Longer steps must share this share of their words."""
_VALUE: Final = regex(r"\d|=")
_FOLDER: Final = "/project"
_GOALS: Final[frozenset[Role | None]] = frozenset({None, "deploy", "release", "migrate", "codegen", "run", "task"})
"""What a step of a procedure may be for; checks, builds and formatting are in every session."""
_CARRYING: Final = frozenset({"ssh", "scp", "rsync", "sudo", "ssh-add", "export", "source"})
"""Programs that say little of what is done."""
_USUAL: Final = frozenset({"git", "cd", "ls", "cat", "echo", "pip", "npm install", "mkdir", "rm", "mv", "gh"})


class SuccessfulCommands(msgspec.Struct, frozen=True):
    """The commands of a session that succeeded, in order."""

    thread_id: str
    updated_s: int
    task: str
    steps: tuple[str, ...]


class Procedure(msgspec.Struct, frozen=True):
    """Steps that several sessions share, oldest session first; each run has the shared steps only."""

    project: str
    runs: tuple[SuccessfulCommands, ...]


def procedures(inputs: list[RawMemory], projects: dict[str, str]) -> list[Procedure]:
    """Return the steps that sessions of a project share."""
    by_project: dict[str, list[SuccessfulCommands]] = defaultdict(list)
    for each in sorted(inputs, key=lambda one: (one.updated_s, one.thread_id)):
        run = _run(each)
        if len(run.steps) >= _FEWEST:
            by_project[projects.get(each.thread_id) or each.cwd].append(run)
    return [found for project in sorted(by_project) for found in _shared(project, by_project[project])]


def _run(source: RawMemory) -> SuccessfulCommands:
    tasks = [(task.name, task.steps) for task in lesson_parser.session_of(source).tasks]
    steps = tuple(step for _, own in tasks for step in dict.fromkeys(own))
    longest = max(tasks, key=lambda task: len(task[1]), default=("", ()))
    return SuccessfulCommands(source.thread_id, source.updated_s, longest[0], steps)


def _shared(project: str, runs: list[SuccessfulCommands]) -> list[Procedure]:
    """Put runs together, each with the first procedure it shares enough with."""
    found: list[list[SuccessfulCommands]] = []
    for run in runs:
        for known in found[-_MAX_COMPARED:]:
            common = _common(known[-1], run)
            if common is not None:
                before, now = common
                known[:] = [*(_common_or_whole(each, before) for each in known), now]
                break
        else:
            found.append([run])
    return [Procedure(project, tuple(each)) for each in found if len(each) > 1 and _has_own(each[-1])]


def _has_own(run: SuccessfulCommands) -> bool:
    """Say whether enough steps of a run are of the procedure's own; each session that joins may leave some out."""
    return len({_shape(step) for step in run.steps if _is_own(step)}) >= _OWN


def _common_or_whole(run: SuccessfulCommands, like: SuccessfulCommands) -> SuccessfulCommands:
    common = _common(run, like)
    return common[0] if common is not None else run


def _common(one: SuccessfulCommands, two: SuccessfulCommands) -> tuple[SuccessfulCommands, SuccessfulCommands] | None:
    """Return two runs with only the steps that they share in the same order; None if that is no procedure."""
    first, second = one.steps, two.steps
    if not _may_share(first, second):
        return None
    pairs = _longest(first, second)
    own = {_shape(first[place]) for place, _ in pairs if _is_own(first[place])}
    if len(own) < _OWN or len({_shape(first[place]) for place, _ in pairs}) < _FEWEST:
        return None
    left = msgspec.structs.replace(one, steps=tuple(first[place] for place, _ in pairs))
    return left, msgspec.structs.replace(two, steps=tuple(second[place] for _, place in pairs))


def _may_share(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Say whether two runs have enough programs in common, before their steps are compared one by one."""
    programs = Counter(map(_program, second))
    if sum((Counter(map(_program, first)) & programs).values()) < _FEWEST:
        return False
    return len({_shape(step) for step in first if _program(step) in programs and _is_own(step)}) >= _OWN


def _longest(first: tuple[str, ...], second: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return the longest list of pairs of places with like steps, in order in both."""
    best = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for a in range(len(first) - 1, -1, -1):
        for b in range(len(second) - 1, -1, -1):
            here = best[a + 1][b + 1] + 1 if _is_like(first[a], second[b]) else 0
            best[a][b] = max(here, best[a + 1][b], best[a][b + 1])
    pairs: list[tuple[int, int]] = []
    a = b = 0
    while a < len(first) and b < len(second):
        if _is_like(first[a], second[b]) and best[a][b] == best[a + 1][b + 1] + 1:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        elif best[a + 1][b] >= best[a][b + 1]:
            a += 1
        else:
            b += 1
    return pairs


def _is_like(one: str, two: str) -> bool:
    """Say whether two steps are the same with other values."""
    if _program(one) != _program(two):
        return False
    first, second = set(one.split()), set(two.split())
    return min(len(first), len(second)) <= _SHORT or len(first & second) / len(first | second) >= _ALIKE


@lru_cache(maxsize=8192)
def _shape(step: str) -> str:
    """Return a step without what looks like a value."""
    return " ".join(word for word in step.split() if not _VALUE.search(word))


@lru_cache(maxsize=8192)
def _program(step: str) -> str:
    return commands.parse(step).program or step


def goal_of(procedure: Procedure) -> str:
    """Return what was asked for when the steps were run, as the newest session that says so has it; empty if none."""
    return next((run.task for run in reversed(procedure.runs) if run.task not in ("", UNNAMED)), "")


def first_own(run: SuccessfulCommands) -> str:
    """Return the program of the first step that is a procedure's own and runs here."""
    own = [_program(step) for step in run.steps if _is_own(step)]
    return next((program for program in own if program.split()[0] not in _CARRYING), own[0] if own else "")


@lru_cache(maxsize=8192)
def _is_own(step: str) -> bool:
    """Say whether a step is a procedure's own, neither a check nor bookkeeping."""
    program = _program(step)
    words = program.split()
    is_usual = bool({program, *words[:1]} & _USUAL)
    is_check = commands.is_verifying(step) or commands.is_looking(commands.parse(step))
    return not is_usual and not is_check and _roles(step) <= _GOALS


@lru_cache(maxsize=8192)
def _roles(step: str) -> frozenset[Role | None]:
    """Return what the commands of a step are for; None where nothing tells."""
    found: set[Role | None] = set()
    for pipeline in shell.pipelines(step):
        assignments, words = without_wrappers(pipeline[0].texts)
        if words:
            form = canonical(SimpleCommand(tuple(words), assignments, _FOLDER), (_FOLDER,))
            found.add(form.role if form else None)
    return frozenset(found)

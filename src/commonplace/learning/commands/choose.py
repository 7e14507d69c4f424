"""The lines about commands of one project, chosen from what is stored of its sessions.

A line is told if its command ran in enough sessions and is the best of its role in its part of the project; a task of
the project speaks for the bare tools that it runs. Whatever else ran well once is a candidate, and so is a trouble that
was cured too seldom to be told. The same sessions give the same lines in the same order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from commonplace.learning.commands import roles, texts
from commonplace.learning.commands.lines import MAX_TEXT, CommandLine, LineKind, newest_first
from commonplace.learning.commands.procedures import procedure_lines
from commonplace.learning.commands.roles import CHECKS, Role
from commonplace.learning.commands.runs import Chain, SessionRuns
from commonplace.learning.commands.tallies import CommandTally, tallies_of, with_whole_scripts
from commonplace.learning.commands.trouble_lines import trouble_lines

_ORDER: Final[tuple[Role, ...]] = (*CHECKS, "codegen", "migrate", "run", "deploy", "release", "task", "bench")
_SPEAKS_FOR: Final = 0.1
"""A task speaks for a bare tool if it succeeded in this share of the tool's sessions."""
_SHARE: Final = 0.25
"""What runs beside the best of a role needs this share of its sessions."""
_LEAST: Final = 2
_PER_ROLE: Final = 3
_TASK_FACTOR: Final = 2.0
_WHOLE_FACTOR: Final = 1.5
_OLD_FACTOR: Final = 0.3
_OLD_S: Final = 30 * 24 * 3600
"""A command that was used last so long before its newest rival is probably replaced."""
_FIRST: Final[frozenset[Role]] = frozenset({"check", "test", "lint", "typecheck"})
"""Checks that are told at once in a new project."""
_NOT_BY_CHANCE: Final = 3
"""In a new project, other commands must have run in so many sessions."""
_NEW_PROJECT: Final = 6
"""A project of fewer sessions is new: what ran once is told, because nothing better is known."""
_MAX_CANDIDATES: Final = 60


def choose(sessions: Sequence[SessionRuns], roots: Sequence[str]) -> list[CommandLine]:
    """Return the lines of a project, those that are told first; `roots` are the folders that are the project."""
    tallies = [tally for tally in tallies_of(sessions, roots) if tally.role != "setup"]
    project_sessions = sum(session.calls > 0 for session in sessions)
    is_new = len(sessions) < _NEW_PROJECT
    told = _told(tallies, project_sessions, is_new=is_new)
    chains = [chain for session in sessions for chain in session.chains]
    lines = [_line(tally, chains, is_told=True) for tally in told]
    lines += trouble_lines(sessions, is_new=is_new)
    lines += procedure_lines(sessions)
    shown = {line.text for line in lines}
    candidates = [_line(tally, [], is_told=False) for tally in _candidates(tallies, told)]
    lines += [line for line in candidates if line.text not in shown]
    return [*(line for line in lines if line.is_told), *(line for line in lines if not line.is_told)]


def _told(tallies: Sequence[CommandTally], project_sessions: int, *, is_new: bool) -> list[CommandTally]:
    told: list[CommandTally] = []
    for role in _ORDER:
        of_role = [tally for tally in tallies if tally.role == role]
        needed = roles.sessions_needed(role, project_sessions)
        if needed is None:
            continue
        if is_new and role not in _FIRST:
            needed = max(needed, _NOT_BY_CHANCE)
        kept = [tally for tally in of_role if tally.sessions >= needed]
        if not kept and role in CHECKS:
            kept = _lone_check(of_role, is_new=is_new)
        told += _best(role, _without_spoken_for(kept))
    return told


def _lone_check(tallies: Sequence[CommandTally], *, is_new: bool) -> list[CommandTally]:
    """Return the check that succeeded most often in a single session, if that tells enough."""
    able = [
        tally
        for tally in tallies
        if tally.ok
        and ((is_new and tally.role in _FIRST) or tally.is_task or (tally.is_whole and tally.most_ok >= _LEAST))
    ]
    return sorted(able, key=lambda tally: (-tally.most_ok, -tally.runs, tally.key))[:1]


def _without_spoken_for(tallies: Sequence[CommandTally]) -> list[CommandTally]:
    """Leave out the bare tools that a task of the project runs."""
    tasks = [tally for tally in tallies if tally.is_task]

    def speaks_for(task: CommandTally, tool: CommandTally) -> bool:
        is_related = task.language == tool.language or (task.language == "any" and task.place == tool.place)
        return is_related and task.ok_count >= max(_LEAST, _SPEAKS_FOR * tool.ok_count)

    return [
        tally
        for tally in tallies
        if not tally.is_bare or tally.is_binary or not any(speaks_for(task, tally) for task in tasks)
    ]


def _best(role: Role, tallies: Sequence[CommandTally]) -> list[CommandTally]:
    """Return the commands of a role that are told: scripts and own tasks each, of all others the best per place."""
    tallies = with_whole_scripts(tallies)
    alone = [tally for tally in tallies if tally.is_script or role == "task"]
    groups: dict[tuple[str, str, bool], list[CommandTally]] = defaultdict(list)
    for tally in tallies:
        if tally not in alone:
            groups[tally.place, _language(tally, tallies), tally.is_binary].append(tally)
    leaders = {key: _leaders(group) for key, group in groups.items()}
    busiest: dict[tuple[str, bool], int] = {}
    for (_, language, is_binary), (best, *_rest) in leaders.items():
        busiest[language, is_binary] = max(busiest.get((language, is_binary), 0), best.ok_count)
    chosen = [
        tally
        for (_, language, is_binary), group in leaders.items()
        if group[0].ok_count >= _SHARE * busiest[language, is_binary]
        for tally in group
    ]
    return [*_first(chosen), *_first(alone)]


def _language(tally: CommandTally, tallies: Sequence[CommandTally]) -> str:
    """Return the ecosystem of a command; a runner for all of them stands for that of the tools in its place."""
    if tally.language != "any":
        return tally.language
    rivals = [each for each in tallies if each.place == tally.place and each.is_bare and each.language != "any"]
    return max(rivals, key=lambda each: (each.ok_count, each.key)).language if rivals else "any"


def _leaders(group: Sequence[CommandTally]) -> list[CommandTally]:
    """Return the best command of a group, and others of another name that are run often beside it."""
    newest = max(tally.last_s for tally in group)
    best, *rest = sorted(group, key=lambda tally: (-_score(tally, newest), tally.key))
    names = {best.name}
    leaders = [best]
    for tally in rest:
        if tally.name not in names and tally.ok_count >= max(_LEAST, _SHARE * best.ok_count):
            names.add(tally.name)
            leaders.append(tally)
    return leaders


def _score(tally: CommandTally, newest: int) -> float:
    score = float(tally.ok_count)
    score *= _TASK_FACTOR if tally.is_task else 1.0
    score *= _WHOLE_FACTOR if tally.is_whole else 1.0
    return score * (_OLD_FACTOR if tally.last_s < newest - _OLD_S else 1.0)


def _first(tallies: Sequence[CommandTally]) -> list[CommandTally]:
    return sorted(tallies, key=lambda tally: (-tally.ok_count, -tally.runs, tally.key))[:_PER_ROLE]


def _candidates(tallies: Sequence[CommandTally], told: Sequence[CommandTally]) -> Iterator[CommandTally]:
    """Yield the commands that are not told and ran well once: tasks, scripts and what ran on the whole project."""
    able = [tally for tally in tallies if tally.ok and (not tally.is_bare or tally.is_whole)]
    able.sort(key=lambda tally: (-tally.ok_count, -tally.runs, tally.role, tally.key, tally.folder))
    told_keys = {(tally.role, tally.key, tally.component, tally.folder) for tally in told}
    scripts = {tally.name for tally in told if tally.is_script}
    rest = [
        tally
        for tally in able
        if (tally.role, tally.key, tally.component, tally.folder) not in told_keys and tally.name not in scripts
    ]
    yield from rest[:_MAX_CANDIDATES]


def _line(tally: CommandTally, chains: Sequence[Chain], *, is_told: bool) -> CommandLine:
    chain = _chain_for(tally, chains) if tally.role == "check" else ""
    makes_program = tally.role == "build" and tally.is_binary
    kind: LineKind = "verify" if tally.role in CHECKS and not makes_program else "procedure"
    sources = newest_first(list(tally.sources.values()))
    shown = tuple(chain.split(" && ")) if chain else (texts.command_of(tally),)
    return CommandLine(kind, tally.role, texts.text_of(tally, chain), shown, sources, tally.sessions, is_told)


def _chain_for(tally: CommandTally, chains: Sequence[Chain]) -> str:
    """Return the longest chain of checks that a full check is often run in."""
    counts: dict[str, int] = defaultdict(int)
    for chain in chains:
        if tally.key in chain.keys and not chain.folder and len(chain.text) + 16 <= MAX_TEXT:
            counts[chain.text] += 1
    often = [text for text, count in counts.items() if count >= max(_LEAST, _SPEAKS_FOR * tally.sessions)]
    return max(often, key=lambda text: (text.count(" && "), counts[text], text), default="")

"""The lessons about commands of each project, chosen from the runs of all its sessions together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from commonplace.learning.commands import paths
from commonplace.learning.commands.choose import choose
from commonplace.learning.commands.lines import CommandLine
from commonplace.learning.commands.runs import SessionRuns
from commonplace.memory.entries import Source
from commonplace.memory.lessons import SessionLesson

_TOLD: Final = 0.9
_CANDIDATE: Final = 0.3
"""How likely lines last that are told, and those that are candidates."""


class ProjectRuns(msgspec.Struct, frozen=True):
    """The commands that ran in one session, and its project."""

    project: str
    runs: SessionRuns


def decoded(project: str, thread_id: str, stored: dict[str, Any]) -> ProjectRuns | None:
    """Return the stored runs of a session; None if there are none, or if a newer version wrote them."""
    if not stored:
        return None
    try:
        return ProjectRuns(project, msgspec.convert({**stored, "thread_id": thread_id}, SessionRuns))
    except msgspec.ValidationError:
        return None


def command_lessons(sessions: Iterable[ProjectRuns]) -> Iterator[SessionLesson]:
    """Yield the lessons about commands, one for each session that shows it."""
    by_project: defaultdict[str, list[SessionRuns]] = defaultdict(list)
    for each in sessions:
        by_project[each.project].append(each.runs)
    for project, runs in sorted(by_project.items()):
        runs.sort(key=lambda each: (each.updated_s, each.thread_id))
        for place, line in enumerate(choose(runs, roots_of(each.cwd for each in runs))):
            yield from _lessons(line, project, place)


def roots_of(folders: Iterable[str]) -> list[str]:
    """Return the folders that lie in no other of them."""
    roots: list[str] = []
    for folder in sorted(set(folders)):
        if folder and paths.relative(folder, roots) is None:
            roots.append(folder)
    return roots


def _lessons(line: CommandLine, project: str, place: int) -> Iterator[SessionLesson]:
    for source in line.sources:
        yield SessionLesson(
            kind=line.kind,
            text=line.text,
            words=line.text,
            stretch="",
            lead="",
            project=project,
            thread_id=source.thread_id,
            updated_s=source.updated_s,
            place=place,
            task="",
            outcome="",
            sources=(
                Source(
                    source.quote,
                    "shown by a command",
                    source.thread_id,
                    source.turn,
                    source.start,
                    source.end,
                    source.updated_s,
                ),
            ),
            commands=line.commands,
            confidence=_TOLD if line.is_told else _CANDIDATE,
        )

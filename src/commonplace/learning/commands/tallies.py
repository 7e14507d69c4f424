"""The commands of a project, counted over its sessions: one tally per role, key, part of the project and folder."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from commonplace.learning.commands import paths, roles, task_runners
from commonplace.learning.commands.lines import CommandSource, source_of
from commonplace.learning.commands.roles import Role
from commonplace.learning.commands.runs import Run, SessionRuns
from commonplace.patterns import regex

_MAY_FAIL: Final[frozenset[Role]] = frozenset({"deploy", "release", "run"})
"""Roles of commands that count although no run is known to have succeeded."""
_RARE: Final = 0.25
"""A command that runs in a folder in a smaller share of the sessions than in the root belongs to the root."""
_AROUND_NAME: Final = regex(r"[^\w-]++")


class CommandTally(msgspec.Struct):
    """One command of a project, counted."""

    role: Role
    program: str
    name: str
    key: str
    component: str
    folder: str
    """Relative to the root; empty for the root."""
    place: str
    """The last part of the package's name or of the folder."""
    is_task: bool
    is_script: bool
    is_binary: bool
    sources: dict[str, CommandSource] = {}
    """One per session."""
    ok_sessions: set[str] = set()
    runs: int = 0
    ok: int = 0
    most_ok: int = 0
    """How often it succeeded in the session in which it did so most often."""
    whole: int = 0
    last_s: int = 0
    forms: Counter[str] = msgspec.field(default_factory=Counter[str])
    typed: Counter[str] = msgspec.field(default_factory=Counter[str])
    """The command as it was typed."""
    scopes: Counter[str] = msgspec.field(default_factory=Counter[str])
    """In how many sessions a scope was used."""
    assignments: Counter[str] = msgspec.field(default_factory=Counter[str])

    @property
    def sessions(self) -> int:
        """In how many sessions it ran."""
        return len(self.sources)

    @property
    def ok_count(self) -> int:
        """In how many sessions it succeeded."""
        return len(self.ok_sessions)

    @property
    def language(self) -> str:
        """The ecosystem of its program."""
        return roles.language_of(self.program)

    @property
    def is_bare(self) -> bool:
        """It is a tool, not a task or a script of the project."""
        return not self.is_task and not self.is_script

    @property
    def is_whole(self) -> bool:
        """It ran on the whole project at least once; `go` needs `./...` for that."""
        if self.program == "go":
            return self.whole > 0 and any(scope.endswith("...") for scope in self.scopes)
        return self.whole > 0


def tallies_of(sessions: Sequence[SessionRuns], roots: Sequence[str]) -> list[CommandTally]:
    """Return the commands of a project that succeeded at least once, counted over its sessions."""
    packages = {name: folder for session in sessions for name, folder in session.packages.items()}
    found: dict[tuple[str, ...], CommandTally] = {}
    for session in sessions:
        own = session_roots(session.cwd, roots)
        for run in session.runs:
            folder = paths.relative(posixpath.normpath(posixpath.join(session.cwd, run.folder)), own)
            if folder is not None:
                key = (run.role, run.key, run.component, folder)
                tally = found.get(key) or found.setdefault(key, _tally(run, folder, packages))
                _add(tally, run, session)
    succeeded = [tally for tally in found.values() if tally.ok or tally.role in _MAY_FAIL]
    return _without_rare_folders(succeeded)


def session_roots(cwd: str, roots: Sequence[str]) -> tuple[str, ...]:
    """Return the roots for a session: the project's, and the session's own if it is a worktree or in none of them."""
    own = paths.own_roots(cwd)
    is_needed = len(own) > 1 or paths.relative(cwd, roots) is None
    return (*roots, *own) if is_needed else tuple(roots)


def place_of_command(component: str, folder: str, packages: dict[str, str]) -> str:
    """Return the last part of a package's name or of a folder; empty for the whole project."""
    where = packages.get(component, component) if component else folder
    parts = [part for part in (_AROUND_NAME.sub("", part) for part in where.split("/")) if part]
    return parts[-1].lower() if parts else ""


def _tally(run: Run, folder: str, packages: dict[str, str]) -> CommandTally:
    place = place_of_command(run.component, folder, packages)
    return CommandTally(
        run.role,
        run.program,
        run.name,
        run.key,
        run.component,
        folder,
        place,
        run.is_task,
        run.is_script,
        run.is_binary,
        sources={},
        ok_sessions=set(),
    )


def _add(tally: CommandTally, run: Run, session: SessionRuns) -> None:
    source = source_of(session.thread_id, session.updated_s, run.place)
    tally.sources.setdefault(session.thread_id, source)
    if run.ok:
        tally.ok_sessions.add(session.thread_id)
    tally.runs += run.runs
    tally.ok += run.ok
    tally.most_ok = max(tally.most_ok, run.ok)
    tally.whole += run.whole
    tally.last_s = max(tally.last_s, run.last_s)
    tally.forms.update(run.forms)
    tally.typed.update(run.typed)
    tally.scopes.update(run.scopes.keys())
    tally.assignments.update(run.assignments)


def _without_rare_folders(tallies: Iterable[CommandTally]) -> list[CommandTally]:
    """Add commands in a folder to the same command in the root, where they are rare or the folder does not matter."""
    found = sorted(tallies, key=lambda tally: len(tally.folder))
    in_root = {(tally.role, tally.key, tally.component): tally for tally in found if not tally.folder}
    kept: list[CommandTally] = []
    for tally in found:
        root = in_root.get((tally.role, tally.key, tally.component))
        if root is None or root is tally:
            kept.append(tally)
        elif tally.sessions < _RARE * root.sessions or task_runners.looks_above(tally.program):
            _merge(root, tally)
        else:
            kept.append(tally)
    return kept


def with_whole_scripts(tallies: Sequence[CommandTally]) -> list[CommandTally]:
    """Put the uses of one script with different words behind it together; its form is then the script alone."""
    scripts: dict[tuple[str, str], list[CommandTally]] = {}
    for tally in tallies:
        if tally.is_script:
            scripts.setdefault((tally.name, tally.folder), []).append(tally)
    whole = [group[0] if len(group) == 1 else _whole_script(group) for group in scripts.values()]
    return [*(tally for tally in tallies if not tally.is_script), *whole]


def _whole_script(group: Sequence[CommandTally]) -> CommandTally:
    first = group[0]
    forms: Counter[str] = Counter()
    for tally in group:
        word = tally.key.removeprefix(f"script {tally.name}")
        for form, count in tally.forms.items():
            forms[form.removesuffix(word)] += count
    whole = msgspec.structs.replace(
        first, key=f"script {first.name}", sources=dict(first.sources), ok_sessions=set(first.ok_sessions)
    )
    whole.assignments = Counter(first.assignments)
    for tally in group[1:]:
        _merge(whole, tally)
    whole.forms = forms
    return whole


def _merge(root: CommandTally, rare: CommandTally) -> None:
    root.sources = {**rare.sources, **root.sources}
    root.ok_sessions |= rare.ok_sessions
    root.runs += rare.runs
    root.ok += rare.ok
    root.last_s = max(root.last_s, rare.last_s)
    root.assignments.update(rare.assignments)
    root.typed.update(rare.typed)

"""What is stored of one session: its commands in canonical form with their counts, chains of checks, steps, troubles.

A value of `SessionRuns` takes a few kilobytes, has no output of any program beyond the words of a trouble, and is all
that choosing a project's lines needs; the session is not read again. Every part knows where in the session it stands.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from commonplace.learning.commands import paths
from commonplace.learning.commands.calls import Call, SimpleCommand, calls_of
from commonplace.learning.commands.canonical import Canonical, canonical
from commonplace.learning.commands.landmarks import Landmark, landmarks_of
from commonplace.learning.commands.places import Place, place_of
from commonplace.learning.commands.roles import CHECKS, Role
from commonplace.learning.commands.trouble import Trouble, troubles_of
from commonplace.learning.commands.variables import short_assignment
from commonplace.learning.reading import patches
from commonplace.learning.reading.session_view import SessionView, ToolUse
from commonplace.patterns import regex
from commonplace.protocol import ids

_MAX_RUNS: Final = 60
_MAX_CHAINS: Final = 8
_MAX_COUNTED: Final = 12
"""How many forms, scopes and assignments of one command are kept, the most common ones."""
_MAX_TYPED: Final = 80
_PACKAGE: Final = regex(r"^> (?P<name>@?[\w./-]{1,80})@\S{1,40} \S{1,60} (?P<path>/\S{1,200})$", re.MULTILINE)


class Run(msgspec.Struct, omit_defaults=True):
    """All runs of one command in one folder, in one session."""

    role: Role
    program: str
    name: str
    key: str
    place: Place
    """Where it ran; rather where it succeeded on the whole project."""
    folder: str = ""
    """The folder relative to the session's; absolute if it lies outside of that."""
    component: str = ""
    is_task: bool = False
    is_script: bool = False
    is_binary: bool = False
    runs: int = 0
    ok: int = 0
    failed: int = 0
    whole: int = 0
    """How often it ran without anything that chooses a part."""
    forms: dict[str, int] = {}
    typed: dict[str, int] = {}
    """The command as it was typed, where it ran on the whole project and names no folder to go to."""
    scopes: dict[str, int] = {}
    assignments: dict[str, int] = {}
    """`NAME=value`; `NAME=…` for values that are long or secret by name."""
    last_s: int = 0
    """When it ran last, in seconds."""


class Chain(msgspec.Struct, omit_defaults=True):
    """Checks that were run together with `&&`."""

    keys: tuple[str, ...]
    text: str
    place: Place
    folder: str = ""
    runs: int = 1


class SessionRuns(msgspec.Struct, omit_defaults=True):
    """What is stored of one session."""

    thread_id: str
    cwd: str
    updated_s: int = 0
    calls: int = 0
    """How many shell calls the session had."""
    runs: list[Run] = []
    chains: list[Chain] = []
    landmarks: list[Landmark] = []
    troubles: list[Trouble] = []
    packages: dict[str, str] = {}
    """The folders of packages by their names, relative to the session's folder, as a package manager printed them."""


def runs_of(view: SessionView) -> SessionRuns:
    """Return what is stored of a session."""
    roots = paths.own_roots(view.cwd)
    calls = calls_of(view)
    forms = [[canonical(command, roots) for command in call.commands] for call in calls]
    edits = [event.at.start for event in view.events() if isinstance(event, ToolUse) and patches.is_edit(event)]
    collector = _Collector(view.cwd)
    for call, call_forms in zip(calls, forms, strict=True):
        collector.add(call, call_forms)
    runs = sorted(collector.runs.values(), key=lambda run: -run.runs)[:_MAX_RUNS]
    for run in runs:
        run.forms, run.scopes, run.assignments = map(_most_common, (run.forms, run.scopes, run.assignments))
        run.typed = _most_common(run.typed)
    return SessionRuns(
        view.thread_id,
        view.cwd,
        _seconds(view.updated),
        len(calls),
        runs,
        sorted(collector.chains.values(), key=lambda chain: -chain.runs)[:_MAX_CHAINS],
        landmarks_of(calls, forms),
        troubles_of(calls, forms, edits),
        _packages(calls, view.cwd),
    )


class _Collector:
    """Counts the commands of a session."""

    def __init__(self, cwd: str) -> None:
        self.runs: dict[tuple[str, ...], Run] = {}
        self.chains: dict[tuple[str, ...], Chain] = {}
        self._cwd = cwd

    def add(self, call: Call, forms: Sequence[Canonical | None]) -> None:
        for command, form in zip(call.commands, forms, strict=True):
            if form is not None and form.role != "setup" and command.is_counted:
                self._add_run(call, command, form)
        for chain in _chains(call, forms, self._cwd):
            known = self.chains.setdefault((chain.text, chain.folder), chain)
            known.runs += known is not chain

    def _add_run(self, call: Call, command: SimpleCommand, form: Canonical) -> None:
        folder = _folder(form, self._cwd)
        place = place_of(call.use, command.text)
        key = (form.role, form.key, form.component, folder)
        is_first = key not in self.runs
        run = self.runs.setdefault(key, _run(form, place, folder))
        is_whole = not form.is_narrowed
        is_better = command.status == "ok" and (is_whole or not run.whole)
        run.place = place if is_first or is_better else run.place
        run.runs += 1
        run.ok += command.status == "ok"
        run.failed += command.status == "failed"
        run.whole += is_whole
        run.last_s = max(run.last_s, _seconds(call.use.at.time))
        _count(run.forms, form.form)
        if is_whole and form.folder == command.folder and _is_typed_anywhere(command.text):
            _count(run.typed, command.typed)
        if form.scope or is_whole:
            _count(run.scopes, form.scope)
        for assignment in dict.fromkeys(map(short_assignment, command.assignments)):
            _count(run.assignments, assignment)


def _run(form: Canonical, place: Place, folder: str) -> Run:
    return Run(
        form.role,
        form.program,
        form.name,
        form.key,
        place,
        folder,
        form.component,
        is_task=form.is_task,
        is_script=form.is_script,
        is_binary=form.is_binary,
        forms={},
        typed={},
        scopes={},
        assignments={},
    )


def _folder(form: Canonical, cwd: str) -> str:
    folder = form.folder or cwd
    inside = paths.relative(folder, (cwd,))
    return folder if inside is None else inside


def _is_typed_anywhere(text: str) -> bool:
    """Say whether a command is short and says nothing that holds on one machine only."""
    return len(text) <= _MAX_TYPED and not paths.is_absolute_within(text)


def _count(counts: dict[str, int], value: str) -> None:
    counts[value] = counts.get(value, 0) + 1


def _most_common(counts: dict[str, int]) -> dict[str, int]:
    return dict(Counter(counts).most_common(_MAX_COUNTED))


def _chains(call: Call, forms: Sequence[Canonical | None], cwd: str) -> Iterator[Chain]:
    """Yield the chains of a call: commands joined by `&&`, all checks, of two roles at least, none narrowed."""
    parts: list[Canonical | None] = []
    for number, (command, form) in enumerate(zip(call.commands, forms, strict=True)):
        if not command.is_chained:
            yield from _chain(call, parts, cwd)
            parts = []
        parts.append(form if command.is_counted else None)
        if number == len(forms) - 1:
            yield from _chain(call, parts, cwd)


def _chain(call: Call, parts: Sequence[Canonical | None], cwd: str) -> Iterator[Chain]:
    checks = [part for part in parts if part is not None and part.role in CHECKS and not part.is_narrowed]
    if len(checks) < len(parts) or len({part.role for part in checks}) < 2 or len({p.folder for p in checks}) > 1:
        return
    text = " && ".join(f"{part.form} {part.scope}".strip() for part in checks)
    keys = tuple(part.key for part in checks)
    yield Chain(keys, text, place_of(call.use, call.use.command), _folder(checks[0], cwd))


def _packages(calls: Sequence[Call], cwd: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for call in calls:
        if "\n> " not in f"\n{call.use.output}":
            continue
        for line in _PACKAGE.finditer(call.use.output):
            inside = paths.relative(posixpath.normpath(line["path"]), (cwd,))
            if inside:
                found[line["name"]] = inside
    return found


def _seconds(time: str | None) -> int:
    moment = ids.parse_time(time) if time else None
    return int(moment.timestamp()) if moment else 0

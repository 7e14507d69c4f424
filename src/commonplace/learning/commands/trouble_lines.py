"""Lines about troubles: what fails, why, and what cures it, over the sessions of a project."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

from commonplace.learning.commands import roles
from commonplace.learning.commands.lines import MAX_TEXT, CommandLine, CommandSource, code, newest_first, source_of
from commonplace.learning.commands.runs import SessionRuns
from commonplace.learning.commands.trouble import KINDS, Trouble, TroubleKind
from commonplace.patterns import regex

_ORDER: Final = {name: number for number, name in enumerate(KINDS)}
_MAX_COMMAND: Final = 60
_OF_THE_MOMENT: Final = regex(r"^kill\b|\.lock$")
"""Cures of a state that somebody left behind: that it helped once tells nothing."""
_GUESSES: Final = frozenset({"no-script"})
"""Kinds of trouble that are mostly a slip of who typed the command."""

_Seen = tuple[SessionRuns, Trouble]


def trouble_lines(sessions: Sequence[SessionRuns], *, is_new: bool = False) -> list[CommandLine]:
    """Return the lines about a project's troubles; those that were seen too seldom are candidates.

    In a new project, once is enough for a cure, unless it may have helped by chance.
    """
    seen: dict[tuple[str, str], list[_Seen]] = defaultdict(list)
    for session in sessions:
        for trouble in session.troubles:
            if trouble.kind in KINDS:
                seen[trouble.kind, trouble.detail].append((session, trouble))
    lines: list[CommandLine] = []
    for (kind, _), group in sorted(seen.items(), key=lambda item: (_ORDER[item[0][0]], item[0][1])):
        cured = [(session, trouble) for session, trouble in group if trouble.cure]
        if cured:
            lines.append(_fix(KINDS[kind], cured, len(group), is_new=is_new))
        elif line := _failure(KINDS[kind], group):
            lines.append(line)
    return lines


def _fix(kind: TroubleKind, group: Sequence[_Seen], seen: int, *, is_new: bool) -> CommandLine:
    """Return the line about a trouble that was cured, out of all sessions in which it was seen."""
    cures = Counter(trouble.cure for _, trouble in group)
    cure = _most_common(cures)
    trouble = next(trouble for _, trouble in group if trouble.cure == cure)
    failed = _most_common(Counter(each.failed for _, each in group if each.cure == cure))
    verb = "use" if trouble.is_other_form else "run"
    text = _fitting(f"{_what(kind, trouble, failed)}: {verb} {code(cure)}")
    is_tool = kind.name == "not-found" and roles.is_development_tool(trouble.detail)
    is_by_chance = kind.name in _GUESSES or _OF_THE_MOMENT.search(cure) is not None
    needed = 1 if is_tool or (is_new and not is_by_chance) else kind.cured_sessions
    is_told = len(group) >= needed or 0 < kind.uncured_sessions <= seen
    return CommandLine("fix", kind.name, text, (failed, cure), _sources(group), len(group), is_told)


def _failure(kind: TroubleKind, group: Sequence[_Seen]) -> CommandLine | None:
    if not kind.uncured_sessions:
        return None
    failed = _most_common(Counter(trouble.failed for _, trouble in group))
    trouble = next(trouble for _, trouble in group if trouble.failed == failed)
    is_told = len(group) >= kind.uncured_sessions
    text = _fitting(_what(kind, trouble, failed))
    return CommandLine("failure", kind.name, text, (failed,), _sources(group), len(group), is_told)


def _what(kind: TroubleKind, trouble: Trouble, failed: str) -> str:
    """Return what fails, and why."""
    short = failed if len(failed) <= _MAX_COMMAND else " ".join(failed.split()[:2])
    if kind.name == "not-found":
        return f"{code(trouble.detail)} is not found"
    if kind.name == "env":
        return f"{code(short)} needs {code(trouble.detail)} in the environment"
    if kind.name == "no-script":
        return f"{code(short)} fails: there is no task {code(trouble.detail)}"
    said = kind.says or trouble.sign
    return f"{code(short)} fails with {code(said)}" if said else f"{code(short)} fails"


def _fitting(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 2] + "…`"


def _most_common(counts: Counter[str]) -> str:
    return min(counts, key=lambda text: (-counts[text], len(text), text))


def _sources(group: Sequence[_Seen]) -> list[CommandSource]:
    found: list[CommandSource] = []
    for session, trouble in group:
        places = [trouble.place, *([trouble.cure_place] if trouble.cure_place else [])]
        found += [source_of(session.thread_id, session.updated_s, place) for place in places]
    return newest_first(found)

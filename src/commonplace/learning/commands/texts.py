"""The text of a line: the most common form of a command, the widest scope it ran on, its variables and its folder."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from commonplace.learning.commands import tables
from commonplace.learning.commands.lines import MAX_TEXT, code
from commonplace.learning.commands.tallies import CommandTally
from commonplace.learning.commands.variables import is_place

_WHOLE: Final[list[str]] = tables.table("forms")["scope"]["whole"].split()
_WITH_TARGETS: Final = tables.words("forms", "scope", "targets")
_LABELS: Final[dict[str, str]] = tables.table("roles")["labels"]
_BINARY_LABEL: Final = "Build the program"
_MOSTLY: Final = 0.5
"""A command is shown as it was typed in this share of its runs."""
_CONSTANT: Final = 0.8
"""A variable whose value is the same in this share of its runs is shown with the value."""


def label_of(tally: CommandTally) -> str:
    """Return what a line calls its command."""
    return _BINARY_LABEL if tally.is_binary and tally.role == "build" else _LABELS[tally.role]


def command_of(tally: CommandTally) -> str:
    """Return the command as a line shows it, without its variables and its folder: as it is mostly typed, if it is."""
    typed = _most_common(tally.typed)
    if typed and tally.typed[typed] >= _MOSTLY * tally.runs and not tally.is_script:
        return typed
    return f"{_form(tally.forms)} {_scope(tally)}".strip()


def _form(forms: Counter[str]) -> str:
    """Return the most common form; where none is common, with a mark for each word that differs from run to run."""
    best = _most_common(forms)
    words = best.split(" ")
    alike = [each for form in forms if len(each := form.split(" ")) == len(words) and each[:2] == words[:2]]
    if forms[best] * 2 >= forms.total() or len(alike) < len(forms):
        return best
    return " ".join(_common(each) for each in zip(*alike, strict=True))


def _common(words: Sequence[str]) -> str:
    """Return a word that is the same everywhere, or a mark for several, behind the name that they give a value."""
    names = {word.partition("=")[0] for word in words}
    if len(set(words)) == 1:
        return words[0]
    return f"{names.pop()}=…" if len(names) == 1 else "…"


def text_of(tally: CommandTally, chain: str = "") -> str:
    """Return the text of a line; a chain of checks stands for the command if there is one."""
    command = chain or command_of(tally)
    where = f" in {tally.folder}" if tally.folder and not chain else ""
    variables = "" if chain else _variables(tally)
    label = label_of(tally)
    texts = (f"{label}: {code(variables + command)}{where}", f"{label}: {code(command)}{where}")
    return next((text for text in texts if len(text) <= MAX_TEXT), texts[-1][: MAX_TEXT - 2] + "…`")


def _most_common(counts: Counter[str]) -> str:
    """Return the most common of several texts; of equally common ones the shortest, then the first by letters."""
    return min(counts, key=lambda text: (-counts[text], len(text), text), default="")


def _scope(tally: CommandTally) -> str:
    is_go = tally.language == "go" and tally.is_bare
    if tally.is_task or tally.is_script or (tally.program != "go" and "" in tally.scopes):
        return ""
    for scope in _WHOLE:
        if scope in tally.scopes:
            return scope
    used = Counter({scope: count for scope, count in tally.scopes.items() if scope})
    if not used:
        return ""
    scope = _most_common(used)
    if used[scope] * 2 >= tally.sessions or tally.program in _WITH_TARGETS:
        return scope
    return _common_folder(used, is_go=is_go)


def _common_folder(scopes: Iterable[str], *, is_go: bool) -> str:
    """Return the folder that all scopes lie in, as a scope of its own; empty if they have none in common."""
    words = [word for scope in scopes for word in scope.split()]
    bare = [posixpath.normpath(word.removesuffix("...")) for word in words if not word.startswith((".." + "/", "/"))]
    common = posixpath.commonpath(bare) if bare else ""
    if is_go:
        return f"./{common}/..." if common not in ("", ".") else "./..."
    return "" if common == "." else common


def _variables(tally: CommandTally) -> str:
    """Return the variables that at least half of the runs set, as they stand before a command.

    Places on one machine are left out.
    """
    by_name: dict[str, Counter[str]] = {}
    for assignment, count in tally.assignments.items():
        name, _, value = assignment.partition("=")
        by_name.setdefault(name, Counter())[value] += count
    shown: list[str] = []
    for name, values in sorted(by_name.items()):
        total = sum(values.values())
        value, count = values.most_common(1)[0]
        if total * 2 >= tally.runs:
            is_constant = count >= _CONSTANT * total and " " not in value
            if is_place(name) and (value == "…" or not is_constant):
                continue
            shown.append(f"{name}={value} " if is_constant else f"{name}=… ")
    return "".join(shown)

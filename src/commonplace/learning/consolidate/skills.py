"""Skills: steps that worked in two sessions or more, written down so that they can be followed.

What was the same each time is a step; what differed is something to ask for. A skill rests on exit codes alone:
nobody's words about how things should be done make one.
"""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.learning.consolidate import repeated_steps
from commonplace.learning.consolidate.entry_edits import WriteSkill
from commonplace.learning.consolidate.repeated_steps import Procedure, SuccessfulCommands
from commonplace.memory.entries import GLOBAL, Entry
from commonplace.patterns import regex

MAX_NAME: Final = 64
_PIECES: Final = regex(r"([/:=@,])")
"""Where a word may be cut: between these, a value is whole."""
_SLUG: Final = regex(r"[^a-z0-9]+")
_PITFALL: Final = (
    "a step exits with another code -> cause: something differs from the sessions this comes from -> "
    "fix: stop and look, do not go on with the next step"
)


class LearnedSkill(msgspec.Struct, frozen=True):
    """A skill: steps that succeeded in several sessions."""

    name: str
    text: str
    project: str


def of_procedures(procedures: list[Procedure], titles: dict[str, str]) -> list[LearnedSkill]:
    """Return the skills that repeated steps make, each with a name of its own."""
    made: list[LearnedSkill] = []
    taken: set[str] = set()
    for procedure in procedures:
        name = _name(procedure.runs, titles.get(procedure.project, ""), taken)
        taken.add(name)
        made.append(LearnedSkill(name, _text(name, procedure), procedure.project))
    return sorted(made, key=lambda skill: skill.name)


def of_edit(edit: WriteSkill, entries: list[Entry]) -> LearnedSkill:
    """Return the skill that a model wrote down from entries."""
    where = "any project" if edit.scope == GLOBAL else edit.scope
    goal = edit.name.replace("-", " ")
    lines = [
        "---",
        f"name: {edit.name}",
        f"description: {goal}. Use when asked for this or the like in {where}.",
        "scope: global" if edit.scope == GLOBAL else f"scope: project {edit.scope}",
        "---",
        "",
        "## When to use",
        f"- asked to: {goal}",
        *([] if edit.scope == GLOBAL else [f"- only in {edit.scope}"]),
        "",
        "## Procedure",
        *(f"{number}. {step}" for number, step in enumerate(edit.steps, 1)),
        "",
        "## Sources",
        *(f"- {entry.text}" for entry in entries),
    ]
    return LearnedSkill(edit.name, "\n".join(lines) + "\n", edit.scope)


def _name(runs: tuple[SuccessfulCommands, ...], project: str, taken: set[str]) -> str:
    """Return a name: what was asked for each time, else what is run first."""
    shared = [word for word in _words(runs[0].task) if all(word in _words(run.task) for run in runs)]
    telling = [word for word in shared if not word.isdigit()]
    words = telling if len(telling) > 1 else _words(repeated_steps.first_own(runs[-1])) or ["steps"]
    base = "-".join([*_words(project)[:2], *words[:5]])[: MAX_NAME - 3].strip("-")
    names = [base, *(f"{base}-{number}" for number in range(2, 100))]
    return next(name for name in names if name not in taken)


def _words(text: str) -> list[str]:
    return [word for word in _SLUG.split(text.lower()) if word]


class _Values:
    """What differed between runs, each list of values once, in the order in which they are first needed."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []

    def word(self, words: list[str]) -> str:
        """Return a word as the newest run has it, with what differed before replaced."""
        if len(set(words)) == 1:
            return words[-1]
        pieces = [_PIECES.split(word) for word in words]
        if any(len(each) != len(pieces[0]) for each in pieces):
            return self._argument(words)
        rows = [list(row) for row in zip(*pieces, strict=True)]
        return "".join(row[-1] if len(set(row)) == 1 else self._argument(row) for row in rows)

    def _argument(self, values: list[str]) -> str:
        known = list(dict.fromkeys(values))
        if known not in self.seen:
            self.seen.append(known)
        return f"$ARGUMENTS[{self.seen.index(known)}]"


def _generic(runs: tuple[SuccessfulCommands, ...]) -> tuple[list[str], list[list[str]]]:
    """Return the steps of the newest run with what differed before replaced, and the values that were seen."""
    newest = runs[-1].steps
    alike = [run.steps for run in runs if len(run.steps) == len(newest)]
    values = _Values()
    steps: list[str] = []
    for place, step in enumerate(newest):
        rows = [each[place].split() for each in alike]
        if any(len(row) != len(rows[-1]) for row in rows):
            steps.append(step)
        else:
            steps.append(" ".join(values.word([row[number] for row in rows]) for number in range(len(rows[-1]))))
    return steps, values.seen


def _text(name: str, procedure: Procedure) -> str:
    runs, project = procedure.runs, procedure.project
    steps, values = _generic(runs)
    goal = repeated_steps.goal_of(procedure) or f"`{runs[-1].steps[0]}` and {len(steps) - 1} more steps"
    sessions = len({run.thread_id for run in runs})
    asked = [
        f"- `$ARGUMENTS[{place}]`: earlier {', '.join(f'`{each}`' for each in seen)}"
        for place, seen in enumerate(values)
    ]
    last = runs[-1].steps
    lines = [
        "---",
        f"name: {name}",
        f"description: {goal}. Use when asked for this or the like in {project}.",
        f"scope: project {project}",
        *(["argument-hint: " + " ".join(f"<{seen[-1]}>" for seen in values)] if values else []),
        "---",
        "",
        "## When to use",
        f"- asked to: {goal}",
        f"- only in {project}; not for anything that merely shares a command",
        "",
        "## Inputs to gather",
        *(asked or ["- none: the steps were the same each time"]),
        "",
        "## Procedure",
        *(f"{number}. `{step}`" for number, step in enumerate(steps, 1)),
        "",
        "## Efficiency plan",
        f"- run the steps in this order; all {len(steps)} exited 0 in {sessions} sessions",
        f"- last run: {' -> '.join(f'`{step}`' for step in last)}",
        "",
        "## Pitfalls",
        f"- symptom: {_PITFALL}",
        "",
        "## Verification checklist",
        f"- `{steps[-1]}` exits 0",
    ]
    return "\n".join(lines) + "\n"

"""The required shape of an extractor's output, which consolidation and people read."""

from __future__ import annotations

import re
from typing import Final

from commonplace.patterns import regex
from commonplace.state.outputs import Output

OUTCOMES: Final = ("success", "partial", "fail", "uncertain")
KEYS: Final = ("description", "task", "task_group", "task_outcome", "cwd", "keywords")
SECTIONS: Final = ("Preference signals:", "Reusable knowledge:", "Failures and how to do differently:", "References:")
MAX_SLUG: Final = 80
"""The longest slug, in characters."""
_SLUG: Final = regex(r"[a-z0-9_-]+")
_TASK: Final = regex(r"^### Task (\d+): (.+)$", re.MULTILINE)
_SUMMARY_TASK: Final = regex(r"^## Task (\d+): (.+)$", re.MULTILINE)


def problem(output: Output) -> str | None:
    """Return what is wrong with an extraction; None if it is valid or empty."""
    if not output.raw_memory or not output.rollout_summary:
        return None
    return _raw_memory(output.raw_memory) or _summary(output.rollout_summary) or _slug(output.rollout_slug)


def _raw_memory(text: str) -> str | None:
    head, _, body = text.removeprefix("---\n").partition("\n---\n")
    if not text.startswith("---\n") or not body:
        return "raw_memory has no front matter."
    keys = [line.partition(":")[0] for line in head.split("\n")]
    if keys != list(KEYS):
        return f"raw_memory's front matter has the keys {', '.join(keys)}, not {', '.join(KEYS)}."
    outcome = head.split("\n")[KEYS.index("task_outcome")].partition(": ")[2]
    if outcome not in OUTCOMES:
        return f"raw_memory's task_outcome is {outcome!r}."
    tasks = _TASK.findall(body)
    if [int(number) for number, _ in tasks] != list(range(1, len(tasks) + 1)) or not tasks:
        return "raw_memory's tasks are not numbered from 1."
    for part in _TASK.split(body)[3::3]:
        lines = part.strip().split("\n")
        named = [line.partition(":")[0] for line in lines[:3]]
        if named != ["task", "task_group", "task_outcome"] or lines[2].partition(": ")[2] not in OUTCOMES:
            return "A task of raw_memory does not begin with task, task_group and task_outcome."
        order = [SECTIONS.index(line) for line in lines if line in SECTIONS]
        if order != sorted(set(order)):
            return "The sections of a task of raw_memory are not in order."
    return None


def _summary(text: str) -> str | None:
    lines = text.split("\n")
    if not lines[0].startswith("# ") or not any(line.startswith("Rollout context:") for line in lines):
        return "rollout_summary does not begin with a sentence and its context."
    tasks = [int(number) for number, _ in _SUMMARY_TASK.findall(text)]
    if tasks != list(range(1, len(tasks) + 1)) or not tasks:
        return "rollout_summary's tasks are not numbered from 1."
    outcomes = [line.partition(": ")[2] for line in lines if line.startswith("Outcome: ")]
    if len(outcomes) != len(tasks) or any(outcome not in OUTCOMES for outcome in outcomes):
        return "Each task of rollout_summary needs one outcome."
    return None


def _slug(slug: str | None) -> str | None:
    if slug is not None and (len(slug) > MAX_SLUG or not _SLUG.fullmatch(slug)):
        return f"rollout_slug {slug!r} is no name for a file."
    return None

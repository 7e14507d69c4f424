"""When two lessons that commands showed are the same: by the programs, not by their arguments.

A check is the same if its program is; a fix, if the same program failed and the same one helped; steps, if most of
their programs come in the same order.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from commonplace.learning.reading import commands
from commonplace.memory import similarity
from commonplace.memory.lessons import SessionLesson

_RUNNER: Final = re.compile(
    r"^(?:(?:uv|poetry|pdm|rye|hatch|pipenv) run|npx|bunx|pnpm exec|yarn|bundle exec|python3? -m) (?=\S)"
)
"""What a check is run through does not make it another one."""
_STEPS_ALIKE: Final = 0.6
"""Two lists of programs with at least this ratio of common ones, in order, are the same steps."""
_SAID_ALIKE: Final = 0.5
"""How much of what was printed and typed must be the same, too: one program fails in many ways."""


@lru_cache(maxsize=8192)
def programs(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return the programs of the commands that a lesson tells of, in order."""
    return tuple(commands.parse(line).program or line.strip() for line in lines)


def is_same(one: SessionLesson, two: SessionLesson) -> bool:
    """Say whether two lessons that commands showed teach the same."""
    if one.kind != two.kind or one.project != two.project:
        return False
    first, second = programs(one.commands), programs(two.commands)
    if not first or not second:
        return one.text == two.text
    if one.kind == "verify":
        return _RUNNER.sub("", first[-1]) == _RUNNER.sub("", second[-1])
    if one.kind == "procedure":
        return SequenceMatcher(None, first, second, autojunk=False).ratio() >= _STEPS_ALIKE
    helped = set(first[1:]) & set(second[1:])
    if first[0] != second[0] or not (helped or len(first) == len(second) == 1):
        return False
    one_said, two_said = similarity.words(one.text).about, similarity.words(two.text).about
    return len(one_said & two_said) / max(1, min(len(one_said), len(two_said))) >= _SAID_ALIKE


def completeness(lesson: SessionLesson) -> tuple[int, int]:
    """Return how much of a project a check covers, to tell the best of several."""
    return commands.completeness(lesson.commands[-1]) if lesson.commands else (0, 0)

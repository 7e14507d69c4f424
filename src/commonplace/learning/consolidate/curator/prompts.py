"""What the restricted agent is told, from the files beside this one: instructions with their version, small texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from commonplace.learning.instructions import InstructionTexts

_PROBLEMS: Final = 12
"""How many problems are named in a repair."""
_TOLD: Final = InstructionTexts("commonplace.learning.consolidate.curator")
text = _TOLD.text


def instructions() -> str:
    """Return what the model is told about its work."""
    return _TOLD.instructions


def repair(problems: Sequence[str]) -> str:
    """Return the message that asks for what is wrong to be put right."""
    shown = [f"- {each}" for each in problems[:_PROBLEMS]]
    more = [f"- and {len(problems) - _PROBLEMS} more of the kind"] if len(problems) > _PROBLEMS else []
    return text("repair", problems="\n".join([*shown, *more]))


@cache
def orders() -> re.Pattern[str]:
    """Return the words by which a fact becomes an order."""
    return re.compile(text("orders"), re.IGNORECASE)


@cache
def denials() -> re.Pattern[str]:
    """Return the words by which a wish becomes its opposite."""
    return re.compile(text("denials"), re.IGNORECASE)

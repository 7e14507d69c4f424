"""Regular expressions that are compiled when they are first used.

The program has many hundreds; compiling those that a command never uses would be a third of its start.
"""

from __future__ import annotations

import re
from typing import AnyStr, Generic, cast


class LazyPattern(Generic[AnyStr]):
    """Stands for a compiled expression; what is asked of it once is its own from then on."""

    def __init__(self, expression: AnyStr, flags: int) -> None:
        self._expression = expression
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        value: object = getattr(re.compile(self._expression, self._flags), name)
        setattr(self, name, value)
        return value


def regex(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a regular expression that is compiled when it is first used."""
    return cast("re.Pattern[AnyStr]", LazyPattern(expression, flags))

"""The tables of this package: lists of words and expressions, read from the TOML files beside the modules."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from typing import Any

from commonplace import package_files
from commonplace.patterns import regex


@cache
def table(name: str) -> dict[str, Any]:
    """Return a whole table by the name of its file."""
    text = package_files.text(f"learning/commands/{name}.toml")
    return tomllib.loads(text)


def words(name: str, *keys: str) -> frozenset[str]:
    """Return a list of words of a table."""
    value: Any = table(name)
    for key in keys:
        value = value[key]
    return frozenset(value.split())


def pattern(name: str, *keys: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return one expression that matches where one of a list of a table does."""
    value: Any = table(name)
    for key in keys:
        value = value[key]
    return regex("|".join([value] if isinstance(value, str) else value), flags)

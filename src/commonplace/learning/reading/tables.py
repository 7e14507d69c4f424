"""Patterns and word lists that are data: read once from `tables.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import cache

from commonplace import package_files
from commonplace.patterns import regex


@cache
def _table() -> dict[str, list[str]]:
    text = package_files.text("learning/reading/tables.toml")
    return tomllib.loads(text)


@cache
def pattern(name: str, before: str = "", after: str = "", flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    """Return a list of alternatives as one pattern, with something before and after them."""
    inner = "|".join(_table()[name])
    return regex(f"{before}(?:{inner}){after}" if before or after else inner, flags)


@cache
def words(name: str) -> frozenset[str]:
    """Return a list of words."""
    return frozenset(_table()[name])

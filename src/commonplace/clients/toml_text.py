"""Changing one table in a TOML text that somebody else owns: every other byte stays as it is.

A table is found by its header and ends with its last line that is neither empty nor a comment, so that comments above
the next table stay with that table. Lines are matched, not parsed: the caller compares the meaning before and after.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeGuard, cast

from commonplace.patterns import regex

_HEADER: Final = regex(r"[ \t]*\[\[?[^\[\]]+\]\]?[ \t]*(?:#.*)?")
_KEY: Final = regex(r"[A-Za-z0-9_-]+")


def _opens(line: str, path: tuple[str, ...], *, below: bool) -> bool:
    """Say whether a line is the header of a table, or of one below it."""
    return header_of(path, below=below).fullmatch(line.rstrip("\r\n")) is not None


def header_of(path: tuple[str, ...], *, below: bool) -> re.Pattern[str]:
    """Return what the header of a table looks like, or of one below it."""
    names = r"[ \t]*\.[ \t]*".join(f"(?:{name}|\"{name}\"|'{name}')" for name in map(re.escape, path))
    rest = r"(?:\.[^\]]*)?" if below else ""
    return re.compile(rf"[ \t]*\[[ \t]*{names}[ \t]*{rest}\][ \t]*(?:#.*)?")


def has_header(text: str, path: tuple[str, ...]) -> bool:
    """Say whether a table has a header of its own."""
    return any(_opens(line, path, below=False) for line in text.splitlines())


def is_plain(table: Any) -> TypeGuard[dict[str, str | list[str] | dict[str, str]]]:
    """Say whether `put` can write a table."""
    return isinstance(table, dict) and all(
        isinstance(value, str)
        or (isinstance(value, list) and all(isinstance(each, str) for each in cast("list[Any]", value)))
        or (isinstance(value, dict) and all(isinstance(each, str) for each in cast("dict[str, Any]", value).values()))
        for value in cast("dict[str, Any]", table).values()
    )


def _block(lines: list[str], first: int) -> int:
    """Return where a table ends: after its last line that is neither empty nor a comment."""
    last = first
    for place in range(first + 1, len(lines)):
        text = lines[place].strip()
        if _HEADER.fullmatch(lines[place].rstrip("\r\n")):
            break
        if text and not text.startswith("#"):
            last = place
    return last + 1


def put(text: str, path: tuple[str, ...], values: dict[str, str | list[str] | dict[str, str]]) -> str:
    """Return the text with a table: in the place of the old one, else at the end; tables below the old one go."""
    ending = "\r\n" if "\r\n" in text else "\n"
    table = ending.join([f"[{'.'.join(map(_name, path))}]", *(f"{key} = {_value(of)}" for key, of in values.items())])
    lines = text.splitlines(keepends=True)
    if any(_opens(line, path, below=True) and not _opens(line, path, below=False) for line in lines):
        text = drop(text, path)
        lines = text.splitlines(keepends=True)
    for place, line in enumerate(lines):
        if _opens(line, path, below=False):
            end = _block(lines, place)
            last = lines[end - 1]
            table += last[len(last.rstrip("\r\n")) :]
            return "".join([*lines[:place], table, *lines[end:]])
    if not text:
        return table + ending
    if text.endswith("\n"):
        return text + ending + table + ending
    return text + ending * 2 + table


def drop(text: str, path: tuple[str, ...]) -> str:
    """Return the text without a table and those below it, and without the empty line above."""
    lines = text.splitlines(keepends=True)
    while True:
        found = [place for place, line in enumerate(lines) if _opens(line, path, below=True)]
        if not found:
            return "".join(lines)
        first, end = found[0], _block(lines, found[0])
        above, below = lines[:first], lines[end:]
        if above and not above[-1].strip() and (not below or not below[0].strip()):
            del above[-1]
        if not below and above and not lines[-1].endswith("\n"):
            above[-1] = above[-1].rstrip("\r\n")
        lines = above + below


def _name(text: str) -> str:
    return text if _KEY.fullmatch(text) else _string(text)


def _value(value: str | list[str] | dict[str, str]) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_string, value))}]"
    return "{ " + ", ".join(f"{_name(key)} = {_string(each)}" for key, each in value.items()) + " }"


def _string(text: str) -> str:
    """Return a text as TOML writes it; JSON writes it the same way, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")

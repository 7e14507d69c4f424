"""Changing one setting in `config.toml`: the line of that setting changes, and every other byte stays as it is.

The result is read as TOML and compared with what is wanted before it is written; a file that is written in a way that
cannot be changed safely is left alone.
"""

from __future__ import annotations

import copy
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final, cast

from commonplace.config.sources import FILE, hint_for
from commonplace.config.table import BY_KEY, Setting, name_of
from commonplace.errors import BadSetting
from commonplace.patterns import regex

_HEADER: Final = regex(r"[ \t]*\[(?:[ \t]*([A-Za-z0-9_]+)[ \t]*\][ \t]*(?:#[^\n]*)?)?")
_LINE: Final = regex(
    r"([ \t]*(?:\"([A-Za-z0-9_]+)\"|([A-Za-z0-9_]+))[ \t]*=[ \t]*)"
    r"(?:\"[^\"\\]*\"|'[^']*'|\[[^\[\]#]*\]|[^\s\"'\[#]+)([ \t]*(?:#[^\n]*)?\n?)"
)
"""A key, its value on one line, and what follows."""


def change(home: Path, key: str, text: str | None) -> str:
    """Set a setting in the file of a home, or take it out if `text` is None; return its name.

    Raises:
        BadSetting: there is no such setting, the value is out of its range, or the file cannot be changed safely.
    """
    import tomllib

    name = name_of(key)
    if name is None:
        raise BadSetting(f"There is no setting {key!r}.", hint=hint_for(key))
    setting, path = BY_KEY[name], home / FILE
    value: Any = setting.parsed(text, "the command line") if text is not None else None
    before = _text(path)
    try:
        wanted = tomllib.loads(before)
    except ValueError as wrong:
        raise BadSetting(f"{path} is not valid TOML: {wrong}.", hint="Correct it first.") from None
    after = _with(before, setting, value)
    _set(wanted, name.split("."), list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value)
    try:
        is_right = _pruned(tomllib.loads(after)) == _pruned(wanted)
    except ValueError:
        is_right = False
    if not is_right:
        raise BadSetting(f"{path} is written in a way that is not changed safely.", hint=f"Change {name} there.")
    if after != before:
        _write(path, after)
    return name


def _with(text: str, setting: Setting, value: Any) -> str:
    """Return the text with another value of a setting, or without it."""
    table, _, key = setting.key.rpartition(".")
    lines = text.splitlines(keepends=True)
    ending = "\r\n" if "\r\n" in text else "\n"
    first, last = _block(lines, table)
    shown = None if value is None else _rendered(value)
    if first is None:
        if shown is None:
            return text
        gap = "" if not text else ending if text.endswith("\n") else ending * 2
        return f"{text}{gap}[{table}]{ending}{key} = {shown}{ending}"
    for place in range(first, last):
        found = _LINE.fullmatch(lines[place].replace("\r\n", "\n"))
        if found and key in (found[2], found[3]):
            rest = found[4].replace("\n", ending)
            lines[place : place + 1] = [] if shown is None else [found[1] + shown + rest]
            return "".join(lines)
    if shown is None:
        return text
    while last > first and not lines[last - 1].strip():
        last -= 1
    if last and not lines[last - 1].endswith("\n"):
        lines[last - 1] += ending
    return "".join([*lines[:last], f"{key} = {shown}{ending}", *lines[last:]])


def _block(lines: list[str], table: str) -> tuple[int | None, int]:
    """Return where the lines of a table begin and end, its header left out; None if there is no such table."""
    headers = [(place, found[1]) for place, line in enumerate(lines) if (found := _HEADER.match(line))]
    first = 0 if not table else next((place + 1 for place, name in headers if name == table), None)
    if first is None:
        return None, 0
    return first, next((place for place, _ in headers if place >= first), len(lines))


def _rendered(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_rendered(each) for each in cast('tuple[str, ...]', value))}]"
    # JSON writes texts, numbers and truth as TOML does, but for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _set(table: dict[str, Any], names: list[str], value: Any) -> None:
    for name in names[:-1]:
        table = table.setdefault(name, {})
    if value is None:
        table.pop(names[-1], None)
    else:
        table[names[-1]] = value


def _pruned(table: dict[str, Any]) -> dict[str, Any]:
    """Return what a file says, without empty tables."""
    kept = copy.deepcopy(table)
    return {name: value for name, value in kept.items() if value != {}}


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise BadSetting(f"{path} is not text in UTF-8.", hint="Correct it first.") from None


def _write(path: Path, text: str) -> None:
    """Replace the file in one step; a link is followed, and its permissions stay."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            if target.exists():
                os.fchmod(file.fileno(), target.stat().st_mode & 0o7777)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

"""Changing one value in a JSON text that somebody else owns: every other byte stays as it is.

A place is a path of keys and positions. An added value is formatted like its neighbours: with their indentation, or on
one line if they stand on one line.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeAlias, cast

import msgspec

Path: TypeAlias = tuple[str | int, ...]

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()


class _Member(msgspec.Struct, frozen=True):
    """One member of an object or element of an array, and where it stands."""

    name: str | int
    start: int
    value: int
    end: int


class _Container(msgspec.Struct, frozen=True):
    """An object or array, where it stands, and what is in it."""

    start: int
    end: int
    parts: list[_Member]


def _skip(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _whole(text: str, start: int) -> _Container:
    """Return the members of the object or array that begins at a place; the text is known to be JSON."""
    keyed = text[start] == "{"
    parts: list[_Member] = []
    place = _skip(text, start + 1)
    while text[place] not in "}]":
        begin, name = place, cast("str | int", len(parts))
        if keyed:
            name, after = cast("tuple[str, int]", _DECODER.raw_decode(text, place))
            place = _skip(text, _skip(text, after) + 1)
        _, end = _DECODER.raw_decode(text, place)
        parts.append(_Member(name, begin, place, end))
        place = _skip(text, end)
        if text[place] == ",":
            place = _skip(text, place + 1)
    return _Container(start, place + 1, parts)


def _find(text: str, path: Path) -> tuple[list[_Container], list[_Member]]:
    """Return the containers and members on the way to a place, as far as they exist."""
    wholes, parts = [_whole(text, _skip(text, 0))], list[_Member]()
    for name in path:
        found = [part for part in wholes[-1].parts if part.name == name]
        if not found:
            break
        parts.append(found[-1])  # of two members with one name, readers take the last
        if text[found[-1].value] not in "{[":
            break
        wholes.append(_whole(text, found[-1].value))
    return wholes, parts


def put(text: str, path: Path, value: Any) -> str:
    """Return the text with a value at a place: changed, or added after its neighbours with what is missing above it."""
    wholes, parts = _find(text, path)
    if len(parts) == len(path):
        part = parts[-1]
        return text[: part.value] + _rendered(value, text, len(path)) + text[part.end :]
    for name in reversed(path[len(parts) + 1 :]):
        value = {name: value} if isinstance(name, str) else [value]
    name, whole, depth = path[len(parts)], wholes[len(parts)], len(parts) + 1
    label = f"{json.dumps(name, ensure_ascii=False)}: " if isinstance(name, str) else ""
    if whole.parts:
        first, last = whole.parts[0], whole.parts[-1]
        gap = text[whole.start + 1 : first.start]
        flat = "\n" not in gap
        added = "," + (gap or " ") + label + _rendered(value, text, depth, flat=flat)
        return text[: last.end] + added + text[last.end :]
    unit, line = _style(text)
    inner = line + unit * depth + label + _rendered(value, text, depth) + line + unit * (depth - 1)
    return text[: whole.start + 1] + inner + text[whole.end - 1 :]


def drop(text: str, path: Path) -> str:
    """Return the text without the value at a place, and without containers that held only it."""
    wholes, parts = _find(text, path)
    if len(parts) < len(path):
        return text
    depth = len(path) - 1
    while depth > 0 and len(wholes[depth].parts) == 1:
        depth -= 1
    siblings, part = wholes[depth].parts, parts[depth]
    place = siblings.index(part)
    if place > 0:
        return text[: siblings[place - 1].end] + text[part.end :]
    if len(siblings) > 1:
        return text[: part.start] + text[siblings[1].start :]
    return text[: wholes[depth].start + 1] + text[wholes[depth].end - 1 :]


def _style(text: str) -> tuple[str, str]:
    """Return how a text indents, and how its lines end."""
    ending = "\r\n" if "\r\n" in text else "\n"
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return (found[1] if found else "  "), ending


def _rendered(value: Any, text: str, depth: int, *, flat: bool = False) -> str:
    if flat:
        return json.dumps(value, ensure_ascii=False)
    unit, ending = _style(text)
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", ending + unit * depth)

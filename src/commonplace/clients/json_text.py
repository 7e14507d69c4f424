"""Changing one value in a JSON text that somebody else owns: every other byte stays as it is.

A place is a path of keys and positions. An added value is formatted like its neighbours: with their indentation, or on
one line if they stand on one line. Comments and commas before a closing bracket, which some programs accept in their
files, are kept: places are looked up in a copy of the text in which blanks stand for them. So is a byte order mark.
"""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any, Final, TypeAlias, cast

import msgspec

from commonplace.patterns import regex

Path: TypeAlias = tuple[str | int, ...]

_SPACE: Final = regex(r"\ufeff?[ \t\r\n]*")
_NOT_SPACE: Final = regex(r"[^ \t\r\n]")
_PIECE: Final = regex(
    r'"(?>(?:[^"\\]++|\\.)*)"?|//[^\n]*+|/\*(?>(?:[^*]++|\*(?!/))*)(?:\*/)?|[ \t\r\n]++|[^"/, \t\r\n}\]]++|.', re.DOTALL
)
"""A string, a comment, blanks, a run of other characters, or one character."""
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


def loads(text: str) -> Any:
    """Return what a JSON text with comments and trailing commas means (raises ValueError)."""
    return json.loads(plain(text))


def plain(text: str) -> str:
    """Return the text with blanks instead of comments and trailing commas; every other character keeps its place."""
    with contextlib.suppress(ValueError, RecursionError):
        json.loads(text)
        return text  # most files have neither, and finding that out this way is fast
    parts: list[str] = []
    comma: int | None = None  # the part that is a comma with nothing but blanks after it
    place = 0
    while found := _PIECE.match(text, place):
        piece, place = found[0], found.end()
        if piece.startswith(("//", "/*")):
            parts.append(_NOT_SPACE.sub(" ", piece))
            continue
        if piece == ",":
            comma = len(parts)
        elif not piece.isspace():
            if piece in "}]" and comma is not None:
                parts[comma] = " "
            comma = None
        parts.append(piece)
    return "".join(parts)


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
    text = plain(text)
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
    inner = line + unit * depth + label + _rendered(value, text, depth)
    inside = text[whole.start + 1 : whole.end - 1]
    rest = line + unit * (depth - 1) if not inside.strip() else inside
    return text[: whole.start + 1] + inner + rest + text[whole.end - 1 :]


def drop(text: str, path: Path, keep: int = 0) -> str:
    """Return the text without the value at a place, and without containers that held only it.

    Comments stay, and so do the containers of the first `keep` names of the path.
    """
    wholes, parts = _find(text, path)
    if len(parts) < len(path):
        return text
    depth = len(path) - 1
    while depth > keep and len(wholes[depth].parts) == 1:
        depth -= 1
    whole, part = wholes[depth], parts[depth]
    siblings = whole.parts
    place = siblings.index(part)
    if place > 0:
        before = siblings[place - 1].end
        return text[:before] + _comments(text, before, part.start) + text[part.end :]
    if len(siblings) > 1:
        after = siblings[1].start
        return text[: part.start] + _comments(text, part.end, after) + text[after:]
    rest = _comments(text, whole.start + 1, part.start) + _comments(text, part.end, whole.end - 1)
    return text[: whole.start + 1] + rest + text[whole.end - 1 :]


def _comments(text: str, start: int, end: int) -> str:
    """Return what stands between two values, without its comma; nothing if there are no comments."""
    pieces = _PIECE.findall(text[start:end])
    if not any(piece.startswith(("//", "/*")) for piece in pieces):
        return ""
    if "," in pieces:
        pieces.remove(",")
    return "".join(pieces)


def containers_in(value: Any, path: Path) -> int:
    """Return of how many names of a path, from its first, a value has the containers."""
    for count, name in enumerate(path):
        value = cast("dict[Any, Any]", value).get(name) if isinstance(value, dict) else None
        if not isinstance(value, dict | list):
            return count
    return len(path)


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

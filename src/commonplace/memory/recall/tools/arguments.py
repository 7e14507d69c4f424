"""Arguments of the memory tools: read from JSON or a mapping, checked, and refused with a reason.

As strict as the decoder that the contract comes from: unknown and repeated fields, numbers with a fraction, truth
values for numbers, negative ones and those beyond 64 bits are refused; null is as good as left out. What the numbers
mean is checked by the tools, since zero is an error for one and rounded up by another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec

from commonplace.memory.recall.tools import failures
from commonplace.memory.recall.tools.files import is_text
from commonplace.patterns import regex

MAX_QUERIES: Final = 256
"""How many texts one search may look for; more would be no question but a load."""
_MAX_UNSIGNED: Final = 2**64 - 1
_CURSOR: Final = regex(r"\+?[0-9]+", re.ASCII)
_WHITE: Final = "".join(
    map(chr, (*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000))
)
"""White space as Unicode has it; Python's own `strip` also takes the separators 1C to 1F."""

Unsigned = Annotated[int, msgspec.Meta(ge=0)]
_Arguments = TypeVar("_Arguments", bound=msgspec.Struct)


class AnyLine(msgspec.Struct, frozen=True, tag_field="type", tag="any"):
    """Each line on which at least one text stands."""


class SameLine(msgspec.Struct, frozen=True, tag_field="type", tag="all_on_same_line"):
    """Each line on which all texts stand."""


class WithinLines(msgspec.Struct, frozen=True, tag_field="type", tag="all_within_lines"):
    """The shortest stretches of lines on which all texts stand."""

    line_count: Unsigned


MatchMode = AnyLine | SameLine | WithinLines


class ListArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `list` takes."""

    path: str | None = None
    cursor: str | None = None
    max_results: Unsigned | None = None


class ReadArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `read` takes."""

    path: str
    line_offset: Unsigned | None = None
    max_lines: Unsigned | None = None


class SearchArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `search` takes."""

    queries: list[str]
    match_mode: MatchMode | None = None
    path: str | None = None
    cursor: str | None = None
    context_lines: Unsigned | None = None
    case_sensitive: bool | None = None
    normalized: bool | None = None
    max_results: Unsigned | None = None


class NoteArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `add_ad_hoc_note` takes."""

    filename: str
    note: str


def decode(arguments: Mapping[str, Any] | str | bytes, kind: type[_Arguments]) -> _Arguments:
    """Return the arguments of a call.

    Raises:
        ToolError: they are not what the tool takes.
    """
    try:
        given: Any = dict(arguments) if isinstance(arguments, Mapping) else _parsed(arguments)
        _check(given, 0)
        return msgspec.convert(given, kind)
    except (msgspec.ValidationError, ValueError, TypeError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else failures.quoted(str(error))[1:-1]
        raise failures.bad_arguments(f"the arguments cannot be used: {reason}") from None


def trim(text: str) -> str:
    """Return a text without the white space around it."""
    return text.strip(_WHITE)


def offset(cursor: str | None) -> int:
    """Return where a page begins.

    Raises:
        ToolError: the cursor is no number.
    """
    if cursor is None:
        return 0
    digits = cursor.lstrip("+").lstrip("0")
    if not _CURSOR.fullmatch(cursor) or len(digits) > 20 or int(digits or "0") > _MAX_UNSIGNED:
        raise failures.invalid_cursor(cursor, "must be a non-negative integer")
    return int(digits or "0")


def page(total: int, start: int, wanted: int | None, most: int) -> int:
    """Return where a page ends.

    Raises:
        ToolError: it begins after the last result.
    """
    if start > total:
        raise failures.invalid_cursor(str(start), "exceeds result count")
    return min(start + clamp(wanted, most), total)


def clamp(wanted: int | None, most: int) -> int:
    """Return how many results a page has at most."""
    return most if wanted is None else min(max(wanted, 1), most)


def _parsed(text: str | bytes) -> Any:
    plain = text.decode("utf-8") if isinstance(text, bytes) else text
    if not trim(plain):
        return {}
    import json

    return json.loads(plain, object_pairs_hook=_once, parse_constant=_no_constant)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"duplicate field `{next(name for name in names if names.count(name) > 1)}`")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _check(value: Any, depth: int) -> None:
    """Refuse what no JSON text could hold, or what the tools could not answer."""
    if depth > 8:
        raise ValueError("nested too deeply")
    if isinstance(value, str) and not is_text(value):
        raise ValueError("a text holds half of a surrogate pair")
    if isinstance(value, int) and value > _MAX_UNSIGNED:
        raise ValueError("a number is beyond 64 bits")
    if isinstance(value, Mapping):
        for key, each in value.items():  # pyright: ignore[reportUnknownVariableType]
            _check(key, depth + 1)
            _check(each, depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            _check(each, depth + 1)

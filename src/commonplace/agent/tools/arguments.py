"""Arguments of tools: decoded from what a model wrote, and checked against a struct.

The struct alone says what a tool takes; the JSON schema that a model gets is made of it. Models that were trained with
other tools use other names for some fields: `renamed` maps them, and lists those that are accepted and ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeVar, cast

import msgspec

from commonplace.errors import ToolError

_MOST_SHOWN: Final = 400
"""How many characters of an error about arguments the model is shown."""
_Arguments = TypeVar("_Arguments", bound=msgspec.Struct)
Renamed = Mapping[str, str | None]
"""Other names of fields; None for fields that are accepted and ignored."""


@cache
def schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, without references. All sessions share it: nobody changes it."""
    (top,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    return cast("dict[str, Any]", _whole(top, parts))


def _whole(value: Any, parts: Mapping[str, Any]) -> Any:
    """Return a schema with its references resolved, and without titles that only repeat Python's names."""
    if isinstance(value, list):
        return [_whole(each, parts) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    if isinstance(name := fields.get("$ref"), str):
        return _whole({key: each for key, each in parts[name].items() if key not in ("title", "description")}, parts)
    alternatives = fields.get("anyOf")
    if isinstance(alternatives, list) and {"type": "null"} in alternatives:  # optional is told by `required` alone
        left = [each for each in cast("list[Any]", alternatives) if each != {"type": "null"}]
        rest = {key: each for key, each in fields.items() if key not in ("anyOf", "default")}
        return _whole({**rest, **(left[0] if len(left) == 1 else {"anyOf": left})}, parts)
    found = {key: _whole(each, parts) for key, each in fields.items()}
    if "enum" in found:
        found.setdefault("type", "string")
    return found


def decode(text: str, kind: type[_Arguments], renamed: Renamed | None = None) -> _Arguments:
    """Return the arguments of a call; a null counts as left out.

    Raises:
        ToolError: they are no JSON object, or not what the tool takes.
    """
    try:
        given: Any = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise bad_arguments(f"the arguments are no JSON: {error}") from None
    if not isinstance(given, dict):
        raise bad_arguments("the arguments must be a JSON object")
    fields = {name: value for name, value in cast("dict[str, Any]", given).items() if value is not None}
    for other, name in (renamed or {}).items():
        if other in fields:
            value = fields.pop(other)
            if name is not None:
                fields.setdefault(name, value)
    try:
        return msgspec.convert(fields, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise bad_arguments(f"the arguments cannot be used: {error}") from None


def bad_arguments(reason: str) -> ToolError:
    """Return the error of a call whose arguments cannot be used."""
    plain = reason.encode("utf-8", "replace").decode()
    shown = plain if len(plain) <= _MOST_SHOWN else f"{plain[:_MOST_SHOWN]}…"
    return ToolError("bad_arguments", shown)

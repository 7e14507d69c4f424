"""A server's tools as a model is offered them: with names and schemas that every API accepts. Pure.

A tool keeps its own name for calls to its server and gets another one for the model. That depends only on the names of
server and tool, unless two would be the same. The descriptions and schemas go into every request, so all of them are
bounded; tools that do not fit are left out, and a note says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from commonplace.agent.servers.config import ServerConfig
from commonplace.agent.tools.registry import ToolDefinition
from commonplace.patterns import regex

MOST_TOOLS: Final = 512
"""Tools of one server that are offered; no model chooses well among more."""
MOST_NAME: Final = 256
"""Characters of a tool's own name; tools with longer names are left out."""
MOST_DESCRIPTION: Final = 8_000
"""Characters of one description."""
MOST_SCHEMA: Final = 32_000
"""Bytes of one schema."""
MOST_BYTES: Final = 512_000
"""Bytes that one server may add to every request."""
MOST_DEPTH: Final = 24
"""How deep a schema may be nested."""
_LONGEST: Final = 64
"""Characters of a name for the model, with its namespace."""
_NAMESPACE: Final = 36
"""The longest namespace of a server's tools, with `mcp__`."""
_DIGITS: Final = 8
"""How many digits of a hash tell shortened names apart."""
_UNUSABLE: Final = regex(r"[^A-Za-z0-9_-]")
_CONTROL: Final = regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NAMES: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords that hold schemas by name."""
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONE: Final = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")


class ListedTool(msgspec.Struct, frozen=True):
    """A tool as its server lists it."""

    name: str
    definition: ToolDefinition
    read_only: bool = False
    """The server says that the tool changes nothing."""


class ToolOffer(msgspec.Struct, frozen=True):
    """The tools of one server."""

    tools: tuple[ListedTool, ...] = ()
    notes: tuple[str, ...] = ()
    """How many tools are not offered, and why."""


def tools_to_offer(config: ServerConfig, listed: Iterable[Mapping[str, Any]]) -> ToolOffer:
    """Return the tools of a server that are offered; `listed` are all its tools as they stand in the protocol."""
    found: dict[str, ListedTool] = {}
    notes: dict[str, int] = {}
    size = 0
    for tool in listed:
        name = str(tool.get("name", ""))
        if not config.offers(name):
            continue
        reason = _refused(name, found)
        if reason is None:
            each = _listed(config.name, name, tool)
            own = len(msgspec.json.encode(each.definition.parameters)) + len(each.definition.description.encode())
            reason = f"tools beyond {MOST_BYTES} bytes" if size + own > MOST_BYTES else None
            if reason is None:
                size += own
                found[name] = each
        if reason is not None:
            notes[reason] = notes.get(reason, 0) + 1
    return ToolOffer(tuple(found.values()), tuple(f"{count} {reason}" for reason, count in notes.items()))


def _refused(name: str, found: Mapping[str, ListedTool]) -> str | None:
    if not name.strip() or len(name) > MOST_NAME:
        return "tools without a usable name"
    if name in found:
        return "tools whose name is taken"
    return f"tools beyond {MOST_TOOLS}" if len(found) >= MOST_TOOLS else None


def _listed(server: str, name: str, tool: Mapping[str, Any]) -> ListedTool:
    hints = cast("Mapping[str, Any]", tool.get("annotations") or {})
    text = tool.get("description") or tool.get("title") or hints.get("title") or ""
    definition = ToolDefinition(
        name=safe(name, _LONGEST - len(namespace(server)) - 2),
        kind="function",
        description=clean(str(text))[:MOST_DESCRIPTION],
        parameters=schema(tool.get("inputSchema")),
        namespace=namespace(server),
    )
    read_only = hints.get("readOnlyHint") is True and hints.get("destructiveHint") is not True
    return ListedTool(name, definition, read_only)


def unique(tools: Iterable[tuple[str, ListedTool]]) -> list[tuple[str, ListedTool]]:
    """Return the tools of all servers, each with its server's name; equal names for the model are made different."""
    taken: set[str] = set()
    found: list[tuple[str, ListedTool]] = []
    for server, each in tools:
        definition = each.definition
        room = _LONGEST - len(definition.namespace or "") - 2
        for attempt in range(100):
            if definition.key not in taken:
                break
            marked = f"{definition.name[: room - _DIGITS - 1]}_{_mark(f'{server}/{each.name}/{attempt}')}"
            definition = msgspec.structs.replace(each.definition, name=marked)
        else:
            continue  # a hundred hashes that are all taken: nobody has that many tools
        taken.add(definition.key)
        found.append((server, msgspec.structs.replace(each, definition=definition)))
    return found


def namespace(server: str) -> str:
    """Return the namespace of a server's tools."""
    return f"mcp__{safe(server, _NAMESPACE - len('mcp__'))}"


def safe(name: str, room: int) -> str:
    """Return a name in characters that every API accepts; a name that is too long ends in a hash of the whole."""
    plain = _UNUSABLE.sub("_", name)
    if len(plain) <= room and plain.strip("_"):
        return plain
    return f"{plain[: room - _DIGITS - 1]}_{_mark(name)}"


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]


def clean(text: str) -> str:
    """Return a text without control characters and without lone surrogates."""
    return _CONTROL.sub("", text.encode("utf-8", "replace").decode())


# --- Schemas


def schema(given: object) -> dict[str, Any]:
    """Return the schema of a tool's arguments; a schema that is too large or invalid becomes that of any object."""
    if not isinstance(given, dict):
        return _anything()
    root = cast("dict[str, Any]", given)
    found = _checked(root, root, MOST_DEPTH)
    if not isinstance(found, dict):
        return _anything()
    whole: dict[str, Any] = {**_anything(), **cast("dict[str, Any]", found), "type": "object"}
    try:
        return whole if len(msgspec.json.encode(whole)) <= MOST_SCHEMA else _anything()
    except (ValueError, OverflowError, TypeError, RecursionError):
        return _anything()


def _anything() -> dict[str, Any]:
    return {"type": "object", "properties": {}}


def _checked(value: object, root: dict[str, Any], depth: int) -> Any:
    """Return a schema without invalid keywords; what is no schema becomes one that accepts anything."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, dict) or depth == 0:
        return {}
    kept: dict[str, Any] = {}
    for key, each in cast("dict[str, Any]", value).items():
        if key in _NAMES:
            if isinstance(each, dict):
                named = cast("dict[str, Any]", each)
                kept[key] = {str(name): _checked(part, root, depth - 1) for name, part in named.items()}
        elif key in _LISTS:
            if isinstance(each, list) and each:
                kept[key] = [_checked(part, root, depth - 1) for part in cast("list[Any]", each)]
        elif key in _ONE:
            kept[key] = _checked(each, root, depth - 1)
        elif _holds(key, each, root):
            kept[key] = clean(each) if isinstance(each, str) else each
    return kept


def _holds(key: str, value: object, root: dict[str, Any]) -> bool:
    if key == "$ref":
        return isinstance(value, str) and _leads_somewhere(value, root)
    if key in ("$schema", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor"):
        return False  # addresses elsewhere: nobody is to fetch them
    if key == "required":
        return isinstance(value, list) and all(isinstance(name, str) for name in cast("list[Any]", value))
    if key in ("description", "title", "pattern", "format"):
        return isinstance(value, str)
    if key == "enum":
        return isinstance(value, list) and value != []
    if key == "type":
        kinds = cast("list[Any]", value) if isinstance(value, list) else [value]
        return bool(kinds) and all(isinstance(kind, str) for kind in kinds)
    return True


def _leads_somewhere(reference: str, root: dict[str, Any]) -> bool:
    """Return whether a reference leads to a schema in the same document."""
    if reference != "#" and not reference.startswith("#/"):
        return False
    at: Any = root
    for part in reference.split("/")[1:MOST_DEPTH]:
        name = part.replace("~1", "/").replace("~0", "~")
        at = cast("dict[str, Any]", at).get(name) if isinstance(at, dict) else None
    return isinstance(at, dict)

"""Tools under flat names: for APIs that know neither namespaces nor free text as input.

A tool `read` of namespace `memories` is offered as `memories__read`; a free-text tool as a function with one argument,
`input`. A `FlatToolNames` is made from the tools of a request and translates both ways, so that the items which a
session records look the same whichever API the model was reached by.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from commonplace.models.base import CustomTool, FunctionTool, Tool
from commonplace.patterns import regex

INPUT: Final = "input"
_UNUSABLE: Final = regex(r"[^a-zA-Z0-9_-]")
_LONGEST: Final = 64
"""The longest name of a tool that the APIs accept."""
_object = msgspec.json.Decoder(dict[str, Any])


class _ToolTarget(msgspec.Struct, frozen=True):
    name: str
    namespace: str | None = None
    custom: bool = False


class FlatToolNames:
    """The flat names of the tools of one request."""

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self._targets: dict[str, _ToolTarget] = {}
        for tool in tools:
            if isinstance(tool, FunctionTool):
                self._targets[flat_name(tool.name, tool.namespace)] = _ToolTarget(tool.name, tool.namespace)
            elif isinstance(tool, CustomTool):
                self._targets[flat_name(tool.name)] = _ToolTarget(tool.name, custom=True)

    def prefix(self, name: str) -> str:
        """Return how the id of a call's item begins."""
        target = self._targets.get(name)
        return "ctc" if target is not None and target.custom else "fc"

    def call(self, name: str, arguments: str, call_id: str, item_id: str) -> dict[str, Any]:
        """Return the item of a call that a model made by a flat name; an unknown name is kept as it is."""
        target = self._targets.get(name) or _ToolTarget(name)
        if target.custom:
            return {
                "type": "custom_tool_call",
                "id": item_id,
                "status": "completed",
                "call_id": call_id,
                "name": target.name,
                "input": _free_text(arguments),
            }
        item = {"type": "function_call", "id": item_id, "name": target.name, "arguments": arguments, "call_id": call_id}
        return item if target.namespace is None else {**item, "namespace": target.namespace}


def flat_name(name: str, namespace: str | None = None) -> str:
    """Return the name by which a tool is offered."""
    whole = f"{namespace.rstrip('_')}__{name}" if namespace else name
    return _UNUSABLE.sub("_", whole)[:_LONGEST]


def declaration(tool: FunctionTool | CustomTool, schema: str) -> dict[str, Any]:
    """Return a tool as a function under its flat name, with the JSON schema of its arguments in the field `schema`."""
    is_function = isinstance(tool, FunctionTool)
    name = flat_name(tool.name, tool.namespace if is_function else None)
    found: dict[str, Any] = {"name": name, "description": tool.description, schema: _parameters(tool)}
    return {**found, "strict": True} if is_function and tool.strict else found


def _parameters(tool: FunctionTool | CustomTool) -> dict[str, Any]:
    if isinstance(tool, FunctionTool):
        return dict(tool.parameters)
    grammar = (tool.format or {}).get("definition")
    text: dict[str, Any] = {"type": "string"}
    if isinstance(grammar, str):
        text["description"] = f"Text that follows this grammar:\n{grammar}"
    return {"type": "object", "properties": {INPUT: text}, "required": [INPUT], "additionalProperties": False}


def arguments_of(text: str) -> dict[str, Any]:
    """Return a call's arguments as an object; what is no JSON object is kept under a name of its own."""
    try:
        return _object.decode(text)
    except msgspec.DecodeError:
        return {"unparsed": text} if text.strip() else {}


def _free_text(arguments: str) -> str:
    value = arguments_of(arguments).get(INPUT)
    return value if isinstance(value, str) else arguments

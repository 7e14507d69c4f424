"""What a model is told of the memory tools; the words and schemas stand in `tool_definitions.json`.

They are apart from the tools themselves, because a client lists them first and waits for the list. To a client of a
server each tool is offered with the name of another project.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import msgspec

NOTE: Final = "add_ad_hoc_note"
FIND: Final = "find"


class Definition(msgspec.Struct, frozen=True):
    """A tool as it is offered. Minimums and patterns in its schemas are advice: the tool itself decides."""

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    read_only: bool


DEFINITIONS: Final = msgspec.json.decode(
    Path(__file__).with_name("tool_definitions.json").read_bytes(), type=tuple[Definition, ...]
)
"""In the order in which they are registered."""


@cache
def client_definitions(*, notes: bool, only: bool = False) -> tuple[Definition, ...]:
    """Return the tools that a client may call: the one that adds notes only if it may, other projects unless `only`."""
    found = [each for each in DEFINITIONS if each.name != NOTE]
    found.append(_find_definition())
    if not only:
        found = [_with_project(each) for each in found]
    if notes:
        found += [each for each in DEFINITIONS if each.name == NOTE]
    return tuple(found)


def _with_project(definition: Definition) -> Definition:
    """Return a tool that can be asked about another project."""
    schema = definition.input_schema
    described = {"type": "string", "description": "Another project, by its name or identity; * for all of them."}
    properties = {**cast("dict[str, Any]", schema.get("properties", {})), "project": described}
    return msgspec.structs.replace(definition, input_schema={**schema, "properties": properties})


def _find_definition() -> Definition:
    return msgspec.json.decode(Path(__file__).with_name("find.json").read_bytes(), type=Definition)

"""What a model is told of the memory tools; the words and schemas stand in `definitions.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec


class Definition(msgspec.Struct, frozen=True):
    """A tool as it is offered. Minimums and patterns in its schemas are advice: the tool itself decides."""

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    read_only: bool


DEFINITIONS: Final = msgspec.json.decode(
    Path(__file__).with_name("definitions.json").read_bytes(), type=tuple[Definition, ...]
)
"""In the order in which they are registered."""

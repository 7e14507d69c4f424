"""The input of a turn: a person's words and pictures, what their client knows, and the schema of the answer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.agent.tools import image
from commonplace.context.additional import AdditionalContext
from commonplace.errors import BadInput, ToolError

MOST_CHARACTERS: Final = 1_048_576
"""Characters of one input, as in Codex."""


class UserInput(msgspec.Struct, frozen=True, kw_only=True):
    """The input of one turn."""

    parts: tuple[dict[str, Any], ...] = ()
    """The content items `input_text` and `input_image`, as they are sent."""
    context: Mapping[str, AdditionalContext] = {}
    schema: Mapping[str, Any] | None = None
    """The JSON schema of the answer."""

    def message(self, item_id: str) -> dict[str, Any]:
        """Return the input as a message item."""
        return {"type": "message", "id": item_id, "role": "user", "content": [*self.parts]}


def text(words: str, images: Sequence[Path] = (), schema: Mapping[str, Any] | None = None) -> UserInput:
    """Return an input of words and pictures.

    Raises:
        BadInput: the input is empty or too long, or a file is no picture.
    """
    if len(words) > MOST_CHARACTERS:
        raise BadInput(
            f"The input has {len(words):,} characters.", hint=f"Use at most {MOST_CHARACTERS:,}.", actual=len(words)
        )
    if not words.strip() and not images:
        raise BadInput("There is nothing to do.", hint="Give a prompt.")
    try:
        words.encode()
        pictures = [part for number, path in enumerate(images, 1) for part in _picture(number, path)]
    except UnicodeEncodeError:
        raise BadInput("The prompt is not valid Unicode.", hint="Send text that can be written as UTF-8.") from None
    except ToolError as error:
        raise BadInput(f"A picture cannot be used: {error.sentence()}", hint="Give a PNG, JPEG, GIF or WebP.") from None
    said = [{"type": "input_text", "text": words}] if words.strip() else []
    return UserInput(parts=(*pictures, *said), schema=schema)


def _picture(number: int, path: Path) -> list[dict[str, Any]]:
    """Return a picture between texts that name it, so that the model can tell several pictures apart."""
    shown = os.fsencode(path.absolute()).decode("utf-8", "replace")
    opening = f'<image name=[Image #{number}] path="{shown}">'
    return [
        {"type": "input_text", "text": opening},
        {"type": "input_image", "image_url": image.data_url(path), "detail": "high"},
        {"type": "input_text", "text": "</image>"},
    ]

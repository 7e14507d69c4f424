"""The input of a turn as a client sends it, as the library takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from commonplace.agent import user_input
from commonplace.agent.user_input import MOST_CHARACTERS, UserInput
from commonplace.context.additional import AdditionalContext
from commonplace.surfaces.app_server.messages import INVALID_PARAMS, RpcError, invalid
from commonplace.surfaces.app_server.params import (
    ImageInput,
    InputPart,
    LocalImageInput,
    MentionInput,
    SkillInput,
    TextInput,
    ToolOutputParams,
)


def read(
    parts: Sequence[InputPart],
    context: Mapping[str, AdditionalContext] | None,
    schema: Mapping[str, Any] | None = None,
    client_id: str | None = None,
) -> UserInput:
    """Return an input; parts keep their order.

    Raises:
        RpcError: it is too long, or names a picture on the web.
        BadInput: a file is no picture, or the text is no Unicode.
    """
    size = sum(len(part.text) for part in parts if isinstance(part, TextInput))
    if size > MOST_CHARACTERS:
        told = {"input_error_code": "input_too_large", "max_chars": MOST_CHARACTERS, "actual_chars": size}
        raise RpcError(INVALID_PARAMS, f"Input exceeds the maximum length of {MOST_CHARACTERS} characters.", told)
    found: list[dict[str, Any]] = []
    pictures = 0
    for part in parts:
        match part:
            case TextInput():
                found += user_input.text(part.text).parts if part.text.strip() else []
            case LocalImageInput():
                pictures += 1
                found += user_input.picture(pictures, Path(part.path))
            case ImageInput():
                found.append(_image(part))
            case SkillInput():
                found.append({"type": "input_text", "text": f"[${part.name}]({part.path})"})
            case MentionInput():
                found.append({"type": "input_text", "text": f"[@{part.name}]({part.path})"})
    return UserInput(parts=tuple(found), context=context or {}, schema=schema, client_id=client_id)


def external(given: UserInput, said: ToolOutputParams) -> UserInput:
    """Return an input that is what another program says (raises RpcError: it is not that alone, or no text)."""
    if given.parts:
        raise invalid("`toolOutput` cannot be combined with nonempty `input`")
    if not said.name.strip():
        raise invalid("`toolOutput.name` must not be empty")
    parts = [{"type": "input_text", "text": said.output}] if isinstance(said.output, str) else said.output
    texts = [part.get("text") for part in parts if part.get("type") == "input_text"]
    if len(texts) < len(parts) or not all(isinstance(text, str) for text in texts):
        raise invalid("`toolOutput.output` must be text, or a list of `input_text`")
    name = f"{said.namespace}.{said.name}" if said.namespace else said.name
    value = AdditionalContext(value="\n".join(map(str, texts)), kind="untrusted")
    return msgspec.structs.replace(given, external={name: value})


def _image(part: ImageInput) -> dict[str, Any]:
    if not part.url.startswith("data:"):
        raise invalid("remote image URLs are not supported; use an inline data URL instead")
    return {"type": "input_image", "image_url": part.url, "detail": part.detail or "high"}

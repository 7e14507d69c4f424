"""The input of a turn as a client sends it, as the library takes it."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.agent import user_input
from commonplace.agent.tools import image
from commonplace.agent.user_input import MOST_CHARACTERS, ExternalText, UserInput
from commonplace.context import regular_files
from commonplace.context.additional import AdditionalContext
from commonplace.errors import BadInput
from commonplace.surfaces.app_server.messages import INVALID_PARAMS, RpcError, invalid
from commonplace.surfaces.app_server.params import (
    AudioInput,
    ImageInput,
    InputPart,
    LocalAudioInput,
    LocalImageInput,
    MentionInput,
    SkillInput,
    TextElement,
    TextInput,
    ToolOutputParams,
)

Json = dict[str, Any]
_LEFT_OUT: Final = "media.left_out"
"""Whose words a text is that stands for a file that cannot be sent: ours."""


def read(
    parts: Sequence[InputPart],
    context: Mapping[str, AdditionalContext] | None,
    schema: Mapping[str, Any] | None = None,
    client_id: str | None = None,
) -> UserInput:
    """Return an input; parts keep their order.

    Raises:
        RpcError: it is too long, or names a picture on the web.
    """
    size = sum(len(part.text) for part in parts if isinstance(part, TextInput))
    if size > MOST_CHARACTERS:
        told = {"input_error_code": "input_too_large", "max_chars": MOST_CHARACTERS, "actual_chars": size}
        raise RpcError(INVALID_PARAMS, f"Input exceeds the maximum length of {MOST_CHARACTERS} characters.", told)
    found: list[Json] = []
    kinds: list[str] = []
    pictures = 0
    for part in parts:
        pictures += isinstance(part, LocalImageInput)
        sent, kind = _sent(part, pictures)
        found += sent
        kinds += [kind] * len(sent)
    return UserInput(
        parts=tuple(found),
        kinds=tuple(kinds) if _LEFT_OUT in kinds else (),
        shown=tuple(map(_kept, parts)),
        context=context or {},
        schema=schema,
        client_id=client_id,
    )


def _sent(part: InputPart, number: int) -> tuple[list[Json], str]:
    """Return what the model gets of a part, and whose words it is (raises RpcError: it is on the web)."""
    match part:
        case TextInput():
            return [_text(part.text)], "user.text"
        case ImageInput():
            if not part.url.startswith("data:"):
                raise invalid("remote image URLs are not supported; use an inline data URL instead")
            return [{"type": "input_image", "image_url": part.url, "detail": part.detail or "high"}], "user.text"
        case LocalImageInput():
            return _local_image(part, number)
        case AudioInput():
            return [{"type": "input_audio", "audio_url": part.url}], "user.text"
        case LocalAudioInput():
            return _local_audio(part.path)
        case SkillInput():
            return [_text(f"[${part.name}]({part.path})")], "user.text"
        case MentionInput():
            return [_text(f"[@{part.name}]({part.path})")], "user.text"


def _local_image(part: LocalImageInput, number: int) -> tuple[list[Json], str]:
    """Return a picture between texts that name it; of one that cannot be used, the model is told why."""
    try:
        sent = user_input.picture(number, Path(part.path))
    except (BadInput, ValueError) as error:
        reason = error.sentence() if isinstance(error, BadInput) else "Its path is none."
        return [_text(f"The local image `{part.path}` is left out. {reason}")], _LEFT_OUT
    return [{**each, "detail": part.detail} if part.detail and "detail" in each else each for each in sent], "user.text"


def _local_audio(path: str) -> tuple[list[Json], str]:
    """Return a recording; of one that cannot be read, the model is told why."""
    kind = mimetypes.guess_type(path)[0] or ""
    read = regular_files.read(Path(path), image.MOST_BYTES)
    if not kind.startswith("audio/") or isinstance(read, regular_files.ReadRefused) or read.size > len(read.data):
        reason = f"it is no recording of at most {image.MOST_BYTES} bytes"
        return [_text(f"The local audio `{path}` is left out: {reason}.")], _LEFT_OUT
    url = f"data:{kind};base64,{base64.b64encode(read.data).decode()}"
    return [{"type": "input_audio", "audio_url": url}], "user.text"


def _kept(part: InputPart) -> Json:
    """Return a part as the ledger keeps it, in the format of Codex."""
    match part:
        case TextInput():
            elements = [_element(element) for element in part.text_elements]
            return {"type": "text", "text": part.text, "text_elements": elements}
        case ImageInput():
            return {"type": "image", "image_url": part.url, **_detail(part.detail)}
        case LocalImageInput():
            return {"type": "local_image", "path": part.path, **_detail(part.detail)}
        case AudioInput():
            return {"type": "audio", "audio_url": part.url}
        case LocalAudioInput():
            return {"type": "local_audio", "path": part.path}
        case SkillInput():
            return {"type": "skill", "name": part.name, "path": part.path}
        case MentionInput():
            return {"type": "mention", "name": part.name, "path": part.path}


def _detail(wanted: str | None) -> Json:
    return {} if wanted is None else {"detail": wanted}


def _text(words: str) -> Json:
    return {"type": "input_text", "text": words}


def _element(element: TextElement) -> Json:
    stretch = {"start": element.byte_range.start, "end": element.byte_range.end}
    return {"byte_range": stretch, "placeholder": element.placeholder}


def external(given: UserInput, said: ToolOutputParams) -> UserInput:
    """Return an input that is what another program says (raises RpcError: it is not that alone, or cannot be used)."""
    if given.parts:
        raise invalid("`toolOutput` cannot be combined with nonempty `input`")
    if not said.name.strip():
        raise invalid("`toolOutput.name` must not be empty")
    parts = [] if isinstance(said.output, str) else said.output
    if not all(isinstance(part.get("text"), str) for part in parts if part.get("type") == "input_text"):
        raise invalid("`toolOutput.output` must be text, or a list of content items")
    message = ExternalText(name=said.name, namespace=said.namespace, output=said.output)
    return msgspec.structs.replace(given, external=message)

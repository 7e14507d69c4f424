"""What the tools take, and the input that a message or items make. Pure but for pictures, which are files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from commonplace.agent import user_input
from commonplace.agent.tools.arguments import bad_arguments
from commonplace.agent.user_input import UserInput
from commonplace.errors import BadInput
from commonplace.protocol.ids import is_uuid

Items = Annotated[
    list["InputItem"], Meta(description="Structured input, in place of `message`: text, pictures, skills, mentions.")
]
Target = Annotated[str, Meta(description="The id of the agent, as spawn_agent returned it.")]


class InputItem(msgspec.Struct, frozen=True):
    """One part of an input; which fields count depends on the type."""

    type: Literal["text", "image", "local_image", "audio", "local_audio", "skill", "mention"]
    text: str | None = None
    image_url: Annotated[str, Meta(description="A picture as a data: address.")] | None = None
    audio_url: str | None = None
    path: Annotated[str, Meta(description="The path of a local_image, a skill or a mention.")] | None = None
    name: Annotated[str, Meta(description="The name of a skill or a mention.")] | None = None


class SpawnAgentArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `spawn_agent` takes."""

    message: Annotated[str, Meta(description="The task. Give this or `items`.")] | None = None
    items: Items | None = None
    agent_type: Annotated[str, Meta(description="The role of the agent.")] | None = None
    fork_context: Annotated[
        bool, Meta(description="Let it begin with this conversation instead of only with the task.")
    ] = False
    model: Annotated[str, Meta(description="Another model. Leave it out to use yours.")] | None = None
    reasoning_effort: Annotated[str, Meta(description="Another effort. Leave it out to use yours.")] | None = None
    service_tier: str | None = None


class SendInputArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `send_input` takes."""

    target: Target
    message: Annotated[str, Meta(description="What to say. Give this or `items`.")] | None = None
    items: Items | None = None
    interrupt: Annotated[bool, Meta(description="Stop what the agent is doing first.")] = False


class ResumeAgentArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `resume_agent` takes."""

    id: Target


class WaitAgentArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `wait_agent` takes."""

    targets: Annotated[list[str], Meta(description="The ids of the agents to wait for.")]
    timeout_ms: (
        Annotated[int, Meta(description="How long to wait: 10000 to 3600000; 30000 if it is left out.")] | None
    ) = None


class CloseAgentArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `close_agent` takes."""

    target: Target


class ListAgentsArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `list_agents` takes."""

    path_prefix: Annotated[str, Meta(description="List only agents whose ids begin with this.")] | None = None


def checked_id(text: str) -> str:
    """Return an agent's id as it is stored (raises ToolError: it is none)."""
    lowered = text.strip().lower()
    if not is_uuid(lowered):
        raise bad_arguments(f"invalid agent id {text[:100]!r}")
    return lowered


def read_input(message: str | None, items: Sequence[InputItem] | None, folder: Path) -> UserInput:
    """Return the input that a call gives: exactly one of a message and items; paths are meant from a folder.

    Raises:
        ToolError: it gives both, neither, nothing to read, or an item that cannot be used.
    """
    if message is not None and items is not None:
        raise bad_arguments("give either message or items, not both")
    if message is None and items is None:
        raise bad_arguments("give one of message and items")
    if message is not None and not message.strip():
        raise bad_arguments("an empty message cannot be sent to an agent")
    if items is not None and not items:
        raise bad_arguments("items must not be empty")
    try:
        if message is not None:
            return user_input.text(message)
        return UserInput(parts=tuple(_parts(items or (), folder)))
    except BadInput as error:
        raise bad_arguments(error.sentence()) from None


def _parts(items: Sequence[InputItem], folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    pictures = 0
    for item in items:
        match item:
            case InputItem(type="text", text=str(text)):
                found += user_input.text(text).parts
            case InputItem(type="image", image_url=str(url)) if url.startswith("data:"):
                found.append({"type": "input_image", "image_url": url, "detail": "high"})
            case InputItem(type="image"):
                raise bad_arguments("an image needs image_url with an inline data: address")
            case InputItem(type="local_image", path=str(path)):
                pictures += 1
                found += user_input.picture(pictures, folder / path)
            case InputItem(type="skill" | "mention", name=str(name), path=str(path)):
                sign = "$" if item.type == "skill" else "@"
                found.append({"type": "input_text", "text": f"[{sign}{name}]({path})"})
            case InputItem(type="audio" | "local_audio"):
                raise bad_arguments("agents take no audio")
            case _:
                raise bad_arguments(f"an item of type {item.type} lacks a field that it needs")
    return found


def preview(given: UserInput) -> str:
    """Return an input as a person sees it in one line of text; pictures are only named."""
    return "\n".join(part.get("text") or "[image]" for part in given.parts)

"""What a model is to the rest of the program: a request goes in, a stream of events comes out.

The same request and the same events serve every API. Items travel as the JSON bytes of response items: what a model
said is handed on as it was sent, and what is stored is sent back unchanged wherever the API allows it. An API that has
other shapes (Chat Completions, Messages) translates at its edge, and nothing above it knows.

The order of events in one answer: any number of `Retrying` and `RateLimits`, then for each item `ItemAdded`, its deltas
and `ItemDone`, then `Usage` where the server counts, and `Completed` last. An answer without `Completed` is an error,
and so it is raised.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal, Protocol

import msgspec

Stop = Literal["end", "tools", "length", "refused", "paused"]
"""Why an answer ended: it was finished, tools are to be run, the room for output was used up, the model or a filter
declined, or the server wants to be asked to go on."""


class FunctionTool(msgspec.Struct, frozen=True, tag="function"):
    """A tool whose arguments are a JSON object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """A JSON schema of an object."""
    strict: bool = False
    namespace: str | None = None


class CustomTool(msgspec.Struct, frozen=True, tag="custom"):
    """A tool whose input is free text, perhaps bound by a grammar."""

    name: str
    description: str
    format: Mapping[str, Any] | None = None


class HostedTool(msgspec.Struct, frozen=True, tag="hosted"):
    """A tool that the server runs itself, such as web search; its definition is passed on as it stands."""

    definition: bytes


Tool = FunctionTool | CustomTool | HostedTool


class OutputSchema(msgspec.Struct, frozen=True):
    """The JSON schema that the text of the answer must follow."""

    schema: Mapping[str, Any]
    name: str = "answer"
    strict: bool = True


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request for an answer."""

    model: str
    """The model's name as its provider spells it, without the provider."""
    input: tuple[bytes, ...] = ()
    """Response items, each as the bytes of its JSON object, oldest first."""
    instructions: str = ""
    tools: tuple[Tool, ...] = ()
    parallel_tool_calls: bool = True
    effort: str | None = None
    summary: str | None = None
    """How reasoning is summed up for a reader: `auto`, `concise`, `detailed` or `none`."""
    verbosity: str | None = None
    output_schema: OutputSchema | None = None
    prompt_cache_key: str | None = None
    service_tier: str | None = None
    max_output_tokens: int | None = None
    headers: Mapping[str, str] = {}
    """Sent beside the provider's own headers, which they cannot replace."""
    metadata: Mapping[str, str] = {}
    store: bool = False


class _Event(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    pass


class Retrying(_Event, frozen=True):
    """A request failed in a way that may pass; it is sent again after `delay` seconds."""

    attempt: int
    limit: int
    delay: float
    reason: str


class ItemAdded(_Event, frozen=True):
    """The model began an item; its text follows in deltas."""

    id: str
    item: bytes


class TextDelta(_Event, frozen=True):
    """A piece of an assistant's message."""

    id: str
    text: str


class ReasoningDelta(_Event, frozen=True):
    """A piece of the model's reasoning, or of a summary of it."""

    id: str
    text: str
    summary: bool = True


class ItemDone(_Event, frozen=True):
    """A finished response item, as it is stored and sent back."""

    item: bytes


class Usage(_Event, frozen=True):
    """What the server counted. `input` includes `cached`, `output` includes `reasoning`."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    total: int = 0


class Limit(msgspec.Struct, frozen=True):
    """One of the server's limits and how much of it is used."""

    name: str
    used_percent: float
    limit: int | None = None
    remaining: int | None = None
    window_minutes: int | None = None
    resets_at: float | None = None
    """Unix time."""


class RateLimits(_Event, frozen=True):
    """A snapshot of the server's limits."""

    limits: tuple[Limit, ...]


class ModelNamed(_Event, frozen=True):
    """The server says which model answers."""

    model: str


class Completed(_Event, frozen=True):
    """The answer is complete."""

    response_id: str
    end_turn: bool | None = None
    """False when the server says that the turn is not over although no tool was called; None when it says nothing."""
    stop: Stop = "end"


Event = Retrying | ItemAdded | TextDelta | ReasoningDelta | ItemDone | Usage | RateLimits | ModelNamed | Completed


class Model(Protocol):
    """Answers requests with streams of events."""

    def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the events of one answer.

        Close the generator (`contextlib.aclosing`) or cancel the task to end the request: the connection is closed.

        Raises:
            ModelError: there is no answer, or no more of it; `retryable` says whether asking again makes sense.
        """
        ...

    async def aclose(self) -> None:
        """Close idle connections."""
        ...

"""Models: one request, one stream of events, three APIs and a script.

    base          the protocol: Request, the events, Model
    responses     OpenAI Responses: items go out and come back as they are
    chat          Chat Completions, as vLLM, Ollama and llama.cpp serve it
    anthropic     Anthropic Messages
    dialogue      items as alternating turns, for the last two
    http          the connection: time-outs, repetition, errors in our words; sse, pace, failures, ratelimits below it
    catalog       what is known of models by name (catalog.toml)
    providers     from settings and `provider:model` to a model
    scripted      a strict model for tests
    instructions  what every model is told about its work

    choice = choose(settings, "openai:gpt-5.4")
    model = connect(choice)
    async with aclosing(model.stream(Request(model=choice.slug, input=items))) as events:
        async for event in events:
            ...

Importing this package loads no HTTP library; the first request does.
"""

from __future__ import annotations

from commonplace.models.base import (
    Completed,
    CustomTool,
    Event,
    FunctionTool,
    HostedTool,
    ItemAdded,
    ItemDone,
    Limit,
    Model,
    ModelNamed,
    OutputSchema,
    RateLimits,
    ReasoningDelta,
    Request,
    Retrying,
    Stop,
    TextDelta,
    Tool,
    Usage,
)
from commonplace.models.catalog import ModelInfo, model_info
from commonplace.models.instructions import instructions
from commonplace.models.providers import Choice, choose, connect
from commonplace.models.retries import RetryPolicy

__all__ = [
    "Choice",
    "Completed",
    "CustomTool",
    "Event",
    "FunctionTool",
    "HostedTool",
    "ItemAdded",
    "ItemDone",
    "Limit",
    "Model",
    "ModelInfo",
    "ModelNamed",
    "OutputSchema",
    "RateLimits",
    "ReasoningDelta",
    "Request",
    "RetryPolicy",
    "Retrying",
    "Stop",
    "TextDelta",
    "Tool",
    "Usage",
    "choose",
    "connect",
    "instructions",
    "model_info",
]

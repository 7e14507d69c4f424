"""A model whose every request asks for leave first and is paid for afterwards, whoever makes it and however it ends."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import anyio
import msgspec

from commonplace.context.tokens import approximate_tokens, tokens_of_bytes
from commonplace.learning.budget import Spending
from commonplace.models.base import Event, ItemDone, Model, ReasoningDelta, Request, Retrying, TextDelta, Usage

ANSWER: Final = 1_000
"""Tokens that an answer is estimated at before it is there."""


class MeteredModel:
    """A model whose requests are admitted and recorded by a budget."""

    def __init__(self, model: Model, spending: Spending) -> None:
        self._model = model
        self._spending = spending

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """Send a request, if that is allowed; yield what comes back.

        Raises:
            BudgetSpent: a limit has no room for it; nothing was sent.
            ModelError: the model's server failed.
        """
        asked = size_of(request)
        await self._spending.admit(asked + ANSWER)
        bill = _RequestCost()
        try:
            async with aclosing(self._model.stream(request)) as stream:
                async for event in stream:
                    bill.note(event)
                    yield event
        finally:
            with anyio.CancelScope(shield=True):
                await self._spending.record(bill.requests, bill.tokens(asked))

    async def aclose(self) -> None:
        """Close the connection."""
        await self._model.aclose()


def size_of(request: Request) -> int:
    """Estimate the tokens of a request."""
    tools = sum(len(msgspec.json.encode(tool)) for tool in request.tools)
    return approximate_tokens(request.instructions) + tokens_of_bytes(sum(map(len, request.input)) + tools)


class _RequestCost:
    """The cost of one request so far."""

    def __init__(self) -> None:
        self.requests = 1
        self._bytes = 0
        self._usage: Usage | None = None

    def note(self, event: Event) -> None:
        match event:
            case TextDelta() | ReasoningDelta():
                self._bytes += len(event.text.encode())
            case ItemDone():
                self._bytes = max(self._bytes, len(event.item))
            case Retrying():
                self.requests += 1
            case Usage():
                self._usage = event
            case _:
                pass

    def tokens(self, asked: int) -> int:
        """Return the tokens of the request: as the server counted them; else an estimate, if there was an answer."""
        if self._usage is not None:
            return self._usage.total or self._usage.input + self._usage.output
        return asked + tokens_of_bytes(self._bytes) if self._bytes else 0

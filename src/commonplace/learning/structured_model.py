"""Asking a model for one JSON object of a schema, patiently: what reading sessions and going over the memory share.

A server that takes no schema gets it in words. An answer that is cut off is asked for again, and a server that asks to
wait is waited for as long as the run may last. Every request asks for leave first (`Spending`) and has a time limit,
which begins when it leaves our own queue.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final, cast

import anyio
import msgspec

from commonplace.errors import CommonplaceError, RateLimited, RequestRefused, StreamBroken
from commonplace.learning.budget import Spending
from commonplace.learning.metered_model import MeteredModel
from commonplace.models.base import Completed, Event, ItemDone, Model, OutputSchema, Request, Stop, TextDelta
from commonplace.models.providers import Choice
from commonplace.models.retries import RetryPolicy
from commonplace.patterns import regex
from commonplace.protocol import items

SECONDS: Final = 600.0
"""How long one request may take, from when it is sent."""
EFFORT: Final = "low"
MAX_OUTPUT: Final = 16_000
"""Tokens of one answer, with what is thought before it."""
MAX_ANSWER: Final = 200_000
"""Characters of one answer."""
BROKEN: Final = 2
"""How often a request is sent again whose answer was cut off on the way."""
MAX_WAITS: Final = 20
"""How often a request waits until its server has room again."""
SHORT_WAIT: Final = RetryPolicy().longest_wait
"""Seconds up to which a connection waits by itself, again and again, before it gives up."""
_FENCE: Final = regex(r"```(?:json)?[ \t]*\n((?:[^`]|`{1,2}[^`])*)```", re.IGNORECASE)
_OPENS: Final = regex(r"\{\s*\"|\[\s*\{\s*\"|\{\s*\}")
LONGEST_WAIT: Final = 3_600.0
"""Seconds that are waited for a server at a time, if nothing limits the run."""


def silent(text: str) -> None:
    """Tell nobody."""
    del text


class StructuredTask(msgspec.Struct, frozen=True):
    """What a model is asked for."""

    schema: OutputSchema
    instructions: Callable[[], str]
    instructions_with_schema: Callable[[], str]
    """The same for a server that takes no schema."""
    failure: type[CommonplaceError]
    """Raised where a request took too long or was refused."""
    refusal: str
    """What the model refused to do, after `refused to`."""
    refusal_hint: str


class StructuredModel:
    """A model that is asked for JSON objects of one schema."""

    def __init__(
        self,
        model: Model,
        choice: Choice,
        task: StructuredTask,
        spending: Spending,
        *,
        seconds: float = SECONDS,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        tell: Callable[[str], None] = silent,
    ) -> None:
        self.name = f"{choice.name}:{choice.slug}"
        self._model = MeteredModel(model, spending)
        self._choice = choice
        self._task = task
        self._spending = spending
        self._seconds = seconds
        self._sleep = sleep
        self._tell = tell
        self._takes_schema = True
        self._queue = anyio.CapacityLimiter(choice.provider.parallel or math.inf)

    async def ask(self, *messages: bytes) -> ModelReply:
        """Return what the model says to some messages; a server that takes no schema is told it in words.

        Raises:
            BudgetSpent: nothing more may be spent.
            ModelError: the model's server failed.
        """
        if self._takes_schema:
            try:
                return await self._patiently(self._request(*messages, schema=self._task.schema))
            except RequestRefused as refused:
                try:
                    heard = await self._patiently(self._request(*messages, schema=None))
                except RequestRefused:
                    raise refused from None
            self._takes_schema = False
            return heard
        return await self._patiently(self._request(*messages, schema=None))

    def _request(self, *messages: bytes, schema: OutputSchema | None) -> Request:
        return Request(
            model=self._choice.slug,
            instructions=self._task.instructions() if schema else self._task.instructions_with_schema(),
            input=messages,
            effort=self._effort() if schema else None,
            output_schema=schema,
            max_output_tokens=output_of(self._choice),
        )

    async def _patiently(self, request: Request) -> ModelReply:
        """Send a request: again if its answer is cut off, and once more whenever a busy server has room again."""
        broken = waits = 0
        while True:
            heard = ModelReply()
            try:
                async with self._queue:
                    await self._once(request, heard)
            except StreamBroken:
                broken += 1
                if not heard.size or broken > BROKEN:  # what never began was tried again by the connection
                    raise
            except RateLimited as error:
                waits += 1
                if waits > MAX_WAITS or not await self._has_time(error.retry_after):
                    raise
                self._tell(f"waiting {error.retry_after:.0f} s, as {self.name} asks")
                await self._sleep(error.retry_after or 0.0)
            else:
                return heard

    async def _has_time(self, wait: float | None) -> bool:
        """Say whether the limits leave time to wait that long."""
        left = await self._spending.seconds_left()
        return wait is not None and SHORT_WAIT < wait <= (LONGEST_WAIT if left is None else left)

    async def _once(self, request: Request, heard: ModelReply) -> None:
        with anyio.move_on_after(self._seconds) as scope:
            async with aclosing(self._model.stream(request)) as stream:
                async for event in stream:
                    heard.note(event)
                    if heard.size > MAX_ANSWER:
                        break
        if scope.cancelled_caught:
            raise self._task.failure(
                f"{self.name} took longer than {self._seconds:g} s for one request.",
                hint="It is tried again later. For a slow model, set `parallel` of its provider to 1.",
            )
        if heard.stop == "refused":
            raise self._task.failure(
                f"{self.name} refused to {self._task.refusal}: “{heard.text[:160]}”",
                hint=self._task.refusal_hint,
            )

    def _effort(self) -> str | None:
        efforts = self._choice.info.efforts
        return EFFORT if EFFORT in efforts else efforts[0] if efforts else None


class ModelReply:
    """The reply to one request as far as it has come."""

    def __init__(self) -> None:
        self.stop: Stop | None = None
        self.size = 0
        self._said: list[str] = []
        self._pieces: list[str] = []

    def note(self, event: Event) -> None:
        """Take in what came."""
        if isinstance(event, TextDelta):
            self._pieces.append(event.text)
            self.size += len(event.text)
        elif isinstance(event, ItemDone):
            view = items.view(event.item)
            if isinstance(view, items.Message) and view.role == "assistant":
                self._said.append(view.text())
        elif isinstance(event, Completed):
            self.stop = event.stop

    @property
    def text(self) -> str:
        """The answer; where no message was finished, what came of it."""
        return "\n".join(self._said) or "".join(self._pieces)


def limit_of(choice: Choice) -> int:
    """Return how many tokens of a model's window a request may take: 70 % of what can be used of it.

    A window that nobody knows is taken to be as small as the catalogue says of unknown models.
    """
    return max(choice.info.window * 95 // 100 * 70 // 100, 1)


def output_of(choice: Choice) -> int | None:
    """Return how many tokens an answer may have; None for a model whose window nobody knows.

    Servers add this to the request and refuse what is more than the window, however short the answer would be.
    """
    if not choice.info.known or choice.info.window <= 0:
        return None
    return max(min(choice.info.max_output, MAX_OUTPUT, choice.info.window - limit_of(choice)), 1)


def json_document(answer: str, field: str) -> dict[str, Any] | list[Any] | str:
    """Return the one object or list of an answer; else what is wrong."""
    text = answer.strip()
    if not text:
        return f"It is empty; if there is nothing to say, return the object with an empty list `{field}`."
    try:
        return _checked(json.loads(text))
    except (ValueError, RecursionError):
        pass
    fenced = _FENCE.findall(text)
    if len(fenced) == 1:
        text = fenced[0].strip()
    begins = _OPENS.search(text)
    if begins is None:
        return "It holds no JSON object."
    try:
        found, end = json.JSONDecoder().raw_decode(text, begins.start())
    except (ValueError, RecursionError) as error:
        return f"Its JSON object cannot be read: {error}."
    if _OPENS.search(text, end):
        return "It holds more than one JSON object."
    return _checked(found)


def _checked(found: Any) -> dict[str, Any] | list[Any] | str:
    return cast("dict[str, Any]", found) if isinstance(found, dict | list) else "It is not a JSON object."

"""The extractor that asks a model.

    view → pieces (labelled) → slices (70 % of the window) → one request each, one repair
         → draft lessons → trust (checked against the session) → merged → lessons

Each slice is one request at low effort, without tools, for a JSON object of a fixed schema. An answer that cannot be
used is sent back once with what is wrong with it; then the session has failed this time. A server that says that a
request is too long gets smaller slices from then on; one that takes no schema gets it in words. An answer that is cut
off is asked for again, and a server that asks to wait is waited for as long as the run may last. Every request asks for
leave first (`Spending`) and has a time limit, which begins when it leaves our own queue. Nothing that the model says is
kept unless the session shows it (`trust`).
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Final

import anyio
import anyio.to_thread
import msgspec

from commonplace.context.tokens import approximate_tokens
from commonplace.errors import ContextTooLong, ExtractionFailed, RateLimited, RequestRefused, StreamBroken
from commonplace.learning.budget import Spending, Unlimited
from commonplace.learning.extract.model import (
    assemble,
    evidence,
    merge,
    model_answer,
    prompts,
    session_text,
    slices,
)
from commonplace.learning.extract.model.model_answer import Draft
from commonplace.learning.extract.model.session_text import EventText
from commonplace.learning.extract.model.slices import Slice
from commonplace.learning.extract.model.trust import Judge, VerifiedSession
from commonplace.learning.metered_model import MeteredModel
from commonplace.learning.reading.session_view import SessionView, UserText
from commonplace.memory.files import lesson_text
from commonplace.models.base import Completed, Event, ItemDone, Model, OutputSchema, Request, Stop, TextDelta
from commonplace.models.providers import Choice
from commonplace.models.retries import RetryPolicy
from commonplace.protocol import items
from commonplace.state.outputs import Output

SECONDS: Final = 600.0
"""How long one request may take, from when it is sent."""
EFFORT: Final = "low"
LEAST_ROOM: Final = 1_000
"""Tokens of a session in one request; a server that does not take even these cannot be used."""
MAX_OUTPUT: Final = 16_000
"""Tokens of one answer, with what is thought before it."""
BROKEN: Final = 2
"""How often a request is sent again whose answer was cut off on the way."""
MAX_WAITS: Final = 20
"""How often a request waits until its server has room again."""
SHORT_WAIT: Final = RetryPolicy().longest_wait
"""Seconds up to which a connection waits by itself, again and again, before it gives up."""
LONGEST_WAIT: Final = 3_600.0
"""Seconds that are waited for a server at a time, if nothing limits the run."""


def _silent(text: str) -> None:
    del text


class ExtractorSettings(msgspec.Struct, frozen=True):
    """How a model is asked."""

    seconds: float = SECONDS
    """How long one request may take; time in our own queue does not count."""
    limit: int | None = None
    """Tokens of one request; None: by the model's window."""
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    tell: Callable[[str], None] = _silent
    """Told what is waited for."""


class ModelExtractor:
    """An `Extractor` that asks a model."""

    def __init__(
        self,
        model: Model,
        choice: Choice,
        *,
        spending: Spending | None = None,
        settings: ExtractorSettings | None = None,
    ) -> None:
        self.name = f"{choice.name}:{choice.slug}"
        self._spending = spending or Unlimited()
        self._model = MeteredModel(model, self._spending)
        self._choice = choice
        self._settings = settings or ExtractorSettings()
        self._limit = self._settings.limit or limit_of(choice)
        self._takes_schema = True
        self._queue = anyio.CapacityLimiter(choice.provider.parallel or math.inf)

    async def extract(self, view: SessionView) -> Output:
        """Return what a session taught; empty texts if nothing.

        Raises:
            ExtractionFailed: no answer can be used, it took too long, or the model refused.
            BudgetSpent: nothing more may be spent.
            ModelError: the model's server failed.
        """
        left = await self._spending.seconds_left()
        with anyio.move_on_after(left):
            return await self._extract(view)
        raise self._spending.time_refusal()

    async def _extract(self, view: SessionView) -> Output:
        pieces = await anyio.to_thread.run_sync(session_text.pieces, view)
        if not any(isinstance(event, UserText) for event in view.events()):
            return Output("", "")  # nobody was there, so nobody wanted anything
        judge = Judge(evidence.QuoteFinder(view))
        told: list[VerifiedSession] = []
        waiting = slices.cut(pieces, self._room())
        while waiting:
            part, rest = waiting[0], waiting[1:]
            try:
                found = await self._slice(view, part, len(told) + 1, len(told) + len(waiting))
            except ContextTooLong as error:
                left = [piece for each in waiting for piece in each.pieces]
                waiting = self._smaller(part, left, error)
                continue
            told.append(await anyio.to_thread.run_sync(judge.verified, found))
            waiting = rest
        return await anyio.to_thread.run_sync(self._written, view, told)

    def _written(self, view: SessionView, sessions: list[VerifiedSession]) -> Output:
        reader = f"{self.name} with prompt {prompts.version()}"
        found = assemble.session_lessons(view, merge.merge(sessions), reader)
        return lesson_text.redacted(lesson_text.output(found))

    def _room(self) -> int:
        """Return how many tokens of a session a request has room for."""
        return max(self._limit - prompts.overhead(), LEAST_ROOM)

    def _smaller(self, part: Slice, left: list[EventText], error: ContextTooLong) -> list[Slice]:
        """Cut what is left into slices of half the size of one that was too long; later sessions get none larger."""
        room = approximate_tokens(part.text()) // 2
        if room < LEAST_ROOM:
            raise ExtractionFailed(
                f"{self.name} takes no part of a session, however small: {error.message}",
                hint="Choose a model with a larger window.",
            ) from error
        self._limit = min(self._limit, room + prompts.overhead())
        return slices.cut(left, min(room, self._room()), goes_on=part.goes_on)

    async def _slice(self, view: SessionView, part: Slice, number: int, total: int) -> Draft:
        """Return what the model says about a slice."""
        asked = await anyio.to_thread.run_sync(prompts.message, view, part, number, total)
        answer = await self._ask(asked)
        found = await _read(answer)
        if isinstance(found, str):
            again = await self._ask(asked, prompts.answer_message(answer.text), prompts.repair(found))
            found = await _read(again)
        if isinstance(found, str):
            raise ExtractionFailed(
                f"{self.name} gave no answer that can be used, twice. {found}",
                hint="It is tried again later; another model may do better.",
                problem=found,
            )
        return found

    async def _ask(self, *messages: bytes) -> _ModelReply:
        """Return what the model says to some messages; a server that takes no schema is told it in words."""
        if self._takes_schema:
            try:
                return await self._patiently(self._request(*messages, schema=prompts.SCHEMA))
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
            instructions=prompts.instructions() if schema else prompts.instructions_with_schema(),
            input=messages,
            effort=self._effort() if schema else None,
            output_schema=schema,
            max_output_tokens=output_of(self._choice),
        )

    async def _patiently(self, request: Request) -> _ModelReply:
        """Send a request: again if its answer is cut off, and once more whenever a busy server has room again."""
        broken = waits = 0
        while True:
            heard = _ModelReply()
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
                self._settings.tell(f"waiting {error.retry_after:.0f} s, as {self.name} asks")
                await self._settings.sleep(error.retry_after or 0.0)
            else:
                return heard

    async def _has_time(self, wait: float | None) -> bool:
        """Say whether the limits leave time to wait that long."""
        left = await self._spending.seconds_left()
        return wait is not None and SHORT_WAIT < wait <= (LONGEST_WAIT if left is None else left)

    async def _once(self, request: Request, heard: _ModelReply) -> None:
        with anyio.move_on_after(self._settings.seconds) as scope:
            async with aclosing(self._model.stream(request)) as stream:
                async for event in stream:
                    heard.note(event)
                    if heard.size > model_answer.MAX_ANSWER:
                        break
        if scope.cancelled_caught:
            raise ExtractionFailed(
                f"{self.name} took longer than {self._settings.seconds:g} s for one request.",
                hint="It is tried again later. For a slow model, set `parallel` of its provider to 1.",
            )
        if heard.stop == "refused":
            raise ExtractionFailed(
                f"{self.name} refused to read this session: “{heard.text[:160]}”",
                hint="Another model may read it; `commonplace memory mode ID disabled` leaves it out.",
            )

    def _effort(self) -> str | None:
        efforts = self._choice.info.efforts
        return EFFORT if EFFORT in efforts else efforts[0] if efforts else None


class _ModelReply:
    """The reply to one request as far as it has come."""

    def __init__(self) -> None:
        self.stop: Stop | None = None
        self.size = 0
        self._said: list[str] = []
        self._pieces: list[str] = []

    def note(self, event: Event) -> None:
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


async def _read(reply: _ModelReply) -> Draft | str:
    """Return what an answer says, or what is wrong with it."""
    found = await anyio.to_thread.run_sync(model_answer.read, reply.text)
    if isinstance(found, str) and reply.stop in ("length", "paused"):
        return f"It broke off in the middle; be briefer. {found}"
    return found


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

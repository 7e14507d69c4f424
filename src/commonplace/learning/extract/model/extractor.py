"""The extractor that asks a model.

    view → pieces (labelled) → slices (70 % of the window) → one request each, one repair
         → draft lessons → trust (checked against the session) → merged → lessons

Each slice is one request at low effort, without tools, for a JSON object of a fixed schema. An answer that cannot be
used is sent back once with what is wrong with it; then the session has failed this time. A server that says that a
request is too long gets smaller slices from then on. Every request asks for leave first (`Spending`), and a session has
a time limit over all of them. Nothing that the model says is kept unless the session shows it (`trust`).
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Final

import anyio
import anyio.to_thread
import msgspec

from commonplace.context.tokens import approximate_tokens
from commonplace.errors import ContextTooLong, ExtractionFailed
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
from commonplace.models.base import Completed, Event, ItemDone, Model, Request, Stop, TextDelta
from commonplace.models.providers import Choice
from commonplace.protocol import items
from commonplace.state.outputs import Output

SECONDS: Final = 600.0
"""How long one session may take, with all its slices and repairs."""
EFFORT: Final = "low"
UNKNOWN_LIMIT: Final = 150_000
"""Tokens of a request to a model whose window nobody knows."""
LEAST_ROOM: Final = 1_000
"""Tokens of a session in one request; a server that does not take even these cannot be used."""
MAX_OUTPUT: Final = 16_000
"""Tokens of one answer, with what is thought before it."""


class ExtractorSettings(msgspec.Struct, frozen=True):
    """How a model is asked."""

    seconds: float = SECONDS
    limit: int | None = None
    """Tokens of one request; None: by the model's window."""


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

    async def extract(self, view: SessionView) -> Output:
        """Return what a session taught; empty texts if nothing.

        Raises:
            ExtractionFailed: no answer can be used, or it took too long.
            BudgetSpent: nothing more may be spent.
            ModelError: the model's server failed.
        """
        left = await self._spending.seconds_left()
        seconds = self._settings.seconds
        with anyio.move_on_after(seconds if left is None else min(seconds, left)) as scope:
            return await self._extract(view)
        assert scope.cancelled_caught
        if left is not None and left < seconds:
            raise self._spending.time_refusal()
        raise ExtractionFailed(
            f"{self.name} took longer than {self._settings.seconds:g} s for a session.",
            hint="It is tried again later.",
        )

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
        """Return what the model says to some messages."""
        wanted = Request(
            model=self._choice.slug,
            instructions=prompts.instructions(),
            input=messages,
            effort=self._effort(),
            output_schema=prompts.SCHEMA,
            max_output_tokens=output_of(self._choice),
        )
        heard = _ModelReply()
        async with aclosing(self._model.stream(wanted)) as stream:
            async for event in stream:
                heard.note(event)
                if heard.size > model_answer.MAX_ANSWER:
                    break
        if heard.stop == "refused":
            raise ExtractionFailed(f"{self.name} declined to read this session.", hint="Another model may do it.")
        return heard

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
    """Return how many tokens of a model's window a request may take: 70 % of what can be used of it."""
    if not choice.info.known or choice.info.window <= 0:
        return UNKNOWN_LIMIT
    return max(choice.info.window * 95 // 100 * 70 // 100, 1)


def output_of(choice: Choice) -> int | None:
    """Return how many tokens an answer may have; None for a model whose window nobody knows.

    Servers add this to the request and refuse what is more than the window, however short the answer would be.
    """
    if not choice.info.known or choice.info.window <= 0:
        return None
    return max(min(choice.info.max_output, MAX_OUTPUT, choice.info.window - limit_of(choice)), 1)

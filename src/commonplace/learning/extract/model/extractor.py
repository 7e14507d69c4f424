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

from collections.abc import Awaitable, Callable
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
from commonplace.learning.reading.session_view import SessionView, UserText
from commonplace.learning.structured_model import SECONDS, ModelReply, StructuredModel, StructuredTask, limit_of, silent
from commonplace.memory.files import lesson_text
from commonplace.models.base import Model
from commonplace.models.providers import Choice
from commonplace.state.outputs import Output

LEAST_ROOM: Final = 1_000
"""Tokens of a session in one request; a server that does not take even these cannot be used."""
_TASK: Final = StructuredTask(
    prompts.SCHEMA,
    prompts.instructions,
    prompts.instructions_with_schema,
    ExtractionFailed,
    "read this session",
    "Another model may read it; `commonplace memory mode ID disabled` leaves it out.",
)


class ExtractorSettings(msgspec.Struct, frozen=True):
    """How a model is asked."""

    seconds: float = SECONDS
    """How long one request may take; time in our own queue does not count."""
    limit: int | None = None
    """Tokens of one request; None: by the model's window."""
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    tell: Callable[[str], None] = silent
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
        self._settings = settings or ExtractorSettings()
        self._model = StructuredModel(
            model,
            choice,
            _TASK,
            self._spending,
            seconds=self._settings.seconds,
            sleep=self._settings.sleep,
            tell=self._settings.tell,
        )
        self._limit = self._settings.limit or limit_of(choice)

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
        answer = await self._model.ask(asked)
        found = await _read(answer)
        if isinstance(found, str):
            again = await self._model.ask(asked, prompts.answer_message(answer.text), prompts.repair(found))
            found = await _read(again)
        if isinstance(found, str):
            raise ExtractionFailed(
                f"{self.name} gave no answer that can be used, twice. {found}",
                hint="It is tried again later; another model may do better.",
                problem=found,
            )
        return found


async def _read(reply: ModelReply) -> Draft | str:
    """Return what an answer says, or what is wrong with it."""
    found = await anyio.to_thread.run_sync(model_answer.read, reply.text)
    if isinstance(found, str) and reply.stop in ("length", "paused"):
        return f"It broke off in the middle; be briefer. {found}"
    return found

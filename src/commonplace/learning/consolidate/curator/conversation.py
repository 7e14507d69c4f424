"""One conversation with the restricted agent, which runs like every session of this program, under limits.

The session is bare (`Profile.bare`): the model is told its instructions and the message, and nothing about the person,
the machine or any project; nothing is recorded, it has no memory (`IsolatedEnvironment`), and its tools are exactly
those of `CuratorTools`. Its model is watched: requests, tokens and the size of an answer have limits, and what went
wrong is kept as it was raised, since a turn only tells a sentence of it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from typing import Final

import anyio
import msgspec

from commonplace.agent import events, open_session, user_input
from commonplace.agent.profile import Profile
from commonplace.agent.session import Session
from commonplace.agent.session_environment import IsolatedEnvironment
from commonplace.agent.turn import run_turn
from commonplace.errors import CommonplaceError, ConsolidationFailed, ContextTooLong
from commonplace.learning.consolidate.curator import prompts
from commonplace.learning.consolidate.curator.limits import CuratorLimits
from commonplace.learning.consolidate.curator.tools import CuratorTools
from commonplace.learning.extract.model.extractor import output_of
from commonplace.learning.metered_model import size_of
from commonplace.models.base import Completed, Event, ItemDone, Model, ReasoningDelta, Request, Stop, TextDelta
from commonplace.models.providers import Choice

EFFORT: Final = "medium"
_LATER: Final = "It is tried again later."

Review = Callable[[], Awaitable[list[str]]]
"""Returns what is wrong with what was written."""


class LimitedModel:
    """A model under the limits of one conversation."""

    def __init__(self, model: Model, name: str, settings: CuratorLimits, max_output: int | None) -> None:
        self._model = model
        self._name = name
        self._settings = settings
        self._max_output = max_output
        self._requests = self._tokens = 0
        self.error: CommonplaceError | None = None
        """What went wrong last."""
        self.stop: Stop | None = None
        self.is_empty = True
        """The last answer held nothing."""

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """Send a request, if there may be one more; yield what comes back.

        Raises:
            ConsolidationFailed: a limit is passed, or the request does not fit the model.
            CommonplaceError: it may not be sent, or the model's server failed.
        """
        self.error, self.stop, self.is_empty = None, None, True
        try:
            self._count(request)
            wanted = msgspec.structs.replace(request, max_output_tokens=self._max_output)
            size = 0
            async with aclosing(self._model.stream(wanted)) as stream:
                async for event in stream:
                    size += self._seen(event)
                    if size > self._settings.answer_bytes:
                        raise self._over(f"an answer was longer than {self._settings.answer_bytes:,} bytes")
                    yield event
        except ContextTooLong as error:
            self.error = ConsolidationFailed(
                f"{self._name} has no room for a request: {error.message}", hint="Choose a model with a larger window."
            )
            raise self.error from error
        except CommonplaceError as error:
            self.error = error
            raise

    def _count(self, request: Request) -> None:
        self._requests += 1
        self._tokens += size_of(request)
        if self._requests > self._settings.requests:
            raise self._over(f"it asked for more than {self._settings.requests} answers")
        if self._tokens > self._settings.tokens:
            raise self._over(f"it was sent more than {self._settings.tokens:,} tokens")

    def _over(self, why: str) -> ConsolidationFailed:
        return ConsolidationFailed(f"{self._name} was stopped: {why}.", hint=_LATER)

    def _seen(self, event: Event) -> int:
        match event:
            case TextDelta() | ReasoningDelta():
                self.is_empty = self.is_empty and not event.text.strip()
                return len(event.text.encode("utf-8", "replace"))
            case ItemDone():
                self.is_empty = self.is_empty and b'_call"' not in event.item
                return len(event.item)
            case Completed():
                self.stop = event.stop
                return 0
            case _:
                return 0

    async def aclose(self) -> None:
        """Leave the connection open: it is not the conversation's."""


class ConversationSetup(msgspec.Struct):
    """The model, limits and clock of a conversation."""

    model: Model
    choice: Choice
    name: str
    settings: CuratorLimits
    now: Callable[[], datetime]


async def converse(
    setup: ConversationSetup, root: Path, tools: CuratorTools, message: str, review: Review
) -> list[str]:
    """Let a model work on what a message asks for, and once more on what is wrong with it; return what still is.

    Raises:
        ConsolidationFailed: it was stopped at a limit, or gave no answer.
        BudgetSpent: nothing more may be spent.
        ModelError: the model's server failed.
    """
    watched = LimitedModel(setup.model, setup.name, setup.settings, output_of(setup.choice))
    failure: CommonplaceError | None = None
    wrong: list[str] = []
    async with anyio.create_task_group() as tasks:
        alone = IsolatedEnvironment({}, setup.now)
        session = await open_session.start(_profile(setup, root), watched, alone, tasks, None, tools=tools.tools())
        tools.on_end = lambda why: _end(session, why)
        try:
            await _turn(session, watched, tools, message, setup.name)
            wrong = await review()
            if wrong:
                tools.begin_turn()
                await _turn(session, watched, tools, prompts.repair(wrong), setup.name)
                wrong = await review()
        except CommonplaceError as error:  # raised outside the group, so that it stays what it is
            failure = error
        finally:
            with anyio.CancelScope(shield=True):
                await session.close()
    if failure is not None:
        raise failure
    return wrong


def _profile(setup: ConversationSetup, root: Path) -> Profile:
    return Profile(
        cwd=root,
        home=root,
        choice=setup.choice,
        base=prompts.instructions(),
        bare=True,
        effort=EFFORT if EFFORT in setup.choice.info.efforts else None,
        summary=None,
        source="memory_consolidation",
        memory_mode="disabled",
        undo=False,
        pace=setup.settings.pace,
    )


def _end(session: Session, why: str) -> None:
    if session.turn is not None:
        session.turn.stop(why)


async def _turn(session: Session, watched: LimitedModel, tools: CuratorTools, message: str, name: str) -> None:
    end = await run_turn(session, user_input.text(message))
    if tools.problem is not None:
        raise ConsolidationFailed(f"{name} was stopped: {tools.problem}.", hint=_LATER)
    if isinstance(end, events.TurnFailed):
        raise watched.error or ConsolidationFailed(f"{name} failed: {end.error.message}", hint=end.error.hint)
    if tools.is_done:
        return
    if watched.stop == "refused":
        raise ConsolidationFailed(f"{name} declined to go over the memory.", hint="Another model may do it.")
    if watched.stop == "length" or watched.is_empty:
        what = "broke off in the middle" if watched.stop == "length" else "said nothing"
        raise ConsolidationFailed(f"{name} {what}.", hint=_LATER)

"""A thread with an agent, as the library and the surfaces have it: its turns, and their events as a stream.

    thread = await book.start(cwd=".", model="openai:gpt-5.4")
    async for event in thread.run("Why is the login test flaky?"):
        ...

A turn runs in a task of its own, so it goes on while nobody reads; leaving the stream early (`aclosing`) interrupts it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Unpack

import anyio
from anyio.abc import TaskGroup

from commonplace.agent import events, user_input
from commonplace.agent.approvals.requests import Decision
from commonplace.agent.profile import Profile
from commonplace.agent.session import Session
from commonplace.agent.subagents import delegates
from commonplace.agent.subagents.agent import AgentInfo, ThreadMaker, Tree
from commonplace.agent.subagents.delegates import Delegate
from commonplace.agent.turn import run_compaction, run_turn
from commonplace.agent.turn_changes import TurnChanges, changed
from commonplace.agent.undo import undo_turn
from commonplace.agent.user_input import Input, UserInput
from commonplace.context.usage import TokenInfo
from commonplace.errors import BadInput, CommonplaceError
from commonplace.memory.edits.mode import set_mode
from commonplace.models.base import Model
from commonplace.models.providers import connect, key_environment
from commonplace.protocol import citations, items, turns
from commonplace.rollout import decisions
from commonplace.sessions import index
from commonplace.state.home import Home


class Thread:
    """One thread with an agent.

    `session`, `profile`, `tree`, `join` and `close_alone` are for this program's own parts; they are not public and may
    change.
    """

    def __init__(self, home: Home, session: Session, tasks: TaskGroup) -> None:
        self._home = home
        self._tasks = tasks
        self._closed = False
        self._next: Profile | None = None
        self._speaker: Model | None = None
        """The model of the next turn, where it is another one."""
        self._tree: Tree | None = None
        self.session = session

    @property
    def profile(self) -> Profile:
        """How the next turn runs."""
        return self._next or self.session.profile

    @property
    def usage(self) -> TokenInfo | None:
        """The tokens that were used; None before the first answer."""
        return self.session.history.info

    @property
    def id(self) -> str:
        """The thread's id."""
        return self.session.thread_id

    @property
    def path(self) -> Path | None:
        """Its file; None if it leaves none."""
        return self.session.ledger.path

    def listen(self, listener: Callable[[events.Event], None]) -> Callable[[], None]:
        """Have every event passed to a function; return what ends that."""
        return self.session.listen(listener)

    async def turn(
        self, given: str | Input | UserInput, *, schema: Mapping[str, Any] | None = None, **changes: Unpack[TurnChanges]
    ) -> events.End:
        """Run a turn to its end, in this task; return how it ended. Changes hold from this turn on.

        Raises:
            BadInput: a turn is running, or the input or a change cannot be used.
            BadSetting: there is no such model.
        """
        wanted = user_input.read(given, schema)
        self._must_be_idle()
        self.change(**changes)
        end = await run_turn(self.session, wanted, await self._changed(), changed=self._changed)
        await self._mirror()
        return end

    def _must_be_idle(self) -> None:
        if self.session.turn is not None:
            raise BadInput("A turn is running.", hint="Steer it, queue the input, or interrupt it first.")

    def change(self, **changes: Unpack[TurnChanges]) -> None:
        """Change settings from the next turn on: model, mode, effort, personality, sandbox, approval, folder.

        Raises:
            BadInput, BadSetting: a value cannot be used; nothing is changed then.
        """
        if all(value is None for value in changes.values()):
            return
        profile = changed(self._home, self.profile, changes)
        if changes.get("model") is not None:
            self._speaker = connect(profile.choice, key_environment(self._home.environment))
        self._next = profile

    async def _changed(self) -> Profile | None:
        """Return the profile that the next turn begins with, if it is another one; its model takes over."""
        if self._next is None or self.session.turn is not None:
            return None
        profile, self._next = self._next, None
        if self._speaker is not None:
            speaker, self._speaker = self._speaker, None
            await self.session.change_model(speaker)
        return profile

    async def run(
        self, given: str | Input | UserInput, *, schema: Mapping[str, Any] | None = None, **changes: Unpack[TurnChanges]
    ) -> AsyncGenerator[events.Event]:
        """Run a turn and yield its events, the last of which tells how it ended. Changes hold from this turn on.

        Raises:
            BadInput: a turn is running, or the input or a change cannot be used.
            BadSetting: there is no such model.
        """
        wanted = user_input.read(given, schema)
        send, receive = anyio.create_memory_object_stream[events.Event](max_buffer_size=float("inf"))
        failed: list[CommonplaceError] = []
        running = left = False

        def hear(event: events.Event) -> None:
            with contextlib.suppress(anyio.BrokenResourceError):  # nobody reads any more; the turn goes to its end
                send.send_nowait(event)

        async def work() -> None:
            nonlocal running
            if left:
                return
            running = True
            stop = self.session.listen(hear)
            try:
                await self.turn(wanted, **changes)
            except CommonplaceError as error:
                failed.append(error)
            finally:
                running = False
                stop()
                send.close()

        self._tasks.start_soon(work)
        try:
            async for event in receive:
                yield event
        finally:
            left = True
            receive.close()
            if running:
                with anyio.CancelScope(shield=True):
                    await self.interrupt()
        if failed:
            raise failed[0]

    def steer(self, given: str | Input | UserInput, *, expected: str | None = None) -> str:
        """Say something to the running turn, before its next request; return the turn's id.

        Raises:
            BadInput: no turn is running, or it is not the one that is expected, or the input cannot be used.
        """
        return self.session.steer(user_input.read(given), expected)

    def queue(self, given: str | Input | UserInput) -> None:
        """Say something that is answered in a turn of its own, after the present one."""
        self.session.queue(user_input.read(given))

    async def interrupt(self) -> None:
        """End the running turn, and those of its sub-agents; what was said and done until then is recorded."""
        await self.session.interrupt()
        if self._tree is not None:
            await self._tree.interrupt_below(self.id)

    async def compact(self) -> events.End:
        """Shorten what the next request carries; the ledger keeps everything."""
        return await run_compaction(self.session)

    async def roll_back(self, turns: int = 1) -> None:
        """Take back the last turns; the ledger keeps them."""
        await self.session.roll_back(turns)

    def decide(self, request_id: str, decision: Decision) -> None:
        """Answer a question that the running turn or a sub-agent asked (raises BadInput: nobody asks it)."""
        if self._tree is None or self.session.approvals.is_open(request_id):
            self.session.decide(request_id, decision)
        elif not self._tree.decide(request_id, decision):
            raise BadInput(f"There is no open question {request_id!r}.", hint="Answer those that were asked.")

    # --- Its sub-agents.

    def join(self, tree: Tree) -> None:
        """Take a place in a tree of agents."""
        self._tree = tree

    @property
    def tree(self) -> Tree | None:
        """The tree of agents that it has a place in; None where agents are switched off."""
        return self._tree

    @property
    def agents(self) -> list[AgentInfo]:
        """Its sub-agents that were not closed, each before those that it started itself."""
        return [] if self._tree is None else self._tree.info(self.id)

    async def undo(self, *, redo: bool = False) -> dict[str, Any]:
        """Put the files back as they were before the last turn that changed some, or forward again.

        Raises:
            BadInput: a turn is running, or there is nothing to undo.
            UndoError: the snapshot is gone, or cannot be restored.
        """
        return await undo_turn.undo_open(self._home, self.session, redo=redo)

    @property
    def memory_mode(self) -> str:
        """Whether memory learns from the thread: `enabled` or `disabled`."""
        return decisions.modes(self._home.path).get(self.id, self.session.profile.memory_mode)

    async def set_memory(self, mode: str) -> None:
        """Decide whether memory learns from the thread (raises BadInput)."""
        if self.path is not None:
            await self.session.ledger.persist()
            await set_mode(self._home, self.id, mode)

    def last_words(self) -> tuple[str, str]:
        """Return what the person said last, and what the model said to it; empty where the history has none."""
        answer = ""
        for entry in reversed(self.session.history.entries):
            view = entry.view
            if not isinstance(view, items.Message):
                continue
            text = "\n".join(part.text for part in view.content if part.text)
            if turns.is_boundary(view):
                return text, answer
            if view.role == "assistant" and not answer:
                answer = citations.strip(text)[0]
        return "", ""

    def first_words(self) -> str:
        """Return what the person said first, as far as the history still has it."""
        views = (entry.view for entry in self.session.history.entries)
        first = next((view for view in views if isinstance(view, items.Message) and turns.is_boundary(view)), None)
        return "" if first is None else "\n".join(part.text for part in first.content if part.text)

    async def delegate(self, given: str | Input | UserInput, *, instructions: str | None = None) -> events.End:
        """Have another agent answer once, outside of this conversation; return how its turn ended.

        It works in the same folder with the same rights, knows nothing of what was said here, and can ask nobody.

        Raises:
            BadInput: the input cannot be used, or agents are switched off.
        """
        return await delegates.run_once(self._maker(), self, user_input.read(given), instructions)

    def open_delegate(self, *, instructions: str | None = None) -> AbstractAsyncContextManager[Delegate]:
        """Open another agent to talk to, outside of this conversation, for as long as the block lasts.

        Raises:
            BadInput: agents are switched off.
        """
        return delegates.opened(self._maker(), self, instructions)

    def _maker(self) -> ThreadMaker:
        if self._tree is None:
            raise BadInput("Agents are switched off.", hint="Set agents.enabled to true.")
        return self._tree.maker

    async def close(self) -> None:
        """End it: a running turn is interrupted, sub-agents and commands are ended, everything is written."""
        await self.session.interrupt()
        if self._tree is not None:
            await self._tree.give_up(self.id)
        await self.close_alone()

    async def close_alone(self) -> None:
        """End it, and none of its sub-agents."""
        if not self._closed:
            self._closed = True
            if self._speaker is not None:
                await self._speaker.aclose()
            await self.session.close()

    async def _mirror(self) -> None:
        """Bring the thread's row in the index up to date; if that fails, the next listing finds it."""
        if self.path is not None:
            await index.touch(self._home, self.path)

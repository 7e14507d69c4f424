"""A conversation: an input becomes a turn, text for the running turn, an answer to a question, or a command.

Words typed while the agent works are told to it before its next request; `/queue` keeps them for a turn of their own.
What a stopped turn did not take in comes back into the line. One question is asked at a time. Leaving, however it
happens, ends the running turn first, so that it is recorded.
"""

from __future__ import annotations

import contextlib
import signal
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup

from commonplace.agent import events
from commonplace.agent.approvals.requests import Decision
from commonplace.errors import BadInput, CommonplaceError
from commonplace.surfaces.cli import output
from commonplace.surfaces.cli.chat import commands, questions
from commonplace.surfaces.cli.chat.event_view import EventView
from commonplace.surfaces.cli.chat.questions import ChatQuestion
from commonplace.surfaces.cli.chat.screen import Screen

if TYPE_CHECKING:
    from commonplace.agent.subagents.agent import Agent
    from commonplace.agent.thread import Thread
    from commonplace.app.book import Book

_WORKING = "working · Ctrl-C stops it · what you type is told to it"
_COMPACTING = "shortening the history · Ctrl-C stops it"


class Conversation:
    """One conversation, in one thread at a time."""

    def __init__(self, book: Book, thread: Thread, wishes: dict[str, Any], screen: Screen) -> None:
        self.book = book
        self.thread = thread
        self.wishes = wishes
        self.screen = screen
        self.shown = EventView(screen)
        self.is_busy = False
        """A turn runs, or is about to."""
        self._questions: deque[ChatQuestion] = deque()
        self._later: deque[str] = deque()
        """What is said when the present turn has ended."""
        self._reported: set[str] = set()
        """Sub-agents of which the person was told that they have stopped."""
        self._tasks: TaskGroup | None = None
        self._send, self._typed = anyio.create_memory_object_stream[str](max_buffer_size=float("inf"))
        self._deaf = self._attend(thread)

    def _attend(self, thread: Thread) -> Callable[[], None]:
        """Listen to a thread and its sub-agents; return what ends that."""
        stops = [thread.listen(self._hear)]
        if thread.tree is not None:
            self._reported = {agent.thread_id for agent in thread.agents if agent.status.kind != "running"}
            stops.append(thread.tree.listen(self._agent_changed))

        def stop() -> None:
            for each in stops:
                each()

        return stop

    async def run(self) -> None:
        """Run the conversation until the person leaves."""
        commands.greet(self)
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._signals)
                tasks.start_soon(self._listen)
                try:
                    await self.screen.run(self)
                finally:
                    with anyio.CancelScope(shield=True):
                        await self.thread.interrupt()
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self.thread.close()
            self._typed.close()
            self._send.close()
        commands.part(self)

    async def _signals(self) -> None:
        """Leave when we are asked to end, or when the terminal went away."""
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGHUP) as signals:
            async for _ in signals:
                self.screen.leave(was_left=False)

    async def _listen(self) -> None:
        async for text in self._typed:
            try:
                await self._take(text)
            except CommonplaceError as error:
                self.screen.warn(error.sentence())
            except OSError as error:
                self.screen.warn(f"{error.filename or ''} {error.strerror or error}".strip())

    async def _take(self, text: str) -> None:
        if (found := commands.parse(text)) is not None:
            self.shown.show_input(text.strip(), "note")
            await commands.run(self, *found)
        else:
            self.tell(text)

    # --- What the screen asks for.

    @property
    def is_asked(self) -> bool:
        """Whether what is typed is an answer."""
        return bool(self._questions)

    def say(self, text: str) -> bool:
        """Take what was typed; say whether it was taken."""
        if self._questions:
            answer = self._questions[0].take(text)
            if answer is None:
                self.screen.warn(f"Answer first: {self._questions[0].hint}.")
                return False
            self._answered(answer)
        else:
            self._send.send_nowait(text)
        return True

    def enter(self, text: str) -> None:
        """Take something as if it had been typed, whatever is asked."""
        self._send.send_nowait(text)

    def escape(self) -> None:
        """Give up on what is asked."""
        if self._questions:
            self._answered(self._questions[0].give_up())

    def stop(self) -> None:
        """End the running turn; without one, say how to leave."""
        works = self.is_busy or any(agent.status.kind == "running" for agent in self.thread.agents)
        if works and self._tasks is not None:
            self._tasks.start_soon(self.thread.interrupt)
        elif self._questions:
            self.escape()
        else:
            self.screen.say("Ctrl-D or /quit leaves.", "dim")

    def live(self, width: int) -> list[str]:
        """Return the lines that still change."""
        return self.shown.live(width)

    def mark(self) -> str:
        """Return what stands before the line."""
        if self._questions:
            return "answer › "
        return "plan › " if self.thread.profile.mode == "plan" else "› "

    # --- Turns.

    def tell(self, words: str, *, later: bool = False) -> None:
        """Say something: a turn begins, or the running one is told before its next request or after its end."""
        if not self.is_busy:
            self._begin(words)
            return
        try:
            if later:
                self._later.append(words)
            else:
                self.thread.steer(words)
        except BadInput as error:
            if error.data.get("reason") is None:
                raise
            self._later.append(words)  # it only compacts, or has just ended
        self.shown.waiting.append(words)
        self.shown.changed()

    def _begin(self, words: str) -> None:
        assert self._tasks is not None, "only while it runs"
        self._set_busy(_WORKING)
        self._tasks.start_soon(self._turn, words)

    async def _turn(self, words: str) -> None:
        try:
            self.shown.echo(words)
            end = await self.thread.turn(words)
            self._ended(isinstance(end, events.TurnAborted))
        except CommonplaceError as error:
            self.screen.warn(error.sentence())
            self._ended(stopped=True)

    def _ended(self, stopped: bool) -> None:
        """Go on with what was kept for later; after a stop it goes back into the line."""
        self._set_busy("")
        if stopped:
            self._later.clear()
            left, self.shown.waiting = self.shown.waiting, []
            self.screen.put_back(*left)
        elif self._later:
            words = self._later.popleft()
            self.shown.waiting.remove(words)
            self._begin(words)
        self.shown.changed()

    def compact(self) -> None:
        """Shorten the history, while the person may go on typing."""
        assert self._tasks is not None, "only while it runs"
        self._set_busy(_COMPACTING)
        self._tasks.start_soon(self._compact)

    async def _compact(self) -> None:
        try:
            end = await self.thread.compact()
            self._ended(isinstance(end, events.TurnAborted))
        except CommonplaceError as error:
            self.screen.warn(error.sentence())
            self._ended(stopped=True)

    def _set_busy(self, status: str) -> None:
        self.is_busy = bool(status)
        self.shown.status = status
        self.shown.changed()

    async def go_on_in(self, thread: Thread) -> None:
        """Continue the conversation in another thread."""
        old, self.thread = self.thread, thread
        self._deaf()
        self._deaf = self._attend(thread)
        await old.close()

    # --- Questions.

    def ask(self, question: ChatQuestion) -> None:
        """Ask something, after what is asked already."""
        self._questions.append(question)
        if len(self._questions) == 1:
            self._put(question)

    def _put(self, question: ChatQuestion) -> None:
        self.screen.set_aside()
        self.screen.say(question.text, "bold", "question", wraps=False, opens=True)
        self.shown.status = question.hint
        self.shown.changed()

    def _answered(self, answer: str) -> None:
        self._questions.popleft()
        self.screen.say(f"  → {output.one_line(answer, 60)}", "dim", "question")
        if self._questions:
            self._put(self._questions[0])
            return
        self.screen.put_back()
        self._set_status()

    def _set_status(self) -> None:
        self.shown.status = _WORKING if self.is_busy else ""
        self.shown.changed()

    def _hear(self, event: events.Event) -> None:
        """Show what happens; runs inside the turn, so it neither waits nor fails."""
        self.shown.take(event)
        if isinstance(event, events.Asked):
            agent = None if event.thread_id == self.thread.id else self._agent_name(event.thread_id)
            folder, decide = self.thread.session.profile.cwd, self._decider(event.request_id)
            self.ask(questions.consent(event, folder, decide, agent))
        elif isinstance(event, events.TurnCompleted | events.TurnFailed | events.TurnAborted):
            self._drop_questions("", self.thread.id)

    def _agent_name(self, thread_id: str) -> str:
        """Return what a sub-agent is called."""
        names = {agent.thread_id: agent.nickname for agent in self.thread.agents}
        return names.get(thread_id) or f"agent {thread_id[-6:]}"

    def _agent_changed(self, agent: Agent) -> None:
        """Tell the person once that a sub-agent has stopped; nobody waits for answers to it any more."""
        if agent.status.kind == "running":
            self._reported.discard(agent.thread_id)
            return
        self._drop_questions(agent.thread_id)
        is_over = agent.status.is_final or agent.status.kind == "interrupted"
        if is_over and agent.thread is not None and agent.thread_id not in self._reported:
            self._reported.add(agent.thread_id)
            self.screen.say(commands.agent_line(agent), "dim", "tool")

    def _drop_questions(self, *thread_ids: str) -> None:
        """Ask no more what the turns of some threads asked, which have ended."""
        left = [each for each in self._questions if each.thread_id not in thread_ids]
        if len(left) == len(self._questions):
            return
        shown, self._questions = self._questions[0], deque(left)
        if not left:
            self.screen.put_back()
            self._set_status()
        elif left[0] is not shown:
            self._put(left[0])

    def _decider(self, request_id: str) -> Callable[[Decision], None]:
        thread = self.thread

        def decide(decision: Decision) -> None:
            with contextlib.suppress(BadInput):  # the turn that asked has just ended
                thread.decide(request_id, decision)

        return decide

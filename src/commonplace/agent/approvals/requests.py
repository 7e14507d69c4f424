"""Questions to a person: asked as events with an id, answered by that id, so that any surface can answer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Final, Literal

import anyio

from commonplace.agent import events
from commonplace.agent.approvals import harmless_commands
from commonplace.agent.approvals.harmless_commands import Prefix
from commonplace.agent.tools.registry import Action
from commonplace.errors import BadInput

Decision = Literal["approved", "approved_for_session", "approved_always", "denied", "abort"]
GRANTED: Final = ("approved", "approved_for_session", "approved_always")


class ApprovalRequests:
    """The open questions of one session, and what was allowed in it.

    Invariants: a question is answered once; a command that was allowed for the session is not asked about again; a
    change of files is asked about every time.
    """

    def __init__(self, publish: Callable[[events.Event], None], thread_id: str, allowed: Iterable[Prefix] = ()) -> None:
        self._publish = publish
        self._thread_id = thread_id
        self._numbers = itertools.count(1)
        self._open: dict[str, tuple[anyio.Event, list[Decision]]] = {}
        self._commands: set[tuple[str, ...]] = set()
        self._prefixes: set[Prefix] = set(allowed)

    @property
    def prefixes(self) -> frozenset[Prefix]:
        """The first words of commands that may run without asking."""
        return frozenset(self._prefixes)

    async def ask(self, turn_id: str, action: Action, problem: str | None = None) -> Decision:
        """Ask whether an action may be done, unless it was allowed for the session; return the answer."""
        if action.kind != "change" and action.command in self._commands:
            return "approved"
        request_id = f"{turn_id}:{next(self._numbers)}"
        answered, answers = anyio.Event(), list[Decision]()
        self._open[request_id] = (answered, answers)
        question = events.Asked(
            turn_id=turn_id,
            request_id=request_id,
            thread_id=self._thread_id,
            kind=action.kind,
            command=action.command,
            paths=action.paths,
            cwd=str(action.cwd),
            reason=action.reason,
            problem=problem,
            prefixes=harmless_commands.prefixes_of(action.command) if action.kind == "run" else (),
            item_id=action.call_id,
        )
        try:
            self._publish(question)
            await answered.wait()
        finally:
            del self._open[request_id]
        self._remember(answers[0], action)
        return answers[0]

    def _remember(self, decision: Decision, action: Action) -> None:
        if action.kind == "change" or decision not in ("approved_for_session", "approved_always"):
            return
        self._commands.add(action.command)
        if decision == "approved_always":
            self._prefixes.update(harmless_commands.prefixes_of(action.command))

    def decide(self, request_id: str, decision: Decision) -> None:
        """Answer a question (raises BadInput: nobody asked it, or it is answered)."""
        question = self._open.get(request_id)
        if question is None or question[0].is_set():
            raise BadInput(f"There is no open question {request_id!r}.", hint="Answer those that were asked.")
        question[1].append(decision)
        question[0].set()

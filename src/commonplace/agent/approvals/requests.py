"""Questions to a person: asked as events with an id, answered by that id, so that any surface can answer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Literal

import anyio

from commonplace.agent import events
from commonplace.agent.approvals.harmless_commands import Prefix
from commonplace.agent.tools.registry import Action
from commonplace.errors import BadInput

Decision = Literal["approved", "approved_for_session", "approved_always", "denied", "abort"]
_SessionKey = tuple[tuple[str, ...], Path, tuple[str, ...]]
"""A command, its folder, and the programs that its names mean."""
GRANTED: Final = ("approved", "approved_for_session", "approved_always")


class ApprovalRequests:
    """The open questions of one session, and what was allowed in it.

    Invariants: a question is answered once; a command that was allowed for the session is not asked about again, in the
    same folder and as long as its names mean the same programs; a change of files is asked about every time.
    """

    def __init__(
        self,
        publish: Callable[[events.Event], None],
        thread_id: str,
        allowed: Iterable[Prefix] = (),
        folder: Path | None = None,
    ) -> None:
        self._publish = publish
        self._thread_id = thread_id
        self._numbers = itertools.count(1)
        self._open: dict[str, tuple[anyio.Event, list[Decision]]] = {}
        self._commands: set[_SessionKey] = set()
        self._prefixes: dict[Path | None, set[Prefix]] = {folder: set(allowed)}

    def prefixes(self, folder: Path) -> frozenset[Prefix]:
        """Return the commands that may run without asking in a folder."""
        return frozenset(self._prefixes.get(folder, ()))

    def allow(self, folder: Path, prefixes: Iterable[Prefix]) -> None:
        """Let commands run without asking in a folder."""
        self._prefixes.setdefault(folder, set()).update(prefixes)

    async def ask(
        self,
        turn_id: str,
        action: Action,
        problem: str | None = None,
        *,
        programs: tuple[str, ...] = (),
        prefixes: tuple[Prefix, ...] = (),
    ) -> Decision:
        """Ask whether an action may be done, unless it was allowed for the session; return the answer.

        `programs` are the paths of the programs that a command starts, `prefixes` what may be remembered of it.
        """
        key = (action.command, action.cwd, programs)
        if action.kind != "change" and key in self._commands:
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
            programs=programs,
            prefixes=prefixes,
            item_id=action.call_id,
        )
        try:
            self._publish(question)
            await answered.wait()
        finally:
            del self._open[request_id]
        if action.kind != "change" and answers[0] in ("approved_for_session", "approved_always"):
            self._commands.add(key)
            if answers[0] == "approved_always":
                self.allow(action.cwd, prefixes)
        return answers[0]

    def is_open(self, request_id: str) -> bool:
        """Return whether a question waits for an answer."""
        return request_id in self._open

    def decide(self, request_id: str, decision: Decision) -> None:
        """Answer a question (raises BadInput: nobody asked it, or it is answered)."""
        question = self._open.get(request_id)
        if question is None or question[0].is_set():
            raise BadInput(f"There is no open question {request_id!r}.", hint="Answer those that were asked.")
        question[1].append(decision)
        question[0].set()

"""Consent: what may be done without asking, what is refused, and questions that somebody answers.

    what is to be done                          untrusted    on-request     never
    a command that only looks                   confined     confined       confined
    any other command                           ask          confined       confined
    a command that asks to run unconfined       ask          ask            refused
    a command that cannot be confined here      ask          ask            refused
    a change inside the workspace               go           go             go
    a change elsewhere, or to what is guarded   ask          ask            refused
    a server's tool that may change something   ask          go             go

With full access nothing is asked and nothing is confined. What a person allowed runs unconfined: they saw it. A
question goes out as an event with an id; whoever listens answers by that id, so any surface can be asked.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from typing import Final, Literal

import anyio
import msgspec

from commonplace.agent import events, harmless
from commonplace.agent.harmless import Prefix
from commonplace.agent.profile import Profile
from commonplace.agent.tools.registry import Action
from commonplace.errors import BadInput

Decision = Literal["approved", "approved_for_session", "approved_always", "denied", "abort"]
GRANTED: Final = ("approved", "approved_for_session", "approved_always")
Verdict = Literal["confined", "free", "ask"]
_NOBODY: Final = "nobody can be asked for consent in this session"


class Refused(Exception):
    """An action may not be done, and nobody can be asked."""


def judge(profile: Profile, action: Action, problem: str | None, allowed: Collection[Prefix] = ()) -> Verdict:
    """Say what is to be done about an action; `problem` is why it cannot be confined, or why a file is guarded.

    Raises:
        Refused: it may not be done.
    """
    if profile.sandbox == "danger-full-access":
        return "free"
    if action.kind == "call":
        return "ask" if profile.approval == "untrusted" and not action.read_only else "free"
    if action.kind == "run" and not action.escalated and problem is None:
        trusted = profile.approval != "untrusted" or harmless.is_harmless(action.command)
        if trusted:
            return "confined"
    if action.kind == "change" and problem is None:
        return "free"
    if action.kind == "run" and harmless.is_allowed(action.command, allowed):
        return "free"
    if profile.approval == "never":
        why = problem or "it asks to run without the sandbox"
        raise Refused(f"{why}; {_NOBODY}. The person can allow it with --sandbox danger-full-access.")
    return "ask"


class Approvals:
    """The questions of one session, and what was allowed in it; those of a child reach its parent's listeners too."""

    def __init__(self, tell: Callable[[events.Event], None], thread_id: str = "") -> None:
        self._tell = tell
        self._thread_id = thread_id
        self.parent: tuple[Approvals, str] | None = None
        self._children: dict[str, Approvals] = {}
        """Whose the open questions are that were passed on to us."""
        self._numbers = itertools.count(1)
        self._open: dict[str, tuple[anyio.Event, list[Decision]]] = {}
        self._commands: set[tuple[str, ...]] = set()
        self.prefixes: set[Prefix] = set()
        """The first words of commands that may run without asking."""

    async def decision(self, turn_id: str, action: Action, problem: str | None = None) -> Decision:
        """Ask, and return the answer; what was allowed for the session is not asked about again."""
        if action.kind != "change" and action.command in self._commands:
            return "approved"
        request_id = f"{turn_id}:{next(self._numbers)}"
        answered, given = anyio.Event(), list[Decision]()
        self._open[request_id] = (answered, given)
        asked = events.Asked(
            turn_id=turn_id,
            request_id=request_id,
            thread_id=self._thread_id,
            kind=action.kind,
            command=action.command,
            paths=action.paths,
            cwd=str(action.cwd),
            reason=action.reason,
            problem=problem,
            prefixes=harmless.prefixes_of(action.command) if action.kind == "run" else (),
            item_id=action.call_id,
        )
        try:
            self.ask(asked)
            await answered.wait()
        finally:
            del self._open[request_id]
            self.settle(request_id)
        self._remember(given[0], action)
        return given[0]

    def adopt(self, child: Approvals, name: str) -> None:
        """Have a child's questions reach our listeners as well, under its name; an answer to us goes back to it."""
        child.parent = (self, name)

    def ask(self, asked: events.Asked, child: Approvals | None = None) -> None:
        """Tell a question, our own or one that a child passes on."""
        if child is not None:
            self._children[asked.request_id] = child
        self._tell(asked)
        if self.parent is not None:
            above, name = self.parent
            path = name if asked.agent is None else f"{name}/{asked.agent}"
            above.ask(msgspec.structs.replace(asked, agent=path), self)

    def settle(self, request_id: str) -> None:
        """Forget a question that was answered, or is no longer asked."""
        self._children.pop(request_id, None)
        if self.parent is not None:
            self.parent[0].settle(request_id)

    def _remember(self, decision: Decision, action: Action) -> None:
        if action.kind == "change" or decision not in ("approved_for_session", "approved_always"):
            return
        self._commands.add(action.command)
        if decision == "approved_always":
            self.prefixes.update(harmless.prefixes_of(action.command))

    def decide(self, request_id: str, decision: Decision) -> None:
        """Answer a question (raises BadInput: nobody asked it, or it is answered)."""
        if request_id in self._children:
            self._children[request_id].decide(request_id, decision)
            return
        found = self._open.get(request_id)
        if found is None or found[0].is_set():
            raise BadInput(f"There is no open question {request_id!r}.", hint="Answer those that were asked.")
        found[1].append(decision)
        found[0].set()

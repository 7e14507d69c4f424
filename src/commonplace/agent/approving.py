"""Consent: what may be done without asking, what is refused, and questions that somebody answers.

A question goes out as an event with an id; whoever listens answers by that id. So any surface can be asked, and a
session does not know which. Nobody who listens means nobody who answers: then policy `never` is the right one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final, Literal

import anyio

from commonplace.agent import events
from commonplace.agent.profile import Profile
from commonplace.agent.tools.registry import Action
from commonplace.errors import BadInput

Decision = Literal["approved", "approved_for_session", "denied", "abort"]
Verdict = Literal["go", "ask"] | str
"""`go`, `ask`, or else the reason why not."""
_NOBODY: Final = (
    "commands are not confined here and nobody can be asked for consent; the person can allow them with "
    "--sandbox danger-full-access"
)


def judge(profile: Profile, action: Action) -> Verdict:
    """Say what is to be done about an action."""
    if profile.sandbox == "danger-full-access":
        return "go"
    if action.kind == "change" and profile.sandbox == "workspace-write":
        return "go"  # `files.place_of` lets a patch reach nothing but the workspace
    if profile.approval == "never":
        return _NOBODY if action.kind == "run" else "changes to files are not allowed in this session"
    return "ask"


class Approvals:
    """The questions of one session."""

    def __init__(self, tell: Callable[[events.Event], None]) -> None:
        self._tell = tell
        self._numbers = itertools.count(1)
        self._open: dict[str, tuple[anyio.Event, list[Decision]]] = {}
        self._allowed: set[tuple[str, ...]] = set()

    async def decision(self, turn_id: str, action: Action) -> Decision:
        """Ask, and return the answer; commands that were allowed for the session are not asked about again."""
        if action.kind == "run" and action.command in self._allowed:
            return "approved"
        request_id = f"{turn_id}:{next(self._numbers)}"
        answered, given = anyio.Event(), list[Decision]()
        self._open[request_id] = (answered, given)
        try:
            self._tell(
                events.Asked(
                    turn_id=turn_id,
                    request_id=request_id,
                    kind=action.kind,
                    command=action.command,
                    paths=action.paths,
                    cwd=str(action.cwd),
                    reason=action.reason,
                    item_id=action.call_id,
                )
            )
            await answered.wait()
        finally:
            del self._open[request_id]
        if given[0] == "approved_for_session" and action.kind == "run":
            self._allowed.add(action.command)
        return given[0]

    def decide(self, request_id: str, decision: Decision) -> None:
        """Answer a question (raises BadInput: nobody asked it, or it is answered)."""
        found = self._open.get(request_id)
        if found is None or found[0].is_set():
            raise BadInput(f"There is no open question {request_id!r}.", hint="Answer those that were asked.")
        found[1].append(decision)
        found[0].set()

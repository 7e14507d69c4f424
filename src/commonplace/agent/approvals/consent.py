"""Consent to one call: its action is judged, asked about, confined, and the working tree is stored before it."""

from __future__ import annotations

from typing import Final

from commonplace.agent.approvals.harmless_commands import is_harmless
from commonplace.agent.approvals.policy import ActionRefused, judge
from commonplace.agent.approvals.requests import GRANTED
from commonplace.agent.session import Session
from commonplace.agent.tools.processes import Launch
from commonplace.agent.tools.registry import Action
from commonplace.agent.turn_state import TurnState
from commonplace.errors import CommonplaceError

_DENIED: Final = "the person did not allow it"
_NOBODY: Final = "a hook wants a person to be asked, and nobody can be asked in this session"


class Consent:
    """What may be done with one call of a turn."""

    def __init__(self, session: Session, turn: TurnState, *, must_ask: bool = False) -> None:
        self._session = session
        self._turn = turn
        self._must_ask = must_ask
        """A hook wants a person to be asked."""
        self._is_confined = False

    async def check(self, action: Action) -> str | None:
        """Return why an action may not be done; None: it may, and a snapshot was taken if it may change something."""
        session, profile = self._session, self._turn.profile
        problem = await session.sandbox.problem(profile, action)
        try:
            verdict = judge(profile, action, problem, session.approvals.prefixes)
        except ActionRefused as refused:
            return str(refused)
        if verdict == "ask" or self._must_ask:
            if (why := await self.ask(action, problem)) is not None:
                return why
            verdict = "free" if verdict == "ask" else verdict
        self._is_confined = verdict == "confined"
        is_reading = is_harmless(action.command) if action.kind == "run" else action.read_only
        if not is_reading:
            await session.snapshots.take(self._turn)
        return None

    async def ask(self, action: Action, problem: str | None = None) -> str | None:
        """Ask a person; return why the action may not be done, if they do not allow it or nobody can be asked."""
        session, profile = self._session, self._turn.profile
        if profile.approval == "never":  # only a hook asks then, and its question would wait for ever
            return _NOBODY
        decision = await session.approvals.ask(self._turn.id, action, problem)
        if decision == "abort":
            self._turn.interrupt()
        if decision not in GRANTED:
            return _DENIED
        if decision == "approved_always":
            try:
                await session.environment.allow(profile.cwd, session.approvals.prefixes)
            except (CommonplaceError, OSError) as error:
                session.ledger.warn(f"What was allowed counts for this session only: {error}")
        return None

    def confine(self, launch: Launch) -> Launch:
        """Return what is started for a command that was checked (raises ToolError: it cannot be confined)."""
        return self._session.sandbox.confine(self._turn.profile, launch) if self._is_confined else launch

"""One action on its way to being done: judged, asked about, confined, and what it may change kept before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio.to_thread

from commonplace.agent import snapshots
from commonplace.agent.approving import GRANTED, Refused, judge
from commonplace.agent.harmless import is_harmless
from commonplace.agent.tools.registry import Action
from commonplace.errors import CommonplaceError

if TYPE_CHECKING:
    from commonplace.agent.current import Turn
    from commonplace.agent.sandbox import Level, Policy
    from commonplace.agent.session import Session
    from commonplace.agent.tools.processes import Launch

_DENIED: Final = "the person did not allow it"
_NOBODY: Final = "a hook wants a person to be asked, and nobody can be asked in this session"


class Consent:
    """What may be done with one call."""

    def __init__(self, session: Session, turn: Turn, *, must_ask: bool = False) -> None:
        self._session = session
        self._turn = turn
        self._must_ask = must_ask
        """A hook wants a person to be asked."""
        self._confined: tuple[Policy, Level] | None = None

    async def wanted(self, action: Action) -> str | None:
        """Return why an action may not be done, or None: it may, and the working tree was kept."""
        session = self._session
        problem = await self._problem(action)
        try:
            verdict = judge(session.profile, action, problem, session.approvals.prefixes)
        except Refused as refused:
            return str(refused)
        if verdict == "ask" or self._must_ask:
            if (why := await self.asked(action, problem)) is not None:
                return why
            verdict = "free" if verdict == "ask" else verdict
        if verdict != "confined":
            self._confined = None
        only_looks = is_harmless(action.command) if action.kind == "run" else action.read_only
        if not only_looks:
            await snapshots.keep(session, self._turn)
        return None

    async def asked(self, action: Action, problem: str | None = None) -> str | None:
        """Ask a person; return why not, if they do not allow it or nobody can be asked."""
        session = self._session
        if session.profile.approval == "never":  # only a hook asks then, and its question would wait for ever
            return _NOBODY
        decision = await session.approvals.decision(self._turn.id, action, problem)
        if decision == "abort":
            self._turn.interrupt()
        if decision not in GRANTED:
            return _DENIED
        if decision == "approved_always":
            try:
                await session.outside.allow(session.profile.cwd, session.approvals.prefixes)
            except (CommonplaceError, OSError) as error:
                session.warn(f"What was allowed counts for this session only: {error}")
        return None

    async def _problem(self, action: Action) -> str | None:
        """Return why a command cannot be confined, or a file is guarded."""
        if self._session.profile.sandbox == "danger-full-access" or action.kind == "call":
            return None
        from commonplace.agent import sandbox

        policy = self._session.policy
        if action.kind == "change":
            reasons = (sandbox.unchangeable(policy, Path(path)) for path in action.paths)
            return next((reason for reason in reasons if reason is not None), None)
        level = await anyio.to_thread.run_sync(sandbox.level)
        self._session.level = level
        self._confined = (policy, level)
        return sandbox.unmet(policy, level)

    def confine(self, launch: Launch) -> Launch:
        """Return what is started for a command (raises ToolError: it cannot be confined)."""
        if self._confined is None:
            return launch
        from commonplace.agent import sandbox

        return sandbox.confine(launch, *self._confined)

"""Consent to one call: its action is judged, asked about, confined, and the working tree is stored before it."""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.agent.approvals import git_repositories, harmless_commands
from commonplace.agent.approvals.policy import ActionRefused, judge
from commonplace.agent.approvals.requests import GRANTED
from commonplace.agent.approvals.workplace import Workplace
from commonplace.agent.session import Session
from commonplace.agent.tools.processes import Launch
from commonplace.agent.tools.registry import Action
from commonplace.agent.turn_state import TurnState
from commonplace.errors import CommonplaceError

_DENIED: Final = "the person did not allow it"
_CHANGED: Final = "another program has taken the place of the one that the person was shown"
_NOBODY: Final = "a hook wants a person to be asked, and nobody can be asked in this session"


class Consent:
    """What may be done with one call of a turn."""

    def __init__(self, session: Session, turn: TurnState, *, must_ask: bool = False) -> None:
        self._session = session
        self._turn = turn
        self._must_ask = must_ask
        """A hook wants a person to be asked."""
        self._is_confined = False
        self._is_remembered = False
        """It runs unconfined, and nobody was asked: a person allowed it before."""
        profile = turn.profile
        self._place = Workplace(profile.cwd, (profile.cwd, *profile.roots), session.environment.variables)

    async def check(self, action: Action) -> str | None:
        """Return why an action may not be done; None: it may, and a snapshot was taken if it may change something."""
        session, profile = self._session, self._turn.profile
        self.warn_of_planted()
        problem = await session.sandbox.problem(profile, action)
        is_harmless = action.kind == "run" and harmless_commands.is_harmless(action.command, action.cwd, self._place)
        is_allowed = action.kind == "run" and harmless_commands.is_allowed(
            action.command, action.cwd, self._place, session.approvals.prefixes(self._place.folder)
        )
        try:
            verdict = judge(profile, action, problem, is_harmless=is_harmless, is_allowed=is_allowed)
        except ActionRefused as refused:
            return str(refused)
        if verdict == "ask" or self._must_ask:
            if (why := await self.ask(action, problem)) is not None:
                return why
            verdict = "free" if verdict == "ask" else verdict
        else:
            self._is_remembered = is_allowed and verdict == "free"
        self._is_confined = verdict == "confined"
        if action.kind == "run" and not is_harmless and (warning := await session.sandbox.hard_links(profile)):
            session.ledger.warn(warning)
        if not (is_harmless or action.read_only):
            await session.snapshots.take(self._turn)
        return None

    def warn_of_planted(self) -> None:
        """Tell a person of repositories that git would find where a command can put one."""
        temporary = self._session.sandbox.policy(self._turn.profile).temporary()
        for warning in git_repositories.planted_warnings(self._place.roots, tuple(dict.fromkeys(temporary))):
            self._session.warn_once(warning)

    async def ask(self, action: Action, problem: str | None = None) -> str | None:
        """Ask a person; return why the action may not be done, if they do not allow it or nobody can be asked."""
        session, profile = self._session, self._turn.profile
        if not profile.asks(action.kind):  # only a hook asks then, and its question would wait for ever
            return _NOBODY
        programs, prefixes = self._programs(action), self._prefixes(action)
        decision = await session.approvals.ask(self._turn.id, action, problem, programs=programs, prefixes=prefixes)
        if decision == "abort":
            self._turn.interrupt()
        if decision not in GRANTED:
            return _DENIED
        if programs != self._programs(action):  # while the person read the question
            return _CHANGED
        if decision == "approved_always":
            try:
                await session.environment.allow(profile.cwd, prefixes)
            except (CommonplaceError, OSError) as error:
                session.ledger.warn(f"What was allowed counts for this session only: {error}")
        return None

    def confine(self, launch: Launch) -> Launch:
        """Return what is started for a command that was checked (raises ToolError: it cannot be confined)."""
        if self._is_remembered:  # its programs, and those that they start, come from where no model can put any
            environment = {**launch.environment, "PATH": self._place.trusted_path()}
            return msgspec.structs.replace(launch, environment=environment)
        return self._session.sandbox.confine(self._turn.profile, launch) if self._is_confined else launch

    def _programs(self, action: Action) -> tuple[str, ...]:
        if action.kind != "run":
            return ()
        return harmless_commands.programs_of(action.command, action.cwd, self._place)

    def _prefixes(self, action: Action) -> tuple[harmless_commands.Prefix, ...]:
        if action.kind != "run":
            return ()
        return harmless_commands.prefixes_of(action.command, action.cwd, self._place)

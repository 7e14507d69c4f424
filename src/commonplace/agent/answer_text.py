"""The text of one answer as it is shown: without hidden citations, and in plan mode without the plan, its own item.

A message is shown from its first visible text on in plan mode, since it may hold nothing but the plan; else from its
announcement on.
"""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.agent import events
from commonplace.agent.session_ledger import SessionLedger
from commonplace.agent.turn_state import TurnState
from commonplace.protocol import citations
from commonplace.protocol.proposed_plan import Piece, PlanSplitter


class AnswerText:
    """Shows the messages of one answer while they stream, and when they are finished."""

    def __init__(self, ledger: SessionLedger, turn: TurnState) -> None:
        self._ledger: Final = ledger
        self._turn: Final = turn
        self._visible = citations.AnswerStreams()
        """Takes the hidden citations out."""
        self._plans: dict[str, PlanSplitter] = {}
        """In plan mode, takes the plan out of each message."""
        self._started: dict[str, bool] = {}
        """The messages that stream: whether each is shown yet."""
        self._has_plan = False
        """A plan is shown and not completed."""

    def begin(self, item: events.AgentMessage) -> None:
        """Note that a message began."""
        self._started[item.id] = False
        if self._turn.profile.mode != "plan":
            self._start(item)

    def delta(self, item: events.AgentMessage, text: str) -> bool:
        """Show more of a message; return whether anything became visible."""
        return self._show(item, self._visible.delta(item.id, text))

    def end(self, item: events.AgentMessage, text: str) -> str:
        """Complete a message whose text without citations this is; return what a person sees of it, or the plan."""
        self._show(item, self._visible.done(item.id))
        splitter = self._plans.pop(item.id, None)
        plan: str | None = None
        words = text
        if self._turn.profile.mode == "plan":
            self._tell(item, splitter.finish() if splitter is not None else [])
            whole = PlanSplitter()
            words = "".join(piece.text for piece in [*whole.push(text), *whole.finish()] if not piece.is_plan)
            plan = whole.plan
            if plan is not None:
                self._ledger.complete(events.ProposedPlan(id=self._plan_id, text=plan))
            self._has_plan = False
        if self._started.pop(item.id, False) or words.strip() or plan is None:
            self._ledger.complete(msgspec.structs.replace(item, text=words))
        return words if words.strip() else plan or ""

    def _show(self, item: events.AgentMessage, text: str) -> bool:
        if not text:
            return False
        if self._turn.profile.mode == "plan":
            self._tell(item, self._plans.setdefault(item.id, PlanSplitter()).push(text))
        else:
            self._words(item, text)
        return True

    def _tell(self, item: events.AgentMessage, pieces: list[Piece]) -> None:
        for piece in pieces:
            if piece.is_plan:
                self._plan(piece.text)
            elif piece.text.strip() or self._started.get(item.id):
                self._words(item, piece.text)

    def _plan(self, text: str) -> None:
        if not self._has_plan:
            self._has_plan = True
            begun = events.ProposedPlan(id=self._plan_id, text="")
            self._ledger.publish(events.ItemStarted(turn_id=self._turn.id, item=begun))
        self._ledger.publish(events.PlanDelta(turn_id=self._turn.id, item_id=self._plan_id, text=text))

    def _words(self, item: events.AgentMessage, text: str) -> None:
        if not self._started.get(item.id):
            self._start(item)
        self._ledger.publish(events.TextDelta(turn_id=self._turn.id, item_id=item.id, text=text))

    def _start(self, item: events.AgentMessage) -> None:
        self._started[item.id] = True
        self._ledger.publish(events.ItemStarted(turn_id=self._turn.id, item=item))

    @property
    def _plan_id(self) -> str:
        return f"{self._turn.id}-plan"

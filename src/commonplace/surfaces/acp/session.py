"""One open session of an editor: a prompt from its words to its end, and the questions on the way.

Updates are sent in the order in which things happened, and all of a prompt's before its answer. A question waits beside
them; when the turn ends, whatever is still asked is withdrawn.
"""

from __future__ import annotations

import contextlib
from typing import Final

import acp
import anyio
from acp.schema import (
    AllowedOutcome,
    PermissionOption,
    PromptResponse,
    SessionMode,
    SessionModeState,
    StopReason,
    ToolCallUpdate,
)
from anyio.streams.memory import MemoryObjectReceiveStream

from commonplace.agent import events
from commonplace.agent.approvals.requests import Decision
from commonplace.agent.thread import Thread
from commonplace.agent.tools.shell_script import typed
from commonplace.agent.user_input import UserInput
from commonplace.config import Mode
from commonplace.errors import BadInput, CommonplaceError
from commonplace.surfaces.acp.updates import SessionUpdates, visible

MODES: Final[dict[Mode, tuple[str, str]]] = {
    "default": ("Default", "Works and asks where the settings say so."),
    "plan": ("Plan", "Looks and plans; changes nothing."),
    "execute": ("Execute", "Goes on by itself until the work is done."),
    "pair_programming": ("Pair programming", "Works in small steps, and asks often."),
}
_OPTIONS: Final[dict[Decision, PermissionOption]] = {
    "approved": PermissionOption(option_id="approved", name="Allow", kind="allow_once"),
    "approved_for_session": PermissionOption(
        option_id="approved_for_session", name="Allow for this session", kind="allow_always"
    ),
    "approved_always": PermissionOption(option_id="approved_always", name="Always allow here", kind="allow_always"),
    "denied": PermissionOption(option_id="denied", name="Reject", kind="reject_once"),
}


class EditorSession:
    """A thread that an editor has open."""

    def __init__(self, session_id: str, thread: Thread, editor: acp.Client) -> None:
        self.id = session_id
        """What the editor calls it; a thread that goes on with another host's has an id of its own."""
        self.thread = thread
        self._editor = editor
        self._updates = SessionUpdates()

    def modes(self) -> SessionModeState:
        """Return the modes that there are, and the present one."""
        known = [SessionMode(id=name, name=shown, description=text) for name, (shown, text) in MODES.items()]
        return SessionModeState(current_mode_id=self.thread.profile.mode, available_modes=known)

    async def prompt(self, given: UserInput) -> PromptResponse:
        """Run a turn to its end (raises CommonplaceError: it cannot begin, or it failed)."""
        send, receive = anyio.create_memory_object_stream[events.Event](float("inf"))
        stop = self.thread.listen(send.send_nowait)
        ended: events.End | CommonplaceError | None = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._tell, receive)
                try:
                    ended = await self.thread.turn(given)
                except CommonplaceError as error:  # raised again below: the group would wrap it
                    ended = error
                finally:
                    stop()
                    send.close()
        finally:
            receive.close()
        assert ended is not None
        if isinstance(ended, CommonplaceError):
            raise ended
        return PromptResponse(stop_reason=stop_reason(ended))

    async def _tell(self, stream: MemoryObjectReceiveStream[events.Event]) -> None:
        async with anyio.create_task_group() as questions:
            async for event in stream:
                if isinstance(event, events.Asked):
                    questions.start_soon(self._ask, event)
                for update in self._updates.of(event):
                    await self._editor.session_update(self.id, update)
            questions.cancel_scope.cancel()

    async def _ask(self, asked: events.Asked) -> None:
        decision: Decision = "denied"
        with contextlib.suppress(acp.RequestError):  # an editor that cannot answer has not allowed it
            decision = await self._decision(asked)
        with contextlib.suppress(BadInput):  # the turn ended meanwhile
            self.thread.decide(asked.request_id, decision)

    async def _decision(self, asked: events.Asked) -> Decision:
        left_out = () if asked.prefixes else ("approved_always",)
        if asked.kind == "change":  # each is asked about
            left_out = ("approved_always", "approved_for_session")
        offered: dict[Decision, PermissionOption] = {
            decision: option for decision, option in _OPTIONS.items() if decision not in left_out
        }
        about = ToolCallUpdate(tool_call_id=asked.item_id, title=_title(asked), status="pending")
        answer = await self._editor.request_permission(self.id, about, [*offered.values()])
        if not isinstance(answer.outcome, AllowedOutcome):
            return "abort"
        for decision, option in offered.items():
            if option.option_id == answer.outcome.option_id:
                return decision
        return "denied"


def _title(asked: events.Asked) -> str:
    """Return what is asked, whole, with the folder and the programs, and why; the model's own words come last."""
    if asked.kind == "change":
        what = f"Change {', '.join(asked.paths)}"
    elif asked.kind == "run":
        programs = f" with {', '.join(asked.programs)}" if asked.programs else ""
        what = f"{typed(asked.command)} · in {asked.cwd}{programs}"
    else:
        what = f"Call {': '.join(asked.command[1:])}"
    why = [" ".join(text.split()) for text in (asked.problem, asked.reason) if text]
    return visible(f"{what} ({'; '.join(why)})" if why else what)


def stop_reason(end: events.End) -> StopReason:
    """Return why a turn ended (raises TurnProblem: it failed)."""
    match end:
        case events.TurnCompleted():
            return "end_turn"
        case events.TurnAborted():
            return "cancelled" if end.reason != "budget_limited" else "max_tokens"
        case events.TurnFailed():
            if end.error.code == "context_too_long":
                return "max_tokens"
            raise TurnProblem(end.error)


class TurnProblem(Exception):
    """A turn failed."""

    def __init__(self, problem: events.Problem) -> None:
        super().__init__(problem.sentence())
        self.problem = problem

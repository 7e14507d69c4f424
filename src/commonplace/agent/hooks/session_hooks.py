"""The hooks of one session: at which moments they are asked, and what their answers do there.

Context that a hook adds becomes one developer message each, in the order of the settings. A prompt that is refused is
not recorded, only the context that was added. A refused call is answered with the reason. When hooks refuse the end of
a turn, the model is told the reason next and the turn goes on.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from commonplace.agent import events
from commonplace.agent.hooks.config import HookAnswer, Moment
from commonplace.agent.hooks.runner import HookRunner
from commonplace.agent.profile import Profile
from commonplace.agent.session_ledger import SessionLedger
from commonplace.agent.tools.registry import ToolInvocation, ToolOutput
from commonplace.agent.turn_state import TurnState
from commonplace.agent.user_input import UserInput

Start = Literal["startup", "resume", "compact"]
MOST_REFUSALS: Final = 20
"""How often hooks may keep one turn from ending; a hook that never agrees must not run a model for ever."""
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class SessionHooks:
    """Asks the hooks of one session.

    Invariants: every start (of the session, after a compaction) is told once; whatever a hook adds goes through the
    ledger. The commands and their folder are those of the profile that the session was opened with.
    """

    def __init__(self, ledger: SessionLedger, profile: Profile, variables: Mapping[str, str], start: Start) -> None:
        self._ledger = ledger
        self._runner = HookRunner(profile.hooks, profile.cwd, variables)
        self._starts: list[Start] = [start]
        """The starts that hooks were not told of yet."""

    async def _ask(self, turn: TurnState, moment: Moment, subject: str = "", **fields: Any) -> HookAnswer:
        if not self._runner.has(moment):
            return HookAnswer()
        path = self._ledger.path

        def told(run: events.HookRun) -> None:
            kind = events.HookStarted if run.status == "running" else events.HookCompleted
            self._ledger.publish(kind(turn_id=turn.id, run=run))

        answer = await self._runner.ask(
            moment,
            subject,
            told,
            session_id=self._ledger.thread_id,
            turn_id=turn.id,
            transcript_path=None if path is None else str(path),
            model=turn.profile.choice.slug,
            permission_mode=turn.profile.approval,
            **fields,
        )
        for warning in (*answer.warnings, *answer.errors):
            self._ledger.warn(warning)
        return answer

    def add_context(self, answer: HookAnswer) -> None:
        """Record the context that hooks add."""
        for text in answer.context:
            self._ledger.record(_message("developer", text))

    async def session_start(self, turn: TurnState) -> None:
        """Tell that the session begins, goes on or was compacted; once for each."""
        while self._starts:
            source = self._starts.pop(0)
            answer = await self._ask(turn, "session_start", source, source=source)
            self.add_context(answer)
            if answer.stop is not None:
                turn.stop(answer.stop)

    async def prompt_submitted(self, turn: TurnState, given: UserInput) -> tuple[bool, HookAnswer]:
        """Tell what a person said; return whether it is taken in, and what hooks add to it."""
        if not self._runner.has("user_prompt_submit"):
            return True, HookAnswer()
        words = "\n".join(str(part["text"]) for part in given.parts if part.get("type") == "input_text")
        answer = await self._ask(turn, "user_prompt_submit", prompt=words)
        refused = answer.refused or answer.stop
        if refused is not None:
            self._ledger.warn(f"A hook refused the prompt: {refused}")
        return refused is None, answer

    async def before_tool(self, turn: TurnState, call: ToolInvocation) -> HookAnswer:
        """Tell that a tool is called; the call is one by the tool's own name."""
        if not self._runner.has("pre_tool_use"):
            return HookAnswer()
        return await self._ask(turn, "pre_tool_use", call.key, **_call_fields(call))

    async def after_tool(self, turn: TurnState, call: ToolInvocation, output: ToolOutput) -> HookAnswer:
        """Tell what a tool answered."""
        if not self._runner.has("post_tool_use"):
            return HookAnswer()
        fields = {**_call_fields(call), "tool_response": output.content, "success": output.ok}
        return await self._ask(turn, "post_tool_use", call.key, **fields)

    def add_feedback(self, turn: TurnState, answer: HookAnswer) -> None:
        """Record what hooks say to a call and its output; called after all outputs, so that nothing parts a pair."""
        self.add_context(answer)
        if answer.refused is not None:
            self._ledger.record(_message("developer", f"A hook objects to what was just done: {answer.refused}"))
        if answer.stop is not None and turn.stop(answer.stop):
            self._ledger.warn(f"A hook ended the turn: {answer.stop}")

    async def before_compaction(self, turn: TurnState, trigger: str) -> str | None:
        """Tell that the history is about to be shortened; return why not, if a hook refuses."""
        return (await self._ask(turn, "pre_compact", trigger, trigger=trigger)).refused

    async def after_compaction(self, turn: TurnState, trigger: str) -> None:
        """Tell that the history was shortened."""
        self.add_context(await self._ask(turn, "post_compact", trigger, trigger=trigger))
        if "compact" not in self._starts:
            self._starts.append("compact")

    async def keep_going(self, turn: TurnState) -> bool:
        """Tell that the turn is about to end; return whether it goes on instead."""
        was_refused = turn.end_refusals > 0
        answer = await self._ask(turn, "stop", stop_hook_active=was_refused, last_assistant_message=turn.message)
        if answer.refused is None or answer.stop is not None:
            return False
        if turn.refuse_end() > MOST_REFUSALS:
            self._ledger.warn(f"Hooks kept the turn from ending {MOST_REFUSALS} times; it ends now.")
            return False
        run = secrets.token_hex(8)
        reason = answer.refused.translate(_ESCAPES)
        self._ledger.record(_message("user", f'<hook_prompt hook_run_id="{run}">{reason}</hook_prompt>'))
        return True


def _message(role: Literal["user", "developer"], text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def _call_fields(call: ToolInvocation) -> dict[str, Any]:
    """Return a call as a hook reads it."""
    return {"tool_name": call.key, "tool_input": _arguments(call), "tool_use_id": call.id}


def _arguments(call: ToolInvocation) -> Any:
    if call.kind == "custom":
        return {"input": call.arguments}
    try:
        return msgspec.json.decode(call.arguments or "{}")
    except msgspec.DecodeError:
        return {"input": call.arguments}

"""Where in a session hooks are asked, and what their answers do there.

Context that a hook adds is one developer message each, in the order of the settings. A prompt that is refused is not
recorded, only what was added. A refused call is answered with the reason. A refused end of a turn makes the reason the
next thing that the model is told, and the turn goes on.
"""

from __future__ import annotations

import secrets
from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from commonplace.agent.hooks.running import Runner
from commonplace.agent.hooks.values import Answer, Moment

if TYPE_CHECKING:
    from commonplace.agent.current import Turn
    from commonplace.agent.input import Input
    from commonplace.agent.session import Session
    from commonplace.agent.tools.registry import Call, Output

Start = Literal["startup", "resume", "compact"]
MOST_REFUSALS: Final = 20
"""How often hooks may keep one turn from ending."""


class Points:
    """The hooks of one session."""

    def __init__(self, session: Session, start: Start) -> None:
        profile = session.profile
        self._session = session
        self._runner = Runner(profile.hooks, profile.cwd, session.outside.environment)
        self._starts: list[Start] = [start]
        """Why the session begins to speak, until its hooks were told."""

    async def _ask(self, moment: Moment, subject: str = "", **told: Any) -> Answer:
        if not self._runner.has(moment):
            return Answer()
        session = self._session
        path = session.recorder.path if session.recorder is not None else None
        answer = await self._runner.ask(
            moment,
            subject,
            session_id=session.thread_id,
            turn_id=session.turn.id if session.turn is not None else None,
            transcript_path=None if path is None else str(path),
            model=session.profile.choice.slug,
            permission_mode=session.profile.approval,
            **told,
        )
        for warning in answer.warnings:
            session.warn(warning)
        return answer

    def _add(self, answer: Answer) -> None:
        for text in answer.context:
            content = [{"type": "input_text", "text": text}]
            self._session.record({"type": "message", "role": "developer", "content": content})

    async def begin(self, turn: Turn) -> None:
        """Tell that the session begins, goes on or was compacted; once for each."""
        while self._starts:
            source = self._starts.pop(0)
            answer = await self._ask("session_start", source, source=source)
            self._add(answer)
            turn.stopped = turn.stopped or answer.stop

    async def prompt(self, given: Input) -> tuple[bool, Answer]:
        """Tell what a person said; say whether it is taken, and what is added to it."""
        if not self._runner.has("user_prompt_submit"):
            return True, Answer()
        words = "\n".join(str(part["text"]) for part in given.parts if part.get("type") == "input_text")
        answer = await self._ask("user_prompt_submit", prompt=words)
        refused = answer.refused or answer.stop
        if refused is not None:
            self._session.warn(f"A hook refused the prompt: {refused}")
        return refused is None, answer

    def added(self, answer: Answer) -> None:
        """Record what a hook added to a prompt."""
        self._add(answer)

    async def before_tool(self, call: Call) -> Answer:
        """Tell that a tool is called."""
        if not self._runner.has("pre_tool_use"):
            return Answer()
        return await self._ask(
            "pre_tool_use", call.key, tool_name=call.key, tool_input=_input(call), tool_use_id=call.id
        )

    async def after_tool(self, call: Call, output: Output) -> Answer:
        """Tell what a tool answered."""
        if not self._runner.has("post_tool_use"):
            return Answer()
        told = {"tool_name": call.key, "tool_input": _input(call), "tool_use_id": call.id}
        return await self._ask("post_tool_use", call.key, **told, tool_response=output.content, success=output.ok)

    def fed_back(self, turn: Turn, answer: Answer) -> None:
        """Record what hooks say to a tool's answer; it comes after the outputs."""
        self._add(answer)
        if answer.refused is not None:
            self._add(Answer(context=(f"A hook objects to what was just done: {answer.refused}",)))
        if answer.stop is not None and turn.stopped is None:
            self._session.warn(f"A hook ended the turn: {answer.stop}")
            turn.stopped = answer.stop

    async def before_compaction(self, trigger: str) -> str | None:
        """Tell that the history is about to be shortened; return why not, if somebody minds."""
        return (await self._ask("pre_compact", trigger, trigger=trigger)).refused

    async def after_compaction(self, trigger: str) -> None:
        """Tell that the history was shortened."""
        self._add(await self._ask("post_compact", trigger, trigger=trigger))
        if "compact" not in self._starts:
            self._starts.append("compact")

    async def goes_on(self, turn: Turn) -> bool:
        """Tell that the turn is about to end; say whether it goes on instead."""
        answer = await self._ask("stop", stop_hook_active=turn.refusals > 0, last_assistant_message=turn.message)
        if answer.refused is None or answer.stop is not None:
            return False
        turn.refusals += 1
        if turn.refusals > MOST_REFUSALS:
            self._session.warn(f"Hooks kept the turn from ending {MOST_REFUSALS} times; it ends now.")
            return False
        run = secrets.token_hex(8)
        text = f'<hook_prompt hook_run_id="{run}">{escape(answer.refused, quote=False)}</hook_prompt>'
        content = [{"type": "input_text", "text": text}]
        self._session.record({"type": "message", "role": "user", "content": content})
        return True


def _input(call: Call) -> Any:
    """Return the arguments of a call as a hook reads them."""
    if call.kind == "custom":
        return {"input": call.arguments}
    try:
        return msgspec.json.decode(call.arguments or "{}")
    except msgspec.DecodeError:
        return {"input": call.arguments}

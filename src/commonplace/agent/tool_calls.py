"""The tool calls of one answer: each begins as soon as the model has written it, beside others where that is safe.

A call that is not safe beside others waits for all calls before it, and those after it wait for it. When the answer is
over, outputs are recorded in the order of the calls, whatever order they ended in. An interrupted turn ends every call
and still records what each gave until then, so that the ledger has an output for every call that was made.
"""

from __future__ import annotations

from datetime import datetime
from types import TracebackType
from typing import Any, Final

import anyio
import anyio.abc
import msgspec

from commonplace.agent import events, tool_events
from commonplace.agent.approvals.consent import Consent
from commonplace.agent.approvals.policy import PLANNING
from commonplace.agent.hooks.config import HookAnswer
from commonplace.agent.session import Session
from commonplace.agent.tools import registry
from commonplace.agent.tools.processes import RunningCommand
from commonplace.agent.tools.registry import Action, ToolContext, ToolInvocation, ToolOutput
from commonplace.agent.turn_state import TurnState
from commonplace.errors import WriteFailed
from commonplace.protocol import items
from commonplace.protocol.ids import new_id

ABORTED: Final = "aborted"
"""The output of a call that an interrupt ended."""


class _LocalShell(msgspec.Struct):
    command: list[str] = []
    timeout_ms: int | None = None
    working_directory: str | None = None


class _CallSlot(msgspec.Struct):
    call: ToolInvocation
    began: datetime
    parallel: bool
    done: anyio.Event = msgspec.field(default_factory=anyio.Event)
    after: list[anyio.Event] = []
    context: ToolContext | None = None
    item: events.Item | None = None
    """What a person sees of it, once it has begun."""
    output: ToolOutput | None = None
    declined: bool = False
    must_ask: bool = False
    """A hook wants a person to be asked."""
    feedback: HookAnswer = HookAnswer()
    """What hooks said to the call and to its output."""


class ToolCalls:
    """The calls of one answer; leaving the block waits for them and records their outputs."""

    def __init__(self, session: Session, turn: TurnState) -> None:
        self._session = session
        self._turn = turn
        self._slots: list[_CallSlot] = []
        self._group: anyio.abc.TaskGroup = anyio.create_task_group()

    def __len__(self) -> int:
        return len(self._slots)

    async def __aenter__(self) -> ToolCalls:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # An answer that broke off does not end the calls that it made: they are the model's word.
            if error is None or isinstance(error, Exception):
                for slot in self._slots:
                    await slot.done.wait()
        finally:
            self._stop()  # of those that have ended it stops nothing
            try:
                await self._group.__aexit__(None, None, None)
            finally:
                for slot in self._slots:
                    self._record(slot)
                for slot in self._slots:
                    self._session.hooks.add_feedback(self._turn, slot.feedback)

    def _stop(self) -> None:
        for slot in self._slots:
            if slot.context is not None:
                slot.context.scope.cancel()

    def start(self, raw: bytes) -> bool:
        """Begin the call that an item is; return whether it is one."""
        call = _call(items.view(raw))
        if call is None:
            return False
        slot = _CallSlot(call, self._session.environment.now(), self._session.tools.is_parallel(call))
        earlier = self._slots if not slot.parallel else [each for each in self._slots if not each.parallel]
        slot.after = [each.done for each in earlier]
        self._slots.append(slot)
        self._group.start_soon(self._run, slot)
        return True

    async def _run(self, slot: _CallSlot) -> None:
        try:
            for done in slot.after:
                await done.wait()
            if self._turn.interrupted:
                return
            refused = await self._refused(slot)
            slot.context = self._context(slot)
            if refused is None:
                self._show(slot)
            slot.output = refused or await self._answer(slot.call, slot.context)
            self._finish(slot, slot.output)
            if refused is None:
                resolved = self._session.tools.resolve(slot.call)
                slot.feedback += await self._session.hooks.after_tool(self._turn, resolved, slot.output)
        finally:
            slot.done.set()

    async def _refused(self, slot: _CallSlot) -> ToolOutput | None:
        """Ask hooks about a call; return its output if they refuse it. Else take a snapshot if it may change files."""
        session, turn = self._session, self._turn
        answer = await session.hooks.before_tool(turn, session.tools.resolve(slot.call))
        slot.feedback = HookAnswer(
            context=answer.context, stop=answer.stop
        )  # told after the outputs: nothing parts a pair
        slot.must_ask = answer.ask
        refused = answer.refused if answer.refused is not None else answer.stop
        if refused is not None:
            slot.declined = True
            return registry.failed(f"A hook refused this call: {refused}")
        tool = session.tools.find(slot.call.key)
        if tool is None:
            return None
        if registry.is_external(tool):  # noted before it runs: whatever comes of it, the thread has seen it
            session.note_external("mcp", call_id=slot.call.id, tool=slot.call.key)
        if registry.asks(tool):
            return None
        if answer.ask and (why := await Consent(session, turn).ask(_action(slot.call, turn))) is not None:
            slot.declined = True
            return registry.failed(f"{slot.call.key} was not called: {why}")
        if registry.may_change(tool, slot.call):
            if turn.profile.mode == "plan":
                slot.declined = True
                return registry.failed(
                    f"{slot.call.key} was not called: {PLANNING.format(what='it may change something')}"
                )
            await session.snapshots.take(turn)
        return None

    async def _answer(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        output = registry.failed(ABORTED)
        # Shielded: an interrupt cancels the call's own scope, so that the tool can return what it did until then.
        with anyio.CancelScope(shield=True):
            try:
                if call.key == "recall":  # it reads the ledger's file, which must hold what was just said
                    await self._session.ledger.flush()
                output = await self._session.tools.run(call, context)
            except WriteFailed as error:
                output = registry.failed(error.sentence())
        return output

    def _show(self, slot: _CallSlot) -> None:
        """Show a call whose tool has an item of its own for it."""
        tool = self._session.tools.find(slot.call.key)
        if isinstance(tool, tool_events.ShowsItsCalls) and (item := tool.started(slot.call)) is not None:
            slot.item = item
            self._session.ledger.publish(events.ItemStarted(turn_id=self._turn.id, item=item))

    def _context(self, slot: _CallSlot) -> ToolContext:
        session, profile = self._session, self._turn.profile
        turn_id, call_id = self._turn.id, slot.call.id
        consent = Consent(session, self._turn, must_ask=slot.must_ask)

        def emit(text: str) -> None:
            session.ledger.publish(events.OutputDelta(turn_id=turn_id, item_id=call_id, text=text))

        def tell_input(item_id: str, process: int, text: str) -> None:
            told = events.ProcessInput(turn_id=turn_id, item_id=item_id, process=process, text=text)
            session.ledger.publish(told)

        async def approve(action: Action) -> str | None:
            return await self._approve(slot, action, consent)

        return ToolContext(
            cwd=profile.cwd,
            home=profile.home,
            environment=session.environment.variables,
            ledger=session.ledger.path,
            roots=profile.roots,
            policy=profile.policy,
            now=session.environment.monotonic,
            emit=emit,
            tell_input=tell_input,
            approve=approve,
            confine=consent.confine,
        )

    async def _approve(self, slot: _CallSlot, action: Action, consent: Consent) -> str | None:
        """Show what is about to happen; return why it may not, if so."""
        slot.item = tool_events.started(action)
        self._session.ledger.publish(events.ItemStarted(turn_id=self._turn.id, item=slot.item))
        why = await consent.check(action)
        slot.declined = why is not None
        return why

    def _finish(self, slot: _CallSlot, output: ToolOutput) -> None:
        """Show the output of a call."""
        ledger, turn = self._session.ledger, self._turn
        turn.add_memory_reads(output.memory_reads)
        plan = tool_events.plan(output, turn.plan, turn.id)
        if plan is not None:
            kind = events.ItemStarted if turn.plan is None else events.ItemUpdated
            turn.show_plan(plan)
            ledger.publish(kind(turn_id=turn.id, item=plan))
            return
        if slot.item is None:
            slot.item = tool_events.tool_call(slot.call)
            ledger.publish(events.ItemStarted(turn_id=turn.id, item=slot.item))
        finished = tool_events.finished(slot.item, output, declined=slot.declined)
        if isinstance(finished, events.CommandExecution) and output.process is not None:
            self._goes_on(finished, output.process, slot.began)
        else:
            ledger.complete(finished, slot.began)

    def _goes_on(self, item: events.CommandExecution, process: int, began: datetime) -> None:
        """Show that a command goes on in the background, and complete its item when it ends."""
        session, turn_id = self._session, self._turn.id
        session.ledger.publish(events.ItemUpdated(turn_id=turn_id, item=item))

        def ended(running: RunningCommand) -> None:
            seconds = (session.environment.now() - began).total_seconds()
            session.ledger.complete(tool_events.ended(item, running, max(seconds, 0.0)), began, turn_id)

        session.processes.find(process).when_ended(ended)

    def _record(self, slot: _CallSlot) -> None:
        """Record the output of a call; a call that never ran is recorded as aborted."""
        output = slot.output or ToolOutput(content=ABORTED, ok=False)
        item: dict[str, Any] = registry.output_item(slot.call, output)
        prefix = "cto" if slot.call.kind == "custom" else "fco"
        self._session.ledger.record({**item, "id": f"{prefix}_{new_id(self._session.environment.now())}"})


def _action(call: ToolInvocation, turn: TurnState) -> Action:
    """Return the question about a tool of ours that asks nothing itself: whole, as it may be input of a process."""
    return Action(call.id, "call", turn.profile.cwd, ("tool", "commonplace", call.key, call.arguments))


def _call(view: items.View) -> ToolInvocation | None:
    """Return the call that an item is; None if it is none that we have to answer."""
    match view:
        case items.FunctionCall():
            return ToolInvocation(view.call_id, view.name, view.arguments, namespace=view.namespace)
        case items.CustomToolCall():
            return ToolInvocation(view.call_id, view.name, view.input, "custom")
        case items.LocalShellCall(call_id=str(call_id)):
            return ToolInvocation(call_id, "shell", _of_local_shell(view))
        case _:
            return None


def _of_local_shell(view: items.LocalShellCall) -> str:
    """Return the arguments of a call in the oldest format as arguments of the tool `shell`, which answers it."""
    try:
        action = msgspec.json.decode(view.action, type=_LocalShell)
    except msgspec.DecodeError:
        return bytes(view.action).decode("utf-8", "replace")
    fields: dict[str, Any] = {"command": action.command, "timeout_ms": action.timeout_ms}
    return msgspec.json.encode({**fields, "workdir": action.working_directory}).decode()

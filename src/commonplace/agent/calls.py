"""The tool calls of one answer: each begins as soon as the model has written it, beside others where that is safe.

A call that is not safe beside others waits for all before it, and those after it wait for it. When the answer is over,
outputs are recorded in the order of the calls, whatever order they ended in. An interrupted turn ends every call and
still records for each what came of it until then, so that the ledger has an output for every call that was made.
"""

from __future__ import annotations

import secrets
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.abc
import msgspec

from commonplace.agent import events, showing, snapshots
from commonplace.agent.consent import Consent
from commonplace.agent.hooks.values import Answer
from commonplace.agent.tools import registry
from commonplace.agent.tools.registry import Action, Call, Context, Output
from commonplace.errors import WriteFailed
from commonplace.protocol import items
from commonplace.protocol.ids import uuid7

if TYPE_CHECKING:
    from datetime import datetime

    from commonplace.agent.current import Turn
    from commonplace.agent.session import Session

ABORTED: Final = "aborted"
MOST_ASKED: Final = 2_000
"""Characters of the arguments that a person is shown with a question."""


class _LocalShell(msgspec.Struct):
    command: list[str] = []
    timeout_ms: int | None = None
    working_directory: str | None = None


class _Slot(msgspec.Struct):
    call: Call
    began: datetime
    parallel: bool
    done: anyio.Event = msgspec.field(default_factory=anyio.Event)
    after: list[anyio.Event] = []
    context: Context | None = None
    item: events.Item | None = None
    """What a person sees of it, once it has begun."""
    output: Output | None = None
    declined: bool = False
    must_ask: bool = False
    """A hook wants a person to be asked."""
    heard: Answer = Answer()
    """What hooks said to it and to its answer."""


class Calls:
    """The calls of one answer; leaving the block waits for them and records what they gave."""

    def __init__(self, session: Session, turn: Turn) -> None:
        self._session = session
        self._turn = turn
        self._slots: list[_Slot] = []
        self._group: anyio.abc.TaskGroup = anyio.create_task_group()

    def __len__(self) -> int:
        return len(self._slots)

    async def __aenter__(self) -> Calls:
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
                    self._session.hooks.fed_back(self._turn, slot.heard)

    def _stop(self) -> None:
        for slot in self._slots:
            if slot.context is not None:
                slot.context.scope.cancel()

    def start(self, raw: bytes) -> bool:
        """Begin the call that an item is; say whether it is one."""
        call = _call(items.view(raw))
        if call is None:
            return False
        slot = _Slot(call, self._session.outside.now(), self._session.tools.is_parallel(call))
        earlier = self._slots if not slot.parallel else [each for each in self._slots if not each.parallel]
        slot.after = [each.done for each in earlier]
        self._slots.append(slot)
        self._group.start_soon(self._run, slot)
        return True

    async def _run(self, slot: _Slot) -> None:
        try:
            for done in slot.after:
                await done.wait()
            if self._turn.interrupted:
                return
            refused = await self._refused(slot)
            slot.context = self._context(slot)
            slot.output = refused or await self._answer(slot.call, slot.context)
            self._finish(slot, slot.output)
            if refused is None:
                slot.heard += await self._session.hooks.after_tool(slot.call, slot.output)
        finally:
            slot.done.set()

    async def _refused(self, slot: _Slot) -> Output | None:
        """Ask hooks about a call; return its answer if they refuse it. Else keep what it may change."""
        answer = await self._session.hooks.before_tool(slot.call)
        slot.heard = Answer(context=answer.context, stop=answer.stop)  # told after the outputs: nothing parts a pair
        slot.must_ask = answer.ask
        refused = answer.refused if answer.refused is not None else answer.stop
        if refused is not None:
            slot.declined = True
            return registry.failed(f"A hook refused this call: {refused}")
        tool = self._session.tools.find(slot.call.key)
        if tool is None:
            return None
        if registry.is_external(tool):  # noted before it runs: whatever comes of it, the thread has seen it
            self._session.external("mcp", call_id=slot.call.id, tool=slot.call.key)
        if registry.asks(tool):
            return None
        if answer.ask and (why := await Consent(self._session, self._turn).asked(_action(slot.call, self._session))):
            slot.declined = True
            return registry.failed(f"{slot.call.key} was not called: {why}")
        if tool.mutates:
            await snapshots.keep(self._session, self._turn)
        return None

    async def _answer(self, call: Call, context: Context) -> Output:
        output = registry.failed(ABORTED)
        # Shielded: an interrupt cancels the call's own scope, which lets the tool say what it did until then.
        with anyio.CancelScope(shield=True):
            try:
                if call.key == "recall":  # it reads the ledger, and what was just said belongs to it
                    await self._session.flush()
                output = await self._session.tools.run(call, context)
            except WriteFailed as error:
                output = registry.failed(error.sentence())
        return output

    def _context(self, slot: _Slot) -> Context:
        session, profile = self._session, self._session.profile
        turn_id, call_id = self._turn.id, slot.call.id
        consent = Consent(session, self._turn, must_ask=slot.must_ask)

        def emit(text: str) -> None:
            session.tell(events.OutputDelta(turn_id=turn_id, item_id=call_id, text=text))

        async def approve(action: Action) -> str | None:
            return await self._approve(slot, action, consent)

        return Context(
            cwd=profile.cwd,
            home=profile.home,
            environment=session.outside.environment,
            ledger=session.recorder.path if session.recorder is not None else None,
            roots=profile.roots,
            policy=profile.policy,
            now=session.outside.monotonic,
            emit=emit,
            approve=approve,
            confine=consent.confine,
        )

    async def _approve(self, slot: _Slot, action: Action, consent: Consent) -> str | None:
        """Show what is about to happen; return why not, if it may not."""
        slot.item = showing.begun(action)
        self._session.tell(events.ItemStarted(turn_id=self._turn.id, item=slot.item))
        why = await consent.wanted(action)
        slot.declined = why is not None
        return why

    def _finish(self, slot: _Slot, output: Output) -> None:
        """Show what came of a call."""
        self._turn.retrieved.extend(output.retrieved)
        plan = showing.plan(output, self._turn.plan, self._turn.id)
        if plan is not None:
            kind = events.ItemStarted if self._turn.plan is None else events.ItemUpdated
            self._turn.plan = plan
            self._session.tell(kind(turn_id=self._turn.id, item=plan))
            return
        if slot.item is None:
            slot.item = showing.called(slot.call)
            self._session.tell(events.ItemStarted(turn_id=self._turn.id, item=slot.item))
        self._session.show(showing.ended(slot.item, output, declined=slot.declined), slot.began)

    def _record(self, slot: _Slot) -> None:
        """Record the output of a call; of one that never ran, that it did not."""
        output = slot.output or Output(content=ABORTED, ok=False, interrupted=True)
        item: dict[str, Any] = registry.item(slot.call, output)
        prefix = "cto" if slot.call.kind == "custom" else "fco"
        now = int(self._session.outside.now().timestamp() * 1000)
        self._session.record({**item, "id": f"{prefix}_{uuid7(now, secrets.token_bytes(10))}"})


def _action(call: Call, session: Session) -> Action:
    """Return the question about a tool of ours that asks nothing itself."""
    shown = call.arguments if len(call.arguments) <= MOST_ASKED else f"{call.arguments[:MOST_ASKED]}…"
    return Action(call.id, call.key, "call", session.profile.cwd, ("tool", "commonplace", call.key, shown))


def _call(view: items.View) -> Call | None:
    """Return the call that an item is, if it is one that we have to answer."""
    match view:
        case items.FunctionCall():
            return Call(view.call_id, view.name, view.arguments, namespace=view.namespace)
        case items.CustomToolCall():
            return Call(view.call_id, view.name, view.input, "custom")
        case items.LocalShellCall(call_id=str(call_id)):
            return Call(call_id, "shell", _of_local_shell(view))
        case _:
            return None


def _of_local_shell(view: items.LocalShellCall) -> str:
    """Return the arguments of a call in the oldest format, in the words of the tool that answers it."""
    try:
        action = msgspec.json.decode(view.action, type=_LocalShell)
    except msgspec.DecodeError:
        return bytes(view.action).decode("utf-8", "replace")
    fields: dict[str, Any] = {"command": action.command, "timeout_ms": action.timeout_ms}
    return msgspec.json.encode({**fields, "workdir": action.working_directory}).decode()

"""The tools with which a model starts, tells, waits for and closes sub-agents, by the names that Codex gave them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec

from commonplace.agent import events
from commonplace.agent.subagents import arguments, limits, restoration
from commonplace.agent.subagents.agent import Agent, AgentThread
from commonplace.agent.subagents.arguments import (
    CloseAgentArguments,
    ListAgentsArguments,
    ResumeAgentArguments,
    SendInputArguments,
    SpawnAgentArguments,
    WaitAgentArguments,
    checked_id,
    read_input,
)
from commonplace.agent.subagents.inheritance import Wish
from commonplace.agent.subagents.status import AgentStatus
from commonplace.agent.subagents.tree import AgentTree
from commonplace.agent.tools.arguments import bad_arguments, decode, schema
from commonplace.agent.tools.registry import (
    Tool,
    ToolContext,
    ToolDefinition,
    ToolInvocation,
    ToolOutput,
    description,
)
from commonplace.context import truncate
from commonplace.errors import CommonplaceError, ToolError

NAMESPACE: Final = "multi_agent_v1"


class _AgentTool:
    """What the tools share: the tree, and the thread whose model calls them."""

    name: ClassVar[str]
    takes: ClassVar[type[msgspec.Struct]]
    shown_as: ClassVar[events.AgentTool]
    parallel = True
    mutates = False

    def __init__(self, tree: AgentTree, caller: AgentThread) -> None:
        self._tree = tree
        self._caller = caller
        self.definition = ToolDefinition(
            self.name, "function", self._description(), self._schema(), namespace=NAMESPACE
        )

    @property
    def aliases(self) -> tuple[str, ...]:
        """The plain name, which models write where an API has no namespaces."""
        return (self.name,)

    def _description(self) -> str:
        return description(self.name)

    def _schema(self) -> dict[str, Any]:
        return schema(self.takes)

    def _shown(self, call_id: str, targets: Sequence[str] = (), **fields: Any) -> events.AgentCall:
        """Return the item of a call about some agents, with their statuses as they are now."""
        agents = [(each, self._tree.find(each)) for each in targets]
        receivers = tuple((each, agent and agent.identity.nickname) for each, agent in agents)
        item = events.AgentCall(id=call_id, tool=self.shown_as, sender=self._caller.id, receivers=receivers)
        return msgspec.structs.replace(item, **fields)

    def _output(
        self, call: ToolInvocation, context: ToolContext, result: Any, states: Mapping[str, AgentStatus], **fields: Any
    ) -> ToolOutput:
        """Return the output of a call that was carried out, with its item."""
        is_failed = not states or any(status.is_failure for status in states.values())
        told = {name: status.wire() for name, status in states.items()}
        item = self._shown(call.id, [*states], states=told, status="failed" if is_failed else "completed", **fields)
        return ToolOutput(content=truncate.truncate(_json(result), context.policy), detail=item)


def _json(result: Any) -> str:
    return msgspec.json.encode(result).decode()


class SpawnAgent(_AgentTool):
    """Starts an agent."""

    name = "spawn_agent"
    takes = SpawnAgentArguments
    shown_as = "spawn_agent"

    def _description(self) -> str:
        if not self._tree.roles.own:
            return description(self.name)
        roles = [f"{name}: {text}" for name, text in self._tree.roles.offered().items()]
        return "\n".join([description(self.name), "", "Values of agent_type:", *roles])

    def _schema(self) -> dict[str, Any]:
        found = schema(self.takes)
        if not self._tree.roles.own:  # with the built-in roles alone there is little to choose
            properties = {name: each for name, each in found["properties"].items() if name != "agent_type"}
            return {**found, "properties": properties}
        return found

    def started(self, call: ToolInvocation) -> events.Item | None:
        """Return the item of a call."""
        try:
            given = decode(call.arguments, SpawnAgentArguments)
            prompt = arguments.preview(read_input(given.message, given.items, self._caller.profile.cwd))
        except ToolError:
            return None
        return self._shown(call.id, prompt=prompt, model=given.model, effort=given.reasoning_effort)

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Start an agent and return its id; its work goes on beside the caller's."""
        given = decode(call.arguments, SpawnAgentArguments)
        task = read_input(given.message, given.items, context.cwd)
        if given.fork_context and (given.agent_type or "").strip():
            raise bad_arguments("an agent that forks the context has your type; leave agent_type out")
        wish = Wish(model=given.model, effort=given.reasoning_effort, service_tier=given.service_tier)
        try:
            agent = await self._tree.spawn(self._caller.id, task, given.agent_type, wish, fork=given.fork_context)
        except ToolError:
            raise
        except CommonplaceError as error:
            raise ToolError("spawn", f"collab spawn failed: {error.sentence()}") from None
        result = {"agent_id": agent.thread_id, "nickname": agent.identity.nickname}
        states = {agent.thread_id: agent.status}
        return self._output(call, context, result, states, prompt=agent.task, **_model_of(agent))


def _model_of(agent: Agent) -> dict[str, Any]:
    if agent.thread is None:
        return {}
    profile = agent.thread.profile
    return {"model": profile.choice.slug, "effort": profile.effective_effort}


class SendInput(_AgentTool):
    """Tells an agent something."""

    name = "send_input"
    takes = SendInputArguments
    shown_as = "send_input"

    def started(self, call: ToolInvocation) -> events.Item | None:
        """Return the item of a call."""
        try:
            given = decode(call.arguments, SendInputArguments)
            prompt = arguments.preview(read_input(given.message, given.items, self._caller.profile.cwd))
            return self._shown(call.id, [checked_id(given.target)], prompt=prompt)
        except ToolError:
            return None

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Put input into the agent's running turn, or begin one."""
        given = decode(call.arguments, SendInputArguments)
        target = checked_id(given.target)
        task = read_input(given.message, given.items, context.cwd)
        if given.interrupt:
            self._tree.check_below(target, self._caller.id)
        sent = await self._tree.send(target, task, interrupt=given.interrupt)
        states = {target: self._tree.status(target)}
        return self._output(call, context, {"submission_id": sent}, states, prompt=arguments.preview(task))


class ResumeAgent(_AgentTool):
    """Opens an agent again."""

    name = "resume_agent"
    takes = ResumeAgentArguments
    shown_as = "resume_agent"

    def started(self, call: ToolInvocation) -> events.Item | None:
        """Return the item of a call."""
        try:
            return self._shown(call.id, [checked_id(decode(call.arguments, ResumeAgentArguments).id)])
        except ToolError:
            return None

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Open the agent from its ledger, unless it is open."""
        target = checked_id(decode(call.arguments, ResumeAgentArguments).id)
        try:
            status = await restoration.resume(self._tree, target)
        except ToolError:
            raise
        except CommonplaceError as error:
            raise ToolError("resume", f"collab tool failed: {error.sentence()}") from None
        return self._output(call, context, {"status": status.wire()}, {target: status})


class WaitAgent(_AgentTool):
    """Waits until an agent is done."""

    name = "wait_agent"
    takes = WaitAgentArguments
    shown_as = "wait"

    def started(self, call: ToolInvocation) -> events.Item | None:
        """Return the item of a call."""
        try:
            return self._shown(call.id, self._targets(decode(call.arguments, WaitAgentArguments)))
        except ToolError:
            return None

    @staticmethod
    def _targets(given: WaitAgentArguments) -> list[str]:
        if not given.targets:
            raise bad_arguments("targets must not be empty")
        return [*dict.fromkeys(checked_id(each) for each in given.targets)]

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Return the agents that are done, as soon as one is."""
        given = decode(call.arguments, WaitAgentArguments)
        targets, seconds = self._targets(given), limits.wait_seconds(given.timeout_ms)
        done = await self._tree.wait(targets, seconds)
        result = {"status": {name: status.wire() for name, status in done.items()}, "timed_out": not done}
        return self._output(call, context, result, done or {each: self._tree.status(each) for each in targets})


class CloseAgent(_AgentTool):
    """Closes an agent."""

    name = "close_agent"
    takes = CloseAgentArguments
    shown_as = "close_agent"

    def started(self, call: ToolInvocation) -> events.Item | None:
        """Return the item of a call."""
        try:
            return self._shown(call.id, [checked_id(decode(call.arguments, CloseAgentArguments).target)])
        except ToolError:
            return None

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Close the agent and all that it started."""
        target = checked_id(decode(call.arguments, CloseAgentArguments).target)
        self._tree.check_below(target, self._caller.id)
        before = await self._tree.close(target)
        return self._output(call, context, {"previous_status": before.wire()}, {target: before})


class ListAgents(_AgentTool):
    """Lists the agents of the session."""

    name = "list_agents"
    takes = ListAgentsArguments

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Return the agents that were not closed, the session itself first."""
        prefix = (decode(call.arguments, ListAgentsArguments).path_prefix or "").strip().lower()
        tree = self._tree
        rows: list[dict[str, Any]] = []
        if tree.root.id.startswith(prefix):
            running = tree.root.session.turn is not None
            rows.append({"agent_name": tree.root.id, "agent_status": "running" if running else "pending_init"})
        for agent in tree.agents():
            if agent.thread_id.startswith(prefix):
                identity = agent.identity
                rows.append(
                    {
                        "agent_name": agent.thread_id,
                        "agent_status": agent.status.wire(),
                        "nickname": identity.nickname,
                        "agent_type": identity.role,
                        "parent": identity.parent_id,
                    }
                )
        return ToolOutput(content=truncate.truncate(_json({"agents": rows}), context.policy))


_TOOLS: Final = (SpawnAgent, SendInput, ResumeAgent, WaitAgent, CloseAgent, ListAgents)


def equip(tree: AgentTree, thread: AgentThread, depth: int) -> None:
    """Offer the tools to the model of a thread, unless an agent that it started would stand too deep."""
    if limits.may_start(tree.settings, depth):
        tools: list[Tool] = [kind(tree, thread) for kind in _TOOLS]
        thread.session.offer(tools)

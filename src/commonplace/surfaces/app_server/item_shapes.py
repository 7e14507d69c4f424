"""The items of a turn as clients see them, each tagged by its `type`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Json = dict[str, Any]
ItemStatus = Literal["inProgress", "completed", "failed", "declined"]


class ItemShape(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type"):
    """The base of all items."""

    id: str


class UserMessageItem(ItemShape, frozen=True, kw_only=True, tag="userMessage"):
    """What a person said; context that was injected is no part of it."""

    client_id: str | None = None
    content: list[Json]


class MemoryCitationShape(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The memories that an answer used."""

    entries: list[Json]
    thread_ids: list[str]


class AgentMessageItem(ItemShape, frozen=True, kw_only=True, tag="agentMessage"):
    """What the model said, without hidden markup."""

    text: str
    phase: str | None = None
    memory_citation: MemoryCitationShape | None = None
    delivery: None = None


class PlanItem(ItemShape, frozen=True, kw_only=True, tag="plan"):
    """A plan."""

    text: str


class ReasoningItem(ItemShape, frozen=True, kw_only=True, tag="reasoning"):
    """What the model thought, as far as it shows it."""

    summary: list[str] = []
    content: list[str] = []


class CommandExecutionItem(ItemShape, frozen=True, kw_only=True, tag="commandExecution"):
    """A command line."""

    command: str
    cwd: str
    process_id: str | None = None
    source: Literal["agent", "userShell", "unifiedExecStartup", "unifiedExecInteraction"] = "agent"
    status: ItemStatus
    command_actions: list[Json] = []
    aggregated_output: str | None = None
    exit_code: int | None = None
    duration_ms: int | None = None


class FileChangeItem(ItemShape, frozen=True, kw_only=True, tag="fileChange"):
    """Changes to files."""

    changes: list[Json]
    status: ItemStatus


class McpToolCallItem(ItemShape, frozen=True, kw_only=True, tag="mcpToolCall"):
    """A call of a server's tool."""

    server: str
    tool: str
    status: Literal["inProgress", "completed", "failed"]
    arguments: Any = None
    result: Json | None = None
    error: Json | None = None
    duration_ms: int | None = None


class DynamicToolCallItem(ItemShape, frozen=True, kw_only=True, tag="dynamicToolCall"):
    """A call of any other tool."""

    namespace: str | None = None
    tool: str
    arguments: Any = None
    status: Literal["inProgress", "completed", "failed"]
    content_items: list[Json] | None = None
    success: bool | None = None
    duration_ms: int | None = None


class FunctionCallOutputItem(ItemShape, frozen=True, kw_only=True, tag="functionCallOutput"):
    """What another program said (`toolOutput`): a text, or content items as they were sent."""

    name: str
    namespace: str | None = None
    output: str | list[Json]


class CollabAgentState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a sub-agent does."""

    status: Literal["pendingInit", "running", "interrupted", "completed", "errored", "shutdown", "notFound"]
    message: str | None = None


class CollabAgentToolCallItem(ItemShape, frozen=True, kw_only=True, tag="collabAgentToolCall"):
    """A call that starts, tells, waits for or closes sub-agents."""

    tool: Literal["spawnAgent", "sendInput", "resumeAgent", "wait", "closeAgent"]
    status: Literal["inProgress", "completed", "failed"]
    sender_thread_id: str
    receiver_thread_ids: list[str]
    prompt: str | None = None
    model: str | None = None
    reasoning_effort: str | None = None
    agents_states: dict[str, CollabAgentState] = {}


class SubAgentActivityItem(ItemShape, frozen=True, kw_only=True, tag="subAgentActivity"):
    """What a sub-agent of the other family of tools was told, in a session that Codex wrote."""

    kind: Literal["started", "interacted", "interrupted", "completed"]
    agent_thread_id: str
    agent_path: str


class WebSearchItem(ItemShape, frozen=True, kw_only=True, tag="webSearch"):
    """A search that the model's server ran."""

    query: str
    action: Json | None = None


class ContextCompactionItem(ItemShape, frozen=True, kw_only=True, tag="contextCompaction"):
    """The history was shortened."""


ThreadItem = (
    UserMessageItem
    | AgentMessageItem
    | PlanItem
    | ReasoningItem
    | CommandExecutionItem
    | FileChangeItem
    | McpToolCallItem
    | DynamicToolCallItem
    | FunctionCallOutputItem
    | CollabAgentToolCallItem
    | SubAgentActivityItem
    | WebSearchItem
    | ContextCompactionItem
)

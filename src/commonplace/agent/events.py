"""What a session tells whoever listens: turns, their items, deltas, questions. Values only.

An item is something that a person sees happen: a message, a command, a change of files. `ItemStarted` and
`ItemCompleted` carry the whole item, and every item that was started is completed before its turn ends; only a command
that goes on in the background is completed when it ends, at the latest with its session. Deltas only repeat, in pieces
and early, what a completed item says as a whole; whoever ignores them misses nothing.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from commonplace.context.usage import TokenInfo
from commonplace.models.base import Limit
from commonplace.protocol.citations import Citation

Status = Literal["in_progress", "completed", "failed", "declined"]


class _SessionItem(msgspec.Struct, frozen=True, tag_field="type", kw_only=True):
    id: str


class UserMessage(_SessionItem, frozen=True, tag="user_message"):
    """What a person said; `content` are the parts as they are sent."""

    content: list[dict[str, Any]]
    shown: list[dict[str, Any]] | None = None
    """The parts as a client sent them, in the format of Codex's ledger; None where they are those of `content`."""
    client_id: str | None = None
    """What the client that sent it calls it."""


class AgentMessage(_SessionItem, frozen=True, tag="agent_message"):
    """What the model said, without its hidden receipt."""

    text: str
    phase: str | None = None
    citation: Citation | None = None


class Reasoning(_SessionItem, frozen=True, tag="reasoning"):
    """What the model thought, as far as it shows it."""

    summary: list[str] = []
    text: list[str] = []


class CommandExecution(_SessionItem, frozen=True, tag="command_execution"):
    """A command line."""

    command: tuple[str, ...]
    cwd: str
    output: str = ""
    exit_code: int | None = None
    seconds: float | None = None
    process: int | None = None
    """Its number, if it goes on in the background."""
    status: Status = "in_progress"


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file that is changed."""

    path: str
    kind: Literal["add", "update", "delete"]
    to: str | None = None
    diff: str = ""
    """The text of a file that is added or deleted, else the difference as a unified diff."""


class FileChange(_SessionItem, frozen=True, tag="file_change"):
    """Changes to files."""

    changes: tuple[Change, ...]
    status: Status = "in_progress"


class ToolCall(_SessionItem, frozen=True, tag="tool_call"):
    """Any other tool."""

    tool: str
    arguments: str
    output: str | None = None
    status: Status = "in_progress"


class McpToolCall(_SessionItem, frozen=True, tag="mcp_tool_call"):
    """A tool of a configured server."""

    server: str
    tool: str
    arguments: Any = None
    result: dict[str, Any] | None = None
    error: str | None = None
    status: Status = "in_progress"


AgentTool = Literal["spawn_agent", "send_input", "resume_agent", "wait", "close_agent"]


class AgentCall(_SessionItem, frozen=True, tag="agent_call"):
    """A call that starts, tells, waits for or closes sub-agents."""

    tool: AgentTool
    sender: str
    """The thread that called."""
    receivers: tuple[tuple[str, str | None], ...] = ()
    """The threads that the call is about, each with its nickname."""
    prompt: str | None = None
    model: str | None = None
    effort: str | None = None
    states: dict[str, Any] = {}
    """The status of agents by their threads, in the form in which models see it."""
    status: Status = "in_progress"


class WebSearch(_SessionItem, frozen=True, tag="web_search"):
    """A search that the model's server ran."""

    query: str
    action: dict[str, Any] | None = None


class Step(msgspec.Struct, frozen=True):
    """One step of a plan."""

    text: str
    status: Literal["pending", "in_progress", "completed"]


class ExternalMessage(_SessionItem, frozen=True, tag="external_message"):
    """What another program said, as the output of a tool that nobody called; `output` as it was sent."""

    name: str
    output: str | list[dict[str, Any]]
    namespace: str | None = None


class Plan(_SessionItem, frozen=True, tag="plan"):
    """The steps of the work."""

    steps: tuple[Step, ...]


class ProposedPlan(_SessionItem, frozen=True, tag="proposed_plan"):
    """The plan that the model proposes in plan mode, in Markdown."""

    text: str


class ContextCompaction(_SessionItem, frozen=True, tag="context_compaction"):
    """The history was shortened; 0 tokens afterwards while it goes on."""

    before: int = 0
    after: int = 0
    fallback: bool = False


Item = (
    UserMessage
    | AgentMessage
    | Reasoning
    | CommandExecution
    | FileChange
    | ToolCall
    | McpToolCall
    | ExternalMessage
    | AgentCall
    | WebSearch
    | Plan
    | ProposedPlan
    | ContextCompaction
)


class _SessionEvent(msgspec.Struct, frozen=True, tag_field="event", kw_only=True):
    turn_id: str


class TurnStarted(_SessionEvent, frozen=True, tag="turn_started"):
    """A turn began."""


class ItemStarted(_SessionEvent, frozen=True, tag="item_started"):
    """An item began."""

    item: Item


class ItemUpdated(_SessionEvent, frozen=True, tag="item_updated"):
    """An item that goes on has changed: a plan, so far."""

    item: Item


class ItemCompleted(_SessionEvent, frozen=True, tag="item_completed"):
    """An item is as it will stay."""

    item: Item


class TextDelta(_SessionEvent, frozen=True, tag="text_delta"):
    """More of a message, as a person sees it."""

    item_id: str
    text: str


class ReasoningDelta(_SessionEvent, frozen=True, tag="reasoning_delta"):
    """More of the reasoning."""

    item_id: str
    text: str
    summary: bool = True


class PlanDelta(_SessionEvent, frozen=True, tag="plan_delta"):
    """More of a plan that is proposed."""

    item_id: str
    text: str


class OutputDelta(_SessionEvent, frozen=True, tag="output_delta"):
    """More of what a command prints."""

    item_id: str
    text: str


class TokenCount(_SessionEvent, frozen=True, tag="token_count"):
    """What was used so far."""

    info: TokenInfo | None
    limits: tuple[Limit, ...] = ()


class Retrying(_SessionEvent, frozen=True, tag="retrying"):
    """A request failed and is sent again."""

    attempt: int
    limit: int
    reason: str


class Warned(_SessionEvent, frozen=True, tag="warned"):
    """Something that a person should know and that stops nothing."""

    message: str


class ProcessInput(_SessionEvent, frozen=True, tag="process_input"):
    """A command that goes on in the background was given input, or waited for; an empty text is only a wait."""

    item_id: str
    """The item of the command."""
    process: int
    text: str


HookStatus = Literal["running", "completed", "failed", "blocked", "stopped"]
EntryKind = Literal["warning", "stop", "feedback", "context", "error"]


class HookEntry(msgspec.Struct, frozen=True):
    """One thing that a hook said, or that went wrong with it."""

    kind: EntryKind
    text: str


class HookRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a hook."""

    moment: str
    """When hooks are asked, as the settings name it: `pre_tool_use`."""
    place: int
    """Which of all configured hooks it is, counted from 0."""
    call_id: str | None = None
    """The call of a tool that it is asked about."""
    status: HookStatus = "running"
    entries: tuple[HookEntry, ...] = ()


class HookStarted(_SessionEvent, frozen=True, tag="hook_started"):
    """A hook is being asked."""

    run: HookRun


class HookCompleted(_SessionEvent, frozen=True, tag="hook_completed"):
    """A hook has answered, or failed."""

    run: HookRun


ServerStatus = Literal["starting", "ready", "failed", "cancelled"]


class ServerChanged(_SessionEvent, frozen=True, tag="server_changed"):
    """A configured MCP server is starting, can be used, or cannot."""

    server: str
    status: ServerStatus
    error: str | None = None


class Rerouted(_SessionEvent, frozen=True, tag="rerouted"):
    """The provider says that another model answers than the one that was asked."""

    asked: str
    answers: str


class Asked(_SessionEvent, frozen=True, tag="asked"):
    """Somebody must allow something; answer with `Session.decide`."""

    request_id: str
    kind: Literal["run", "change", "call"]
    thread_id: str = ""
    """Whose question it is."""
    command: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    cwd: str = ""
    reason: str | None = None
    """Why, in the model's words."""
    problem: str | None = None
    """Why it has to be asked."""
    programs: tuple[str, ...] = ()
    """The paths of the programs that a command starts, as far as they are known."""
    prefixes: tuple[tuple[str, ...], ...] = ()
    """What `approved_always` would allow in this folder: programs by their paths, git with a sub-command."""
    item_id: str = ""


class Problem(msgspec.Struct, frozen=True):
    """Why a turn failed."""

    code: str
    message: str
    hint: str = ""

    def sentence(self) -> str:
        """Return it in one line."""
        return f"{self.message} {self.hint}".strip()


class TurnCompleted(_SessionEvent, frozen=True, tag="turn_completed"):
    """A turn came to its end."""

    message: str | None
    """The last thing that the model said."""
    info: TokenInfo | None = None


class TurnFailed(_SessionEvent, frozen=True, tag="turn_failed"):
    """A turn ended in an error; the thread can go on."""

    error: Problem
    info: TokenInfo | None = None


class TurnAborted(_SessionEvent, frozen=True, tag="turn_aborted"):
    """A turn was stopped."""

    reason: Literal["interrupted", "replaced", "budget_limited"] = "interrupted"
    info: TokenInfo | None = None


End = TurnCompleted | TurnFailed | TurnAborted
Event = (
    TurnStarted
    | ItemStarted
    | ItemUpdated
    | ItemCompleted
    | TextDelta
    | ReasoningDelta
    | PlanDelta
    | OutputDelta
    | TokenCount
    | Retrying
    | Warned
    | ProcessInput
    | HookStarted
    | HookCompleted
    | ServerChanged
    | Rerouted
    | Asked
    | End
)

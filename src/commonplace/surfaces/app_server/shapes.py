"""What the server sends: threads, turns, items, results. Fields are camelCase on the wire; a missing value is null."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from commonplace.surfaces.app_server.item_shapes import ThreadItem

Json = dict[str, Any]


class Shape(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of everything that is sent."""


class Empty(Shape, frozen=True, kw_only=True):
    """A result without fields."""


class ActiveStatus(Shape, frozen=True, kw_only=True, tag="active", tag_field="type"):
    """A turn is running."""

    active_flags: list[Literal["waitingOnApproval", "waitingOnUserInput"]] = []


class IdleStatus(Shape, frozen=True, kw_only=True, tag="idle", tag_field="type"):
    """The thread is open, and no turn runs."""


class NotLoadedStatus(Shape, frozen=True, kw_only=True, tag="notLoaded", tag_field="type"):
    """The thread is not open here."""


class SystemErrorStatus(Shape, frozen=True, kw_only=True, tag="systemError", tag_field="type"):
    """The thread is open, and its last turn failed."""


ThreadStatus = ActiveStatus | IdleStatus | SystemErrorStatus | NotLoadedStatus
TurnStatus = Literal["completed", "interrupted", "failed", "inProgress"]


class WireGitInfo(Shape, frozen=True, kw_only=True):
    """The checkout that a thread began in."""

    sha: str | None = None
    branch: str | None = None
    origin_url: str | None = None


class TurnFailure(Shape, frozen=True, kw_only=True):
    """Why a turn failed."""

    message: str
    codex_error_info: Any = None
    additional_details: str | None = None


class WireTurn(Shape, frozen=True, kw_only=True):
    """A turn."""

    id: str
    items: list[ThreadItem] = []
    items_view: Literal["notLoaded", "summary", "full"] = "full"
    status: TurnStatus = "inProgress"
    error: TurnFailure | None = None
    started_at: int | None = None
    completed_at: int | None = None
    duration_ms: int | None = None


class WireThread(Shape, frozen=True, kw_only=True):
    """A thread; `turns` is filled where a method says so."""

    id: str
    session_id: str
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    preview: str = ""
    ephemeral: bool = False
    history_mode: Literal["legacy", "paginated"] = "paginated"
    model_provider: str = ""
    model: str | None = None
    """The model that an open thread asks."""
    reasoning_effort: str | None = None
    created_at: int = 0
    updated_at: int = 0
    recency_at: int | None = None
    status: ThreadStatus = NotLoadedStatus()
    path: str | None = None
    cwd: str = ""
    cli_version: str = ""
    originator: str | None = None
    source: Any = "unknown"
    thread_source: str | None = None
    agent_nickname: str | None = None
    agent_role: str | None = None
    git_info: WireGitInfo | None = None
    name: str | None = None
    section: None = None
    section_entered_at: None = None
    project_id: str | None = None
    can_accept_direct_input: bool | None = None
    turns: list[WireTurn] = []


class ThreadOpened(Shape, frozen=True, kw_only=True):
    """The result of starting, resuming or forking a thread."""

    thread: WireThread
    model: str
    model_provider: str
    service_tier: None = None
    cwd: str
    runtime_workspace_roots: list[str] = []
    instruction_sources: list[str] = []
    approval_policy: str | Json
    approvals_reviewer: Literal["user"] = "user"
    sandbox: Json
    reasoning_effort: str | None = None


class ThreadResult(Shape, frozen=True, kw_only=True):
    """A thread."""

    thread: WireThread


class ReadStateResult(Shape, frozen=True, kw_only=True):
    """What a person has not seen of a thread."""

    read_state: Json


class ThreadReadResult(ThreadResult, frozen=True, kw_only=True):
    """A thread, and of an open one what a person has not seen."""

    read_state: Json | None = None


class ThreadListResult(Shape, frozen=True, kw_only=True):
    """A page of threads."""

    data: list[WireThread]
    next_cursor: str | None = None
    backwards_cursor: str | None = None


class LoadedListResult(Shape, frozen=True, kw_only=True):
    """The ids of the threads that are open."""

    data: list[str]
    next_cursor: str | None = None


class TurnListResult(Shape, frozen=True, kw_only=True):
    """A page of turns."""

    data: list[WireTurn]
    next_cursor: str | None = None
    backwards_cursor: str | None = None


class UnsubscribeResult(Shape, frozen=True, kw_only=True):
    """Whether the client had been told of the thread."""

    status: Literal["notLoaded", "notSubscribed", "unsubscribed"]


class TurnResult(Shape, frozen=True, kw_only=True):
    """The turn that was started, or that the input was steered into."""

    turn: WireTurn


class TurnSteerResult(Shape, frozen=True, kw_only=True):
    """The turn that the input was steered into."""

    turn_id: str


class InitializeResult(Shape, frozen=True, kw_only=True):
    """Who the server is."""

    user_agent: str
    codex_home: str
    platform_family: str
    platform_os: str


class EffortOption(Shape, frozen=True, kw_only=True):
    """A reasoning effort that a model takes."""

    reasoning_effort: str
    description: str = ""


class WireModel(Shape, frozen=True, kw_only=True):
    """A model that a thread can use."""

    id: str
    model: str
    display_name: str
    description: str
    hidden: bool
    is_default: bool
    supported_reasoning_efforts: list[EffortOption]
    default_reasoning_effort: str
    input_modalities: list[str]
    supports_personality: bool = False
    service_tiers: list[Json] = []
    additional_speed_tiers: list[str] = []
    upgrade: str | None = None


class ModelListResult(Shape, frozen=True, kw_only=True):
    """A page of models."""

    data: list[WireModel]
    next_cursor: str | None = None


class ConfigOrigin(Shape, frozen=True, kw_only=True):
    """Where a setting's value comes from."""

    name: Json
    version: str = ""


class ConfigReadResult(Shape, frozen=True, kw_only=True):
    """The effective settings, by their names in config.toml."""

    config: Json
    origins: dict[str, ConfigOrigin]
    layers: None = None


class LoginResult(Shape, frozen=True, kw_only=True):
    """The key was taken."""

    type: Literal["apiKey"] = "apiKey"


class LoginCancelResult(Shape, frozen=True, kw_only=True):
    """There was nothing to cancel."""

    status: Literal["notFound"] = "notFound"


class ApiKeyAccount(Shape, frozen=True, kw_only=True):
    """Requests are paid with a key."""

    type: Literal["apiKey"] = "apiKey"


class AccountReadResult(Shape, frozen=True, kw_only=True):
    """Whether the person's model needs a key of OpenAI, and whether there is one."""

    account: ApiKeyAccount | None = None
    requires_openai_auth: bool = False


class MemorySearchResult(Shape, frozen=True, kw_only=True):
    """What a search in sessions and memory found."""

    hits: list[Json]


class MemoryReadResult(Shape, frozen=True, kw_only=True):
    """A stretch of a file of the memory."""

    path: str
    content: str
    start_line: int
    truncated: bool


class MemoryNoteResult(Shape, frozen=True, kw_only=True):
    """Where a note was written."""

    path: str


class MemoryStatusResult(Shape, frozen=True, kw_only=True):
    """Jobs, outputs and budgets of the memory, and the two facts that Codex's clients ask for."""

    v2_ready: bool = True
    v2_consolidated_threads: int
    """Sessions that memory rests on."""

    status: Json

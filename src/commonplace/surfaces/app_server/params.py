"""What clients send: the params of each method. Decoded leniently: fields that we do not know are ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from commonplace.agent.profile import GranularApproval
from commonplace.config import Mode
from commonplace.context.additional import AdditionalContext

Json = dict[str, Any]
SandboxName = Literal["read-only", "workspace-write", "danger-full-access"]
ApprovalName = Literal["untrusted", "on-request", "on-failure", "never"]
Limit = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Natural = Annotated[int, Meta(ge=0)]
Detail = Literal["auto", "low", "high", "original"]


SourceKind = Literal[
    "cli",
    "vscode",
    "exec",
    "appServer",
    "subAgent",
    "subAgentReview",
    "subAgentCompact",
    "subAgentThreadSpawn",
    "subAgentOther",
    "unknown",
]


class Params(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of all params."""


class NoParams(Params, frozen=True, kw_only=True):
    """Params without fields."""


class ClientInfo(Params, frozen=True, kw_only=True):
    """Who the client is."""

    name: str
    version: str
    title: str | None = None


class Capabilities(Params, frozen=True, kw_only=True):
    """What the client understands."""

    experimental_api: bool = False
    opt_out_notification_methods: list[str] | None = None


class InitializeParams(Params, frozen=True, kw_only=True):
    """The handshake."""

    client_info: ClientInfo
    capabilities: Capabilities | None = None


class ByteRange(Params, frozen=True, kw_only=True):
    """A stretch of a text, in bytes of its UTF-8."""

    start: Natural
    end: Natural


class TextElement(Params, frozen=True, kw_only=True):
    """A stretch of a text that a client shows in its own way."""

    byte_range: ByteRange
    placeholder: str | None = None


class TextInput(Params, frozen=True, kw_only=True, tag="text", tag_field="type"):
    """Words."""

    text: str
    text_elements: list[TextElement] = msgspec.field(name="text_elements", default_factory=list[TextElement])


class ImageInput(Params, frozen=True, kw_only=True, tag="image", tag_field="type"):
    """A picture, as a data URL."""

    url: str
    detail: Detail | None = None


class LocalImageInput(Params, frozen=True, kw_only=True, tag="localImage", tag_field="type"):
    """A picture, as a file."""

    path: str
    detail: Detail | None = None


class AudioInput(Params, frozen=True, kw_only=True, tag="audio", tag_field="type"):
    """A recording, as a data URL."""

    url: str


class LocalAudioInput(Params, frozen=True, kw_only=True, tag="localAudio", tag_field="type"):
    """A recording, as a file."""

    path: str


class SkillInput(Params, frozen=True, kw_only=True, tag="skill", tag_field="type"):
    """A skill that a person names."""

    name: str
    path: str


class MentionInput(Params, frozen=True, kw_only=True, tag="mention", tag_field="type"):
    """A file or another thing that a person mentions."""

    name: str
    path: str


InputPart = TextInput | ImageInput | LocalImageInput | AudioInput | LocalAudioInput | SkillInput | MentionInput


class GranularParams(Params, frozen=True, kw_only=True):
    """Which kinds of questions are asked; the others are answered with no."""

    granular: GranularApproval


class SandboxPolicyParams(Params, frozen=True, kw_only=True):
    """What the commands of a turn may do."""

    type: Literal["dangerFullAccess", "readOnly", "workspaceWrite", "externalSandbox"]
    network_access: bool | str = False
    writable_roots: list[str] | None = None


class _Overrides(Params, frozen=True, kw_only=True):
    """Settings of a thread, instead of those of the person."""

    model: str | None = None
    model_provider: str | None = None
    cwd: str | None = None
    approval_policy: ApprovalName | GranularParams | None = None
    approvals_reviewer: Literal["user", "auto_review", "guardian_subagent"] | None = None
    sandbox: SandboxName | None = None
    config: Json | None = None
    base_instructions: str | None = None
    developer_instructions: str | None = None
    personality: Literal["none", "friendly", "pragmatic"] | None = None


class ThreadStartParams(_Overrides, frozen=True, kw_only=True):
    """Start a thread."""

    ephemeral: bool | None = None
    service_name: str | None = None
    thread_source: str | None = None
    experimental_raw_events: bool = False
    """Tell of every item of the model's view by `rawResponseItem/completed`, too."""


class ThreadResumeParams(_Overrides, frozen=True, kw_only=True):
    """Go on with a thread."""

    thread_id: str
    exclude_turns: bool | None = None


class ThreadForkParams(_Overrides, frozen=True, kw_only=True):
    """Go on with a copy of a thread, up to a turn."""

    thread_id: str
    last_turn_id: str | None = None
    before_turn_id: str | None = None
    ephemeral: bool | None = None
    exclude_turns: bool | None = None


class ThreadListParams(Params, frozen=True, kw_only=True):
    """Which threads to list."""

    cursor: str | None = None
    limit: Limit | None = None
    sort_key: Literal["created_at", "updated_at", "recency_at", "section_position"] | None = None
    sort_direction: Literal["asc", "desc"] | None = None
    model_providers: list[str] | None = None
    source_kinds: list[SourceKind] | None = None
    archived: bool | None = None
    cwd: str | list[str] | None = None
    search_term: str | None = None
    section_id: str | None = None
    parent_thread_id: str | None = None
    """Only the sub-agents that this thread started."""
    ancestor_thread_id: str | None = None
    """Only the sub-agents that this thread started, and those that they started."""


class ThreadParams(Params, frozen=True, kw_only=True):
    """A thread."""

    thread_id: str


class ThreadReadParams(ThreadParams, frozen=True, kw_only=True):
    """A thread, with or without its turns."""

    include_turns: bool = False


class ThreadNameParams(ThreadParams, frozen=True, kw_only=True):
    """The name of a thread."""

    name: str


class ThreadRollbackParams(ThreadParams, frozen=True, kw_only=True):
    """How many turns to take back."""

    num_turns: Limit


class ThreadRevertParams(ThreadParams, frozen=True, kw_only=True):
    """The first turn to take back."""

    before_turn_id: str


class ReadStateOperation(Params, frozen=True, kw_only=True):
    """What to mark a thread as."""

    type: Literal["read", "unread"]


class ReadStateParams(ThreadParams, frozen=True, kw_only=True):
    """Mark a thread as read or unread, if it is still as the client saw it."""

    operation: ReadStateOperation
    expected_revision: str


class MemoryModeParams(ThreadParams, frozen=True, kw_only=True):
    """Whether memory learns from a thread."""

    mode: Literal["enabled", "disabled"]


class TurnListParams(ThreadParams, frozen=True, kw_only=True):
    """Which turns to list."""

    cursor: str | None = None
    limit: Limit | None = None
    sort_direction: Literal["asc", "desc"] | None = None
    items_view: Literal["notLoaded", "summary", "full"] | None = None


class PageParams(Params, frozen=True, kw_only=True):
    """A page of a list."""

    cursor: str | None = None
    limit: Limit | None = None


class ModelListParams(PageParams, frozen=True, kw_only=True):
    """Which models to list."""

    include_hidden: bool | None = None


class CollaborationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a mode, with the names that Codex gives them."""

    model: str
    reasoning_effort: str | None = None
    developer_instructions: str | None = None
    """Words about the mode, in place of those that it has."""


class CollaborationModeParams(Params, frozen=True, kw_only=True):
    """How the person and the model work together; in plan mode nothing is changed."""

    mode: Mode
    settings: CollaborationSettings


class ToolOutputParams(Params, frozen=True, kw_only=True):
    """What another program says, as the output of a tool that nobody called."""

    name: str
    output: str | list[Json]
    namespace: str | None = None


class TurnStartParams(ThreadParams, frozen=True, kw_only=True):
    """Start a turn, or steer the one that runs."""

    input: list[InputPart]
    client_user_message_id: str | None = None
    additional_context: dict[str, AdditionalContext] | None = None
    cwd: str | None = None
    approval_policy: ApprovalName | GranularParams | None = None
    sandbox_policy: SandboxPolicyParams | None = None
    model: str | None = None
    effort: str | None = None
    summary: str | None = None
    personality: Literal["none", "friendly", "pragmatic"] | None = None
    output_schema: Json | None = None
    collaboration_mode: CollaborationModeParams | None = None
    """It comes before `model` and `effort`."""
    tool_output: ToolOutputParams | None = None


class TurnSteerParams(ThreadParams, frozen=True, kw_only=True):
    """Put input into the running turn."""

    expected_turn_id: str
    input: list[InputPart]
    client_user_message_id: str | None = None
    additional_context: dict[str, AdditionalContext] | None = None


class TurnInterruptParams(ThreadParams, frozen=True, kw_only=True):
    """End the running turn; an empty id means the one that is starting."""

    turn_id: str


class ConfigReadParams(Params, frozen=True, kw_only=True):
    """What of the settings to show."""

    include_layers: bool = False
    cwd: str | None = None


class LoginParams(Params, frozen=True, kw_only=True):
    """How to sign in; only by a key."""

    type: Literal["apiKey", "chatgpt", "chatgptDeviceCode", "chatgptAuthTokens"]
    api_key: str | None = None


class LoginCancelParams(Params, frozen=True, kw_only=True):
    """A sign-in that is going on."""

    login_id: str


class AccountReadParams(Params, frozen=True, kw_only=True):
    """Ask for the account."""

    refresh_token: bool = False


class MemorySearchParams(Params, frozen=True, kw_only=True):
    """Search sessions and memory."""

    query: str
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    project: str | None = None


class MemoryReadParams(Params, frozen=True, kw_only=True):
    """Read a file of the memory."""

    path: str
    first_line: Annotated[int, Meta(ge=1)] = 1
    max_lines: Annotated[int, Meta(ge=1)] | None = None
    project: str | None = None


class MemoryNoteParams(Params, frozen=True, kw_only=True):
    """Write a note down."""

    text: str
    cwd: str | None = None

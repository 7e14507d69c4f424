"""The types of the settings: each field's type, range, default and purpose, in one place.

`Annotated` with a `Meta` that has a description makes a field a setting; `table` derives from these annotations the
rows that the file, the environment, flags, `config show` and `docs/settings.md` use. A field without one is no setting:
it says what the settings were read from, or holds a table that its user checks.
"""

# Annotations are values here, not text (no `from __future__`): `table` reads them at every start of the program, and
# evaluating text would take longer than importing this package.

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Approval = Literal["untrusted", "on-request", "never"]
Fsync = Literal["turn", "line", "never"]
Mode = Literal["default", "plan", "execute", "pair_programming"]
Sandbox = Literal["read-only", "workspace-write", "danger-full-access"]
Tone = Literal["none", "friendly", "pragmatic"]
WebSearchMode = Literal["disabled", "cached", "live"]


class MemorySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The table `[memory]`: what is learned, by whom, and what it may cost."""

    extract_model: Annotated[str, Meta(description="who extracts: `embedded` or `provider:model`")] = "embedded"
    consolidate_model: Annotated[str, Meta(description="who consolidates: `embedded` or `provider:model`")] = "embedded"
    use: Annotated[bool, Meta(description="tell the agent what is remembered")] = True
    generate: Annotated[bool, Meta(description="learn from sessions")] = True
    tools: Annotated[bool, Meta(description="give the agent memory tools")] = True
    background: Annotated[bool, Meta(description="learn in the background of a session")] = True
    prompt_hits: Annotated[
        bool, Meta(description="hooks add the best lessons to a prompt in Codex and Claude Code; run `setup` again")
    ] = False
    disable_on_external_context: Annotated[
        bool, Meta(description="do not learn from sessions that read the web or MCP")
    ] = False
    max_rollout_age_days: Annotated[int, Meta(ge=0, le=90, description="the background reads no older sessions")] = 30
    min_rollout_idle_hours: Annotated[
        int, Meta(ge=1, le=48, description="the background reads sessions that were quiet this long")
    ] = 6
    max_rollouts_per_start: Annotated[int, Meta(ge=1, le=128, description="sessions per background start")] = 16
    extract_concurrency: Annotated[int, Meta(ge=1, le=64, description="extractions at once")] = 8
    max_running: Annotated[int, Meta(ge=1, le=1024, description="extractions at once over all processes")] = 64
    max_raw_memories: Annotated[int, Meta(ge=1, le=4096, description="sessions whose summaries are files")] = 1024
    max_unused_days: Annotated[int, Meta(ge=0, le=365, description="older lessons are told after newer ones")] = 30
    lines_per_project: Annotated[int, Meta(ge=5, le=400, description="lines of one project in MEMORY.md")] = 40
    review: Annotated[bool, Meta(description="lessons wait until a person keeps them")] = False
    extract_lease_seconds: Annotated[int, Meta(ge=1, le=14_400, description="lease of one extraction")] = 300
    extract_heartbeat_seconds: Annotated[int, Meta(ge=1, description="its heartbeat")] = 60
    consolidate_lease_seconds: Annotated[int, Meta(ge=1, le=14_400, description="lease of a consolidation")] = 3600
    consolidate_heartbeat_seconds: Annotated[int, Meta(ge=1, description="its heartbeat")] = 90
    summary_bytes: Annotated[
        int, Meta(ge=0, description="most bytes of memory_summary.md; its headings always stand")
    ] = 10_000
    prompt_tokens: Annotated[int, Meta(ge=0, description="size of the prompt section")] = 5_000
    percent_of_dialogue: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            description="size of MEMORY.md and the summary, of the dialogue learned from; never below 6,000 bytes",
        ),
    ] = 12
    min_rate_limit_remaining_percent: Annotated[
        int, Meta(ge=0, le=100, description="leave the rest of a rate limit alone")
    ] = 25
    extract_run_requests: Annotated[
        int, Meta(ge=0, description="requests to a model for reading sessions in one run; 0: no limit")
    ] = 400
    extract_run_tokens: Annotated[
        int, Meta(ge=0, description="tokens for reading sessions in one run; 0: no limit")
    ] = 4_000_000
    extract_run_seconds: Annotated[
        int, Meta(ge=0, description="time for reading sessions in one run, by a model; 0: no limit")
    ] = 3_600
    extract_day_requests: Annotated[
        int, Meta(ge=0, description="requests to a model for reading sessions on one day (UTC); 0: no limit")
    ] = 1_000
    extract_day_tokens: Annotated[
        int, Meta(ge=0, description="tokens for reading sessions on one day (UTC); 0: no limit")
    ] = 10_000_000
    extract_day_seconds: Annotated[
        int, Meta(ge=0, description="time for reading sessions on one day (UTC), by a model; 0: no limit")
    ] = 14_400
    consolidate_run_requests: Annotated[
        int, Meta(ge=0, description="requests to a model for putting the memory together in one run; 0: no limit")
    ] = 60
    consolidate_run_tokens: Annotated[
        int, Meta(ge=0, description="tokens for putting the memory together in one run; 0: no limit")
    ] = 600_000
    consolidate_run_seconds: Annotated[
        int, Meta(ge=0, description="time for putting the memory together in one run, by a model; 0: no limit")
    ] = 1_800
    consolidate_day_requests: Annotated[
        int, Meta(ge=0, description="requests to a model for putting the memory together on one day (UTC); 0: no limit")
    ] = 300
    consolidate_day_tokens: Annotated[
        int, Meta(ge=0, description="tokens for putting the memory together on one day (UTC); 0: no limit")
    ] = 3_000_000
    consolidate_day_seconds: Annotated[
        int, Meta(ge=0, description="time for putting the memory together on one day (UTC), by a model; 0: no limit")
    ] = 7_200
    ask_tokens: Annotated[
        int, Meta(ge=0, description="`learn` asks before a model reads more than this; 0: always")
    ] = 200_000
    exclude: Annotated[
        tuple[str, ...], Meta(description="projects, paths and sources that are never learned from")
    ] = ()


class CompactionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The table `[compaction]`: when a history is shortened, and to what."""

    target_percent: Annotated[
        int, Meta(ge=1, le=90, description="size of a compacted history, as a share of the window")
    ] = 30
    at_tokens: Annotated[
        int, Meta(ge=0, description="compact at so many tokens; 0: at nine tenths of the model's window")
    ] = 0
    remote: Annotated[bool, Meta(description="let the model's server sum up, where its API can")] = False
    digest_tokens: Annotated[int, Meta(ge=0, le=64_000, description="room for the digest beside a model's summary")] = (
        2_000
    )


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The table `[agents]`: sub-agents that the agent may start. Its other tables are roles."""

    enabled: Annotated[bool, Meta(description="give the agent tools that start other agents")] = True
    max_depth: Annotated[
        int, Meta(ge=0, le=8, description="how deep agents may start agents; 1: only the agent of the session")
    ] = 1
    max_concurrent_threads_per_session: Annotated[
        int, Meta(ge=1, le=256, description="open sub-agents of one session; each counts until it is closed")
    ] = 6
    default_subagent_model: Annotated[
        str | None, Meta(description="the model of sub-agents for which none is named; none: that of their parent")
    ] = None
    default_subagent_reasoning_effort: Annotated[
        str | None, Meta(description="how hard sub-agents think for which it is not said; none: as their parent")
    ] = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was decided before the program starts to work."""

    database: Annotated[
        str,
        Meta(
            description="`sqlite` in the home, or a `postgresql://` address",
            extra={
                "beginnings": ("postgresql://", "postgres://"),  # a Meta's pattern would be compiled at every start
                "hint": "Use sqlite or a postgresql:// address.",
            },
        ),
    ] = "sqlite"
    memory_root: Annotated[
        str | None,
        Meta(
            description="the name of a memory that homes on several hosts share; needs PostgreSQL",
            extra={
                "is_name": True,
                "hint": "Use a-z, 0-9, dot, dash and underscore, such as acme.",
            },
        ),
    ] = None
    ledger: Annotated[
        str | None,
        Meta(
            description="a store that session files are uploaded to: `s3://bucket/prefix` or `file:///folder`",
            extra={"beginnings": ("s3://", "file:///"), "hint": "Use s3://bucket/prefix or file:///folder."},
        ),
    ] = None
    model: Annotated[str | None, Meta(description="the agent's model, as `provider:model`")] = None
    effort: Annotated[
        str | None, Meta(description="how hard the model thinks: none, minimal, low, medium, high, xhigh, …")
    ] = None
    personality: Annotated[Tone | None, Meta(description="the tone of answers: friendly or pragmatic")] = None
    mode: Annotated[
        Mode,
        Meta(description="how the agent works: in `plan` mode it changes nothing; a resumed session keeps its own"),
    ] = "default"
    sandbox: Annotated[Sandbox, Meta(description="what the agent's commands may do")] = "read-only"
    sandbox_network: Annotated[bool, Meta(description="let commands in the sandbox use the network")] = False
    web_search: Annotated[WebSearchMode, Meta(description="let the model's server search the web")] = "disabled"
    undo: Annotated[bool, Meta(description="keep the working tree before a turn changes it, for `sessions undo`")] = (
        True
    )
    project_doc_max_bytes: Annotated[
        int, Meta(ge=0, le=2**20, description="most bytes of a project's AGENTS.md files together; 0: none are read")
    ] = 32_768
    project_doc_fallback_filenames: Annotated[
        tuple[str, ...], Meta(description="names of files that count where a folder has no AGENTS.md")
    ] = ()
    project_root_markers: Annotated[
        tuple[str, ...], Meta(description="what makes a folder the root of a project; none: only the folder itself")
    ] = (".git",)
    child_agents_md: Annotated[bool, Meta(description="tell the model how far AGENTS.md files reach")] = False
    approval: Annotated[Approval, Meta(description="when a person is asked before a command runs")] = "on-request"
    fsync: Annotated[Fsync, Meta(description="when lines are made to survive a loss of power")] = "turn"
    blob_bytes: Annotated[int, Meta(ge=1024, le=2**30, description="strings above this size leave their line")] = 65536
    memory: MemorySettings = MemorySettings()
    compaction: CompactionSettings = CompactionSettings()
    agents: AgentSettings = AgentSettings()

    home: Path
    home_source: str
    now: Callable[[], datetime]
    profile: str | None = None
    """The table of `[profiles]` that is in effect."""
    usual_provider: str | None = None
    """The provider of the model that the person set, whichever one the command line names."""
    sources: Mapping[str, str] = {}
    """Where each setting's value came from, by its dotted name."""
    providers: Mapping[str, Any] = {}
    hooks: Mapping[str, Any] = {}
    """Commands of the person's own, by the moment at which they are asked."""
    mcp_servers: Mapping[str, Any] = {}
    """Servers whose tools the agent may call."""
    roles: Mapping[str, Any] = {}
    """Roles of sub-agents by their names: the tables in `[agents]`."""
    projects: Mapping[str, Any] = {}
    """Folders by their paths, each with its `trust_level`: `trusted` or `untrusted`."""
    unknown: tuple[str, ...] = ()
    """Keys of `config.toml` that mean nothing to this version."""
    misspelt: tuple[tuple[str, str], ...] = ()
    """Variables of the environment that are nearly one of ours, with that name."""
    older: tuple[tuple[str, str], ...] = ()
    """Keys of `config.toml` that have another name now, each with that name."""

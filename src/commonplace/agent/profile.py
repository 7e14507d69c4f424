"""The settings of a session: where it works, with which model, what it may do. A value; each turn may have its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from commonplace.agent.agent_identity import AgentIdentity
from commonplace.agent.hooks.config import Hooks
from commonplace.config import Approval, Mode, Sandbox, Tone, WebSearchMode
from commonplace.context.instructions import InstructionSettings, Trust
from commonplace.context.truncate import OUTPUT_POLICY, TruncationPolicy
from commonplace.context.window_limits import ModelWindow
from commonplace.models.providers import Choice
from commonplace.models.retries import RetryPolicy

if TYPE_CHECKING:
    from commonplace.agent.servers.config import ServerConfig


class GranularApproval(msgspec.Struct, frozen=True, kw_only=True):
    """Which kinds of questions a person is asked, by the names of Codex; the others are answered with no."""

    sandbox_approval: bool
    """Commands and changes of files."""
    rules: bool
    """Rules for commands, of which there are none here."""
    mcp_elicitations: bool
    """Calls of tools."""
    skill_approval: bool = False
    request_permissions: bool = False


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one session, or of one turn of it."""

    cwd: Path
    home: Path
    choice: Choice
    base: str
    """The base instructions; a thread keeps those that it began with."""
    developer: str | None = None
    """Instructions of whoever runs the session, besides the base instructions."""
    roots: tuple[Path, ...] = ()
    """Folders besides `cwd` that belong to the work."""
    approval: Approval = "never"
    granular: GranularApproval | None = None
    """Which questions are asked, where a client says so; `approval` is `on-request` then."""
    sandbox: Sandbox = "read-only"
    network: bool = False
    """Commands in the sandbox may use the network."""
    allowed: tuple[tuple[str, ...], ...] = ()
    """The commands that a person always allows in this folder, by the paths of their programs."""
    web_search: WebSearchMode = "disabled"
    """Whether the model's server may search the web: not, in its own cache, or live."""
    effort: str | None = None
    summary: str | None = "auto"
    verbosity: str | None = None
    personality: Tone | None = None
    instructions: InstructionSettings = InstructionSettings()
    """Which AGENTS.md files of the project are read, and how much of them."""
    trust: Trust | None = None
    """Whether the person trusts the folder; an untrusted one has no say."""
    mode: Mode = "default"
    """How the person and the model work together; in plan mode nothing is changed."""
    mode_words: str | None = None
    """A client's own words about the mode, in place of ours."""
    source: Any = "exec"
    thread_source: str = "user"
    originator: str = "commonplace"
    agent: AgentIdentity | None = None
    """Who the sub-agent is whose session this is; None for a session that a person or a client started."""
    memory_mode: Literal["enabled", "disabled"] = "enabled"
    compact_at: int | None = None
    """Tokens at which the history is compacted; None: nine tenths of the window."""
    target_percent: int = 30
    digest_tokens: int = 2_000
    remote_compaction: bool = False
    policy: TruncationPolicy = OUTPUT_POLICY
    hooks: Hooks = {}
    servers: tuple[ServerConfig, ...] = ()
    """The servers whose tools may be called."""
    undo: bool = True
    """Take a snapshot of the working tree before a turn changes it."""
    timezone: str = "Etc/UTC"
    bare: bool = False
    """The model is told its base instructions and its input, and nothing else: no section about its environment, no
    standing instructions of a person or a project, no skills."""
    withheld: tuple[str, ...] = ()
    """Variables that commands do not inherit: those that hold keys."""
    pace: RetryPolicy = RetryPolicy()
    """How long the loop waits before it asks again for an answer that broke off."""

    def asks(self, kind: Literal["run", "change", "call"]) -> bool:
        """Return whether a person can be asked about a command, a change of files or a call."""
        if self.approval == "never" or self.granular is None:
            return self.approval != "never"
        return self.granular.mcp_elicitations if kind == "call" else self.granular.sandbox_approval

    @property
    def approval_policy(self) -> str | dict[str, Any]:
        """When a person is asked, as Codex writes it."""
        if self.approval == "never" or self.granular is None:
            return self.approval
        return {"granular": msgspec.to_builtins(self.granular)}

    @property
    def window(self) -> ModelWindow:
        """The window of the model."""
        info = self.choice.info
        return ModelWindow(info.window, info.max_window)

    @property
    def effective_effort(self) -> str | None:
        """The reasoning effort: as set, else the default of the model."""
        return self.effort or self.choice.info.effort

    @property
    def requested_effort(self) -> str | None:
        """The reasoning effort as a model is asked for it: `ultra` is a mode of Codex's clients that no model knows."""
        if self.effective_effort != "ultra":
            return self.effective_effort
        return self.choice.info.efforts[-1] if self.choice.info.efforts else "xhigh"

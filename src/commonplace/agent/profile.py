"""What a thread runs with: where, by which model, what it may do. A value; a turn may begin with another one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from commonplace.agent.hooks.values import Hooks
from commonplace.config import Approval, Sandbox, Tone, WebSearchMode
from commonplace.context.sections import Mode
from commonplace.context.truncate import OUTPUT_POLICY, Policy
from commonplace.context.window_limits import Window
from commonplace.models.providers import Choice

if TYPE_CHECKING:
    from commonplace.agent.servers.values import Config


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a thread."""

    cwd: Path
    home: Path
    choice: Choice
    base: str
    """The base instructions; a thread keeps those that it began with."""
    roots: tuple[Path, ...] = ()
    """Folders besides `cwd` that belong to the work."""
    approval: Approval = "never"
    sandbox: Sandbox = "read-only"
    network: bool = False
    """Commands in the sandbox may use the network."""
    allowed: tuple[tuple[str, ...], ...] = ()
    """The first words of commands that a person allowed for good."""
    web_search: WebSearchMode = "disabled"
    """Whether the model's server may search the web, and whether in what it has stored or in the web as it is."""
    effort: str | None = None
    summary: str | None = "auto"
    verbosity: str | None = None
    personality: Tone | None = None
    mode: Mode = "default"
    source: Any = "exec"
    originator: str = "commonplace"
    memory_mode: Literal["enabled", "disabled"] = "enabled"
    compact_at: int | None = None
    """Tokens at which the history is compacted; None: nine tenths of the window."""
    target_percent: int = 30
    digest_tokens: int = 2_000
    remote_compaction: bool = False
    policy: Policy = OUTPUT_POLICY
    hooks: Hooks = {}
    servers: tuple[Config, ...] = ()
    """The servers whose tools may be called."""
    undo: bool = True
    """Keep the working tree before each turn that changes it."""
    timezone: str = "Etc/UTC"
    bare: bool = False
    """The model is told its instructions and its input, and nothing else: no surroundings, no standing instructions of
    a person or a project, no skills."""
    withheld: tuple[str, ...] = ()
    """Variables that commands do not inherit: the names of the keys."""

    @property
    def window(self) -> Window:
        """The window of its model."""
        info = self.choice.info
        return Window(info.window, info.max_window)

    @property
    def effective_effort(self) -> str | None:
        """How hard the model is to think: as asked for, else as its catalogue says."""
        return self.effort or self.choice.info.effort

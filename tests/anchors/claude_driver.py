"""Drive the real Claude Code, pinned and offline, against a scripted model.

The binary lives in the same cache as Codex (`make anchors`). A `ClaudeHome` is a throw-away HOME and working directory;
the environment holds nothing of the caller's but PATH, telemetry and updates are off, and every connection to anything
but loopback is sent to a dead port, so nothing leaves the machine.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from anchors.codex_driver import DEAD_PROXY, Missing

PINNED = "2.1.197"
"""The version whose behaviour the tests state."""


def locate(cache: Path | None = None) -> Path | Missing:
    """Return the native binary of the pinned version, or the reason it is not there."""
    chosen = cache or Path(os.environ.get("COMMONPLACE_ANCHORS") or "~/.cache/commonplace-anchors").expanduser()
    modules = chosen / "claude-code" / PINNED / "node_modules" / "@anthropic-ai"
    manifest = modules / "claude-code" / "package.json"
    if not manifest.is_file():
        return Missing(f"no Claude Code {PINNED} under {chosen} (run `make anchors`)")
    version = cast("dict[str, Any]", json.loads(manifest.read_text("utf-8"))).get("version")
    if version != PINNED:
        return Missing(f"Claude Code {version} is in {chosen}, the tests are about {PINNED}")
    found = sorted(modules.glob("claude-code-*/claude"))
    return found[0] if found else Missing(f"the Claude Code package in {chosen} has no binary for this platform")


@dataclass(frozen=True)
class ClaudeHome:
    """A throw-away home below `root`: `user` is HOME, `demo` the working directory."""

    binary: Path
    root: Path
    base_url: str

    @property
    def user(self) -> Path:
        """HOME."""
        return self.root / "user"

    @property
    def cwd(self) -> Path:
        """The working directory of every session."""
        return self.root / "demo"

    def environment(self) -> dict[str, str]:
        """Return the whole environment of the child."""
        return {
            "HOME": str(self.user),
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "TZ": "Etc/UTC",
            "ANTHROPIC_BASE_URL": self.base_url,
            "ANTHROPIC_API_KEY": "sk-ant-scripted-000000000000000000000000",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "HTTP_PROXY": DEAD_PROXY,
            "HTTPS_PROXY": DEAD_PROXY,
            "ALL_PROXY": DEAD_PROXY,
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def run(self, prompt: str, options: Sequence[str] = (), timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run one session with `claude -p` and return how it ended."""
        # The prompt comes first: an option that takes several values would take it too.
        return self.command("-p", prompt, "--output-format", "json", *options, timeout=timeout)

    def command(self, *arguments: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run the program."""
        for folder in (self.user, self.cwd):
            folder.mkdir(parents=True, exist_ok=True)
        return subprocess.run(
            [str(self.binary), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=self.environment(),
            cwd=self.cwd,
            timeout=timeout,
            check=False,
        )

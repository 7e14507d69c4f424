"""Scripts that are run confined, for tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec

from commonplace.agent.sandbox import SandboxPolicy, SandboxSupport, confine
from commonplace.agent.tools.processes import Launch, Processes, RunningCommand

PYTHON = str(Path(sys.executable).resolve())


class Box:
    """Runs scripts confined, in a project with one folder `src` and one file in it."""

    def __init__(self, level: SandboxSupport, policy: SandboxPolicy, processes: Processes, outside: Path) -> None:
        self.level = level
        self.policy = policy
        self.processes = processes
        self.project = policy.cwd
        self.folder = policy.cwd / "src"
        self.outside = outside
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(outside), "GIT_CONFIG_NOSYSTEM": "1"}

    def start(self, *command: str, background: bool = False, **changed: Any) -> RunningCommand:
        """Start a command in the project's folder, perhaps under a changed policy."""
        launch = Launch(command, self.folder, self.environment, background)
        return self.processes.start(confine(launch, msgspec.structs.replace(self.policy, **changed), self.level))

    async def run(self, script: str, *words: object, **changed: Any) -> tuple[int, str]:
        """Run a shell script; return its code and what it printed."""
        return await self.finish(self.start("/bin/bash", "-c", script, "script", *map(str, words), **changed))

    async def python(self, script: str, *words: object, **changed: Any) -> tuple[int, str]:
        """Run a Python script; return its code and what it printed."""
        return await self.finish(self.start(PYTHON, "-I", "-S", "-c", script, *map(str, words), **changed))

    async def finish(self, running: RunningCommand) -> tuple[int, str]:
        """Wait for a command."""
        with anyio.fail_after(60):
            await running.ended.wait()
        assert running.code is not None
        return running.code, running.output.text()

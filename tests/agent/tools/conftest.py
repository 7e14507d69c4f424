from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from commonplace.agent.tools import processes as processes_module
from commonplace.agent.tools.patch.tool import ApplyPatch
from commonplace.agent.tools.processes import Processes
from commonplace.agent.tools.registry import Registry, ToolContext, ToolInvocation, ToolOutput
from commonplace.agent.tools.shell import Process, Shell

Run = Callable[..., Awaitable[ToolOutput]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The working folder of a session."""
    place = tmp_path / "project"
    place.mkdir()
    return place


@pytest.fixture
def surrounded(folder: Path, home: Path) -> Callable[..., ToolContext]:
    """Make the context of a call."""

    def make(**more: Any) -> ToolContext:
        return ToolContext(cwd=folder, home=home, **more)

    return make


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ignores a request to end is killed soon."""
    monkeypatch.setattr(processes_module, "GRACE_SECONDS", 0.2)


@pytest.fixture
async def processes() -> AsyncIterator[Processes]:
    async with Processes() as running:
        yield running


@pytest.fixture
def run(processes: Processes, surrounded: Callable[..., ToolContext]) -> Run:
    """Call the shell, its processes or the patch tool, as a session does."""
    registry = Registry([Shell(processes), Process(processes), ApplyPatch()])

    async def call(name: str, arguments: Any, **more: Any) -> ToolOutput:
        custom = name == "apply_patch"
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return await registry.run(
            ToolInvocation("call_1", name, text, "custom" if custom else "function"), surrounded(**more)
        )

    return call

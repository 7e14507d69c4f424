"""Servers of all kinds for a test, and what must hold after each: no process is left, and nothing was raised."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import msgspec

from commonplace.agent.servers.config import ServerCommand, ServerConfig
from commonplace.agent.servers.pool import Servers
from commonplace.agent.servers.results import McpResult
from commonplace.agent.tools.registry import Action, Registry, Tool, ToolContext, ToolInvocation, ToolOutput, allow_all

FOLDER = Path(__file__).parent
PATIENCE = 100.0
"""Seconds for what must happen; nothing here waits for them to pass."""


class Here:
    """The servers of a test."""

    def __init__(self, servers: Servers, folder: Path, token: str) -> None:
        self.servers = servers
        self.warnings: list[str] = []
        self.asked: list[Action] = []
        self.token = token
        self._folder = folder
        self._registry = Registry([])

    async def offered(self) -> dict[str, Tool]:
        """Ask for the tools, as a turn does."""
        tools = await self.servers.tools()
        self._registry = Registry(tools)
        return {tool.definition.key: tool for tool in tools}

    async def call(self, name: str, arguments: Any = None, *, refuse: str | None = None, **more: Any) -> ToolOutput:
        """Call a tool by its name among all, as a session does."""

        async def approve(action: Action) -> str | None:
            self.asked.append(action)
            return refuse

        text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        context = ToolContext(cwd=self._folder, home=self._folder, approve=approve, **more)
        return await self._registry.run(ToolInvocation("call_1", name, text), context)


def told(output: ToolOutput) -> str:
    """What a model reads of an output, without the line about time."""
    if isinstance(output.content, str):
        return output.content
    return "\n".join(str(part.get("text", part["type"])) for part in output.content[1:])


def detail(output: ToolOutput) -> McpResult:
    """What is shown of a call."""
    assert isinstance(output.detail, McpResult)
    return output.detail


def hostile(
    behaviour: str, *more: str, name: str = "", start: float = PATIENCE, call: float = PATIENCE
) -> ServerConfig:
    """A server that does something wrong."""
    words = (str(FOLDER / "hostile_stdio.py"), behaviour, "TOKEN", *more)
    return ServerConfig(name or behaviour, ServerCommand(sys.executable, words), start_seconds=start, call_seconds=call)


@asynccontextmanager
async def opened(
    folder: Path, *configs: ServerConfig, environment: dict[str, str] | None = None
) -> AsyncGenerator[Here]:
    """Have servers; afterwards nothing is left of them."""
    token = f"token-{uuid4().hex}"
    marked = [_marked(config, token) for config in configs]
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            warnings: list[str] = []
            servers = Servers(marked, folder, environment or dict(os.environ), tasks, warnings.append)
            here = Here(servers, folder, token)
            here.warnings = warnings
            yield here
            await servers.close()
            assert [] == left(token)
    assert [] == left(token)


def _marked(config: ServerConfig, token: str) -> ServerConfig:
    if not isinstance(config.place, ServerCommand):
        return config
    args = tuple(token if word == "TOKEN" else word for word in config.place.args)
    return msgspec.structs.replace(config, place=msgspec.structs.replace(config.place, args=args))


def left(token: str) -> list[str]:
    """The command lines of living processes that carry a token."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if token.encode() in line:
                found.append(line.replace(b"\0", b" ").decode("utf-8", "replace"))
    return found


__all__ = ["FOLDER", "PATIENCE", "Here", "allow_all", "detail", "hostile", "left", "opened", "told"]

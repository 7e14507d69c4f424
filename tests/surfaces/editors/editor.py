"""An editor: the client of the ACP package, which keeps what it is told and answers what it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import acp
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)

import processes
from exec_driver import Place

_SECONDS = 60.0
"""A bound that only ends what hangs."""


class Editor:
    """What an editor does for an agent."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.asked: list[tuple[ToolCallUpdate, list[PermissionOption]]] = []
        self.choice: str | None = "approved"
        """The option that is chosen; None cancels."""
        self.changed = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        del session_id
        self.updates.append(update)
        self.changed.set()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        del session_id
        self.asked.append((tool_call, options))
        self.changed.set()
        if self.choice is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=self.choice))

    def kinds(self) -> list[str]:
        """The kinds of updates, in order; of neighbours that are alike, one."""
        found: list[str] = []
        for update in self.updates:
            if update.session_update not in (*found[-1:], "usage_update"):
                found.append(update.session_update)
        return found

    def words(self, kind: str = "agent_message_chunk") -> str:
        """What was said in updates of a kind."""
        return "".join(update.content.text for update in self.updates if update.session_update == kind)

    def calls(self) -> dict[str, list[Any]]:
        """The updates of each call of a tool."""
        found: dict[str, list[Any]] = {}
        for update in self.updates:
            if update.session_update.startswith("tool_call"):
                found.setdefault(update.tool_call_id, []).append(update)
        return found

    async def until(self, accept: Any) -> Any:
        """Wait for an update."""
        async with asyncio.timeout(_SECONDS):
            while True:
                found = next((update for update in self.updates if accept(update)), None)
                if found is not None:
                    return found
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def editing(place: Place) -> AsyncGenerator[tuple[ClientSideConnection, Editor]]:
    """Start the agent as an editor does, and shake hands."""
    editor = Editor()
    client: Any = editor
    process = processes.Process(["acp"], stdin=processes.PIPE, env=place.environment(), cwd=place.cwd)
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    taking, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), process.stdout)
    giving, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, process.stdin)
    agent = ClientSideConnection(
        client, asyncio.StreamWriter(giving, protocol, None, loop), reader, use_unstable_protocol=True
    )
    try:
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        yield agent, editor
    finally:
        giving.close()
        assert await asyncio.to_thread(process.wait, _SECONDS) == 0
        await agent.close()
        taking.close()
        assert process.stderr is not None
        process.stderr.close()

"""One connection to a server, through the SDK's session: connect, list the tools, call them, end.

Calls come from other tasks than the one that runs the connection. Conveniences of the SDK that trust a server are not
used: results are not checked against a schema of the server, whose patterns could take years to match.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from commonplace.agent.servers import http_transport
from commonplace.agent.servers.config import ServerAddress, ServerConfig
from commonplace.agent.servers.connection_state import Call, CallFailed, ConnectionState, Listing, innermost
from commonplace.agent.servers.messages import Inbox, Item, Outbox, decode
from commonplace.agent.servers.results import MOST_BLOCKS, CallResult
from commonplace.agent.servers.stdio_transport import StdioTransport
from commonplace.agent.servers.tool_list import MOST_TOOLS, ToolOffer, clean, tools_to_offer
from commonplace.version import __version__

MOST_PAGES: Final = 32
"""Pages of a list of tools that are asked for."""
MOST_LISTED: Final = 4 * MOST_TOOLS
"""Tools of a list that are read; some of them may be disabled in the settings."""
MOST_MISTAKES: Final = 1000
"""With more validation errors than this in one answer, only their number is told: making their texts takes long."""
CLOSE_SECONDS: Final = 3.0
"""How long the SDK's session has to end."""

for _name in ("mcp", "client"):  # the SDK logs under both names; without a handler, Python prints warnings to stderr
    logging.getLogger(_name).addHandler(logging.NullHandler())


async def run_connection(
    config: ServerConfig, transport: StdioTransport | None, headers: Mapping[str, str], state: ConnectionState
) -> None:
    """Connect to a server, set its state to ready, and return when the state says that it is over.

    Raises whatever went wrong.
    """
    with anyio.CancelScope() as whole:
        async with (
            _streams(config, transport, headers, state) as (inbox, outbox),
            ClientSession(
                inbox, outbox, client_info=types.Implementation(name="commonplace", version=__version__)
            ) as s,
        ):
            state.starting = anyio.CancelScope(deadline=anyio.current_time() + config.start_seconds)
            with state.starting:
                if not state.over.is_set():
                    state.offer = await _begin(s, config)
                    state.call = _caller(s)
                    state.listing = _lister(s, config)
                    state.on_ready()
                    state.settled.set()
            if state.call is None:
                state.end(f"it was not ready within {config.start_seconds:g} seconds", polite=False)
            await state.over.wait()
            whole.deadline = anyio.current_time() + CLOSE_SECONDS


def _streams(
    config: ServerConfig, transport: StdioTransport | None, headers: Mapping[str, str], state: ConnectionState
) -> AbstractAsyncContextManager[tuple[Inbox, Outbox]]:
    if transport is not None:
        return _over_stdio(transport, state)
    assert isinstance(config.place, ServerAddress)
    return http_transport.connect(config, config.place, headers, state)


@asynccontextmanager
async def _over_stdio(transport: StdioTransport, state: ConnectionState) -> AsyncGenerator[tuple[Inbox, Outbox]]:
    outbox = Outbox(state)

    async def next_item() -> Item:
        return decode(await transport.line())

    async def write(each: SessionMessage) -> None:
        text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
        await transport.write(text.encode("utf-8", "replace") + b"\n")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(transport.listen)
        tasks.start_soon(outbox.forward, write, "it takes no input any more")
        try:
            yield Inbox(next_item, outbox, state), outbox
        finally:
            outbox.close()
            tasks.cancel_scope.cancel()


async def _begin(session: ClientSession, config: ServerConfig) -> ToolOffer:
    server = await session.initialize()
    return ToolOffer() if server.capabilities.tools is None else await _list(session, config)


async def _list(session: ClientSession, config: ServerConfig) -> ToolOffer:
    """Return the tools of a server, from a bounded number of pages."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        request = types.ListToolsRequest(params=types.PaginatedRequestParams(cursor=cursor) if cursor else None)
        page = await session.send_request(request, types.ListToolsResult)
        for tool in page.tools[: MOST_LISTED - len(found)]:
            kept = tool.model_copy(update={"output_schema": None, "icons": None, "meta": None})
            found.append(kept.model_dump(by_alias=True, exclude_none=True))
        cursor = page.next_cursor
        if not cursor or len(found) >= MOST_LISTED:
            break
    return tools_to_offer(config, found)


def _lister(session: ClientSession, config: ServerConfig) -> Listing:
    async def listing() -> ToolOffer:
        try:
            return await _list(session, config)
        except Exception as error:
            raise CallFailed(reason(error)) from None

    return listing


def _caller(session: ClientSession) -> Call:
    async def call(tool: str, arguments: dict[str, Any]) -> CallResult:
        params = types.CallToolRequestParams(name=tool, arguments=arguments)
        try:
            result = await session.send_request(types.CallToolRequest(params=params), types.CallToolResult)
        except Exception as error:
            raise CallFailed(reason(error)) from None
        blocks = [each.model_dump(by_alias=True, exclude_none=True) for each in result.content[:MOST_BLOCKS]]
        left = len(result.content) - len(blocks)
        return CallResult(blocks, result.structured_content, result.is_error, left)

    return call


def reason(error: BaseException) -> str:
    """Return the error of a server in one bounded sentence."""
    error = innermost(error)
    if isinstance(error, MCPError):
        return clean(error.message)[:2000] or f"error {error.code}"
    if isinstance(error, ValidationError):
        return f"it sent what does not follow the protocol ({_mistakes(error)})"
    return clean(f"{type(error).__name__}: {error}")[:500]


def _mistakes(error: ValidationError) -> str:
    count = error.error_count()
    if count > MOST_MISTAKES:
        return f"{count} mistakes"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(each) for each in first["loc"][:8])
    return clean(f"{where}: {first['msg']}")[:300]

"""One life of a server, spoken with through the SDK's session: connect, list the tools, answer calls, end.

Calls come from other tasks than the one in which the server lives. Only what the session itself makes of an answer is
used, and of the SDK's conveniences those that trust a server are not: results are not checked against a schema that the
server wrote, whose patterns could keep us busy for years.
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
from pydantic import ValidationError

from commonplace.agent.servers import web
from commonplace.agent.servers.life import Call, CallFailed, Life, Listing, innermost
from commonplace.agent.servers.messages import Inbox, Item, Outbox, decode
from commonplace.agent.servers.offered import MOST_TOOLS, Offer, clean, offer
from commonplace.agent.servers.pipes import Pipes
from commonplace.agent.servers.results import MOST_BLOCKS, Answer
from commonplace.agent.servers.values import Address, Config
from commonplace.version import __version__

MOST_PAGES: Final = 32
MOST_LISTED: Final = 4 * MOST_TOOLS
"""Tools of a list that are looked at; those that the person does not want are among them."""
MOST_MISTAKES: Final = 1000
"""Beyond so many mistakes in one answer, none is named."""
CLOSE_SECONDS: Final = 3.0
"""How long the session has to end."""

for _name in ("mcp", "client"):  # the SDK logs under both names; without a handler, Python prints warnings to stderr
    logging.getLogger(_name).addHandler(logging.NullHandler())


async def live(config: Config, pipes: Pipes | None, headers: Mapping[str, str], life: Life) -> None:
    """Connect to a server, tell when it is ready, and go on until its life is over. Raises what went wrong."""
    with anyio.CancelScope() as whole:
        async with (
            _streams(config, pipes, headers, life) as (inbox, outbox),
            ClientSession(
                inbox, outbox, client_info=types.Implementation(name="commonplace", version=__version__)
            ) as s,
        ):
            life.starting = anyio.CancelScope(deadline=anyio.current_time() + config.start_seconds)
            with life.starting:
                if not life.over.is_set():
                    life.offer = await _begin(s, config)
                    life.call = _caller(s)
                    life.listing = _lister(s, config)
                    life.settled.set()
            if life.call is None:
                life.end(f"it was not ready within {config.start_seconds:g} seconds", polite=False)
            await life.over.wait()
            whole.deadline = anyio.current_time() + CLOSE_SECONDS


def _streams(
    config: Config, pipes: Pipes | None, headers: Mapping[str, str], life: Life
) -> AbstractAsyncContextManager[tuple[Inbox, Outbox]]:
    if pipes is not None:
        return _piped(pipes, life)
    assert isinstance(config.place, Address)
    return web.connected(config, config.place, headers, life)


@asynccontextmanager
async def _piped(pipes: Pipes, life: Life) -> AsyncGenerator[tuple[Inbox, Outbox]]:
    outbox = Outbox(life)

    async def next_item() -> Item:
        return decode(await pipes.line())

    async def forward() -> None:
        try:
            async for each in outbox.waiting:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                await pipes.write(text.encode("utf-8", "replace") + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            life.end("it takes no input any more")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pipes.listen)
        tasks.start_soon(forward)
        try:
            yield Inbox(next_item, outbox, life), outbox
        finally:
            outbox.close()
            tasks.cancel_scope.cancel()


async def _begin(session: ClientSession, config: Config) -> Offer:
    told = await session.initialize()
    return Offer() if told.capabilities.tools is None else await _list(session, config)


async def _list(session: ClientSession, config: Config) -> Offer:
    """Return the tools of a server, from as many pages as it may have."""
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
    return offer(config, found)


def _lister(session: ClientSession, config: Config) -> Listing:
    async def listing() -> Offer:
        try:
            return await _list(session, config)
        except Exception as error:
            raise CallFailed(reason(error)) from None

    return listing


def _caller(session: ClientSession) -> Call:
    async def call(tool: str, arguments: dict[str, Any]) -> Answer:
        params = types.CallToolRequestParams(name=tool, arguments=arguments)
        try:
            result = await session.send_request(types.CallToolRequest(params=params), types.CallToolResult)
        except Exception as error:
            raise CallFailed(reason(error)) from None
        blocks = [each.model_dump(by_alias=True, exclude_none=True) for each in result.content[:MOST_BLOCKS]]
        left = len(result.content) - len(blocks)
        return Answer(blocks, result.structured_content, result.is_error, left)

    return call


def reason(error: BaseException) -> str:
    """Return in a sentence what went wrong."""
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

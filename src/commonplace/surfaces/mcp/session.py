"""One client's session with the server, over any transport: messages come in, answers go out.

Nothing that a client sends ends the session: what is wrong with a message becomes an error in its answer, what goes
wrong in a tool becomes a tool error. A client of the older era introduces itself first; one of the modern era says with
each request who it is, and is never asked anything. The scope is the server's `--project`, else the client's roots,
else the folder that the server was started in.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeAlias, cast
from urllib.parse import unquote, urlsplit

import anyio

from commonplace.app.memory_tools import MemoryTools
from commonplace.errors import CommonplaceError
from commonplace.surfaces.mcp import protocol, rendering
from commonplace.surfaces.mcp.protocol import Batch, ClientAnswer, Fault, Id, Json, Notification, Refusal, RpcRequest

Send: TypeAlias = Callable[[Json], None]
"""Takes a message to the client that is no answer: something that we ask."""
Handler: TypeAlias = "Callable[[McpSession, Json, Send], Awaitable[Json]]"

_ANSWER_SECONDS: Final = 2.0
"""How long a client may think about what it is asked."""
SLOW: Final = frozenset({"tools/call", "resources/read", "tools/list"})
"""Methods that load or read something; the others are answered at once."""


class McpSession:
    """The state of one client, and the answers to it."""

    def __init__(self, tools: MemoryTools, warn: Callable[[str], None]) -> None:
        self.tools = tools
        self.version: str | None = None
        self._client = ""
        self._warn = warn
        self._has_roots = False
        self._roots_known = False
        self._looking = anyio.Lock()
        self._asked: dict[str, tuple[anyio.Event, list[ClientAnswer]]] = {}
        self._count = 0
        self._running: dict[Id, list[anyio.CancelScope]] = {}
        self._closed = False

    async def answer(self, batch: Batch, send: Send) -> Json | list[Json] | None:
        """Return the answer to a batch; None if nothing in it needs one."""
        if not batch.is_batch:
            return await self._one(batch.messages[0], send)
        if self.version is not None and self.version not in protocol.BATCH_VERSIONS:
            return protocol.error(None, protocol.INVALID_REQUEST, f"Version {self.version} has no batches.")
        answers = [await self._one(message, send) for message in batch.messages]
        return [each for each in answers if each is not None] or None

    def close(self) -> None:
        """End the session of a client that is gone: requests that wait for its answer go on without it."""
        self._closed = True
        for arrived, _ in self._asked.values():
            arrived.set()

    async def _one(self, message: protocol.Message, send: Send) -> Json | None:
        match message:
            case Refusal():
                return protocol.error(message.id, message.code, message.message)
            case ClientAnswer():
                self._hear(message)
            case Notification():
                self._note(message)
            case RpcRequest():
                return await self._cancellable(message, send)
        return None

    def _hear(self, reply: ClientAnswer) -> None:
        waiting = self._asked.get(reply.id) if isinstance(reply.id, str) else None
        if waiting is not None:
            arrived, replies = waiting
            replies.append(reply)
            arrived.set()

    def _note(self, notice: Notification) -> None:
        if notice.method == "notifications/roots/list_changed":
            self._roots_known = False
        elif notice.method == "notifications/cancelled":
            meant = notice.params.get("requestId")
            if isinstance(meant, str | int) and not isinstance(meant, bool):
                for scope in self._running.get(meant, ()):
                    scope.cancel()

    async def _cancellable(self, request: RpcRequest, send: Send) -> Json | None:
        """Answer a request, unless the client says meanwhile that it does not want the answer any more."""
        with anyio.CancelScope() as scope:
            running = self._running.setdefault(request.id, [])
            running.append(scope)
            try:
                return await self._answered(request, send)
            finally:
                running.remove(scope)
                if not running:
                    self._running.pop(request.id, None)
        return None

    async def _answered(self, request: RpcRequest, send: Send) -> Json:
        try:
            return protocol.result(request.id, await self._result(request, send))
        except Fault as fault:
            return protocol.error(request.id, fault.code, fault.message, fault.data)
        except CommonplaceError as failed:
            return protocol.error(request.id, protocol.INTERNAL_ERROR, failed.sentence())
        except Exception as unexpected:  # whatever it is, the server goes on
            self._warn("".join(traceback.format_exception(unexpected)).rstrip())
            sentence = f"The server failed ({type(unexpected).__name__}); what happened is in its log."
            return protocol.error(request.id, protocol.INTERNAL_ERROR, sentence)

    async def _result(self, request: RpcRequest, send: Send) -> Json:
        method, params = request.method, request.params
        if method == "initialize":
            return await self._initialize(params)
        if protocol.envelope(params) is not None:
            handler = _MODERN.get(method)
            if handler is None:
                raise _unknown(method)
            return rendering.modern_result(method, await handler(self, params, _nowhere))
        if method == "ping":
            return {}
        handler = _METHODS.get(method)
        if handler is None:
            raise _unknown(method)
        if self.version is None:
            raise Fault(protocol.INVALID_REQUEST, "The session begins with `initialize`.")
        if not isinstance(params.get("_meta", {}), dict):
            raise Fault(protocol.INVALID_PARAMS, "The _meta is an object.")
        return await handler(self, params, send)

    async def _initialize(self, params: Json) -> Json:
        if self.version is not None:
            raise Fault(protocol.INVALID_REQUEST, "The session has begun already.")
        asked, capabilities = params.get("protocolVersion"), params.get("capabilities", {})
        if not isinstance(asked, str):
            raise Fault(protocol.INVALID_PARAMS, "The protocolVersion is a text.")
        if not isinstance(capabilities, dict) or not isinstance(params.get("clientInfo", {}), dict):
            raise Fault(protocol.INVALID_PARAMS, "The capabilities and the clientInfo are objects.")
        known = asked in protocol.HANDSHAKE_VERSIONS
        self.version = asked if known else protocol.HANDSHAKE_VERSIONS[-1]
        self._has_roots = isinstance(cast("Json", capabilities).get("roots"), dict)
        self._client = protocol.client_name(params.get("clientInfo"))
        return {
            "protocolVersion": self.version,
            "capabilities": rendering.CAPABILITIES,
            "serverInfo": rendering.about(),
            "instructions": rendering.instructions(await self.tools.lessons(self._client, os.environ)),
        }

    async def list_tools(self, params: Json, _: Send) -> Json:
        """List the tools, all on one page."""
        _one_page(params)
        return {"tools": [rendering.tool(each) for each in await self.tools.definitions()]}

    async def call_tool(self, params: Json, send: Send) -> Json:
        """Call a tool; what it cannot do is part of the result."""
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise Fault(protocol.INVALID_PARAMS, "A tool is called by its name.")
        if arguments is not None and not isinstance(arguments, dict):
            raise Fault(protocol.INVALID_PARAMS, "The arguments are an object.")
        if name not in {each.name for each in await self.tools.definitions()}:
            raise Fault(protocol.INVALID_PARAMS, f"There is no tool called {rendering.any_text(name)}.")
        await self._look_around(send)
        try:
            return rendering.tool_result(await self.tools.call(name, cast("Json", arguments or {})))
        except CommonplaceError as failed:
            return rendering.tool_error(failed.sentence())
        except OSError as failed:
            return rendering.tool_error(f"The memory cannot be read: {failed.strerror or failed}.")

    async def list_resources(self, params: Json, _: Send) -> Json:
        """List the one resource."""
        _one_page(params)
        return {"resources": [rendering.summary()]}

    async def read_resource(self, params: Json, send: Send) -> Json:
        """Return what is remembered, as it would stand in a prompt here."""
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise Fault(protocol.INVALID_PARAMS, "A resource is read by its uri.")
        envelope = protocol.envelope(params)
        if uri != rendering.SUMMARY_URI:
            code = protocol.INVALID_PARAMS if envelope is not None else protocol.RESOURCE_NOT_FOUND
            raise Fault(code, f"There is no resource {rendering.any_text(uri)}.", {"uri": uri[:1000]})
        await self._look_around(send)
        try:
            client = envelope.client if envelope is not None else self._client
            return rendering.contents(await self.tools.summary(client))
        except OSError as failed:
            reason = f"The memory cannot be read: {failed.strerror or failed}."
            raise Fault(protocol.INTERNAL_ERROR, reason) from None

    async def _look_around(self, send: Send) -> None:
        """Ask a client that has roots for them, once, and again after it said that they changed."""
        if not self._has_roots or self.tools.is_fixed or send is _nowhere:
            return
        async with self._looking:
            if self._roots_known or self._closed:
                return
            self._roots_known = True
            reply = await self._ask("roots/list", send)
            if reply is not None and not reply.refused:
                self.tools.folder = next(iter(_folders(reply.result)), None)

    async def _ask(self, method: str, send: Send) -> ClientAnswer | None:
        """Ask the client something; None if it does not answer in time."""
        self._count += 1
        number = f"commonplace-{self._count}"
        arrived, replies = self._asked[number] = (anyio.Event(), [])
        try:
            send({"jsonrpc": "2.0", "id": number, "method": method})
            with anyio.move_on_after(_ANSWER_SECONDS):
                await arrived.wait()
        finally:
            del self._asked[number]
        return replies[0] if replies else None


def _nowhere(_: Json) -> None:
    """Take a message to a client that is never asked anything."""


def _unknown(method: str) -> Fault:
    return Fault(protocol.METHOD_NOT_FOUND, f"There is no method {rendering.any_text(method)}.")


def _one_page(params: Json) -> None:
    """Refuse a cursor: everything fits on the first page, so no page ever gave one."""
    if params.get("cursor") is not None:
        raise Fault(protocol.INVALID_PARAMS, "There is no page with this cursor.")


def _folders(result: Any) -> list[Path]:
    """Return the folders among a client's roots."""
    roots = cast("Json", result).get("roots") if isinstance(result, dict) else None
    found: list[Path] = []
    for root in cast("list[Any]", roots) if isinstance(roots, list) else []:
        uri = cast("Json", root).get("uri") if isinstance(root, dict) else None
        try:
            parts = urlsplit(uri) if isinstance(uri, str) else None
        except ValueError:
            continue
        if parts is None or parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            continue
        path = unquote(parts.path)
        if path.startswith("/") and "\0" not in path:
            found.append(Path(path))
    return found


async def _discover(session: McpSession, params: Json, _: Send) -> Json:
    envelope = protocol.envelope(params)
    client = envelope.client if envelope is not None else ""
    return rendering.discovery(await session.tools.lessons(client, os.environ))


async def _no_templates(_: McpSession, params: Json, __: Send) -> Json:
    _one_page(params)
    return {"resourceTemplates": []}


async def _no_prompts(_: McpSession, params: Json, __: Send) -> Json:
    _one_page(params)
    return {"prompts": []}


async def _set_level(_: McpSession, params: Json, __: Send) -> Json:
    if not isinstance(params.get("level"), str):
        raise Fault(protocol.INVALID_PARAMS, "The level is a text.")
    return {}


_SHARED: Final[dict[str, Handler]] = {
    "tools/list": McpSession.list_tools,
    "tools/call": McpSession.call_tool,
    "resources/list": McpSession.list_resources,
    "resources/read": McpSession.read_resource,
    "resources/templates/list": _no_templates,
    "prompts/list": _no_prompts,
}
_METHODS: Final[dict[str, Handler]] = {**_SHARED, "logging/setLevel": _set_level}
_MODERN: Final[dict[str, Handler]] = {**_SHARED, "server/discover": _discover}

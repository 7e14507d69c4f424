"""The server over streamable HTTP, on loopback: each message is a POST, its answer the response.

An older client gets a session with `initialize` and names it with each request; a modern one needs none. A response is
plain JSON, unless the client must be asked something before its answer: then it is a stream of both. Streams that a
client opens for news are refused: there is no news.
"""

from __future__ import annotations

import base64
import binascii
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

import anyio

from commonplace.surfaces import asgi, loopback
from commonplace.surfaces.asgi import Receive, Scope, Send
from commonplace.surfaces.loopback import Headers
from commonplace.surfaces.mcp import protocol
from commonplace.surfaces.mcp.protocol import Batch, Fault, Json, Refusal, RpcRequest
from commonplace.surfaces.mcp.server import ServerOptions, SharedState, shared_state, warn
from commonplace.surfaces.mcp.session import McpSession

PATH: Final = "/mcp"
TOKEN_VARIABLE: Final = "COMMONPLACE_MCP_TOKEN"  # noqa: S105  # the variable's name, not a token
MAX_BODY: Final = 16 * 1024 * 1024
_MAX_SESSIONS: Final = 256
_AT_ONCE: Final = 8
_SESSION: Final = "mcp-session-id"
_VERSION: Final = "mcp-protocol-version"
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose object is repeated in a header, and where it stands in the request."""
_STATUS: Final = {
    protocol.PARSE_ERROR: 400,
    protocol.INVALID_REQUEST: 400,
    protocol.INVALID_PARAMS: 400,
    protocol.HEADER_MISMATCH: 400,
    protocol.UNSUPPORTED_VERSION: 400,
    protocol.METHOD_NOT_FOUND: 404,
}
"""How a refusal of the modern era is also said by HTTP."""


class RejectedRequest(Exception):
    """A request that is not served, with its HTTP status."""

    def __init__(
        self,
        status: int,
        message: str,
        code: int = protocol.INVALID_REQUEST,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = protocol.error(None, code, message)
        self.headers = headers


class McpEndpoint:
    """The one address that messages are sent to (an ASGI application)."""

    def __init__(self, shared: SharedState, port: int, token: str) -> None:
        self._shared = shared
        self._port = port
        self._token = token
        self._sessions: dict[str, McpSession] = {}
        self._limit = anyio.Semaphore(_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        try:
            await self._route(scope, receive, send)
        except RejectedRequest as refused:
            await _respond(send, refused.status, refused.body, **refused.headers)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope["headers"])
        refused = loopback.bearer_refusal(headers, self._port, self._token)
        if refused is not None:
            raise RejectedRequest(*refused, headers={"www-authenticate": "Bearer"} if refused[0] == 401 else {})
        if scope["path"] != PATH:
            raise RejectedRequest(404, f"The server is at {PATH}.")
        if scope["method"] == "DELETE":
            self._session(headers, end=True)
            await _respond(send, 204, None)
        elif scope["method"] == "POST":
            await self._post(headers, receive, send)
        else:
            raise RejectedRequest(405, "Messages are sent with POST.", headers={"allow": "POST, DELETE"})

    async def _post(self, headers: Headers, receive: Receive, send: Send) -> None:
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise RejectedRequest(415, "A message is application/json.")
        accepted = headers.get("accept", "*/*").lower()
        if not any(kind in accepted for kind in ("application/json", "application/*", "*/*")):
            raise RejectedRequest(406, "The answer is application/json.")
        batch = protocol.unpack(await _body(headers, receive))
        first = batch.messages[0]
        if isinstance(first, RpcRequest) and not batch.is_batch and _is_modern(first):
            _check_headers(first, headers)
            await self._exchange(self._shared.session(), batch, receive, send, _status_of)
            return
        if isinstance(first, Refusal) and not batch.is_batch:
            raise RejectedRequest(400, first.message, first.code)
        if isinstance(first, RpcRequest) and first.method == "initialize" and not batch.is_batch:
            await self._begin(batch, send)
            return
        self._check_version(headers)
        if headers.get(_VERSION) in protocol.MODERN_VERSIONS and not isinstance(first, RpcRequest):
            await _respond(send, 202, None)  # nothing that a modern client tells matters here
            return
        await self._exchange(self._session(headers), batch, receive, send, _always_fine)

    def _check_version(self, headers: Headers) -> None:
        said = headers.get(_VERSION)
        if said is not None and said not in (*protocol.HANDSHAKE_VERSIONS, *protocol.MODERN_VERSIONS):
            raise RejectedRequest(400, "This version of the protocol is not spoken here.", protocol.UNSUPPORTED_VERSION)

    def _session(self, headers: Headers, *, end: bool = False) -> McpSession:
        name = headers.get(_SESSION)
        if name is None:
            raise RejectedRequest(400, f"The session is named in the header {_SESSION}.")
        session = self._sessions.pop(name, None)
        if session is None:
            raise RejectedRequest(404, "There is no such session (any more).")
        if end:
            session.close()
        else:
            self._sessions[name] = session  # the newest last
        return session

    async def _begin(self, batch: Batch, send: Send) -> None:
        session = self._shared.session()
        answer = await session.answer(batch, _unheard)
        if session.version is None:
            await _respond(send, 200, answer)
            return
        while len(self._sessions) >= _MAX_SESSIONS:
            self._sessions.pop(next(iter(self._sessions))).close()
        name = secrets.token_urlsafe(24)
        self._sessions[name] = session
        await _respond(send, 200, answer, **{_SESSION: name})

    async def _exchange(
        self, session: McpSession, batch: Batch, receive: Receive, send: Send, status: Callable[[Any], int]
    ) -> None:
        """Answer a message; a client that goes away meanwhile wants no answer."""
        outgoing, incoming = anyio.create_memory_object_stream[tuple[Json | list[Json] | None, bool]](16)

        async def work() -> None:
            async with self._limit:
                answer = await session.answer(batch, lambda asked: outgoing.send_nowait((asked, False)))
            outgoing.send_nowait((answer, True))

        async def watch(everything: anyio.CancelScope) -> None:
            while (await receive()).get("type") != "http.disconnect":
                pass
            everything.cancel()

        async with outgoing, incoming, anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            tasks.start_soon(watch, tasks.cancel_scope)
            message, is_last = await incoming.receive()
            if is_last:
                code = 202 if message is None else status(message)
                await _respond(send, code, message)
            else:
                await _stream(send, message, incoming.receive)
            tasks.cancel_scope.cancel()


def _unheard(_: Json) -> None:
    """Take a message that cannot be sent: before a session has begun, nothing is asked."""


def _is_modern(request: RpcRequest) -> bool:
    meta = request.params.get("_meta")
    return request.method != "initialize" and isinstance(meta, dict) and protocol.META_VERSION in meta


def _check_headers(request: RpcRequest, headers: Headers) -> None:
    """Compare what a request says with what its headers say, by which others may have let it pass.

    Raises:
        RejectedRequest: they differ, or the version is none of ours.
    """
    meta = cast("Json", request.params["_meta"])
    key = _NAMED.get(request.method)
    wanted = {_VERSION: meta[protocol.META_VERSION], "mcp-method": request.method}
    if key is not None and isinstance(request.params.get(key), str):
        wanted["mcp-name"] = request.params[key]
    for name, value in wanted.items():
        said = headers.get(name)
        told = _plain(said) if name == "mcp-name" and said is not None else said
        if told != value or name in headers.twice:
            turned = RejectedRequest(400, f"The header {name} and the message differ.", protocol.HEADER_MISMATCH)
            turned.body["id"] = request.id
            raise turned
    try:
        protocol.envelope(request.params)
    except Fault as fault:
        turned = RejectedRequest(400, fault.message, fault.code)
        turned.body = protocol.error(request.id, fault.code, fault.message, fault.data)
        raise turned from None


def _plain(value: str) -> str | None:
    """Return a header's text; what no header can hold comes in base64."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None


def _status_of(answer: Any) -> int:
    error = cast("Json", answer).get("error") if isinstance(answer, dict) else None
    return _STATUS.get(error["code"], 200) if error else 200


def _always_fine(_: Any) -> int:
    return 200


async def _body(headers: Headers, receive: Receive) -> bytes:
    """Return the body of a request (raises RejectedRequest: it is too large)."""
    try:
        return await asgi.read_body(headers, receive, MAX_BODY)
    except asgi.BodyTooLarge:
        raise RejectedRequest(413, f"A message has at most {MAX_BODY // (1024 * 1024)} MB.") from None


async def _respond(send: Send, status: int, answer: Json | list[Json] | None, **extra: str) -> None:
    body = b"" if answer is None else protocol.encode(answer)
    headers = {"cache-control": "no-store", "content-length": str(len(body)), **extra}
    if answer is not None:
        headers["content-type"] = "application/json"
    if status == 204:
        del headers["content-length"]
    lines = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})


async def _stream(send: Send, first: Any, receive: Callable[[], Awaitable[tuple[Any, bool]]]) -> None:
    """Send what is asked and then the answer, as events."""
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    message, is_last = first, False
    while True:
        if message is not None:
            event = b"event: message\ndata: " + protocol.encode(message) + b"\n\n"
            await send({"type": "http.response.body", "body": event, "more_body": True})
        if is_last:
            break
        message, is_last = await receive()
    await send({"type": "http.response.body", "body": b""})


def run(options: ServerOptions, port: int) -> None:
    """Serve clients on a port of this machine until a signal says to end.

    Raises:
        BadInput: the port is taken, or the token is no good.
    """
    token, is_new = loopback.token(os.environ, TOKEN_VARIABLE)
    listening = loopback.listen(port)
    port = listening.getsockname()[1]

    def ready() -> None:
        warn(f"The memory server is at http://127.0.0.1:{port}{PATH} (only from this machine).")
        shown = f"this token: Authorization: Bearer {token}" if is_new else f"the token of {TOKEN_VARIABLE}"
        warn(f"Clients must show {shown}")

    async def inside() -> None:
        async with shared_state(options) as shared:
            await asgi.serve(McpEndpoint(shared, port, token), listening, ready)

    with listening:
        anyio.run(inside)

"""An MCP server over HTTP that does one thing wrong: a server on loopback, in the loop of the test.

What it is to do is its path: `http://127.0.0.1:PORT/BEHAVIOUR`.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import anyio

Json: TypeAlias = dict[str, Any]
TOOLS = [
    {"name": "do", "inputSchema": {"type": "object"}},
    {"name": "ok", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
]
NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}


class Exchange:
    """One request, and what is answered to it."""

    def __init__(self, method: str, behaviour: str, headers: dict[str, str], body: bytes, write: Any) -> None:
        self.method = method
        self.behaviour = behaviour
        self.headers = headers
        self.message: Json = json.loads(body) if body else {}
        self._write = write

    async def send(self, data: bytes) -> None:
        self._write.write(data)
        await self._write.drain()

    async def head(self, status: int, kind: str, **more: str) -> None:
        named = {"Content-Type": kind, "Connection": "close", **{key.replace("_", "-"): more[key] for key in more}}
        lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        await self.send(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode())

    async def json(self, value: Any, status: int = 200, **more: str) -> None:
        await self.head(status, "application/json", **more)
        await self.send(json.dumps(value).encode())

    async def events(self) -> None:
        await self.head(200, "text/event-stream")

    async def event(self, value: Any, number: int | None = None) -> None:
        known = "" if number is None else f"id: {number}\nretry: 0\n"
        await self.send(f"{known}data: {json.dumps(value)}\n\n".encode())

    def result(self, result: Any) -> Json:
        return {"jsonrpc": "2.0", "id": self.message["id"], "result": result}

    def text(self, words: str) -> Json:
        return self.result({"content": [{"type": "text", "text": words}]})


async def _forever(_: Exchange) -> None:
    await asyncio.Event().wait()


async def _endless_json(exchange: Exchange) -> None:
    await exchange.head(200, "application/json")
    while True:
        await exchange.send(b"x" * 65_536)


async def _endless_event(exchange: Exchange) -> None:
    await exchange.events()
    await exchange.send(b"data: ")
    while True:
        await exchange.send(b"x" * 65_536)


async def _endless_events(exchange: Exchange) -> None:
    await exchange.events()
    while True:
        await exchange.event(NOTE)


async def _endless_values(exchange: Exchange) -> None:
    await exchange.head(200, "application/json")
    while True:
        await exchange.send(b"[]," * 20_000)


async def _notes_then_answer(exchange: Exchange) -> None:
    await exchange.events()
    for _ in range(2000):
        await exchange.event(NOTE)
    await exchange.send(b": comment\n\nevent: other\ndata: x\n\n")
    await exchange.event(exchange.text("after the flood"))


async def _no_event(exchange: Exchange) -> None:
    await exchange.events()
    await exchange.send(b"data: {\n\n")


async def _breaks_off(exchange: Exchange) -> None:
    await exchange.events()
    await exchange.event(NOTE)


async def _breaks_off_again(exchange: Exchange) -> None:
    await exchange.events()
    await exchange.event(NOTE, 7)


async def _hangs_in_stream(exchange: Exchange) -> None:
    await exchange.events()
    await exchange.event(NOTE)
    await asyncio.Event().wait()


async def _asks(exchange: Exchange) -> None:
    await exchange.events()
    for number in range(50):
        await exchange.event({"jsonrpc": "2.0", "id": f"q{number}", "method": "sampling/createMessage", "params": {}})
    await exchange.event(exchange.text("asked"))


async def _bomb(exchange: Exchange) -> None:
    await exchange.head(200, "application/json", Content_Encoding="gzip")
    await exchange.send(gzip.compress(b"0" * 50_000_000))


async def _garbage(exchange: Exchange) -> None:
    await exchange.send(b"\x00\xff\x00 this is no HTTP\r\n\r\n")


async def _redirect(exchange: Exchange) -> None:
    await exchange.head(307, "text/plain", Location="http://127.0.0.2:1/elsewhere")


async def _loop(exchange: Exchange) -> None:
    await exchange.head(307, "text/plain", Location=f"/{exchange.behaviour}")


Doing: TypeAlias = Callable[[Exchange], Awaitable[None]]
CALLS: dict[str, Doing] = {
    "hang": _forever,
    "hang-in-stream": _hangs_in_stream,
    "endless-json": _endless_json,
    "endless-event": _endless_event,
    "endless-events": _endless_events,
    "endless-values": _endless_values,
    "notes": _notes_then_answer,
    "no-event": _no_event,
    "breaks-off": _breaks_off,
    "breaks-off-again": _breaks_off_again,
    "asks": _asks,
    "bomb": _bomb,
    "garbage": _garbage,
    "redirect": _redirect,
    "loop": _loop,
    "no-json": lambda exchange: exchange.json("{", 200),
    "types": lambda exchange: exchange.json(exchange.result({"content": 5})),
    "other-id": lambda exchange: exchange.json({"jsonrpc": "2.0", "id": 999, "result": {}}),
    "status": lambda exchange: exchange.head(500, "text/html"),
    "accepted": lambda exchange: exchange.head(202, "text/plain"),
    "page": lambda exchange: exchange.head(200, "text/html"),
    "forgotten": lambda exchange: exchange.head(404, "text/plain"),
}
STARTS: dict[str, Doing] = {
    "start-hang": _forever,
    "start-endless": _endless_json,
    "start-401": lambda exchange: exchange.head(401, "text/plain"),
    "start-garbage": _garbage,
    "start-bomb": _bomb,
    "start-redirect": _redirect,
}


class Web:
    """The server, and what it was asked."""

    def __init__(self) -> None:
        self.port = 0
        self.seen: list[Exchange] = []
        self.ended = anyio.Event()
        """A client said goodbye."""

    def url(self, behaviour: str) -> str:
        return f"http://127.0.0.1:{self.port}/{behaviour}"

    def count(self) -> Counter[str]:
        """How often each HTTP method came."""
        return Counter(each.method for each in self.seen)

    async def answer(self, exchange: Exchange) -> None:
        self.seen.append(exchange)
        behaviour = exchange.behaviour
        if exchange.method == "DELETE":
            self.ended.set()
            if behaviour == "hang-at-end":
                await _forever(exchange)
            await exchange.head(200, "text/plain")
        elif exchange.method == "GET":
            await (CALLS[behaviour](exchange) if "last-event-id" in exchange.headers else _endless_events(exchange))
        elif "id" not in exchange.message or "method" not in exchange.message:
            await exchange.head(202, "text/plain")
        elif exchange.message["method"] == "initialize":
            await self._begin(exchange)
        elif exchange.message["method"] == "tools/list":
            await exchange.json(exchange.result({"tools": TOOLS}))
        elif exchange.message["params"]["name"] == "ok":
            await exchange.json(exchange.text("fine"))
        else:
            await CALLS[behaviour](exchange)

    async def _begin(self, exchange: Exchange) -> None:
        if exchange.behaviour in STARTS:
            await STARTS[exchange.behaviour](exchange)
            return
        about = {"name": "hostile", "version": "0"}
        version = exchange.message["params"]["protocolVersion"]
        result: Json = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        await exchange.json(exchange.result(result), mcp_session_id="s1")


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = lines[0].split(" ")
    named = (line.partition(": ") for line in lines[1:] if line)
    headers = {name.lower(): value for name, _, value in named}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Exchange(method, path.strip("/"), headers, body, writer)


@asynccontextmanager
async def serving() -> AsyncGenerator[Web]:
    """Have the server."""
    web = Web()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await web.answer(await _read(reader, writer))
        with suppress(OSError, asyncio.CancelledError):
            writer.close()
            await writer.wait_closed()

    meetings: set[asyncio.Task[None]] = set()

    def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(meet(reader, writer))
        meetings.add(task)
        task.add_done_callback(meetings.discard)

    server = await asyncio.start_server(met, "127.0.0.1", 0)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()
        for task in [*meetings]:
            task.cancel()
        await asyncio.gather(*meetings, return_exceptions=True)
        await server.wait_closed()

"""What all clients of a server share: the book, the threads that are open, and who is told of what."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import msgspec

from commonplace.agent.thread import Thread
from commonplace.app.book import Book
from commonplace.protocol.ids import is_uuid
from commonplace.surfaces.app_server.connection import Connection
from commonplace.surfaces.app_server.messages import invalid
from commonplace.surfaces.app_server.open_thread import ServedThread

IDLE_SECONDS: Final = 30 * 60.0
"""How long a thread stays open that no client hears, as in Codex."""


class _Gate(msgspec.Struct):
    """A thread's lock, and how many requests hold it or wait for it."""

    lock: anyio.Lock
    users: int = 0


class AppServer:
    """The state that the clients of one server share."""

    def __init__(self, book: Book, log: Callable[[str], None], model: str | None = None) -> None:
        self.book = book
        self.log = log
        self.model = model
        """The model of threads that name none, instead of the person's setting."""
        self.first_environment: Mapping[str, str] | None = None
        """The variables as they were before a client handed a key over."""
        self.threads: dict[str, ServedThread] = {}
        self.idle_seconds = IDLE_SECONDS
        self._gates: dict[str, _Gate] = {}
        self._clients: list[Connection] = []

    @asynccontextmanager
    async def turnstile(self, thread_id: str | None) -> AsyncGenerator[None]:
        """Let requests about one thread in one after the other, from whichever client they come."""
        if thread_id is None:
            yield
            return
        gate = self._gates.setdefault(thread_id.lower(), _Gate(anyio.Lock()))
        gate.users += 1
        try:
            async with gate.lock:
                yield
        finally:
            gate.users -= 1
            if not gate.users:
                del self._gates[thread_id.lower()]

    def came(self, client: Connection) -> None:
        """Note that a client is ready."""
        self._clients.append(client)

    def gone(self, client: Connection) -> None:
        """Note that a client went away: nothing is told to it any more."""
        if client in self._clients:
            self._clients.remove(client)
        for thread in self.threads.values():
            self.leave(thread, client)

    def leave(self, opened: ServedThread, client: Connection) -> bool:
        """Tell a client no more of a thread; return whether it was told. One that nobody hears is closed later."""
        was_told = opened.unsubscribe(client)
        if was_told and not opened.subscribers:
            self.book.tasks.start_soon(self._close_later, opened)
        return was_told

    async def _close_later(self, opened: ServedThread) -> None:
        """Close a thread that nobody heard for a while and in which nothing runs."""
        came = opened.subscriptions
        await anyio.sleep(self.idle_seconds)
        await opened.wait_idle()
        async with self.turnstile(opened.id):
            if self.threads.get(opened.id) is opened and opened.subscriptions == came and not opened.subscribers:
                await self.close_thread(opened.id)
                self.broadcast("thread/closed", {"threadId": opened.id})

    def opened(self, thread: Thread, client: Connection) -> ServedThread:
        """Keep a thread that was opened, and tell a client of what happens in it."""
        kept = self.threads[thread.id] = ServedThread(self.book, thread, self.log)
        kept.subscribe(client)
        return kept

    def attached(self, thread: Thread) -> ServedThread:
        """Keep a thread that nobody asked for, and tell every client of what happens in it."""
        kept = self.threads[thread.id] = ServedThread(self.book, thread, self.log)
        for client in self._clients:
            kept.subscribe(client)
        return kept

    def open_thread(self, thread_id: str) -> ServedThread:
        """Return a thread that is open (raises RpcError: it is not)."""
        found = self.threads.get(checked(thread_id))
        if found is None:
            raise invalid(f"thread not found: {thread_id}")
        return found

    async def close_thread(self, thread_id: str) -> None:
        """Close a thread, if it is open."""
        found = self.threads.pop(thread_id, None)
        if found is not None:
            await found.close()

    def broadcast(self, method: str, params: Any) -> None:
        """Tell every client something."""
        for client in [*self._clients]:
            client.notify(method, params)


def checked(thread_id: str) -> str:
    """Return the id of a thread in the form that is stored (raises RpcError: it is none)."""
    lowered = thread_id.lower()
    if not is_uuid(lowered):
        raise invalid(f"invalid thread id: {thread_id[:100]!r} is no UUID")
    return lowered

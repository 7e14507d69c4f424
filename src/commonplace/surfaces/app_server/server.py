"""What all clients of a server share: the book, the threads that are open, and who is told of what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from commonplace.agent.thread import Thread
from commonplace.app.book import Book
from commonplace.protocol.ids import is_uuid
from commonplace.surfaces.app_server.connection import Connection
from commonplace.surfaces.app_server.messages import invalid
from commonplace.surfaces.app_server.open_thread import OpenThread


class AppServer:
    """The state that the clients of one server share."""

    def __init__(self, book: Book, log: Callable[[str], None], model: str | None = None) -> None:
        self.book = book
        self.log = log
        self.model = model
        """The model of threads that name none, instead of the person's setting."""
        self.first_environment: Mapping[str, str] | None = None
        """The variables as they were before a client handed a key over."""
        self.threads: dict[str, OpenThread] = {}
        self._clients: list[Connection] = []

    def came(self, client: Connection) -> None:
        """Note that a client is ready."""
        self._clients.append(client)

    def gone(self, client: Connection) -> None:
        """Note that a client went away: nothing is told to it any more."""
        if client in self._clients:
            self._clients.remove(client)
        for thread in self.threads.values():
            thread.unsubscribe(client)

    def opened(self, thread: Thread, client: Connection) -> OpenThread:
        """Keep a thread that was opened, and tell a client of what happens in it."""
        kept = self.threads[thread.id] = OpenThread(self.book, thread, self.log)
        kept.subscribe(client)
        return kept

    def open_thread(self, thread_id: str) -> OpenThread:
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

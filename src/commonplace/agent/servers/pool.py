"""The servers of one session: started when tools are first asked for, each in a task of its own, ended together.

A server that failed or ended is started again the next time that tools are asked for, a few times in all. No server can
keep another one from being used, and `tools` raises nothing because of a server.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import anyio
import anyio.abc
import anyio.to_thread

from commonplace.agent.events import ServerStatus
from commonplace.agent.servers.config import (
    ServerAddress,
    ServerCommand,
    ServerConfig,
    environment_of,
    folder_of,
    headers_of,
)
from commonplace.agent.servers.connection_state import CallFailed, ConnectionState, innermost
from commonplace.agent.servers.results import CallResult
from commonplace.agent.servers.stdio_transport import StdioTransport
from commonplace.agent.servers.tool import ServerTool
from commonplace.agent.servers.tool_list import ListedTool, unique
from commonplace.agent.tools.registry import Tool
from commonplace.errors import BadSetting

MOST_STARTS: Final = 4
"""How often a server is started in one session: once, and three times more."""
MOST_SILENCES: Final = 3
"""How many calls in a row a server may leave unanswered before its connection is ended."""

Warn = Callable[[str], None]
Told = Callable[[str, ServerStatus, str | None], None]
"""Gets the name of a server, what became of it, and why it failed."""


class Servers:
    """All servers that are configured and enabled. Nothing is started before `tools` is called.

    The connections run in the given task group; `close` may be called from any task, and leaving the group ends them.
    """

    def __init__(
        self,
        configs: Sequence[ServerConfig],
        cwd: Path,
        environment: Mapping[str, str],
        tasks: anyio.abc.TaskGroup,
        warn: Warn,
        told: Told = lambda name, status, error: None,
    ) -> None:
        self._tasks = tasks
        self._closed = False
        self._servers = [McpServer(config, cwd, environment, warn, told) for config in configs if config.enabled]

    async def tools(self) -> list[Tool]:
        """Return the tools of all servers that are ready; those that are not running are started first, all at once."""
        if self._closed:
            return []
        for server in self._servers:
            server.start(self._tasks)
        async with anyio.create_task_group() as tasks:
            for server in self._servers:
                tasks.start_soon(server.settle)
        offered = unique((server.config.name, each) for server in self._servers for each in server.listed())
        by_name = {server.config.name: server for server in self._servers}
        return [ServerTool(by_name[name], name, each) for name, each in offered]

    def missing(self) -> tuple[str, ...]:
        """Return the names of servers that the person requires and that are not ready."""
        return tuple(each.config.name for each in self._servers if each.config.required and not each.is_ready)

    async def close(self) -> None:
        """End all servers; return when nothing is left of them."""
        self._closed = True
        with anyio.CancelScope(shield=True):
            for server in self._servers:
                server.end()
            for server in self._servers:
                await server.ended()


class McpServer:
    """One configured server, over all of its connections."""

    def __init__(self, config: ServerConfig, cwd: Path, environment: Mapping[str, str], warn: Warn, told: Told) -> None:
        self._status = functools.partial(told, config.name)
        self.config = config
        self._cwd = cwd
        self._environment = environment
        self._warn = warn
        self._state: ConnectionState | None = None
        self._states: list[ConnectionState] = []
        """The connections of which a process may be left."""
        self._starts = 0
        self._silences = 0
        self._told: set[str] = set()

    @property
    def is_ready(self) -> bool:
        """Whether its tools can be called."""
        return self._state is not None and self._state.ready

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """Start the server, unless it runs or was started too often."""
        if (self._state is not None and not self._state.over.is_set()) or tasks.cancel_scope.cancel_called:
            return
        if self._starts >= MOST_STARTS:
            self._tell(f"was started {MOST_STARTS} times and is left alone for the rest of the session")
            return
        self._starts += 1
        self._silences = 0
        self._state = ConnectionState()
        self._states = [*(each for each in self._states if not each.ended.is_set()), self._state]
        self._status("starting", None)
        self._state.on_ready = lambda: self._status("ready", None)
        tasks.start_soon(self._run, self._state, name=f"mcp server {self.config.name}")

    async def settle(self) -> None:
        """Return when the server is ready or has failed; if its tools changed, list them again."""
        state = self._state
        if state is None:
            return
        await state.settled.wait()
        if state.ready and state.changed and state.listing is not None:
            state.changed = False
            try:
                with anyio.fail_after(self.config.start_seconds):
                    state.offer = await state.listing()
            except (CallFailed, TimeoutError) as error:
                self._tell(f"did not tell its new tools: {str(error) or 'it took too long'}")
        if state.ready and state.offer.notes:
            self._tell(f"has tools that are not offered: {', '.join(state.offer.notes)}")

    def listed(self) -> Sequence[ListedTool]:
        """Return the tools that it offers now."""
        return self._state.offer.tools if self._state is not None and self._state.ready else ()

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallResult:
        """Call a tool by the server's own name for it.

        Raises:
            CallFailed: there was no answer, or none that can be used.
        """
        state = self._state
        if state is None or not state.ready or state.call is None:
            raise CallFailed(f"The server {self.config.name} is not running. It is started again with the next turn.")
        try:
            with anyio.fail_after(self.config.call_seconds):
                try:
                    answer = await state.call(tool, arguments)
                except CallFailed:
                    if state.over.is_set():
                        await state.ended.wait()  # only then it is known how it ended
                    raise
        except TimeoutError:
            self._silences += 1
            if self._silences >= MOST_SILENCES:
                state.end("it stopped answering", polite=False)
            text = f"The server {self.config.name} did not answer within {self.config.call_seconds:g} seconds."
            raise CallFailed(text) from None
        except CallFailed as error:
            why = state.reason if state.over.is_set() and state.reason else str(error)
            raise CallFailed(f"The server {self.config.name} failed: {why}") from None
        self._silences = 0
        return answer

    def end(self) -> None:
        """End the connection."""
        if self._state is not None:
            self._state.end()

    async def ended(self) -> None:
        """Return when nothing is left of any connection."""
        for state in self._states:
            if state.began:
                await state.ended.wait()

    async def _run(self, state: ConnectionState) -> None:
        """Run one connection in this task; raises nothing."""
        state.began = True
        code: list[str] = []
        try:
            if not state.over.is_set():
                async with self._process(state, code) as transport:
                    connection = await anyio.to_thread.run_sync(_sdk)
                    await connection.run_connection(self.config, transport, self._headers(), state)
        except Exception as error:  # a server must not end the session
            state.end(_reason(error), polite=False)
        finally:
            state.end()  # cancelled from outside: that is what we wanted
            if state.reason:
                state.reason += "".join(code)
                doing = "stopped" if state.call is not None else "cannot be used"
                self._tell(f"{doing}: {state.reason}")
            if state.call is None:
                self._status("failed" if state.reason else "cancelled", state.reason or None)
            state.settled.set()
            state.ended.set()

    @asynccontextmanager
    async def _process(self, state: ConnectionState, code: list[str]) -> AsyncGenerator[StdioTransport | None]:
        """Run the server's process, if it has one, in this block; how it ended is added to `code`."""
        place = self.config.place
        if isinstance(place, ServerAddress):
            yield None
            return
        transport = self._started(place)
        try:
            yield transport
        finally:
            ended = await transport.end(polite=state.polite and state.over.is_set())
            words = transport.last_words()
            if state.polite and state.over.is_set():  # else it was killed, and the code says only that
                code.append(f" (exit code {ended})")
            code.append(f"; it said: {words}" if words else "")

    def _started(self, place: ServerCommand) -> StdioTransport:
        words = (place.command, *place.args)
        return StdioTransport.start(words, folder_of(place, self._cwd), environment_of(place, self._environment))

    def _headers(self) -> dict[str, str]:
        place = self.config.place
        return headers_of(place, self._environment) if isinstance(place, ServerAddress) else {}

    def _tell(self, text: str) -> None:
        """Warn a person, once for each text."""
        if text not in self._told:
            if len(self._told) < 100:
                self._told.add(text)
            with contextlib.suppress(Exception):  # a broken listener must not end the connection
                self._warn(f"The MCP server {self.config.name} {text}.")


@functools.cache
def _sdk() -> ModuleType:
    """Import what speaks the protocol; the import takes a second, so it runs in a thread."""
    from commonplace.agent.servers import connection  # imports the SDK, which most sessions never need

    return connection


def _reason(error: BaseException) -> str:
    error = innermost(error)
    if isinstance(error, BadSetting):
        return error.sentence()
    if isinstance(error, OSError):
        return f"it cannot be started: {error.strerror or error}"
    return _sdk().reason(error)

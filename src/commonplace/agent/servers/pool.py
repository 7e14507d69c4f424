"""The servers of one session: started when tools are first asked for, each in a task of its own, ended together.

A server that failed, or died since, is started again the next time that tools are asked for, a few times in all.
Nothing that one server does keeps another from being used, and `tools` never raises because of one.
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

from commonplace.agent.servers.life import CallFailed, Life, innermost
from commonplace.agent.servers.offered import Listed, unique
from commonplace.agent.servers.pipes import Pipes
from commonplace.agent.servers.results import Answer
from commonplace.agent.servers.tool import ServerTool
from commonplace.agent.servers.values import Address, Command, Config, environment_of, folder_of, headers_of
from commonplace.agent.tools.registry import Tool
from commonplace.errors import BadSetting

MOST_STARTS: Final = 4
"""How often a server is started in one session: once, and three times more."""
MOST_SILENCES: Final = 3
"""How many calls in a row a server may leave unanswered before it is taken for dead."""

Warn = Callable[[str], None]


class Servers:
    """All servers that are configured and enabled. Nothing is started before `tools` is called.

    The tasks in which servers live are put into the given group; `close` may be called from any task, and leaving the
    group ends them as well.
    """

    def __init__(
        self,
        configs: Sequence[Config],
        cwd: Path,
        environment: Mapping[str, str],
        tasks: anyio.abc.TaskGroup,
        warn: Warn,
    ) -> None:
        self._tasks = tasks
        self._closed = False
        self._servers = [Server(config, cwd, environment, warn) for config in configs if config.enabled]

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


class Server:
    """One configured server, over all of its lives."""

    def __init__(self, config: Config, cwd: Path, environment: Mapping[str, str], warn: Warn) -> None:
        self.config = config
        self._cwd = cwd
        self._environment = environment
        self._warn = warn
        self._life: Life | None = None
        self._lives: list[Life] = []
        """Those of which something may be left."""
        self._starts = 0
        self._silences = 0
        self._told: set[str] = set()

    @property
    def is_ready(self) -> bool:
        """Whether its tools can be called."""
        return self._life is not None and self._life.ready

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """Start it, unless it runs or was started too often."""
        if (self._life is not None and not self._life.over.is_set()) or tasks.cancel_scope.cancel_called:
            return
        if self._starts >= MOST_STARTS:
            self._tell(f"was started {MOST_STARTS} times and is left alone for the rest of the session")
            return
        self._starts += 1
        self._silences = 0
        self._life = Life()
        self._lives = [*(each for each in self._lives if not each.ended.is_set()), self._life]
        tasks.start_soon(self._live, self._life, name=f"mcp server {self.config.name}")

    async def settle(self) -> None:
        """Return when it is ready or has failed; if it said that its tools changed, they are asked for again."""
        life = self._life
        if life is None:
            return
        await life.settled.wait()
        if life.ready and life.changed and life.listing is not None:
            life.changed = False
            try:
                with anyio.fail_after(self.config.start_seconds):
                    life.offer = await life.listing()
            except (CallFailed, TimeoutError) as error:
                self._tell(f"did not tell its new tools: {str(error) or 'it took too long'}")
        if life.ready and life.offer.notes:
            self._tell(f"has tools that are not offered: {', '.join(life.offer.notes)}")

    def listed(self) -> Sequence[Listed]:
        """Return what it offers now."""
        return self._life.offer.tools if self._life is not None and self._life.ready else ()

    async def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """Call a tool by the server's own name for it.

        Raises:
            CallFailed: there was no answer, or none that can be used.
        """
        life = self._life
        if life is None or not life.ready or life.call is None:
            raise CallFailed(f"The server {self.config.name} is not running. It is started again with the next turn.")
        try:
            with anyio.fail_after(self.config.call_seconds):
                try:
                    answer = await life.call(tool, arguments)
                except CallFailed:
                    if life.over.is_set():
                        await life.ended.wait()  # only then it is known how it ended
                    raise
        except TimeoutError:
            self._silences += 1
            if self._silences >= MOST_SILENCES:
                life.end("it stopped answering", polite=False)
            text = f"The server {self.config.name} did not answer within {self.config.call_seconds:g} seconds."
            raise CallFailed(text) from None
        except CallFailed as error:
            why = life.reason if life.over.is_set() and life.reason else str(error)
            raise CallFailed(f"The server {self.config.name} failed: {why}") from None
        self._silences = 0
        return answer

    def end(self) -> None:
        """Let it end."""
        if self._life is not None:
            self._life.end()

    async def ended(self) -> None:
        """Return when nothing is left of it."""
        for life in self._lives:
            if life.began:
                await life.ended.wait()

    async def _live(self, life: Life) -> None:
        """Be the task that it lives in. Nothing that goes wrong leaves it."""
        life.began = True
        code: list[str] = []
        try:
            if not life.over.is_set():
                async with self._process(life, code) as pipes:
                    link = await anyio.to_thread.run_sync(_sdk)
                    await link.live(self.config, pipes, self._headers(), life)
        except Exception as error:  # a stranger's doing must not end the session
            life.end(_reason(error), polite=False)
        finally:
            life.end()  # cancelled from outside: that is what we wanted
            if life.reason:
                life.reason += "".join(code)
                doing = "stopped" if life.call is not None else "cannot be used"
                self._tell(f"{doing}: {life.reason}")
            life.settled.set()
            life.ended.set()

    @asynccontextmanager
    async def _process(self, life: Life, code: list[str]) -> AsyncGenerator[Pipes | None]:
        """Have the server's process, if it is one that we start; how it ended is added to `code`."""
        place = self.config.place
        if isinstance(place, Address):
            yield None
            return
        pipes = self._started(place)
        try:
            yield pipes
        finally:
            ended = await pipes.end(polite=life.polite and life.over.is_set())
            words = pipes.last_words()
            if life.polite and life.over.is_set():  # else it was killed, and the code says only that
                code.append(f" (exit code {ended})")
            code.append(f"; it said: {words}" if words else "")

    def _started(self, place: Command) -> Pipes:
        words = (place.command, *place.args)
        return Pipes.start(words, folder_of(place, self._cwd), environment_of(place, self._environment))

    def _headers(self) -> dict[str, str]:
        place = self.config.place
        return headers_of(place, self._environment) if isinstance(place, Address) else {}

    def _tell(self, text: str) -> None:
        """Tell a person, once."""
        if text not in self._told:
            if len(self._told) < 100:
                self._told.add(text)
            with contextlib.suppress(Exception):  # whoever listens badly must not end the server's task
                self._warn(f"The MCP server {self.config.name} {text}.")


@functools.cache
def _sdk() -> ModuleType:
    """Import what speaks the protocol; it takes a second, in a thread, so that others go on."""
    from commonplace.agent.servers import link

    return link


def _reason(error: BaseException) -> str:
    error = innermost(error)
    if isinstance(error, BadSetting):
        return error.sentence()
    if isinstance(error, OSError):
        return f"it cannot be started: {error.strerror or error}"
    return _sdk().reason(error)

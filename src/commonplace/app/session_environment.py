"""The environment of a session in a home: memory section, citations, memory tools, clock, and removal of secrets.

A failure of the memory never fails a turn: it becomes a warning, and the turn goes on as if there were no memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup

from commonplace.agent.approvals.harmless_commands import Prefix
from commonplace.agent.tools.memory_reads import MemoryRead
from commonplace.agent.tools.registry import (
    Action,
    Tool,
    ToolContext,
    ToolDefinition,
    ToolInvocation,
    ToolOutput,
    failed,
)
from commonplace.app.memory_lender import LazyMemoryLender
from commonplace.context.truncate import truncate
from commonplace.errors import CommonplaceError
from commonplace.memory.store import MemoryStore
from commonplace.protocol.ids import wire_time

if TYPE_CHECKING:
    from commonplace.memory.recall.toolbox import Toolbox
    from commonplace.protocol.citations import Citation

NAMESPACE: Final = "memories"


class HomeEnvironment:
    """The environment of one session in a home."""

    def __init__(self, store: MemoryStore, tasks: TaskGroup, *, memory: bool = True) -> None:
        self._store = store
        self._home = store.home
        self._tasks = tasks
        self._memory = memory and store.home.settings.memory.use
        self._clean: Callable[[str], str] | None = None

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables of this process."""
        return self._home.environment

    def now(self) -> datetime:
        """Return the time, as the settings have it."""
        return self._home.now()

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        return time.monotonic()

    def _has_memory(self) -> bool:
        return self._memory and (self._store.root).is_dir()

    async def remembered(self, cwd: Path) -> str:
        """Return the section about what is remembered in a folder."""
        if self._memory and self._home.is_shared:
            from commonplace.memory.sharing import shared_memory

            await shared_memory.refresh(self._home)
        if not self._has_memory():
            return ""
        from commonplace.memory.recall import scoped_prompt

        # With any tool, no note is to be written as a file: the sandbox refuses it, and it would count as the person's.
        tools = [f"{NAMESPACE}.{name}" for name in _NAMES] if self._home.settings.memory.tools else ["shell"]
        try:
            made = await scoped_prompt.prompt(self._store, folder=cwd, count=True, tools=tools, cites=True)
        except (CommonplaceError, OSError) as error:
            self._home.warn(f"The memory cannot be told: {error}")
            return ""
        return made.text

    async def cited(self, citation: Citation) -> msgspec.Struct | None:
        """Count what an answer cites."""
        from commonplace.memory.recall import usage_counts

        return await usage_counts.count_cited(self._store, citation)

    async def retrieved(self, found: Sequence[MemoryRead]) -> None:
        """Count what commands read of the memory: what stands in the files that they opened."""
        from commonplace.memory.recall import receipts, usage_counts

        root = self._store.root
        read = dict.fromkeys(each.path for each in found if each.use == "read" and each.kind != "raw_memories")
        texts = {path: receipts.read(root, path) for path in read}
        places = [(path, 1, len(text.splitlines())) for path, text in texts.items() if text]
        await usage_counts.count_retrieved(self._store, places)

    def external(self, thread_id: str) -> None:
        """Stop memory from using a thread that received external content, if the settings ask for it."""
        if self._home.settings.memory.disable_on_external_context:
            self._later(lambda: self._pollute(thread_id))

    async def _pollute(self, thread_id: str) -> None:
        """Mark the thread; one that has no row yet is marked by the index, which reads the ledger."""
        from commonplace.state import outputs

        root, now = self._home.memory_key, self._home.now_s()
        try:
            database = await self._home.database()
            await database.write(lambda tx: outputs.pollute(tx, thread_id, root=root, now=now))
        except (CommonplaceError, OSError) as error:
            self._home.warn(f"The thread is not marked yet as one that read from outside: {error}")

    async def allow(self, cwd: Path, prefixes: Collection[Prefix]) -> None:
        """Remember which commands a person allows in a folder."""
        from commonplace.rollout import decisions

        home, folder, moment = self._home.path, str(cwd), wire_time(self._home.now())

        def write() -> None:
            for prefix in sorted(set(prefixes) - set(decisions.allowed_commands(home, folder))):
                decisions.append(home, "allow", moment, path=folder, words=[list(prefix)])

        await anyio.to_thread.run_sync(write)

    def tools(self, cwd: Path) -> Sequence[Tool]:
        """Return the tools of the memory, where there is one."""
        if not self._has_memory() or not self._home.settings.memory.tools:
            return ()
        from commonplace.memory.recall.toolbox import Toolbox, agent_definitions

        lender = LazyMemoryLender(self._home.warn, self._home.environment)
        toolbox = Toolbox(lender, self._later, notes=True, asks_for_notes=True)
        toolbox.folder = cwd
        return [MemoryTool(toolbox, each.name, each.description, each.input_schema) for each in agent_definitions()]

    def _later(self, work: Callable[[], Any]) -> None:
        self._home.start_work(self._tasks, work)

    def clean(self, text: str) -> str:
        """Take secrets and forgotten words out of a text."""
        if self._clean is None:
            from commonplace.memory.recall import scoped_prompt

            self._clean = scoped_prompt.cleaner(self._home.path)
        return self._clean(text)


_NAMES: Final = ("list", "read", "search", "find", "add_ad_hoc_note")


class MemoryTool:
    """One of the memory's tools, for the agent."""

    aliases = ()
    parallel = True

    def __init__(self, toolbox: Toolbox, name: str, description: str, schema: Mapping[str, Any]) -> None:
        self._toolbox = toolbox
        self.mutates = self.asks = name == "add_ad_hoc_note"
        self.definition = ToolDefinition(name, "function", description, dict(schema), NAMESPACE)

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Look into the memory."""
        try:
            arguments = msgspec.json.decode(call.arguments or "{}", type=dict[str, Any])
        except msgspec.DecodeError as error:
            return failed(f"The arguments are no JSON object: {error}")
        if self.mutates and (why := await context.approve(self._note(call, context, arguments))) is not None:
            return failed(f"The note was not written: {why}")
        result = await self._toolbox.call(self.definition.name, arguments)
        return ToolOutput(content=truncate(msgspec.json.encode(result).decode(), context.policy))

    def _note(self, call: ToolInvocation, context: ToolContext, arguments: dict[str, Any]) -> Action:
        """Return what a person is asked: the whole text of the note, which will be told in later sessions."""
        command = ("tool", "commonplace", self.definition.key, str(arguments.get("note", "")))
        return Action(call.id, "call", context.cwd, command, arguments=arguments, escalated=True)

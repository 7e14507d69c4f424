"""The memory tools of one client of a server, imported when the client first uses one.

Importing the memory takes longer than a client waits for the answer to its greeting, so the import happens in a worker
thread, after it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
import msgspec

from commonplace.app import client_hooks
from commonplace.app.memory_lender import LazyMemoryLender
from commonplace.errors import CommonplaceError
from commonplace.memory.recall import section_cache
from commonplace.memory.recall.section_cache import Section

if TYPE_CHECKING:
    from commonplace.memory.recall.toolbox import Toolbox
    from commonplace.memory.recall.tools import Definition

_CITING_CLIENTS: Final = frozenset({"codex-mcp-client"})
"""Clients that take citations out of their answers before a person sees them."""
_AGENTS: Final = {"codex-mcp-client": section_cache.CODEX, "claude-code": section_cache.CLAUDE_CODE}
"""Clients whose agents have hooks: once a hook told such an agent, the instructions need not."""
_MAX_BYTES: Final = {"claude-code": 600}
"""How many bytes of lessons a client takes: Claude Code cuts the instructions at about 2 KB."""
_GREETING_SECONDS: Final = 1.0
"""How long making the lessons may take; a client waits for its greeting about twice as long."""
Work = Callable[[], Coroutine[Any, Any, None]]
Later = Callable[[Work], None]
"""Takes work that nobody waits for."""


class MemoryTools:
    """The memory tools of one client."""

    def __init__(
        self,
        lender: LazyMemoryLender,
        later: Later,
        *,
        project: str | None = None,
        notes: bool = False,
        only: bool = False,
    ) -> None:
        self.folder: Path | None = None
        """Where the client works, if it said so."""
        self._lender = lender
        self._later = later
        self._project = project
        self._notes = notes
        self._only = only
        """No argument shows another project."""
        self._importing = anyio.Lock()
        self._toolbox: Toolbox | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether the scope was chosen when the server was started."""
        return self._project is not None

    async def definitions(self) -> tuple[Definition, ...]:
        """Return the tools that the client may call."""
        return await anyio.to_thread.run_sync(self._definitions)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> msgspec.Struct:
        """Call a tool and return what it answers (raises ToolError, BadInput)."""
        return await (await self._tools()).call(name, arguments)

    async def summary(self, client: str = "") -> str:
        """Return the section that a prompt of a client would have here; nothing when there is no memory."""
        return await (await self._tools()).summary(cites=client in _CITING_CLIENTS)

    async def lessons(self, client: str, environment: Mapping[str, str]) -> str:
        """Return the best lessons for the instructions of the server; nothing for agents that a hook tells them.

        A client waits for its greeting, so whatever takes too long, or fails, is left out.
        """
        home = section_cache.home_folder(environment)
        if not (Path(home) / "memories").is_dir() or _AGENTS.get(client) in section_cache.last_told(home):
            return ""
        folder = str(self.folder or Path.cwd())
        section = None
        if self._project is None:
            section = section_cache.read(home, folder, section_cache.SERVER, environment)
        if section is None:
            with anyio.move_on_after(_GREETING_SECONDS):
                section = await self._made_lessons(folder, environment)
        if section is None:
            return ""
        client_hooks.note_told(home, section_cache.SERVER, section, environment)
        most = _MAX_BYTES.get(client)
        return section["text"] if most is None else _first_lines(section["text"], most)

    async def _made_lessons(self, folder: str, environment: Mapping[str, str]) -> Section | None:
        from commonplace.app.ready_sections import server_section

        try:
            make = partial(server_section, environment, folder, self._project)
            return await anyio.to_thread.run_sync(make, abandon_on_cancel=True)
        except (CommonplaceError, OSError):
            return None

    def _definitions(self) -> tuple[Definition, ...]:
        from commonplace.memory.recall.tool_definitions import client_definitions

        return client_definitions(notes=self._notes, only=self._only)

    async def _tools(self) -> Toolbox:
        async with self._importing:
            if self._toolbox is None:
                self._toolbox = await anyio.to_thread.run_sync(self._imported)
        self._toolbox.folder = self.folder
        return self._toolbox

    def _imported(self) -> Toolbox:
        from commonplace.memory.recall.toolbox import Toolbox

        return Toolbox(self._lender, self._later, project=self._project, notes=self._notes, only=self._only)


def _first_lines(text: str, most_bytes: int) -> str:
    """Return the first lines of a text that fit into a number of bytes."""
    kept: list[str] = []
    for line in text.split("\n"):
        most_bytes -= len(line.encode()) + 1
        if most_bytes < 0:
            break
        kept.append(line)
    return "\n".join(kept)

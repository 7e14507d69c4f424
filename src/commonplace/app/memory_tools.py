"""The memory tools of one client of a server, imported when the client first uses one.

Importing the memory takes longer than a client waits for the answer to its greeting, so the import happens in a worker
thread, after it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
import msgspec

from commonplace.app.memory_lender import LazyMemoryLender

if TYPE_CHECKING:
    from commonplace.memory.recall.toolbox import Toolbox
    from commonplace.memory.recall.tools import Definition

_CITING_CLIENTS: Final = frozenset({"codex-mcp-client"})
"""Clients that take citations out of their answers before a person sees them."""
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

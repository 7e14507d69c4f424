"""Lending the open memory to the calls of a server or an agent.

The first call opens it. When its database failed or something was warned about, it is closed after the last call that
uses it, so that a later call finds out whether it works again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from commonplace.errors import StateError

if TYPE_CHECKING:
    from commonplace.memory.recall.toolbox import OpenMemory
    from commonplace.memory.recall.tools import MemoryFolder
    from commonplace.state.home import Warn


class LazyMemoryLender:
    """Opens the memory when it is first borrowed, and keeps it open."""

    def __init__(self, warn: Warn, environment: Mapping[str, str] | None = None) -> None:
        self._warn = warn
        self._environment = environment
        self._opening = anyio.Lock()
        self._searching = anyio.Lock()
        self._open: OpenMemory | None = None
        self._folder: MemoryFolder | None = None
        self._borrowed = 0
        self._failed = False

    @asynccontextmanager
    async def borrow(self) -> AsyncGenerator[OpenMemory]:
        """Lend the memory.

        Raises:
            BadSetting: a setting cannot be used.
        """
        async with self._opening:
            if self._open is None:
                self._open = await anyio.to_thread.run_sync(self._opened)
                self._failed = False
            lent = self._open
            if lent.store.home.has_index():
                await lent.store.home.database()
                if lent.store.home.is_shared:
                    from commonplace.memory.sharing import shared_memory  # most memories are of one home

                    await shared_memory.refresh(lent.store.home)
            self._borrowed += 1
        try:
            yield lent
        except StateError:
            self._failed = True
            raise
        finally:
            self._borrowed -= 1
            if self._failed and not self._borrowed:
                with anyio.CancelScope(shield=True):
                    await self.close()

    def _opened(self) -> OpenMemory:
        from commonplace import config
        from commonplace.app.home import open_home, open_memory
        from commonplace.memory.recall.find import Finder
        from commonplace.memory.recall.toolbox import OpenMemory
        from commonplace.memory.recall.tools import MemoryFolder

        settings = config.load(self._environment)
        config.tell(settings, self._warn)
        store = open_memory(open_home(settings, self._warned, self._environment))
        if self._folder is None or self._folder.root != store.root:
            self._folder = MemoryFolder(store.root)
        return OpenMemory(store, Finder(store), self._folder, self._searching)

    def _warned(self, text: str) -> None:
        """Pass a warning on, and open the memory anew for the next call: the cause may be gone by then."""
        self._failed = True
        self._warn(text)

    async def close(self) -> None:
        """Close the memory; the next borrower opens it again."""
        lent, self._open = self._open, None
        if lent is not None:
            await lent.store.home.close()

"""The projects of a book: which folders are one project, and what a person decides about that."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.memory.recall import section_cache
from commonplace.state.home import Home

if TYPE_CHECKING:
    from commonplace.projects.listing import ListedProject


class Projects:
    """The projects of one home."""

    def __init__(self, home: Home) -> None:
        self._home = home

    async def list(self) -> builtins.list[ListedProject]:
        """Return the projects, those with most sessions first."""
        from commonplace.projects import assignment, listing
        from commonplace.sessions import index

        await index.use(self._home, lambda threads: threads.refresh(self._home.path))
        await assignment.settle(self._home)
        return await listing.listed(self._home)

    async def merge(self, kept: str, other: str) -> builtins.list[ListedProject]:
        """Make one project of two, under the name of the first; return all projects (raises BadInput)."""
        from commonplace.projects import listing

        await self.list()
        section_cache.clear(str(self._home.path))
        found = await listing.merge(self._home, kept, other)
        await self._publish()
        return found

    async def split(self, folder: Path) -> builtins.list[ListedProject]:
        """Make a folder a project of its own, with everything below it; return all projects (raises BadInput)."""
        from commonplace.projects import listing

        await self.list()
        section_cache.clear(str(self._home.path))  # no session is told lessons of what its folder no longer belongs to
        found = await listing.split(self._home, folder)
        await self._publish()
        return found

    async def _publish(self) -> None:
        if self._home.is_shared:
            from commonplace.memory.sharing import shared_memory

            await shared_memory.sync(self._home)

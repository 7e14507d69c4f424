"""Changes of single entries by a person, with what follows from them: agents' sections are made anew, too."""

from __future__ import annotations

from commonplace.app import ready_sections
from commonplace.learning import entry_changes
from commonplace.learning.entry_changes import ChangedEntry, EntryDifference, EntryRequest, Undo
from commonplace.memory.store import MemoryStore


class EntryChanges:
    """The changes of one memory's entries."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def preview(self, request: EntryRequest, seen: str | None = None) -> list[EntryDifference]:
        """Return what a change would do; nothing is changed (raises EntryOutdated, BadInput)."""
        return await entry_changes.preview(self._store, request, seen)

    async def change(self, request: EntryRequest, seen: str) -> ChangedEntry:
        """Make a change of an entry that a person saw as `seen`.

        Raises:
            EntryOutdated: the entry is another one by now; nothing was done.
            BadInput: it cannot be done; nothing was done.
            WorkspaceError: it is stored, but the memory's files could not be made anew.
        """
        changed = await entry_changes.change(self._store, request, seen)
        await self._keep_sections()
        return changed

    async def undo(self, taken: Undo) -> None:
        """Take a change back (raises WorkspaceError)."""
        await entry_changes.undo(self._store, taken)
        await self._keep_sections()

    async def _keep_sections(self) -> None:
        if ready_sections.is_used(self._store.home):
            await ready_sections.count_told(self._store)
            await ready_sections.keep_sections(self._store)

"""The snapshots that turns take of working trees, as `sessions` needs them: pygit2 is imported when one is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from commonplace.state.home import Home


class WorkingTreeSnapshots:
    """Undoing turns, and deleting a thread's files with its snapshots."""

    def delete_files(self, home: Path, thread_id: str, files: list[Path]) -> None:
        """Remove a thread's files and the snapshots that they name."""
        from commonplace.agent.undo import undo_turn

        undo_turn.delete_files(home, thread_id, files)

    async def undo(self, home: Home, path: Path, *, redo: bool) -> dict[str, Any]:
        """Restore the files as they were before a thread's last turn, or after it."""
        from commonplace.agent.undo import undo_turn

        return await undo_turn.undo(home, path, redo=redo)

    async def preview(self, home: Home, path: Path, *, redo: bool) -> dict[str, Any]:
        """Return what `undo` would change."""
        from commonplace.agent.undo import undo_turn

        return await undo_turn.preview(home, path, redo=redo)

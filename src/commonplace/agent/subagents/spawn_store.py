"""Which agent of a session started which, as the database keeps it: what the tree is found by when it is restored.

An ephemeral session stores nothing. If the database fails, the agents work on, and the person is warned that they may
not be found again; `resume_agent` still opens one by its id.
"""

from __future__ import annotations

from commonplace.agent.subagents.agent import AgentThread
from commonplace.errors import CommonplaceError
from commonplace.state import spawn_edges
from commonplace.state.home import Home


class SpawnStore:
    """The stored edges of one tree."""

    def __init__(self, home: Home, root: AgentThread) -> None:
        self._home = home
        self._root = root

    async def put(self, parent_id: str, child_id: str, *, is_open: bool) -> None:
        """Store that an agent was started, or opened again, or closed."""
        if self._root.path is None:
            return
        key, now = self._home.key, self._home.now_s()
        try:
            database = await self._home.database()
            await database.write(lambda tx: spawn_edges.put(tx, key, parent_id, child_id, is_open=is_open, now=now))
        except (CommonplaceError, OSError) as error:
            self._warn(f"The agent {child_id} may not be found again when the session is resumed: {error}")

    async def open_children(self, thread_id: str) -> list[str]:
        """Return the agents that a thread started and that nobody closed, oldest first."""
        if not self._home.has_index():
            return []
        key = self._home.key
        try:
            database = await self._home.database()
            return await database.read(lambda tx: spawn_edges.open_children(tx, key, thread_id))
        except (CommonplaceError, OSError) as error:
            self._warn(f"The agents of the session were not looked for: {error}")
            return []

    def _warn(self, text: str) -> None:
        self._root.session.ledger.warn(text)

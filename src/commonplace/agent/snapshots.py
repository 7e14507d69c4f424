"""The working tree as it was, kept before a turn changes anything.

It is taken when the first call that may change something is about to run, so a turn that only looks costs nothing. What
fails is warned about and stops no turn. A tree that is too large for a snapshot is not tried again in the same session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread

from commonplace.errors import UndoError
from commonplace.protocol.rollout import OWN_TYPE

if TYPE_CHECKING:
    from commonplace.agent.current import Turn
    from commonplace.agent.session import Session
    from commonplace.agent.undo import Snapshot


async def keep(session: Session, turn: Turn) -> None:
    """Keep the working tree, once per turn."""
    if session.recorder is None or not session.profile.undo or not session.keeps_snapshots:
        return
    async with turn.keeping:
        if turn.kept:
            return
        turn.kept = True
        try:
            snapshot = await anyio.to_thread.run_sync(_take, session)
        except (UndoError, OSError) as error:
            session.warn(f"There is no way back from this turn: {error}")
            return
        session.note(OWN_TYPE, {**snapshot.payload(), "turn_id": turn.id})
        if snapshot.incomplete:
            session.keeps_snapshots = False
            session.warn(f"There is no way back from this turn: the folder is too large ({snapshot.incomplete}).")


def _take(session: Session) -> Snapshot:
    from commonplace.agent import undo

    return undo.take(session.profile.home, undo.root_of(session.profile.cwd), session.outside.now())

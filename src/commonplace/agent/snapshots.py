"""The working tree as it was, kept before a turn changes anything.

It is taken when the first call that may change something is about to run, so a turn that only looks costs nothing. What
fails is warned about and stops no turn. A tree that cannot be kept within a few seconds is not tried again for a day,
in this session or another: nobody waits at every turn for what will not come.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio.to_thread
import msgspec

from commonplace.errors import UndoError
from commonplace.protocol.rollout import OWN_TYPE

if TYPE_CHECKING:
    from commonplace.agent.current import Turn
    from commonplace.agent.session import Session
    from commonplace.agent.undo import Snapshot


LIMIT_SECONDS: Final = 8.0
_AGAIN: Final = timedelta(days=1)
_FILE: Final = "locks/too_large.json"


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
    from commonplace.agent.undo import Limits

    home, now = session.profile.home, session.outside.now()
    tree = undo.root_of(session.profile.cwd)
    known = _known(home)
    since = known.get(str(tree))
    if since is not None and now - since < _AGAIN:
        session.keeps_snapshots = False
        raise UndoError(f"{tree} was too large for a snapshot", hint="It is tried again after a day.")
    taken = undo.take(home, tree, now, limits=Limits(seconds=LIMIT_SECONDS))
    if taken.incomplete:
        _note(home, {**known, str(tree): now})
    return taken


def _note(home: Path, too_large: dict[str, datetime]) -> None:
    part = home / f"{_FILE}.part"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(too_large))
    part.replace(home / _FILE)


def _known(home: Path) -> dict[str, datetime]:
    """Return the trees that were too large, and when that was."""
    try:
        return msgspec.json.decode((home / _FILE).read_bytes(), type=dict[str, datetime])
    except (OSError, msgspec.DecodeError):
        return {}

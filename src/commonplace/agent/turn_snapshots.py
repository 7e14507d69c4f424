"""A snapshot of the working tree before a turn changes anything, so that the turn can be undone.

It is taken when the first call that may change something is about to run: a turn that only reads costs nothing. A
snapshot that fails is a warning and stops no turn. A tree that cannot be stored within a few seconds is not tried again
for a day, in this session or another: nobody waits at every turn for a snapshot that will not come.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
import msgspec

from commonplace.agent.profile import Profile
from commonplace.agent.session_ledger import SessionLedger
from commonplace.agent.turn_state import TurnState
from commonplace.errors import UndoError
from commonplace.protocol.rollout import OWN_TYPE

if TYPE_CHECKING:
    from commonplace.agent.undo import Snapshot

LIMIT_SECONDS: Final = 8.0
"""How long a person waits for a snapshot at most."""
TOO_LARGE: Final = "locks/too_large.json"
"""The file of a home that lists the trees that could not be stored, and when that was."""
_AGAIN: Final = timedelta(days=1)


class _TooLarge(UndoError):
    """The tree could not be stored lately and is not tried again."""


class TurnSnapshots:
    """Takes the snapshots of one session.

    Invariants: at most one snapshot per turn, and it is complete before the call that it is taken for begins; once a
    tree was too large, the session takes no more.
    """

    def __init__(self, ledger: SessionLedger, now: Callable[[], datetime]) -> None:
        self._ledger = ledger
        self._now = now
        self._lock = anyio.Lock()
        self._taken_for: str | None = None
        """The turn that the newest snapshot belongs to."""
        self._gave_up = False

    async def take(self, turn: TurnState) -> None:
        """Store the working tree, once per turn; a session without a file or with `undo` off stores nothing."""
        if self._ledger.path is None or not turn.profile.undo or self._gave_up:
            return
        async with self._lock:
            if self._taken_for == turn.id:
                return
            self._taken_for = turn.id
            try:
                snapshot = await anyio.to_thread.run_sync(_take, turn.profile, self._now())
            except (UndoError, OSError) as error:
                self._gave_up = self._gave_up or isinstance(error, _TooLarge)
                self._ledger.warn(f"There is no way back from this turn: {error}")
                return
            self._ledger.note(OWN_TYPE, {**snapshot.payload(), "turn_id": turn.id})
            if snapshot.incomplete:
                self._gave_up = True
                reason = f"the folder is too large ({snapshot.incomplete})"
                self._ledger.warn(f"There is no way back from this turn: {reason}.")


def _take(profile: Profile, now: datetime) -> Snapshot:
    from commonplace.agent import undo  # slow to load, and most turns change nothing

    tree = undo.root_of(profile.cwd)
    too_large = _read(profile.home)
    since = too_large.get(str(tree))
    if since is not None and now - since < _AGAIN:
        raise _TooLarge(f"{tree} was too large for a snapshot", hint="It is tried again after a day.")
    snapshot = undo.take(profile.home, tree, now, limits=undo.SnapshotLimits(seconds=LIMIT_SECONDS))
    if snapshot.incomplete:
        _write(profile.home, {**too_large, str(tree): now})
    return snapshot


def _write(home: Path, too_large: dict[str, datetime]) -> None:
    part = home / f"{TOO_LARGE}.part"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(too_large))
    part.replace(home / TOO_LARGE)


def _read(home: Path) -> dict[str, datetime]:
    """Return the trees that were too large, and when that was."""
    try:
        return msgspec.json.decode((home / TOO_LARGE).read_bytes(), type=dict[str, datetime])
    except (OSError, msgspec.DecodeError):
        return {}

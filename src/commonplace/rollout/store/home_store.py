"""The store of one home: its own ledgers go up beside the work, those of other hosts are listed and read.

Uploads run on a thread of their own, since nobody waits for them: `add` returns at once. What a session adds comes
first; then the thread goes through everything that earlier processes left, or that failed. `drain` waits a bounded time
for what was added in this process.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from commonplace.errors import CommonplaceError
from commonplace.rollout.store import stubs
from commonplace.rollout.store.object_store import ObjectStore
from commonplace.rollout.store.remote import RemoteLedgers
from commonplace.rollout.store.upload_notes import root_of
from commonplace.rollout.store.uploads import Uploads

CLOSE_SECONDS: Final = 10.0
"""How long a process waits at its end for uploads; what is left then goes up another time."""


class HomeStore:
    """The store that a home keeps its ledgers in."""

    def __init__(self, home: Path, address: str, environment: Mapping[str, str]) -> None:
        self.store = ObjectStore(address, environment)
        self.uploads = Uploads(home, self.store)
        self.remote = RemoteLedgers(home, self.store, lambda: root_of(home))
        self.problem: CommonplaceError | None = None
        """Why the last attempt did not succeed."""
        self._changed = threading.Condition()
        self._waiting: dict[Path, None] = {}
        self._is_sweep_asked = self._is_busy = self._has_swept = False
        self._thread: threading.Thread | None = None
        stubs.register(self.remote)

    def begin(self) -> None:
        """Go through what earlier processes left, once; nobody waits for that."""
        with self._changed:
            if not self._has_swept:
                self._wake()

    def add(self, path: Path | None = None) -> None:
        """Upload what a file has by now, or follow it if it is gone; without a file, everything that waits."""
        with self._changed:
            if path is None:
                self._is_sweep_asked = True
            else:
                self._waiting[path] = None
            self._wake()

    def drain(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Wait until nothing that was added is under way; say whether all of it went up."""
        with self._changed:
            done = self._changed.wait_for(lambda: not (self._waiting or self._is_sweep_asked or self._is_busy), seconds)
            return done and self.problem is None

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ledger-uploads", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                paths, is_asked = [*self._waiting], self._is_sweep_asked
                self._is_busy = bool(paths) or is_asked
                if not self._is_busy and self._has_swept:
                    self._thread = None
                    return
                self._waiting.clear()
                self._is_sweep_asked = False
            problem: CommonplaceError | None = None
            try:
                self._upload(paths)
                done = self.uploads.sweep(is_interrupted=self._is_wanted) if is_asked or not paths else None
            except (CommonplaceError, OSError) as error:
                problem = error if isinstance(error, CommonplaceError) else CommonplaceError(str(error.strerror))
                done = False
            with self._changed:
                self.problem, self._is_busy = problem, False
                self._has_swept = self._has_swept if done is None else done
                if is_asked and done is False and problem is None:
                    self._is_sweep_asked = True
                self._changed.notify_all()
                if problem is not None:  # what waits is found again by the next sweep
                    self._waiting.clear()
                    self._is_sweep_asked, self._thread = False, None
                    return

    def _is_wanted(self) -> bool:
        return bool(self._waiting)

    def _upload(self, paths: list[Path]) -> None:
        for path in paths:
            if not path.exists():
                self.uploads.note_gone(path)
        moved = [place for path in paths if not path.exists() for place in self.uploads.other_places(path)]
        # A file that was moved takes its segments along, also where only its old place is known yet.
        for path in sorted({*paths, *moved}, key=lambda path: (not path.exists(), path)):
            self.uploads.upload(path)

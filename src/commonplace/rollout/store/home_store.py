"""The store of one home: its own ledgers go up beside the work, those of other hosts are listed and read.

Uploads run on a thread of their own, since nobody waits for them: `add` returns at once. One that fails stays in line
for the next `add`, and a process begins by going through everything that earlier ones left. `drain` waits a bounded
time at the end of a process.
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
        self._swept = False
        self._thread: threading.Thread | None = None
        stubs.register(self.remote)

    def add(self, path: Path | None = None) -> None:
        """Upload what a file has by now, or follow it if it is gone; without a file, everything that waits."""
        with self._changed:
            if path is None:
                self._swept = False
            else:
                self._waiting[path] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ledger-uploads", daemon=True)
                self._thread.start()

    def drain(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Wait until nothing is under way; say whether everything that was added went up."""
        with self._changed:
            return self._changed.wait_for(lambda: self._thread is None, seconds) and self.problem is None

    def _run(self) -> None:
        problem: CommonplaceError | None = None
        while True:
            with self._changed:
                paths, sweep = [*self._waiting], not self._swept
                self._swept = True
                if problem is not None or not (paths or sweep):
                    self.problem, self._thread = problem, None
                    self._swept = self._swept and problem is None
                    self._changed.notify_all()
                    return
                self._waiting.clear()
            try:
                self._upload(paths, sweep=sweep)
            except (CommonplaceError, OSError) as error:
                problem = error if isinstance(error, CommonplaceError) else CommonplaceError(str(error.strerror))

    def _upload(self, paths: list[Path], *, sweep: bool) -> None:
        for path in paths:
            if not path.exists():
                self.uploads.note_gone(path)
        if sweep:
            self.uploads.sweep()
            return
        for path in sorted(paths, key=lambda path: not path.exists()):  # a file that was moved takes its segments along
            self.uploads.upload(path)

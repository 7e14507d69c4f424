"""The payloads of a thread whose parts stand in several homes: each is taken from the first home that has it whole.

A fork by reference stands in our home and its past in another; so do the payloads of each.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from commonplace.errors import BlobDamaged
from commonplace.rollout import layout
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import Ledger
from commonplace.rollout.store import stubs
from commonplace.rollout.store.remote_blobs import RemoteBlobs


class ChainStore(BlobStore):
    """The blobs of all homes that a thread's files stand in; new ones go into the first."""

    def __init__(self, first: BlobStore, ledger: Ledger) -> None:
        super().__init__(first.home)
        homes = dict.fromkeys(layout.home_of(part.path.absolute()) for part in ledger.parts)
        self._others = [_of(home) for home in homes if home and home != first.home]

    def size(self, name: str) -> int:
        """Return how long a value is at most: the homes may not agree (0 if all miss it)."""
        return max(super().size(name), *(store.size(name) for store in self._others), 0)

    def has(self, name: str) -> bool:
        """Say whether a value is in any of the homes."""
        return super().has(name) or any(store.has(name) for store in self._others)

    def state(self, name: str) -> str:
        """Return `ok` if one of the homes has the value whole, else what the first one says."""
        own = super().state(name)
        return "ok" if own == "ok" or any(store.state(name) == "ok" for store in self._others) else own

    def get(self, name: str) -> bytes:
        """Return a value (raises BlobDamaged, as the first home tells it)."""
        try:
            return super().get(name)
        except BlobDamaged:
            for store in self._others:
                with contextlib.suppress(BlobDamaged):
                    return store.get(name)
            raise


def _of(home: Path) -> BlobStore:
    return RemoteBlobs(home) if stubs.is_remote(home) else BlobStore(home)

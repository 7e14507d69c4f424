"""Spilled values of ledgers that are in the store: fetched when they are asked for, and kept in `home/cache/`."""

from __future__ import annotations

from pathlib import Path

from commonplace.errors import BlobDamaged, StoreUnavailable
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.store import stubs


class RemoteBlobs(BlobStore):
    """The values that ledgers of other hosts refer to; `root` is the folder of stubs of one of these."""

    def __init__(self, root: Path) -> None:
        self._ledgers = stubs.of_path(root)
        super().__init__(self._ledgers.home / stubs.CACHE, durable=False)

    def size(self, name: str) -> int:
        """Return how long a value is (0 if it is missing)."""
        return super().size(name) if self.has(name) else 0

    def has(self, name: str) -> bool:
        """Say whether a value is there."""
        return self.state(name) == "ok"

    def state(self, name: str) -> str:
        """Return `ok`, `missing` or `corrupt`."""
        try:
            self.get(name)
        except BlobDamaged as error:
            return "corrupt" if error.data.get("corrupt") else "missing"
        return "ok"

    def get(self, name: str) -> bytes:
        """Return a value (raises BlobDamaged: it is missing, damaged, or the store cannot be used)."""
        try:
            return super().get(name)
        except BlobDamaged:
            try:
                data = self._ledgers.blob(name)
            except StoreUnavailable as error:
                raise BlobDamaged(f"The payload {name} cannot be fetched.", hint=error.hint) from error
            if data is not None:
                self.put(data)
            return super().get(name)

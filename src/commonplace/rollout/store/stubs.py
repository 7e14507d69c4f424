"""Which paths are stubs of ledgers in a store, and who reads them.

Stubs stand in `home/cache/ledgers/<root>/`; `remote` makes them. `reader` asks `is_remote` of each path that it opens,
and a path is all that it gets: so each home registers its store here. This module loads nothing, for those who have no
store.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from commonplace.errors import LedgerError

CACHE: Final = "cache"
_MARK: Final = f"/{CACHE}/ledgers/"


class RemoteBytes(Protocol):
    """A ledger in a store, open for reading."""

    size: int

    def read_at(self, length: int, offset: int) -> bytes:
        """Return at most so many bytes from an offset on."""
        ...

    def stream(self) -> BinaryIO:
        """Return its bytes as a file that ends with it."""
        ...


class Remote(Protocol):
    """The ledgers of other homes that one home reads."""

    home: Path

    def open(self, path: Path) -> RemoteBytes:
        """Open a stub's ledger."""
        ...

    def refresh(self, path: Path) -> bool:
        """Look up how far a stub's ledger goes now; remove the stub and return False if the store lost it."""
        ...

    def find(self, rollout_id: str) -> Path | None:
        """Return the stub with this id."""
        ...

    def blob(self, name: str) -> bytes | None:
        """Return a spilled value."""
        ...


_homes: dict[Path, Remote] = {}


def is_remote(path: Path | str) -> bool:
    """Say whether a path is the stub of a ledger that another host keeps in the store."""
    return _MARK in str(path)


def folder_of(home: Path) -> Path:
    """Return where the stubs of a home are."""
    return home.resolve() / CACHE / "ledgers"


def roots(home: Path) -> list[Path]:
    """Return the other homes that the store has ledgers of, as far as they were listed."""
    folder = folder_of(home)
    return sorted(folder.iterdir()) if folder.is_dir() else []


def register(ledgers: Remote) -> None:
    """Have readers use this for the stubs of its home from now on."""
    _homes[ledgers.home.resolve()] = ledgers


def of_path(path: Path) -> Remote:
    """Return what reads a stub (raises LedgerError: no store is set)."""
    home = _before_mark(path)
    if home not in _homes:
        raise LedgerError(f"{path} is kept in a store, and none is set.", hint="Set `ledger` to its address.")
    return _homes[home]


def find(rollout_id: str, near: Iterable[Path]) -> Path | None:
    """Return the stub of the file with this id, in the store of the home of any of these (raises StoreUnavailable)."""
    if not _homes:
        return None
    for place in dict.fromkeys(_before_mark(path) for path in near):
        owner = next((known for known in (place, *place.parents) if known in _homes), None)
        if owner is not None and (found := _homes[owner].find(rollout_id)):
            return found
    return None


def _before_mark(path: Path) -> Path:
    return Path(str(path.absolute()).partition(_MARK)[0]).resolve()

"""The sub-agents of a thread, found without an index: by when they were made, then by whom they name as parent.

A sub-agent's file is made while its parent works, and both its name and its folder tell when. So only files from the
days of the parent are looked at, and only their first lines are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from commonplace.errors import CommonplaceError
from commonplace.protocol import ids
from commonplace.rollout import chain, layout
from commonplace.rollout.chain import Ledger

_MAX_DAYS: Final = 366
"""How many days of folders are searched for sub-agents."""
_MARGIN: Final = timedelta(days=1)
"""Folders carry local time and clocks are not exact."""


class Sidechain(msgspec.Struct):
    """A sub-agent's thread and its file."""

    thread_id: str
    path: str


def find(ledger: Ledger, ended: str | None) -> list[Sidechain]:
    """Return the threads that name this one as their parent, oldest first."""
    begun = ids.uuid7_time(ledger.thread_id) or ids.parse_time(ledger.meta.timestamp)
    if begun is None:
        return []
    last = max(begun, (ended and ids.parse_time(ended)) or begun)
    found: dict[str, Sidechain] = {}
    for folder in _folders(ledger.path, begun, last):
        for path in _made_between(folder, begun - _MARGIN, last + _MARGIN):
            try:
                _, meta = chain.read_head(path)
            except CommonplaceError:
                continue
            if meta.parent_thread_id == ledger.thread_id and meta.id != ledger.thread_id:
                found[meta.id] = Sidechain(meta.id, str(path))
    return [found[key] for key in sorted(found)]


def _folders(path: Path, begun: datetime, last: datetime) -> Iterator[Path]:
    yield path.parent
    home = layout.home_of(path.absolute())
    if home is None:
        return
    first = begun.astimezone() - _MARGIN
    days = min((last - begun).days + 3, _MAX_DAYS)
    for shift in range(days):
        folder = home / layout.SESSIONS / f"{first + timedelta(days=shift):%Y/%m/%d}"
        if folder != path.parent:
            yield folder
    yield home / layout.ARCHIVED


def _made_between(folder: Path, begun: datetime, last: datetime) -> Iterator[Path]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        named = layout.parse_name(name)
        moment = named and (ids.uuid7_time(named.thread_id) or named.created)
        if moment is not None and begun <= moment <= last:
            yield folder / name

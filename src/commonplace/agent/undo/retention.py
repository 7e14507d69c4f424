"""Retention: old snapshots are removed, and with them every object that no snapshot refers to.

Snapshots are removed by age, by number, and from the oldest on while the store is too large; the newest stays. Objects
are then copied out of packs with many unused objects, and small packs are merged, so that neither the number nor the
size of packs grows without bound. New packs are complete before old ones are removed, and snapshots are removed before
their objects: a crash in between only costs disk space until the next time.
"""

from __future__ import annotations

import contextlib
import shutil
import stat
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commonplace.agent.undo import capture, packs
from commonplace.agent.undo.packs import PackWriter
from commonplace.agent.undo.store import SnapshotRecord, Store, missing_errors, parse_id, tree_entries
from commonplace.agent.undo.values import Pruned, SnapshotLimits

if TYPE_CHECKING:
    from pygit2 import Odb

_SLACK: Final = 20
"""How many snapshots above the bound, and how many packs, are allowed before `take` sweeps: sweeping is slow."""
_SMALL: Final = 32 * 2**20
"""Packs smaller than this are merged."""
_DEFAULTS: Final = SnapshotLimits()


def drop(home: Path, snapshots: Iterable[str]) -> Pruned:
    """Remove snapshots and the objects that only they have; ids of missing snapshots are ignored."""
    by_store: dict[str, list[str]] = {}
    for snapshot in snapshots:
        by_store.setdefault(parse_id(snapshot)[0], []).append(snapshot)
    gone: list[str] = []
    freed = 0
    for name, wanted in sorted(by_store.items()):
        store = Store(home, name)
        if not store.place.is_dir():
            continue
        with store.lock(exclusive=True):
            there = {snapshot for snapshot, _ in store.records()}
            for snapshot in wanted:
                store.withdraw(snapshot)
            freed += sweep(store, None, _DEFAULTS, thorough=True).bytes
        gone += [snapshot for snapshot in wanted if snapshot in there]
    return Pruned(tuple(gone), freed)


def is_due(store: Store, now: datetime, limits: SnapshotLimits) -> bool:
    """Return whether a store exceeds its bounds so far that sweeping is worth its cost."""
    found = packs.pack_names(store.packs)
    if len(found) > _SLACK or sum(_size(pack) for pack in found) > limits.store_bytes or packs.leftovers(store.packs):
        return True
    records = store.records()
    # A day of grace, so that not every snapshot of a long session sweeps for the sake of one.
    oldest = now - timedelta(days=limits.days + 1)
    return len(records) > limits.snapshots + _SLACK or bool(records and records[-1][1].time < oldest)


def sweep(store: Store, now: datetime | None, limits: SnapshotLimits, *, thorough: bool = False) -> Pruned:
    """Bring a store within its bounds; the caller holds its lock. Without `now` no snapshot is removed.

    Unless it is `thorough`, packs whose objects are mostly used are kept as they are.
    """
    for path in (*packs.leftovers(store.packs), *store.place.glob("part-*")):
        path.unlink(missing_ok=True)
    sizes = {one.id: one.size for pack in packs.pack_names(store.packs) for one in packs.packed_objects(pack)}
    odb = store.objects([])
    alive: set[bytes] = set()
    gone: list[str] = []
    records = store.records()
    used = 0
    for place, (snapshot, record) in enumerate(records):
        if now is not None and (place >= limits.snapshots or record.time < now - timedelta(days=limits.days)):
            gone.append(snapshot)
            continue
        held = _mark(odb, record, alive)
        used += sum(sizes.get(one, 0) for one in held)
        if now is not None and place and used > limits.store_bytes:
            gone += [older for older, _ in records[place:]]
            break
        alive |= held
    for snapshot in gone:
        store.withdraw(snapshot)
    if len(gone) == len(records):
        before = _disk(store.place)
        (store.place / "tree").unlink(missing_ok=True)  # first: without it there is no store
        shutil.rmtree(store.place)
        return Pruned(tuple(gone), before)
    del odb  # it maps packs that are about to go
    return Pruned(tuple(gone), _collect(store, alive, thorough=thorough))


def _mark(odb: Odb, record: SnapshotRecord, alive: set[bytes]) -> set[bytes]:
    """Return the objects that only this snapshot uses, among those marked so far."""
    found: set[bytes] = set()
    if record.left_out:
        found.add(bytes.fromhex(record.left_out))
    waiting = [bytes.fromhex(record.tree)] if record.tree else []
    while waiting:
        identity = waiting.pop()
        if identity in alive or identity in found:
            continue
        found.add(identity)
        with contextlib.suppress(*missing_errors()):  # a damaged snapshot keeps what is left of it
            for _, mode, inner in tree_entries(odb.read(identity.hex())[1]):
                if stat.S_ISDIR(mode):
                    waiting.append(inner)
                elif inner not in alive:
                    found.add(inner)
    return found - alive


def _collect(store: Store, alive: set[bytes], *, thorough: bool) -> int:
    """Remove unused objects and merge small packs; return the bytes that were freed."""
    before = {pack: packs.packed_objects(pack) for pack in packs.pack_names(store.packs)}
    kept = {pack: [one for one in inside if one.id in alive] for pack, inside in before.items()}
    small = [pack for pack in before if _size(pack) < _SMALL]
    again = set(small) if len(small) > _SLACK or (thorough and len(small) > 1) else set[Path]()
    for pack, inside in before.items():
        live, total = sum(one.size for one in kept[pack]), sum(one.size for one in inside)
        if len(kept[pack]) < len(inside) and (thorough or live * 2 < total):
            again.add(pack)
    room = sum(_size(pack) for pack in before)
    writer = PackWriter(store.packs)
    written: set[bytes] = {one.id for pack in before if pack not in again for one in kept[pack]}
    try:
        for pack in sorted(again):
            for identity, packed in packs.raw_objects(pack, [one for one in kept[pack] if one.id not in written]):
                writer.copy(identity, packed)
                written.add(identity)
        writer.finish()
    except BaseException:
        writer.abandon()
        raise
    dead = {one.id for pack in again for one in before[pack]} - written
    if dead:
        capture.forget_seen(store, dead)
    for pack in again - writer.finished:
        packs.remove(pack)
    return room - sum(_size(pack) for pack in packs.pack_names(store.packs))


def _size(pack: Path) -> int:
    return sum(pack.with_suffix(ending).stat().st_size for ending in (".pack", ".idx"))


def _disk(place: Path) -> int:
    return sum(path.lstat().st_size for path in place.rglob("*") if path.is_file())

"""The store: bounded, locked, remembered, and honest about what it does not have."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pygit2
import pytest
from manifests import NOW, commit, manifest, prune, put, repository

import processes
from commonplace.agent import undo
from commonplace.agent.undo import packs, safe_open
from commonplace.agent.undo.store import Store, parse_id
from commonplace.errors import DamagedSnapshot, IncompleteSnapshot, UndoError, UnknownSnapshot


def _store(home: Path, snapshot: undo.Snapshot) -> Store:
    return Store(home, parse_id(snapshot.id)[0])


class _Reads:
    """Counts the files that are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[bytes] = []
        real = safe_open.read_file

        def read(folder: int, name: bytes, bound: int) -> object:
            self.names.append(name)
            return real(folder, name, bound)

        monkeypatch.setattr(safe_open, "read_file", read)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> _Reads:
    return _Reads(monkeypatch)


def _settle(home: Path, root: Path, reads: _Reads) -> undo.Snapshot:
    """Take snapshots until the clock of the file system has gone on and every file is remembered."""
    while True:
        reads.names.clear()
        snapshot = undo.take(home, root, NOW)
        if not reads.names:
            return snapshot


def test_an_unchanged_tree_is_not_read_again(home: Path, project: Path, reads: _Reads) -> None:
    first = undo.take(home, project, NOW)
    _settle(home, project, reads)
    packs_before = sorted(os.listdir(_store(home, first).packs))
    reads.names.clear()

    undo.take(home, project, NOW)

    assert reads.names == []
    assert sorted(os.listdir(_store(home, first).packs)) == packs_before


def test_only_what_changed_is_read_again(home: Path, project: Path, reads: _Reads) -> None:
    _settle(home, project, reads)
    put(project, "src/main.py", "changed")
    os.utime(project / "readme.md")

    undo.take(home, project, NOW)

    assert sorted(reads.names) == [b"main.py", b"readme.md"]


def test_a_change_that_keeps_size_and_time_is_noticed(home: Path, project: Path, reads: _Reads) -> None:
    _settle(home, project, reads)
    about = (project / "readme.md").stat()
    (project / "readme.md").write_text("HELLO\n")
    os.utime(project / "readme.md", ns=(about.st_atime_ns, about.st_mtime_ns))
    before = manifest(project)
    snapshot = undo.take(home, project, NOW)
    (project / "readme.md").unlink()

    undo.restore(home, snapshot.id, NOW)

    assert manifest(project) == before


def test_changes_in_the_same_instant_as_a_snapshot_are_noticed(home: Path, plain: Path) -> None:
    for number in range(20):
        (plain / "readme.md").write_text(f"{number:04}")
        first = undo.take(home, plain, NOW)
        (plain / "readme.md").write_text(f"{number + 1:04}")
        second = undo.take(home, plain, NOW)
        undo.restore(home, first.id, NOW)
        assert (plain / "readme.md").read_text() == f"{number:04}"
        undo.restore(home, second.id, NOW)
        assert (plain / "readme.md").read_text() == f"{number + 1:04}"


def test_what_is_remembered_counts_only_while_its_object_is_there(
    home: Path, repo: pygit2.Repository, reads: _Reads
) -> None:
    root = Path(repo.workdir)
    _settle(home, root, reads)
    before = manifest(root)
    shutil.rmtree(root / ".git/objects")
    (root / ".git/objects").mkdir()

    snapshot = undo.take(home, root, NOW)
    (root / "readme.md").unlink()
    undo.restore(home, snapshot.id, NOW)

    assert manifest(root) == before


@pytest.mark.parametrize("is_repository", [False, True])
def test_what_is_remembered_does_not_outlive_what_was_dropped(
    home: Path, plain: Path, reads: _Reads, is_repository: bool
) -> None:
    if is_repository:
        repository(plain)
    before = manifest(plain)
    older = undo.take(home, plain, NOW)
    put(plain, "readme.md", "newer")
    newer = manifest(plain)
    latest = _settle(home, plain, reads)
    undo.drop(home, [one.id for one in undo.listed(home) if one.id != older.id])

    again = undo.take(home, plain, NOW)
    undo.restore(home, older.id, NOW)
    assert manifest(plain) == before
    undo.restore(home, again.id, NOW)
    assert manifest(plain) == newer
    assert latest.id != again.id


@pytest.mark.parametrize("content", [b"", b"\xff", b"\x82"])
def test_a_damaged_memory_of_looks_is_made_anew(home: Path, plain: Path, content: bytes) -> None:
    before = manifest(plain)
    store = _store(home, undo.take(home, plain, NOW))
    (store.place / "seen").write_bytes(content)

    snapshot = undo.take(home, plain, NOW)
    (plain / "readme.md").unlink()
    undo.restore(home, snapshot.id, NOW)

    assert manifest(plain) == before


def test_contents_that_the_repository_lost_are_named_and_nothing_is_changed(home: Path, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    found = repository(root)
    put(root, "a.txt", "borrowed")
    commit(found)
    snapshot = undo.take(home, root, NOW)
    put(root, "a.txt", "changed")
    put(root, "b.txt", "new")
    shutil.rmtree(root / ".git")

    with pytest.raises(DamagedSnapshot, match=r"a\.txt"):
        undo.diff(home, snapshot.id)
    with pytest.raises(DamagedSnapshot, match="nothing was changed"):
        undo.restore(home, snapshot.id, NOW)

    assert ((root / "a.txt").read_text(), (root / "b.txt").read_text()) == ("changed", "new")


@pytest.mark.parametrize("name", ["", "x", "../../etc", "0" * 24, f"{'0' * 24}-00000001-{'0' * 12}"])
def test_an_id_that_names_nothing_is_an_error(home: Path, name: str) -> None:
    with pytest.raises(UnknownSnapshot):
        undo.restore(home, name, NOW)
    with pytest.raises(UnknownSnapshot):
        undo.diff(home, name)


def test_a_folder_that_is_not_there_is_an_error(home: Path, plain: Path) -> None:
    snapshot = undo.take(home, plain, NOW)
    shutil.rmtree(plain)

    with pytest.raises(UndoError, match="There is no folder"):
        undo.restore(home, snapshot.id, NOW)
    with pytest.raises(UndoError, match="There is no folder"):
        undo.take(home, plain / "none", NOW)


def test_a_snapshot_that_met_its_bound_on_time_is_incomplete_and_cannot_be_restored(home: Path, plain: Path) -> None:
    before = manifest(plain)
    ticks = iter(range(1000))
    snapshot = undo.take(home, plain, NOW, limits=undo.SnapshotLimits(seconds=6), clock=lambda: float(next(ticks)))

    assert snapshot.incomplete == "time"
    assert snapshot.payload()["incomplete"] == "time"
    with pytest.raises(IncompleteSnapshot, match="incomplete"):
        undo.restore(home, snapshot.id, NOW)
    assert manifest(plain) == before


def test_every_bound_on_time_gives_a_whole_snapshot_or_an_incomplete_one(home: Path, plain: Path) -> None:
    before = manifest(plain)
    whole = 0
    for seconds in range(1, 40):
        ticks = iter(range(1000))
        one = undo.take(
            home, plain, NOW, limits=undo.SnapshotLimits(seconds=seconds), clock=lambda t=ticks: float(next(t))
        )
        if not one.incomplete:
            whole += 1
            shutil.rmtree(plain / "src")
            undo.restore(home, one.id, NOW)
            assert manifest(plain) == before
    assert 0 < whole < 39


def test_too_many_files_make_a_snapshot_incomplete(home: Path, plain: Path) -> None:
    snapshot = undo.take(home, plain, NOW, limits=undo.SnapshotLimits(files=4))

    assert snapshot.incomplete == "files"


def test_a_restore_that_cannot_keep_what_is_there_changes_nothing(home: Path, plain: Path) -> None:
    snapshot = undo.take(home, plain, NOW)
    for number in range(20):
        put(plain, f"{number}.txt", "x")
    before = manifest(plain)

    with pytest.raises(IncompleteSnapshot, match="nothing was changed"):
        undo.restore(home, snapshot.id, NOW, limits=undo.SnapshotLimits(files=15))

    assert manifest(plain) == before


def test_snapshots_go_by_age_and_number_and_the_newest_stays(home: Path, plain: Path) -> None:
    ids = [undo.take(home, plain, NOW + timedelta(days=day)).id for day in range(10)]

    pruned = prune(home, NOW + timedelta(days=9), undo.SnapshotLimits(days=5, snapshots=3))
    assert [one.id for one in undo.listed(home)] == ids[:-4:-1]
    assert set(pruned.snapshots) == set(ids[:-3])

    prune(home, NOW + timedelta(days=9), undo.SnapshotLimits(store_bytes=0))
    assert [one.id for one in undo.listed(home)] == ids[-1:]


def test_pruning_removes_what_nothing_refers_to_and_keeps_the_rest(home: Path, plain: Path) -> None:
    put(plain, "large.bin", os.urandom(300_000))
    old = undo.take(home, plain, NOW)
    (plain / "large.bin").unlink()
    put(plain, "small.txt", "x")
    before = manifest(plain)
    new = undo.take(home, plain, NOW + timedelta(days=20))
    store = _store(home, new)

    pruned = prune(home, NOW + timedelta(days=40))

    assert pruned.snapshots == (old.id,)
    assert pruned.bytes > 290_000
    assert len(packs.pack_names(store.packs)) == 1
    shutil.rmtree(plain / "src")
    undo.restore(home, new.id, NOW)
    assert manifest(plain) == before
    with pytest.raises(UnknownSnapshot):
        undo.restore(home, old.id, NOW)


def test_snapshots_go_from_the_oldest_while_the_store_is_too_large(home: Path, plain: Path) -> None:
    ids: list[str] = []
    for number in range(6):
        put(plain, "noise.bin", os.urandom(100_000))
        ids.append(undo.take(home, plain, NOW + timedelta(minutes=number)).id)

    prune(home, NOW, undo.SnapshotLimits(store_bytes=320_000))

    assert [one.id for one in undo.listed(home)] == ids[:2:-1]
    undo.restore(home, ids[3], NOW)


def test_taking_keeps_a_store_within_its_bounds_by_itself(home: Path, plain: Path) -> None:
    limits = undo.SnapshotLimits(snapshots=5, store_bytes=400_000)
    for number in range(60):
        put(plain, "noise.bin", os.urandom(50_000))
        undo.take(home, plain, NOW + timedelta(minutes=number), limits=limits)
    store = _store(home, undo.listed(home)[0])

    assert len(undo.listed(home)) <= 25
    assert len(packs.pack_names(store.packs)) <= 21
    assert sum(path.stat().st_size for path in store.place.rglob("*") if path.is_file()) < 600_000


def test_a_snapshot_that_was_dropped_leaves_nothing_behind(home: Path, plain: Path) -> None:
    put(plain, "secret.bin", os.urandom(100_000))
    first = undo.take(home, plain, NOW)
    put(plain, "secret.bin", "gone")
    second = undo.take(home, plain, NOW)

    assert undo.drop(home, [first.id]).snapshots == (first.id,)
    assert sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) < 60_000
    undo.drop(home, [second.id, first.id])
    assert list((home / "snapshots").iterdir()) == []
    assert undo.take(home, plain, NOW).files == 6


def test_what_a_crash_left_in_a_store_is_cleaned_up(home: Path, plain: Path) -> None:
    store = _store(home, undo.take(home, plain, NOW))
    (store.packs / "part-abc").write_bytes(b"half")
    (store.packs / f"pack-{'0' * 40}.pack").write_bytes(b"PACK")

    undo.take(home, plain, NOW)

    assert packs.leftovers(store.packs) == []


def test_git_can_read_what_is_stored(home: Path, plain: Path) -> None:
    snapshot = undo.take(home, plain, NOW)
    store = _store(home, snapshot)
    tree = pygit2.Repository(str(store.place))[store.record(snapshot.id).tree]

    assert isinstance(tree, pygit2.Tree)
    assert tree["src/main.py"].peel(pygit2.Blob).data == b"print(1)\n"


def test_sessions_in_one_tree_do_not_harm_each_other(home: Path, plain: Path) -> None:
    def work(number: int) -> str:
        put(plain, f"{number}.txt", str(number))
        identity = undo.take(home, plain, NOW).id
        prune(home, NOW)
        return identity

    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(work, range(24)))

    assert len(set(ids)) == 24
    for identity in ids:
        undo.restore(home, identity, NOW)
    assert (plain / "readme.md").read_text() == "hello\n"


def test_processes_in_one_tree_do_not_harm_each_other(home: Path, plain: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from datetime import datetime, UTC\n"
        "from commonplace.agent import undo\n"
        "for n in range(10):\n"
        "    Path(sys.argv[2], sys.argv[3]).write_text(str(n))\n"
        "    s = undo.take(Path(sys.argv[1]), Path(sys.argv[2]), datetime(2026, 1, 1, tzinfo=UTC))\n"
        "    undo.diff(Path(sys.argv[1]), s.id)\n"
    )
    running = [processes.Process([home, plain, f"{n}.txt"], code=script, stdout=1, stderr=2) for n in range(3)]

    assert [one.wait(100) for one in running] == [0, 0, 0]
    found = undo.listed(home)
    assert len(found) == 30
    for one in found[::5]:
        undo.restore(home, one.id, NOW)


def test_a_file_that_somebody_changes_during_a_restore_is_left_alone(
    home: Path, plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = undo.take(home, plain, NOW)
    put(plain, "readme.md", "by the turn")
    put(plain, "added.txt", "by the turn")
    real = Store.publish

    def publish(self: Store, record: object) -> str:
        put(plain, "readme.md", "by a person, meanwhile")
        put(plain, "added.txt", "by a person, meanwhile")
        return real(self, record)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(Store, "publish", publish)
    restored = undo.restore(home, snapshot.id, NOW)

    assert (plain / "readme.md").read_text() == "by a person, meanwhile"
    assert (plain / "added.txt").read_text() == "by a person, meanwhile"
    assert {one.path for one in restored.left_alone} == {"readme.md", "added.txt"}


def test_a_store_that_cannot_be_written_is_one_clear_error(home: Path, plain: Path) -> None:
    home.mkdir()
    (home / "snapshots").write_text("in the way")

    with pytest.raises(UndoError, match="could not be taken"):
        undo.take(home, plain, NOW)


def test_a_link_that_is_swapped_in_during_a_restore_leads_nowhere(
    home: Path, plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "environment"
    put(outside, "main.py", "theirs")
    put(outside, "added.py", "theirs")
    theirs = manifest(outside)
    snapshot = undo.take(home, plain, NOW)
    put(plain, "src/main.py", "changed")
    put(plain, "src/added.py", "added")
    (plain / "src").chmod(0o700)
    real = Store.publish

    def publish(self: Store, record: object) -> str:
        (plain / "src").rename(tmp_path / "aside")
        (plain / "src").symlink_to(outside)
        return real(self, record)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(Store, "publish", publish)
    restored = undo.restore(home, snapshot.id, NOW)

    assert manifest(outside) == theirs
    assert {"src/main.py", "src/added.py", "src"} == {one.path for one in restored.left_alone}

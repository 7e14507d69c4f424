"""What one home put into a store, another lists and reads: of a large ledger only what is asked for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import recording
from hypothesis import given
from hypothesis import strategies as st

from commonplace.context.reconstruct import reconstruct
from commonplace.errors import BlobDamaged, LedgerError, NotASession, StoreUnavailable
from commonplace.protocol.rollout import Line, Skipped
from commonplace.rollout import layout, reader
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import open_ledger
from commonplace.rollout.chain_blobs import ChainStore
from commonplace.rollout.checkpoint import Tail
from commonplace.rollout.store import block_cache, segments, stubs
from commonplace.rollout.store.block_cache import BlockCache
from commonplace.rollout.store.home_store import HomeStore
from commonplace.rollout.store.object_store import ObjectStore, StoredObject
from commonplace.rollout.store.segments import Segment, SegmentManifest
from commonplace.rollout.store.upload_notes import root_of
from ledgers import FILE, THREAD, Script, user
from object_stores import Place


def texts(records: Iterator[reader.Record]) -> list[str]:
    found: list[str] = []
    for record in records:
        if isinstance(record, Line) and record.type == "response_item":
            found += [part["text"] for part in json.loads(bytes(record.payload))["content"]]
    return found


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "there"


def written(place: Place, there: Path, *texts: str) -> Path:
    """A ledger that another home wrote and uploaded, in two steps."""
    path = recording.session_file(there)
    script = Script()
    for text in texts:
        script.item(user(text))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(script.data())
        place.home(there).uploads.upload(path)
    return path


def stub(home: Path) -> Path:
    (found,) = [file.path for root in stubs.roots(home) for file in layout.walk(root)]
    return found


def test_a_listed_ledger_is_read_forwards_and_backwards_and_grows(place: Place, home: Path, there: Path) -> None:
    path = written(place, there, "one", "two")
    here = place.home(home)
    here.remote.sync()
    found = stub(home)
    assert found.stat().st_size == path.stat().st_size
    assert texts(reader.forward(found)) == ["one", "two"]
    assert texts(reader.backward(found)) == ["two", "one"]

    stamp = found.stat().st_mtime_ns
    here.remote.sync()
    assert found.stat().st_mtime_ns == stamp  # or an index would read it again
    written(place, there, "one", "two", "three")
    assert open_ledger(found).thread_id == THREAD
    assert texts(reader.forward(found)) == ["one", "two", "three"]


def test_a_merge_under_a_reader_costs_another_listing(place: Place, home: Path, there: Path) -> None:
    path = written(place, there, *"abcdefghijklmn")
    here = place.home(home)
    here.remote.sync()
    script = Script().item(*(user(text) for text in "abcdefghijklmnopq"))
    path.write_bytes(script.data())
    for end in (-2, -1, None):
        path.write_bytes(b"".join(line + b"\n" for line in script.lines[:end]))
        place.home(there).uploads.upload(path)
    assert len([key for key in place.objects() if FILE in key]) < 5

    assert texts(reader.forward(stub(home))) == [*"abcdefghijklmn"]


def test_what_was_read_is_read_again_without_the_store(place: Place, home: Path, there: Path) -> None:
    written(place, there, "one")
    here = place.home(home)
    here.remote.sync()
    assert texts(reader.forward(stub(home))) == ["one"]
    with place.away():
        here.store._opened = None  # pyright: ignore[reportPrivateUsage] (as a process that starts)
        assert texts(reader.forward(stub(home))) == ["one"]
        shutil.rmtree(home / stubs.CACHE / "blocks")
        with pytest.raises(StoreUnavailable):
            texts(reader.forward(stub(home)))


def test_damage_is_reported_and_the_rest_is_read(place: Place, home: Path, there: Path) -> None:
    path = written(place, there, "one", "two", "three", "four")
    lost = place.raw()
    manifest = SegmentManifest("", [])
    folder = f"{root_of(there)}/{path.relative_to(there)}"
    manifest = SegmentManifest(folder, lost.list(folder))
    lost.delete([manifest.all[2].key])
    here = place.home(home)
    here.remote.sync()

    records = [*reader.forward(stub(home))]
    assert texts(iter(records)) == ["one", "two"]  # the hole has no line break, so the line after it is part of it
    assert [each.reason for each in records if isinstance(each, Skipped)] == ["not_json"]


def test_a_compressed_ledger_is_read_from_the_store(place: Place, home: Path, there: Path) -> None:
    path = recording.compress(Script().item(user("one"), user("two")).write(recording.session_file(there).parent))
    place.home(there).uploads.upload(path)
    place.home(home).remote.sync()

    assert texts(reader.forward(stub(home))) == ["one", "two"]
    assert open_ledger(stub(home)).thread_id == THREAD


async def test_spilled_values_go_up_and_come_back(place: Place, home: Path, there: Path) -> None:
    async with await recording.create(there, landed=(up := place.home(there)).add) as recorder:
        recording.say(recorder, "x" * 100_000)
    assert up.drain()
    place.home(home).remote.sync()
    ledger = open_ledger(stub(home))
    store = ChainStore(BlobStore(home), ledger)
    (name,) = {ref.sha256 for line in Tail(ledger) for ref in line.blobs()}
    assert store.get(name) == b"x" * 100_000

    with pytest.raises(BlobDamaged):
        store.get("0" * 64)
    (home / stubs.CACHE / "blobs" / name).write_bytes(b"damaged")
    assert store.get(name) == b"x" * 100_000


def test_a_ledger_that_was_written_anew_is_read_as_it_is_now(place: Place, home: Path, there: Path) -> None:
    written(place, there, "one")
    place.home(home).remote.sync()
    assert texts(reader.forward(stub(home))) == ["one"]
    written(place, there, "two")

    assert open_ledger(stub(home)).thread_id == THREAD
    assert texts(reader.forward(stub(home))) == ["two"]


def test_what_left_the_store_leaves_the_listing(place: Place, home: Path, there: Path) -> None:
    written(place, there, "one")
    here = place.home(home)
    here.remote.sync()
    gone = stub(home)
    place.raw().delete(place.objects())
    with pytest.raises(NotASession, match="not in the store any more"):
        open_ledger(gone)
    here.remote.sync()
    assert not gone.exists()


def test_names_in_a_store_lead_nowhere_else(place: Place, home: Path) -> None:
    raw = place.raw()
    for key in (
        "x/sessions/2026/11/15/notes.txt/0000000000000000",
        f"x/other/{FILE}/0000000000000000",
        f"a b/{FILE}/0",
    ):
        raw.create(key, b"{}\n")
    place.home(home).remote.sync()
    assert not stubs.roots(home)


def test_a_stub_without_a_store_is_refused(home: Path, tmp_path: Path) -> None:
    stub = Script().write(tmp_path / "other" / "cache" / "ledgers" / "root" / "sessions" / "2026" / "11" / "15")
    with pytest.raises(LedgerError, match="kept in a store"):
        open_ledger(stub)


def test_resuming_a_gibibyte_reads_what_the_live_window_needs(tmp_path: Path, home: Path) -> None:
    """The store has a ledger of 1 GiB: 128 segments whose middle ones are one file under many names."""
    folder = tmp_path / "store" / "root" / "sessions" / "2026" / "11" / "15" / FILE
    folder.mkdir(parents=True)
    item = Script().item(user("an older word " * 100)).lines[1] + b"\n"
    block = item * (segments.LONGEST // len(item))
    block += b" " * (segments.LONGEST - len(block) - 1) + b"\n"
    head = Script().data()
    (folder / f"{0:016d}").write_bytes(head)
    (folder / f"{len(head):016d}").write_bytes(block)
    for number in range(1, 128):
        (folder / f"{len(head) + number * len(block):016d}").hardlink_to(folder / f"{len(head):016d}")
    history = [user("what it was about"), user("the summary")]
    tail = Script().line("compacted", {"message": "the summary", "replacement_history": history, "window_number": 1})
    tail.turn(user("go on"))
    (folder / f"{len(head) + 128 * len(block):016d}").write_bytes(b"".join(line + b"\n" for line in tail.lines[1:]))

    here = HomeStore(home, (tmp_path / "store").as_uri(), {})
    here.remote.sync()
    ledger = open_ledger(stub(home))
    state = reconstruct(Tail(ledger), ledger.meta)

    assert stub(home).stat().st_size > 2**30
    assert "go on" in str(state.history.for_prompt())
    assert here.store.bytes_requested < 2 * 2**20


def test_the_cache_keeps_to_its_bound_and_forgets_the_oldest(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    store = ObjectStore((tmp_path / "store").as_uri(), {})
    data = bytes(range(256)) * (block_cache.BLOCK * 8 // 256)
    assert store.create("object", data)
    segment = Segment(0, len(data), "object", "tag")
    cache = BlockCache(tmp_path / "blocks", store, bound=4 * block_cache.BLOCK)
    for _ in range(2):
        for start in range(0, len(data), 100_000):
            assert cache.read(segment, start, min(start + 100_000, len(data))) == data[start : start + 100_000]
            assert sum(file.stat().st_size for file in (tmp_path / "blocks").iterdir()) <= 4 * block_cache.BLOCK

    before = store.bytes_requested
    assert cache.read(segment, len(data) - 10, len(data)) == data[-10:]
    assert store.bytes_requested == before
    newest = max((tmp_path / "blocks").iterdir(), key=lambda file: int(file.suffix[1:]))
    newest.write_bytes(b"cut short")
    assert cache.read(segment, len(data) - 10, len(data)) == data[-10:]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20))), st.integers(0, 60), st.integers(0, 60))
def test_whatever_segments_there_are_each_byte_comes_from_one_that_has_it(
    ranges: list[tuple[int, int]], start: int, end: int
) -> None:
    objects = [StoredObject(segments.key("f", begin, size), size, "") for begin, size in ranges]
    manifest = SegmentManifest("f", objects)
    covered = {offset for begin, size in ranges for offset in range(begin, begin + size)}

    assert manifest.end == max(covered, default=-1) + 1
    position = start
    for piece in manifest.pieces(start, end):
        assert piece.start == position < piece.end
        position = piece.end
        inside = range(piece.start, piece.end)
        if piece.segment is None:
            assert not covered & {*inside}
        else:
            assert piece.segment.start <= piece.start < piece.end <= piece.segment.end
    assert position == max(start, min(end, manifest.end))
    kept = {segment.key for segment in manifest.segments}
    assert not kept & {segment.key for segment in manifest.leftovers()}

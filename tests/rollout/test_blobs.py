"""Oversized values: what leaves its line, what stays readable there, and that everything comes back as it was."""

from __future__ import annotations

import base64
import errno
import fcntl
import os
import threading
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recording import Disk, create, no_sync, said, session_file

from commonplace.errors import BlobDamaged, WriteFailed
from commonplace.protocol.rollout import BlobRef, Line, Skipped
from commonplace.rollout import blobs, locks, reader
from commonplace.rollout.blobs import BlobStore
from ledgers import Json, function_call, function_output, user

BOUND = 1024
PNG = base64.b64encode(b"\x89PNG" + bytes(range(256)) * 20).decode()
IMAGE: Json = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "high"}
SOUND: Json = {"type": "input_audio", "audio_url": f"data:audio/wav;base64,{PNG}"}


@pytest.fixture
def store(home: Path) -> BlobStore:
    return BlobStore(home)


def as_line(payload: Any, refs: list[BlobRef] | Json | bytes, line_type: str = "response_item") -> Line:
    raw = refs if isinstance(refs, bytes) else msgspec.json.encode(refs)
    return Line(type=line_type, payload=msgspec.Raw(msgspec.json.encode(payload)), blob=msgspec.Raw(raw), offset=7)


def back(line: Line, store: BlobStore, *, everything: bool = True) -> tuple[Any, list[str]]:
    """Return a line's payload with its values put back, and what was reported."""
    reports: list[Skipped] = []
    (whole,) = blobs.restored([line], store, reports.append, everything=everything)
    return msgspec.json.decode(whole.payload), [report.reason for report in reports]


def spilled(payload: Any, store: BlobStore, line_type: str = "response_item") -> tuple[Any, list[BlobRef]]:
    """Spill, check that everything comes back, and return what stays in the line."""
    short, refs = blobs.spill(line_type, payload, store, BOUND)
    assert (payload, []) == back(as_line(short, refs), store)
    return short, refs


TALL = "x" * 5000
PAYLOADS: dict[str, Any] = {
    "a text": user(TALL),
    "an output": function_output("c", TALL),
    "an output in parts": function_output("c", [{"type": "input_text", "text": TALL}, IMAGE]),
    "an image": user("look") | {"content": [{"type": "input_text", "text": "look"}, IMAGE]},
    "a sound": user("listen") | {"content": [SOUND]},
    "a generated image": {"type": "image_generation_call", "id": "ig", "status": "completed", "result": PNG},
    "two of a kind": {"content": [IMAGE, IMAGE, {"text": TALL}, {"text": TALL}]},
    "odd keys": {"a/b": {"~1": {"": TALL}}, "~": [TALL], "/": {"0": TALL}},
    "a payload that is a text": TALL,
    "a payload that is an image": IMAGE,
    "an image in plain letters": IMAGE | {"image_url": "data:image/svg+xml," + "<svg/>" * 500},
    "an image with padding that is not canonical": IMAGE | {"image_url": f"data:image/png;base64,{PNG[:-1]}"},
    "an image with line breaks": IMAGE | {"image_url": "data:image/png;base64," + PNG.replace("A", "A\n")},
    "an image of no bytes": IMAGE | {"image_url": "data:image/png;base64," + "=" * 5000},
    "an image without a type": IMAGE | {"image_url": f"data:;base64,{PNG}"},
    "an image without its comma": IMAGE | {"image_url": "data:" + TALL},
    "a generated image that is no base64": {"type": "image_generation_call", "status": "x", "result": "ü" * 3000},
}


@pytest.mark.parametrize("kind", PAYLOADS)
def test_everything_that_is_spilled_comes_back_as_it_was(store: BlobStore, kind: str) -> None:
    _, refs = spilled(PAYLOADS[kind], store)

    assert ("comma" in kind) == (not refs)


@pytest.mark.parametrize("kind", [kind for kind in PAYLOADS if "comma" not in kind])
def test_what_stays_in_the_line_is_small(store: BlobStore, kind: str) -> None:
    short, refs = spilled(PAYLOADS[kind], store)

    assert len(msgspec.json.encode([short, refs])) < 1200 * len(refs)


def test_a_text_keeps_head_and_tail_and_says_where_the_rest_is(store: BlobStore) -> None:
    short, (ref,) = spilled(user("head " + TALL + " tail"), store)
    text = short["content"][0]["text"]

    assert text.startswith("head xxx")
    assert text.endswith("xxx tail")
    assert f"{5010 - 512} bytes left out, kept as blob {ref.sha256}" in text
    assert ("/content/0/text", 5010, "text/plain", None) == (ref.pointer, ref.bytes, ref.media_type, ref.restore)


@pytest.mark.parametrize("character", ["é", "€", "🎉"])
@pytest.mark.parametrize("shift", range(4))
def test_no_character_is_cut_in_two(store: BlobStore, character: str, shift: int) -> None:
    short, (ref,) = spilled({"text": "a" * shift + character * 2000}, store)
    head, note, tail = short["text"].replace("]…", "…[").split("…[")

    assert set(head) | set(tail) <= {"a", character}
    assert f"{ref.bytes - len(head.encode()) - len(tail.encode())} bytes left out" == note.split(",")[0]


@pytest.mark.parametrize(("length", "spills"), [(BOUND - 1, False), (BOUND, False), (BOUND + 1, True)])
def test_the_bound_is_for_each_string_in_bytes(store: BlobStore, length: int, spills: bool) -> None:
    many = {"texts": ["x" * length] * 5, "two": "é" * (length // 2) + "x" * (length % 2)}

    assert (6 if spills else 0) == len(spilled(many, store)[1])


def test_an_image_becomes_a_text_in_its_place(store: BlobStore) -> None:
    short, (ref,) = spilled({"content": [IMAGE]}, store)
    data = base64.b64decode(PNG)

    assert [{"type": "input_text", "text": f"[image of {len(data)} bytes (image/png), kept as blob {ref.sha256}]"}] == (
        short["content"]
    )
    assert data == store.get(ref.sha256)
    assert {"type": "input_image", "image_url": "data:image/png;base64,", "detail": "high"} == ref.restore


def test_a_value_that_comes_up_again_is_stored_once(store: BlobStore) -> None:
    spilled({"content": [IMAGE, {"text": TALL}]}, store)
    spilled({"content": [IMAGE, IMAGE, {"text": TALL}]}, store)

    assert 2 == len(list(store.folder.iterdir()))


def test_what_only_its_author_can_read_is_never_spilled(store: BlobStore) -> None:
    reasoning: Json = {"type": "reasoning", "encrypted_content": TALL, "id": TALL, "summary": []}

    assert (reasoning, []) == spilled(reasoning, store)


def test_an_address_of_an_image_is_never_spilled(store: BlobStore) -> None:
    linked = {"content": [IMAGE | {"image_url": "https://example.org/" + TALL}]}

    assert (linked, []) == spilled(linked, store)


def test_a_compaction_never_copies_media_that_the_ledger_has(store: BlobStore) -> None:
    small = IMAGE | {"image_url": "data:image/png;base64," + PNG[:1200]}
    item = {"content": [small]}

    with_bound = blobs.spill("response_item", item, store, 65536)[1]
    compacted = blobs.spill("compacted", {"replacement_history": [item]}, store, 65536)[1]

    assert ([], ["/replacement_history/0/content/0"]) == (with_bound, [ref.pointer for ref in compacted])


ARGUMENTS = {
    "one long string": {"path": "a.txt", "text": TALL, "n": 7},
    "strings inside lists": {"edits": [{"old": TALL, "new": "y" * 700}]},
    "many small strings": {"lines": ["word"] * 2000},
    "many long strings": {"lines": ["x" * 600] * 20},
    "multi-byte strings": {"text": "€" * 2000},
}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_arguments_stay_json_that_is_small(store: BlobStore, kind: str) -> None:
    short, (ref,) = spilled(function_call("c", arguments=msgspec.json.encode(ARGUMENTS[kind]).decode()), store)

    assert isinstance(msgspec.json.decode(short["arguments"]), dict)
    assert len(short["arguments"].encode()) <= BOUND
    assert ref.sha256 in short["arguments"]


@pytest.mark.parametrize("text", ["{" + TALL, '{"n": 1e400, "t": "' + TALL + '"}', "[" * 3000 + "]" * 3000])
def test_arguments_that_are_no_json_are_shortened_like_any_text(store: BlobStore, text: str) -> None:
    short, _ = spilled(function_call("c", arguments=text), store)

    assert "bytes left out, kept as blob" in short["arguments"]


def test_resume_restores_media_and_leaves_texts_short(store: BlobStore) -> None:
    short, refs = blobs.spill("response_item", {"content": [IMAGE, {"text": TALL}]}, store, BOUND)
    payload, reports = back(as_line(short, refs), store, everything=False)

    assert IMAGE == payload["content"][0]
    assert "bytes left out" in payload["content"][1]["text"]
    assert [] == reports


words = st.sampled_from(
    ["input_image", "input_audio", "image_generation_call", "data:a;base64,QUJD" + "QUJD" * 20, "é€🎉" * 30]
)
texts = st.text(max_size=80) | words
keys = st.sampled_from(["type", "image_url", "audio_url", "result", "arguments", "a/b", "~0", ""]) | st.text(max_size=4)
payloads = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=25,
)


@given(payload=payloads, bound=st.integers(0, 60), line_type=st.sampled_from(["response_item", "compacted"]))
def test_any_payload_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, payload: Any, bound: int, line_type: str
) -> None:
    store = BlobStore(tmp_path_factory.getbasetemp() / "any")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", no_sync)
        short, refs = blobs.spill(line_type, payload, store, bound)

    assert (payload, []) == back(as_line(short, refs), store)


# Damage and malice


def test_a_blob_that_is_gone_or_changed_is_reported_and_its_placeholder_stays(store: BlobStore) -> None:
    short, refs = blobs.spill(
        "response_item", {"a": IMAGE, "b": SOUND | {"audio_url": "data:audio/wav,abc" * 99}}, store, 99
    )
    gone, changed = refs
    (store.folder / gone.sha256).unlink()
    (store.folder / changed.sha256).write_bytes(b"something else")

    assert (short, ["blob_missing", "blob_corrupt"]) == back(as_line(short, refs), store)
    assert ["missing", "corrupt"] == [store.state(ref.sha256) for ref in refs]
    with pytest.raises(BlobDamaged, match="missing"):
        store.get(gone.sha256)
    with pytest.raises(BlobDamaged, match="damaged"):
        store.get(changed.sha256)


def test_a_blob_that_was_cut_short_is_written_again(store: BlobStore) -> None:
    name = store.put(b"value")
    (store.folder / name).write_bytes(b"val")

    assert name == store.put(b"value")
    assert b"value" == store.get(name)


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "", "A" * 64, "g" * 64, "0" * 63, "0" * 65, "..", "0" * 64]
)
def test_a_reference_cannot_lead_out_of_the_folder_of_blobs(store: BlobStore, name: str) -> None:
    store.put(b"x")
    (store.home / "secret").write_text("secret")
    payload = {"output": "short"}
    refs = [BlobRef("/output", name, 6, "text/plain")]

    assert (payload, ["blob_missing"]) == back(as_line(payload, refs), store)
    assert "missing" == store.state(name)


@pytest.mark.parametrize(
    "pointer",
    [
        "/nowhere",
        "/list/9",
        "/list/x",
        "/list/-9",
        "/output/deeper",
        "/number",
        "/list",
        "output",
        "x/output",
        "/none/a",
    ],
)
def test_a_pointer_to_no_place_of_a_value_is_reported_and_changes_nothing(store: BlobStore, pointer: str) -> None:
    payload: Json = {"output": "short", "list": ["a"], "number": 7, "none": None}
    refs = [BlobRef(pointer, store.put(b"value"), 5, "text/plain")]

    assert (payload, ["blob_misplaced"]) == back(as_line(payload, refs), store)


@pytest.mark.parametrize(
    "restore",
    [
        {},
        {"type": "message"},
        {"type": "input_image"},
        {"type": ["x"]},
        {"type": "input_image", "image_url": 7},
        {"result": 1, "b": 2},
    ],
)
def test_a_restore_that_is_no_media_is_reported_and_changes_nothing(store: BlobStore, restore: Json) -> None:
    refs = [BlobRef("/output", store.put(b"value"), 5, "image/png", restore)]

    assert ({"output": "short"}, ["blob_misplaced"]) == back(as_line({"output": "short"}, refs), store)


@pytest.mark.parametrize("raw", [b"7", b"{}", b'"x"', b'[{"pointer":1}]', b"null", b"[null]"])
def test_references_that_are_none_are_ignored(store: BlobStore, raw: bytes) -> None:
    assert ({"output": "short"}, []) == back(as_line({"output": "short"}, raw), store)


def test_references_nested_without_end_are_ignored() -> None:
    deep = (
        b'[{"pointer":"/a","sha256":"0","bytes":1,"media_type":"x","restore":{"a":' + b"[" * 990 + b"]" * 990 + b"}}]"
    )

    def at_depth(depth: int) -> list[BlobRef]:
        return at_depth(depth - 1) if depth else as_line({}, deep).blobs()

    assert [] == at_depth(300)


def test_a_payload_that_cannot_be_taken_apart_is_reported_and_passes(store: BlobStore) -> None:
    refs = msgspec.json.encode([BlobRef("/output", store.put(b"value"), 5, "text/plain")])
    line = Line(type="x", payload=msgspec.Raw(b'{"n":1e400,"output":"a"}'), blob=msgspec.Raw(refs))
    reports: list[Skipped] = []
    (passed,) = blobs.restored([line], store, reports.append, everything=True)

    assert b'{"n":1e400,"output":"a"}' == bytes(passed.payload)
    assert ["blob_misplaced"] == [report.reason for report in reports]


@pytest.mark.parametrize("everything", [True, False])
def test_many_references_to_one_blob_cannot_fill_the_memory(
    store: BlobStore, monkeypatch: pytest.MonkeyPatch, everything: bool
) -> None:
    monkeypatch.setattr(blobs, "_LIVE_BYTES", 10_000)
    monkeypatch.setattr(blobs, "MAX_LINE_BYTES", 10_000)
    name = store.put(b"x" * 4000)
    restore = {"type": "input_image", "image_url": "data:,"}
    short = {"content": ["a", "b", "c", "d"]}
    refs = [BlobRef(f"/content/{place}", name, 1, "image/png", restore) for place in range(4)]
    reports: list[Skipped] = []
    lines = list(blobs.restored([as_line(short, refs) for _ in range(3)], store, reports.append, everything=everything))
    put_back = [sum(isinstance(part, dict) for part in msgspec.json.decode(line.payload)["content"]) for line in lines]

    assert ([2, 2, 2] if everything else [2, 0, 0]) == put_back
    assert {"beyond_bound"} == {report.reason for report in reports}


# The store


def test_a_blob_that_could_not_be_written_leaves_nothing_behind(
    store: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(OSError, match="No space"):
            store.put(b"value")

    assert [] == list(store.folder.iterdir())


def test_many_threads_store_one_value_at_once(store: BlobStore) -> None:
    gate = threading.Barrier(8)
    found: list[str] = []

    def put() -> None:
        gate.wait(60)
        found.append(store.put(b"v" * 300_000))

    for _ in range(5):
        threads = [threading.Thread(target=put) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (only,) = store.folder.iterdir()
        assert b"v" * 300_000 == store.get(only.name)
        only.unlink()

    assert 40 == len(found)


def test_collecting_removes_what_nothing_refers_to(store: BlobStore) -> None:
    kept, gone = store.put(b"kept"), store.put(b"gone")
    (store.folder / ".left.part").write_bytes(b"left by a crash")
    (store.folder / "folder").mkdir()

    assert sorted([gone, ".left.part"]) == store.collect(lambda: {kept})
    assert {kept, "folder"} == {path.name for path in store.folder.iterdir()}


def test_collecting_where_nothing_was_stored_makes_nothing(store: BlobStore) -> None:
    def never() -> set[str]:
        raise AssertionError

    assert [] == store.collect(never)
    assert not store.home.exists()


def names_in(path: Path) -> set[str]:
    if not path.exists():
        return set()
    lines = [record for record in reader.forward(path) if isinstance(record, Line)]
    return {ref.sha256 for line in lines for ref in line.blobs()}


def someone_holds(home: Path, name: str) -> bool:
    descriptor = os.open(home / "locks" / f"{name}.lock", os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


async def test_a_blob_whose_line_is_not_written_yet_is_not_collected(home: Path) -> None:
    entered, leave = threading.Event(), threading.Event()
    collected: list[str] = []

    def write(descriptor: int, data: bytes) -> int:
        if b'"blob":' in data:
            entered.set()
            leave.wait(60)
        return os.write(descriptor, data)

    recorder = await create(home, write=write, blob_bytes=1024)
    await recorder.persist()
    recorder.record("response_item", said(TALL))
    assert await anyio.to_thread.run_sync(entered.wait, 30)
    collector = threading.Thread(
        target=lambda: collected.extend(BlobStore(home).collect(lambda: names_in(session_file(home))))
    )
    collector.start()

    assert 1 == len(list((home / "blobs").iterdir()))
    assert someone_holds(home, blobs.LOCK)

    leave.set()
    await recorder.close()
    await anyio.to_thread.run_sync(collector.join)

    assert [] == collected
    assert not someone_holds(home, blobs.LOCK)
    assert ["ok"] == [BlobStore(home).state(name) for name in names_in(session_file(home))]


async def test_a_blob_collected_while_its_line_waits_is_stored_again(home: Path) -> None:
    recorder = await create(home, write=Disk((400, errno.ENOSPC)), blob_bytes=1024, fsync="never")
    recorder.record("response_item", said(TALL))
    with pytest.raises(WriteFailed, match="No space"):
        await recorder.flush()
    await anyio.to_thread.run_sync(BlobStore(home).collect, set[str])

    assert [] == list((home / "blobs").iterdir())

    await recorder.close()

    (name,) = names_in(session_file(home))
    assert TALL == BlobStore(home).get(name).decode()


async def test_lines_left_over_by_a_short_write_store_their_blobs_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two pieces of a batch a collection may run; the lock is looked after just before each piece."""
    collected: list[str] = []
    real = locks.WriterLock.renew
    pieces = 0

    def renew(lock: locks.WriterLock) -> None:
        nonlocal pieces
        pieces += 1
        if pieces == 2:
            collected.extend(BlobStore(home).collect(lambda: names_in(session_file(home))))
        real(lock)

    monkeypatch.setattr(locks.WriterLock, "renew", renew)
    recorder = await create(home, write=Disk(1700), blob_bytes=1024, fsync="never")
    for place in range(4):
        recorder.record("response_item", said(str(place) + TALL))
    await recorder.close()

    assert 3 == len(collected)
    assert 4 == len(names_in(session_file(home)))
    assert {"ok"} == {BlobStore(home).state(name) for name in names_in(session_file(home))}

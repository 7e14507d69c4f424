"""Reading one file from either end: every kind of damage is reported, none stops the reader."""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from recording import open_descriptors

from commonplace.errors import LedgerError, NotASession
from commonplace.protocol.rollout import Line, Skipped
from commonplace.rollout import chain, reader
from commonplace.rollout.reader import Record
from ledgers import TIME, Script, user

META = b'{"id":"00000000-0000-7000-8000-000000000000","timestamp":"","cwd":"/"}'
HEAD = b'{"timestamp":"' + TIME.encode() + b'","type":"session_meta","payload":' + META + b"}"
GOOD = b'{"timestamp":"' + TIME.encode() + b'","type":"event_msg","payload":{"type":"x"}}'
DEEP = b'{"timestamp":"t","type":"x","payload":' + b"[" * 100_000 + b"]" * 100_000 + b"}"

MALFORMED = {
    "not JSON at all": (b"what is this", "not_json"),
    "half an object": (GOOD[:-1], "not_json"),
    "two objects": (GOOD + GOOD, "not_json"),
    "NUL bytes": (b"\0" * 50, "not_json"),
    "a byte order mark": (b"\xef\xbb\xbf" + GOOD, "not_json"),
    "bytes that are no UTF-8": (GOOD.replace(b'"x"', b'"\xff"'), "invalid_utf8"),
    "half a character": (GOOD.replace(b'"x"', b'"\xe2\x82"'), "invalid_utf8"),
    "nested without end": (DEEP, "too_deep"),
    "a number": (b"7", "not_a_record"),
    "a list": (b"[1, 2]", "not_a_record"),
    "a string": (b'"text"', "not_a_record"),
    "null": (b"null", "not_a_record"),
    "an empty object": (b"{}", "not_a_record"),
    "an envelope without its payload": (b'{"timestamp":"t","type":"event_msg"}', "not_a_record"),
    "a type that is a number": (b'{"timestamp":"t","type":7,"payload":{}}', "not_a_record"),
    "an ordinal that is a text": (b'{"timestamp":"t","ordinal":"1","type":"x","payload":{}}', "not_a_record"),
}
KINDS = list(MALFORMED)
Reader = Callable[..., Iterable[Any]]


def write(folder: Path, data: bytes, name: str = "s.jsonl") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def seen(records: Iterator[Record]) -> list[object]:
    """Return what can be compared: bytes and place of each line, and every report."""
    return [
        (record.offset, record.size, record.type, bytes(record.payload)) if isinstance(record, Line) else record
        for record in records
    ]


@pytest.fixture(params=["forward", "backward"])
def read(request: pytest.FixtureRequest) -> Reader:
    """Both readers, made to answer in the order of the file."""

    def reversed_backward(path: Path, **more: Any) -> Iterable[Record]:
        return reversed(list(reader.backward(path, **more)))

    return reader.forward if request.param == "forward" else reversed_backward


@pytest.mark.parametrize("kind", KINDS)
def test_a_malformed_line_is_reported_between_its_sound_neighbours(tmp_path: Path, read: Reader, kind: str) -> None:
    bad, reason = MALFORMED[kind]
    path = write(tmp_path, GOOD + b"\n" + bad + b"\n" + GOOD + b"\n")

    before, report, after = read(path)

    assert Skipped(len(GOOD) + 1, len(bad), reason) == report
    assert (0, len(GOOD) + len(bad) + 2) == (before.offset, after.offset)


@pytest.mark.parametrize("kind", KINDS)
def test_a_malformed_last_line_without_newline_is_called_torn(tmp_path: Path, read: Reader, kind: str) -> None:
    bad, _ = MALFORMED[kind]
    path = write(tmp_path, GOOD + b"\n" + bad)

    _, report = read(path)

    assert Skipped(len(GOOD) + 1, len(bad), "torn") == report


def test_a_whole_last_line_counts_without_its_newline(tmp_path: Path, read: Reader) -> None:
    path = write(tmp_path, GOOD + b"\n" + GOOD)

    assert [0, len(GOOD) + 1] == [line.offset for line in read(path)]


@pytest.mark.parametrize("blank", [b"", b" ", b"\t \r", b"\r"])
def test_blank_lines_are_no_records(tmp_path: Path, read: Reader, blank: bytes) -> None:
    path = write(tmp_path, blank + b"\n" + GOOD + b"\n" + blank + b"\n\n" + blank)

    assert [len(blank) + 1] == [line.offset for line in read(path)]


def test_an_empty_file_has_no_records(tmp_path: Path, read: Reader) -> None:
    assert [] == list(read(write(tmp_path, b"")))


def test_lines_that_end_like_on_windows_are_read(tmp_path: Path, read: Reader) -> None:
    assert [0, len(GOOD) + 2] == [line.offset for line in read(write(tmp_path, (GOOD + b"\r\n") * 2))]


def test_a_file_cannot_say_where_its_lines_stand(tmp_path: Path, read: Reader) -> None:
    liar = GOOD[:-1] + b',"::offset":777,"::size":888}'
    (line,) = read(write(tmp_path, liar + b"\n"))

    assert (0, len(liar)) == (line.offset, line.size)


@pytest.mark.parametrize("excess", [-1, 0, 1, 2, 1000])
@pytest.mark.parametrize("terminated", [True, False])
def test_a_line_above_the_bound_is_measured_and_not_loaded(
    tmp_path: Path, read: Reader, excess: int, terminated: bool
) -> None:
    bound = 200
    line = GOOD[:-2] + b" " * (bound + excess - len(GOOD)) + GOOD[-2:]
    path = write(tmp_path, GOOD + b"\n" + line + b"\n" * terminated)

    _, record = read(path, max_line=bound)

    if excess > 0:
        assert Skipped(len(GOOD) + 1, len(line), "too_long") == record
    else:
        assert (len(GOOD) + 1, len(line)) == (record.offset, record.size)


def test_lines_around_an_oversized_one_are_read(tmp_path: Path, read: Reader) -> None:
    path = write(tmp_path, GOOD + b"\n" + b"x" * 700_000 + b"\n" + GOOD + b"\n")

    before, report, after = read(path, max_line=1000)

    assert (0, "too_long", 700_000) == (before.offset, report.reason, report.bytes)
    assert len(GOOD) + 700_002 == after.offset


def test_a_line_with_too_many_values_is_not_decoded(tmp_path: Path, read: Reader) -> None:
    dense = b'{"timestamp":"t","type":"x","payload":[' + b"1," * (4 * 2**20 + 1) + b"1]}"
    (report,) = read(write(tmp_path, dense + b"\n"))

    assert "too_dense" == report.reason


def test_a_cut_at_any_byte_leaves_what_stands_before_it(tmp_path: Path, read: Reader) -> None:
    path = write(tmp_path, (GOOD + b"\n") * 2)
    for end in range(2 * len(GOOD) + 4):
        whole, rest = divmod(end, len(GOOD) + 1)
        expected = [0, len(GOOD) + 1][: min(2, whole + (rest == len(GOOD)))]
        torn = [rest] if 0 < rest < len(GOOD) and whole < 2 else []

        records = list(read(path, end=end))

        assert expected == [record.offset for record in records if isinstance(record, Line)], end
        assert torn == [record.bytes for record in records if isinstance(record, Skipped)], end


def test_reading_starts_at_the_byte_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, (GOOD + b"\n") * 3)

    assert [len(GOOD) + 1, 2 * len(GOOD) + 2] == [r.offset for r in reader.forward(path, start=len(GOOD) + 1)]
    assert [Skipped(len(GOOD) - 1, 1, "not_json")] == list(reader.forward(path, start=len(GOOD) - 1, end=len(GOOD) + 1))
    assert [] == list(reader.forward(path, start=10_000))
    assert [] == list(reader.forward(path, start=len(GOOD), end=3))


@given(
    data=st.lists(
        st.sampled_from([GOOD, b"\n", b"\n", b"\r\n", b" ", b"{", b"\xff", b"x" * 40, GOOD[:9], '{"é":1}'.encode()])
        | st.binary(max_size=5),
        max_size=12,
    ).map(b"".join),
    max_line=st.integers(1, 120),
    chunk=st.integers(1, 90),
    cut=st.none() | st.integers(0, 400),
)
def test_backward_is_forward_reversed(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, max_line: int, chunk: int, cut: int | None
) -> None:
    path = write(tmp_path_factory.mktemp("any"), data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_FIRST_CHUNK", chunk)
        patch.setattr(reader, "_LARGEST_CHUNK", chunk)
        forth = seen(reader.forward(path, end=cut, max_line=max_line))
        back = seen(reader.backward(path, end=cut, max_line=max_line))

    assert forth == back[::-1]


@given(data=st.binary(max_size=300), max_line=st.integers(1, 50))
def test_every_byte_that_is_not_blank_is_in_a_record(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, max_line: int
) -> None:
    path = write(tmp_path_factory.mktemp("any"), data)
    left = bytearray(data)
    for record in reader.forward(path, max_line=max_line):
        size = record.size if isinstance(record, Line) else record.bytes
        left[record.offset : record.offset + size] = b" " * size

    assert b"" == bytes(left).strip()


def test_reading_from_the_end_reads_no_more_than_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, (GOOD + b"\n") * 100_000)
    meter = reader.Meter()

    last = next(reader.backward(path, meter=meter))

    assert 99_999 * (len(GOOD) + 1) == last.offset
    assert meter.bytes_read <= 64 * 1024


def test_the_meter_counts_every_byte_of_a_whole_pass(tmp_path: Path) -> None:
    data = (GOOD + b"\n") * 50 + b"\n\n" + b"x" * 300 + b"\n" + GOOD
    path = write(tmp_path, data)
    meter = reader.Meter()
    list(reader.forward(path, max_line=250, meter=meter))

    assert len(data) == meter.bytes_read


# What cannot be read at all


def test_a_missing_file_is_no_session(tmp_path: Path, read: Reader) -> None:
    with pytest.raises(NotASession, match="There is no file"):
        list(read(tmp_path / "none.jsonl"))
    with pytest.raises(NotASession, match="There is no file"):
        list(read(write(tmp_path, b"") / "below.jsonl"))


def test_a_folder_is_no_session_and_leaves_no_descriptor_open(tmp_path: Path, read: Reader) -> None:
    before = open_descriptors()
    with pytest.raises(NotASession, match="not a file"):
        list(read(tmp_path))

    assert before == open_descriptors()


def test_a_fifo_does_not_hang_the_reader(tmp_path: Path, read: Reader) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")

    with pytest.raises(NotASession, match="not a file"):
        list(read(tmp_path / "pipe.jsonl"))


def test_a_name_that_no_system_takes_is_an_error_of_ours(tmp_path: Path, read: Reader) -> None:
    with pytest.raises(LedgerError, match="cannot be read"):
        list(read(Path(f"{tmp_path}/nul\0byte.jsonl")))
    with pytest.raises(LedgerError, match="cannot be read"):
        list(read(tmp_path / ("long" * 200)))


def test_a_disk_that_fails_while_it_is_read_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    path = write(tmp_path, GOOD)
    with pytest.raises(LedgerError, match="cannot be read: Input/output error"):
        list(reader.forward(Path("/proc/self/mem")))  # nothing is mapped where it begins
    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", broken)
        with pytest.raises(LedgerError, match="cannot be read: Input/output error"):
            list(reader.backward(path))


def test_a_reader_that_is_given_up_halfway_leaves_no_descriptor_open(tmp_path: Path) -> None:
    path = write(tmp_path, (GOOD + b"\n") * 10)
    before = open_descriptors()
    for records in (reader.forward(path), reader.backward(path)):
        next(records)
        records.close()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]

    assert before == open_descriptors()


# Compressed files


def packed(data: bytes, **more: Any) -> bytes:
    return zstandard.ZstdCompressor(**more).compress(data)


def test_a_compressed_file_reads_like_its_plain_self(tmp_path: Path) -> None:
    data = Script().turn(user("größer")).raw(b"bad").data() + GOOD
    plain = write(tmp_path, data)
    small = write(tmp_path, packed(data), "s.jsonl.zst")

    assert seen(reader.forward(plain)) == seen(reader.forward(small))
    assert seen(reader.forward(plain, start=40, end=300)) == seen(reader.forward(small, start=40, end=300))


def test_several_frames_are_one_text(tmp_path: Path) -> None:
    data = (GOOD + b"\n") * 5
    skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    frames = packed(data[:100]) + skippable + packed(data[100:101]) + packed(b"") + packed(data[101:], level=19)
    path = write(tmp_path, frames, "s.jsonl.zst")

    assert [place * (len(GOOD) + 1) for place in range(5)] == [line.offset for line in reader.forward(path)]


def varied(size: int) -> bytes:
    """Lines that do not compress to nothing."""
    script = Script()
    while len(script.data()) < size:
        script.item(user(os.urandom(300).hex()))
    return script.data()


def test_a_compressed_file_that_was_cut_short_is_damaged_wherever_the_cut_is(tmp_path: Path) -> None:
    data = varied(3000)
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    whole = compressor.compress(data) + zstandard.ZstdCompressor(write_content_size=False).compress(data)
    joint = len(compressor.compress(data))
    silent: list[int] = []
    for cut in range(1, len(whole)):
        path = write(tmp_path, whole[:cut], "s.jsonl.zst")
        if not damage_of(path):
            silent.append(cut)
        refused = pytest.raises(LedgerError, match="damaged") if cut != joint else nullcontext()
        with refused, reader.open_session(path) as file:  # a copy must be whole
            file.read()

    assert [joint] == silent


def damage_of(path: Path) -> list[str]:
    """Why a compressed file cannot be read to its end, as its last record says."""
    *_, last = reader.forward(path)
    return [last.reason] if isinstance(last, Skipped) and last.reason in reader.DAMAGE else []


def test_the_lines_before_the_damage_are_read(tmp_path: Path) -> None:
    data = varied(400_000)
    whole = packed(data, level=1)
    path = write(tmp_path, whole[: len(whole) // 2], "s.jsonl.zst")
    *lines, torn, end = reader.forward(path)

    assert len(lines) > 100
    assert all(isinstance(line, Line) for line in lines)
    assert isinstance(torn, Skipped)
    assert torn.reason == "torn"
    assert end == Skipped(torn.offset + torn.bytes, 0, "cut_short")


def test_a_session_that_was_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    data = HEAD + b"\n" + varied(400_000)
    path = write(tmp_path, packed(data, level=1)[:-1000], "s.jsonl.zst")
    log = chain.SkipLog()
    lines = list(chain.forward(chain.open_ledger(path), log))

    assert len(lines) > 100
    assert [skipped.reason for skipped in log.entries] == ["torn", "cut_short"]


@pytest.mark.parametrize("name", ["s.jsonl", "s.jsonl.zst"])
def test_a_mark_of_the_byte_order_before_the_first_line_changes_nothing(tmp_path: Path, name: str) -> None:
    data = codecs.BOM_UTF8 + HEAD + b"\n" + GOOD + b"\n"
    path = write(tmp_path, packed(data) if name.endswith("zst") else data, name)

    records = list(reader.forward(path))
    assert [(line.type, line.offset) for line in records if isinstance(line, Line)] == [
        ("session_meta", 0),
        ("event_msg", len(codecs.BOM_UTF8 + HEAD) + 1),
    ]
    if not reader.is_compressed(path):
        assert [line.offset for line in reader.backward(path)] == [len(codecs.BOM_UTF8 + HEAD) + 1, 0]


@pytest.mark.parametrize("junk", [b"{}", b"not zstd at all, but long enough", b"\x28\xb5\x2f\xfd" + b"\xff" * 40])
def test_what_is_not_zstd_is_damaged(tmp_path: Path, junk: bytes) -> None:
    for data in (junk, packed(GOOD + b"\n") + junk):
        assert damage_of(write(tmp_path, data, "s.jsonl.zst"))
    with pytest.raises(LedgerError, match="damaged before its first line"):
        chain.read_head(write(tmp_path, junk, "s.jsonl.zst"))


def test_a_flipped_bit_under_a_checksum_is_damage(tmp_path: Path) -> None:
    whole = bytearray(packed(varied(3000), write_checksum=True))
    whole[len(whole) // 2] ^= 1

    assert damage_of(write(tmp_path, bytes(whole), "s.jsonl.zst")) == ["damaged"]


def test_an_empty_compressed_file_has_no_records(tmp_path: Path) -> None:
    assert [] == list(reader.forward(write(tmp_path, b"", "s.jsonl.zst")))
    assert [] == list(reader.forward(write(tmp_path, packed(b""), "s.jsonl.zst")))


def test_a_compressed_file_is_not_read_from_its_end(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="compressed"):
        list(reader.backward(write(tmp_path, packed(GOOD), "s.jsonl.zst")))


@given(st.lists(st.binary(max_size=200), max_size=4), st.integers(1, 22), st.booleans())
def test_whatever_zstd_writes_is_recognised_as_whole(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], level: int, checksum: bool
) -> None:
    folder = tmp_path_factory.mktemp("any")
    maker = zstandard.ZstdCompressor(level=level, write_checksum=checksum)
    streamed = b"".join(maker.compress(piece * 400) for piece in pieces)

    expected = b"".join(piece * 400 for piece in pieces)
    with reader.open_session(write(folder, streamed, "s.jsonl.zst")) as file:
        assert expected == file.read()


def head() -> bytes:
    return Script().turn(user("x")).data()


@pytest.mark.parametrize(
    "filler",
    [b"\n", b"{}\n", b"1\n", b" \n", b"\r\n", b"[]\n", b"x\n", b"null\n", b"\0\n", b"\n\n{}\n", b'""\n'],
    ids=repr,
)
def test_a_small_file_that_unpacks_to_very_many_lines_is_given_up_early(tmp_path: Path, filler: bytes) -> None:
    bomb = packed(head() + filler * (4_000_000 // len(filler)))
    path = write(tmp_path, bomb, "s.jsonl.zst")
    meter = reader.Meter()

    records: list[reader.Record] = []
    with pytest.raises(LedgerError, match="unpacks to far more lines"):
        records.extend(reader.forward(path, meter=meter))

    assert len(records) <= 10_000 + 4 * len(bomb)


@pytest.mark.parametrize("size", [2_000, 40_000, 400_000])
def test_a_small_file_that_unpacks_to_very_much_text_is_given_up_early(tmp_path: Path, size: int) -> None:
    line = json.dumps({"timestamp": "2026-11-15T09:00:00.000Z", "type": "event_msg", "payload": {"a": " a" * size}})
    bomb = packed(head() + f"{line}\n".encode() * (160 * 2**20 // len(line)))
    path = write(tmp_path, bomb, "s.jsonl.zst")
    meter = reader.Meter()

    with pytest.raises(LedgerError, match="unpacks to far more lines or bytes"):
        assert 0 < sum(1 for _ in reader.forward(path, meter=meter))

    assert meter.bytes_read < 100 * 2**20


def test_a_session_that_compresses_well_is_read_whole(tmp_path: Path) -> None:
    data = varied(20_000) * 60
    path = write(tmp_path, packed(data), "s.jsonl.zst")

    assert sum(1 for _ in reader.forward(path)) == sum(1 for _ in reader.forward(write(tmp_path, data)))


def test_empty_lines_are_passed_over_without_looking_at_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, head() + b"\n" * 3_000_000 + GOOD + b"\n\n\n" + GOOD)
    calls: list[bytes] = []
    real = reader.record_of

    def counted(raw: bytes, offset: int, *, terminated: bool) -> reader.Record | None:
        calls.append(raw)
        return real(raw, offset, terminated=terminated)

    monkeypatch.setattr(reader, "record_of", counted)
    records = list(reader.forward(path))

    assert [line.offset for line in records[-2:]] == [
        path.stat().st_size - 2 * len(GOOD) - 3,
        path.stat().st_size - len(GOOD),
    ]
    assert len(calls) < 10

"""Lines come out with their offsets, whatever stands between them, and no file takes more than a few lines' memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import LedgerError, NotASession
from commonplace.importers import json_lines, json_values
from commonplace.importers.converter import TORN
from commonplace.importers.json_lines import read_lines, repair
from commonplace.protocol.rollout import Skipped

MIB = 2**20


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "lines.jsonl"


def read(path: Path, data: bytes, **options: int) -> list[tuple[int, bytes] | Skipped]:
    return list(read_lines(written(path, data), **options))


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", []),
        (b"\n\n", []),
        (b" \t\n", []),
        (b'{"a":1}\n', [(0, b'{"a":1}')]),
        (b'{"a":1}\n{"b":2}\n', [(0, b'{"a":1}'), (8, b'{"b":2}')]),
        (b'{"a":1}\r\n{"b":2}\r\n', [(0, b'{"a":1}'), (9, b'{"b":2}')]),
        (b'{"a":1}\n\n  \n{"b":2}\n', [(0, b'{"a":1}'), (12, b'{"b":2}')]),
        (b'\xef\xbb\xbf{"a":1}\n', [(3, b'{"a":1}')]),
        (b"not json\n", [(0, b"not json")]),
        (b'\xff\n{"a":1}\n', [Skipped(0, 1, "invalid_utf8"), (2, b'{"a":1}')]),
        (b'"\xc3\xa9"\n', [(0, b'"\xc3\xa9"')]),
        (b'\0\0\0{"a":1}\n', [Skipped(0, 3, "nul_bytes"), (3, b'{"a":1}')]),
        (b'\0\0\n{"a":1}\n', [Skipped(0, 2, "nul_bytes"), (3, b'{"a":1}')]),
        (b'{"a":1}\n{"b":2}', [(0, b'{"a":1}'), (8, b'{"b":2}')]),
        (b'{"a":"\\ud83d"}', [(0, b'{"a":"\\ud83d"}')]),
        (b'{"a":1}\n{"b":', [(0, b'{"a":1}'), Skipped(8, 5, TORN)]),
        (b'{"a":1}\n12', [(0, b'{"a":1}'), Skipped(8, 2, TORN)]),
        (b'{"a":1}\n  ', [(0, b'{"a":1}')]),
        (b'{"a":1}\n\0\0', [(0, b'{"a":1}'), Skipped(8, 2, TORN)]),
        (b'{"a":1}\n{"b":"\xc3', [(0, b'{"a":1}'), Skipped(8, 7, TORN)]),
    ],
)
def test_every_shape_of_a_file_gives_its_lines_and_says_what_is_wrong(
    file: Path, data: bytes, found: list[tuple[int, bytes] | Skipped]
) -> None:
    assert found == read(file, data)


def test_a_line_above_the_limit_is_measured_and_read_past(file: Path) -> None:
    long = b'"' + b"x" * 50 + b'"'

    found = read(file, b"1\n" + long + b"\n2\n", limit=40)

    assert [(0, b"1"), Skipped(2, 52, "too_long"), (55, b"2")] == found


@pytest.mark.parametrize("size", [MIB - 1, MIB, MIB + 1, 3 * MIB])
def test_a_line_may_end_at_any_place_of_a_block(file: Path, size: int) -> None:
    first = b"{" + b" " * (size - 2) + b"}"

    assert [(0, first), (size + 1, b'{"a":1}')] == read(file, first + b'\n{"a":1}\n')


def test_a_long_line_that_is_torn_is_torn(file: Path) -> None:
    assert [Skipped(0, 2 * MIB, TORN)] == read(file, b"x" * 2 * MIB, limit=MIB)


def test_reading_goes_on_where_it_stopped(file: Path) -> None:
    assert [(8, b'{"b":2}')] == read(file, b'{"a":1}\n{"b":2}\n', start=8)
    assert [(8, b'{"b":2}')] == read(file, b'{"a":1}\n{"b":2}\n', start=7)


def test_what_is_no_file_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(NotASession):
        list(read_lines(tmp_path / "none.jsonl"))
    with pytest.raises(NotASession):
        list(read_lines(tmp_path))
    with pytest.raises(LedgerError):
        list(read_lines(tmp_path / "a\0b"))


LINES = st.lists(
    st.one_of(
        st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")),
        st.dictionaries(st.text(max_size=3), st.text(max_size=9), max_size=3).map(
            lambda value: json.dumps(value).encode()
        ),
        st.just(b"x" * 100),
    ),
    max_size=12,
)


@given(lines=LINES, end=st.sampled_from([b"", b"\n", b"\r\n"]))
def test_what_is_read_covers_every_byte_that_is_not_blank(tmp_path: Path, lines: list[bytes], end: bytes) -> None:
    data = b"\n".join(lines) + end
    path = written(tmp_path / "any.jsonl", data)

    found = list(read_lines(path, limit=64))

    rest = bytearray(data)
    for item in found:
        offset, size = (item.offset, item.bytes) if isinstance(item, Skipped) else (item[0], len(item[1]))
        if not isinstance(item, Skipped):
            assert data[offset : offset + size] == item[1]
        rest[offset : offset + size] = b" " * size
    assert not bytes(rest).removeprefix(b"\xef\xbb\xbf").strip()


def test_a_file_cut_at_every_byte_gives_the_lines_up_to_the_cut(file: Path) -> None:
    lines = [b'{"a":"\xc3\xa9"}', b'{"b":[1,{"c":"\\ud83d"}]}', b"{}", b'{"d":null}']
    data = b"\n".join(lines) + b"\n"
    ends = [sum(len(line) + 1 for line in lines[: n + 1]) - 1 for n in range(len(lines))]

    for cut in range(len(data) + 1):
        whole = [line for line in read(file, data[:cut]) if not isinstance(line, Skipped)]

        assert lines[: sum(end <= cut for end in ends)] == [line for _, line in whole]


def _halves() -> Iterator[tuple[bytes, str]]:
    yield rb'"\ud83d\ude00"', "😀"
    yield rb'"\uD83D\uDE00"', "😀"
    yield rb'"\ud83d"', "\ufffd"
    yield rb'"\uDE00"', "\ufffd"
    yield rb'"\ud83d\ud83d\ude00"', "\ufffd😀"
    yield rb'"\ud83d\ude00\ude00"', "😀\ufffd"
    yield rb'"\ude00\ud83d"', "\ufffd\ufffd"
    yield rb'"\\ud83d"', r"\ud83d"
    yield rb'"\\\ud83d"', "\\\ufffd"
    yield rb'"\\\\ud83d"', r"\\ud83d"
    yield rb'"\\ud83d\ude00"', "\\ud83d\ufffd"
    yield rb'"\n\ud83dx"', "\n\ufffdx"
    yield rb'"\"\ud83d"', '"\ufffd'
    yield rb'"\u00e9"', "é"


@pytest.mark.parametrize(("raw", "text"), list(_halves()))
def test_half_a_surrogate_pair_becomes_a_replacement_and_nothing_else_changes(raw: bytes, text: str) -> None:
    assert text == msgspec.json.decode(repair(raw))


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_that_javascript_can_write_can_be_read(text: str) -> None:
    written = json.dumps(text).encode()

    read = msgspec.json.decode(repair(written), type=str)

    assert text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").rstrip("\ufffd") == read.rstrip("\ufffd")


def test_text_that_needs_no_repair_is_not_copied() -> None:
    raw = rb'"\ud83d\ude00 plain"'

    assert repair(raw) is raw


@pytest.mark.parametrize(
    ("raw", "time"),
    [
        (b'"2026-11-15T09:00:00.123Z"', "2026-11-15T09:00:00.123Z"),
        (b'"2026-11-15T10:00:00+01:00"', "2026-11-15T09:00:00.000Z"),
        (b'"2026-11-15 09:00:00"', "2026-11-15T09:00:00.000Z"),
        (b"1794733200", "2026-11-15T09:00:00.000Z"),
        (b"1794733200.5", "2026-11-15T09:00:00.500Z"),
        (b"1794733200123", "2026-11-15T09:00:00.123Z"),
        (b'"1794733200"', "2026-11-15T09:00:00.000Z"),
        (b'"soon"', ""),
        (b"null", ""),
        (b"{}", ""),
        (b"true", ""),
        (b"1e300", ""),
        (b'"0001-01-01T00:00:00+14:00"', ""),
        (b'"9999-12-31T23:59:59-14:00"', ""),
        (b"", ""),
    ],
)
def test_times_of_every_spelling_become_the_ledgers(raw: bytes, time: str) -> None:
    assert time == json_values.time_of(msgspec.Raw(raw))


@given(st.text(max_size=50).map(lambda text: text * 3000))
def test_a_long_text_that_is_kept_raw_opens_like_the_text_itself(text: str) -> None:
    raw = msgspec.Raw(msgspec.json.encode(text))
    kept = json_values.text_of(raw)
    assert kept is not None

    assert text.startswith(json_values.opening(kept))
    assert text == (kept if isinstance(kept, str) else msgspec.json.decode(kept))
    assert text + "\n" + text == msgspec.json.decode(msgspec.json.encode(json_values.joined([kept, text], "\n")))


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_value_can_be_told_as_text(value: object) -> None:
    raw = msgspec.json.encode(value)
    long = msgspec.json.encode([value, "x" * 70_000])

    assert value == (json_values.as_text(raw) if isinstance(value, str) else json.loads(str(json_values.as_text(raw))))
    assert [value, "x" * 70_000] == json.loads(msgspec.json.decode(msgspec.json.encode(json_values.as_text(long))))


def test_reading_takes_a_few_lines_of_memory_however_long_the_file_and_its_lines_are(file: Path) -> None:
    with file.open("wb") as out:
        for _ in range(3):
            out.write(b'{"a":"' + b"x" * 15 * MIB + b'"}\n')
        out.write(b"y" * 40 * MIB + b"\n")
        out.write(b'{"a":1}\n' * 200_000)

    tracemalloc.start()
    kinds = {type(item) for item in read_lines(file)}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert {tuple, Skipped} == kinds
    assert peak < 60 * MIB


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'{"a": 1}', b'{"a": 1}'),
        (b"\xef\xbb\xbf{}", b"{}"),
        (b"\xff", Skipped(0, 1, "invalid_utf8")),
        (rb'"\ud83d"', rb'"\ufffd"'),
    ],
)
def test_a_document_is_read_whole(file: Path, data: bytes, found: bytes | Skipped) -> None:
    assert found == json_lines.read_document(written(file, data))


def test_a_document_that_is_too_long_is_refused_unread(file: Path) -> None:
    with file.open("wb") as out:
        out.truncate(json_lines.MAX_DOCUMENT_BYTES + 1)

    assert Skipped(0, json_lines.MAX_DOCUMENT_BYTES + 1, "too_long") == json_lines.read_document(file)

"""Identifiers and times."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.protocol.ids import is_uuid, parse_time, uuid7, uuid7_time, wire_time

LAST_MILLIS = 253_402_300_799_999
"""The end of the year 9999, beyond which Python has no dates."""


@given(st.integers(0, LAST_MILLIS), st.binary(min_size=10, max_size=16))
def test_a_uuid7_tells_when_it_was_made(millis: int, entropy: bytes) -> None:
    text = uuid7(millis, entropy)

    assert is_uuid(text)
    assert (7, uuid.RFC_4122) == (uuid.UUID(text).version, uuid.UUID(text).variant)
    made = uuid7_time(text)
    assert made is not None
    assert abs(made - datetime(1970, 1, 1, tzinfo=UTC) - timedelta(milliseconds=millis)) < timedelta(milliseconds=1)


@given(st.lists(st.integers(0, LAST_MILLIS), min_size=2), st.binary(min_size=10, max_size=10))
def test_uuid7s_sort_by_time(moments: list[int], entropy: bytes) -> None:
    assert [uuid7(millis, entropy) for millis in sorted(moments)] == sorted(
        uuid7(millis, entropy) for millis in moments
    )


def test_a_uuid7_is_made_of_its_time_and_its_entropy() -> None:
    assert "01934b2f-5a00-7102-8304-05060708090a" == uuid7(0x01934B2F5A00, bytes(range(1, 11)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not a uuid",
        "0198c0de-0000-4000-8000-000000000001",
        "0198C0DE-0000-7000-8000-000000000001",
        "0198c0de00007000800000000000001",
        "{0198c0de-0000-7000-8000-000000000001}",
        "0198c0de-0000-7000-8000-000000000001\n",
        "ffffffff-ffff-7fff-bfff-ffffffffffff",
    ],
)
def test_other_texts_tell_no_time(text: str) -> None:
    assert uuid7_time(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0198c0de-0000-7000-8000-000000000001", True),
        ("00000000-0000-0000-0000-000000000000", True),
        ("0198C0DE-0000-7000-8000-000000000001", False),
        ("0198c0de-0000-7000-8000-00000000000", False),
        ("0198c0de-0000-7000-8000-0000000000011", False),
        ("0198c0de_0000_7000_8000_000000000001", False),
        ("0198c0dg-0000-7000-8000-000000000001", False),
        ("", False),
    ],
)
def test_a_uuid_is_lower_case_with_hyphens(text: str, expected: bool) -> None:
    assert expected == is_uuid(text)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 8, 20, 9, 0, 5, 120_000, UTC), "2026-08-20T09:00:05.120Z"),
        (datetime(2026, 8, 20, 9, 0, 5, 999_999, UTC), "2026-08-20T09:00:05.999Z"),
        (datetime(2026, 8, 20, 9, 0, 5, 0, UTC), "2026-08-20T09:00:05.000Z"),
        (datetime(2026, 8, 20, 1, 30, 0, 7_000, timezone(timedelta(hours=2))), "2026-08-19T23:30:00.007Z"),
    ],
)
def test_a_wire_time_is_utc_with_three_digits(moment: datetime, text: str) -> None:
    assert text == wire_time(moment)


@given(st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))
def test_a_wire_time_reads_back_to_the_millisecond(moment: datetime) -> None:
    assert moment.replace(microsecond=moment.microsecond // 1000 * 1000) == parse_time(wire_time(moment))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-08-20T09:00:05.120Z", datetime(2026, 8, 20, 9, 0, 5, 120_000, UTC)),
        ("2026-08-20T11:00:05+02:00", datetime(2026, 8, 20, 9, 0, 5, 0, UTC)),
        ("2026-08-20T09:00:05", datetime(2026, 8, 20, 9, 0, 5, 0, UTC)),
        ("garbage", None),
        ("", None),
    ],
)
def test_any_iso_time_can_be_read(text: str, expected: datetime | None) -> None:
    assert expected == parse_time(text)

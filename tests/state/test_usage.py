"""Counters: uses of outputs and of entries, each kind apart, and what models cost."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from rows import DAY, NOW, Rows, part

from commonplace.state import usage
from commonplace.state.jobs import CONSOLIDATION, EXTRACTION
from commonplace.state.usage import Use

USES: tuple[Use, ...] = get_args(Use)
COUNTERS = ("retrieved", "last_retrieved", "injected", "last_injected", "cited", "last_cited")


def counters(use: Use, times: int, *, never: int | None = 0) -> tuple[Any, ...]:
    """Return what the counters are when only one kind of use was counted."""
    return tuple(value for other in USES for value in ((times, NOW) if other == use else (never, None)))


@pytest.mark.parametrize("use", USES)
async def test_each_use_of_an_output_is_counted_apart(rows: Rows, use: Use) -> None:
    await rows.output("a")
    await rows.output("b")

    assert await rows.do(usage.record_outputs, use, ["a"], now=NOW) == 1
    assert part(await rows.output_row("a"), *COUNTERS) == counters(use, 1)
    assert part(await rows.output_row("b"), *COUNTERS) == (0, None, 0, None, 0, None)


@pytest.mark.parametrize("use", USES)
async def test_a_repeated_id_counts_each_time_and_an_unknown_one_not_at_all(rows: Rows, use: Use) -> None:
    await rows.output("a")
    await rows.do(usage.record_outputs, use, ["a"], now=NOW - DAY)

    assert await rows.do(usage.record_outputs, use, ["a", "unknown", "a"], now=NOW) == 1
    assert part(await rows.output_row("a"), *COUNTERS) == counters(use, 3)
    assert await rows.output_row("unknown") is None


@pytest.mark.parametrize(("use", "fresh_at"), [("retrieved", NOW), ("injected", NOW - DAY), ("cited", NOW)])
async def test_only_retrieval_and_citation_make_an_output_fresh(rows: Rows, use: Use, fresh_at: int) -> None:
    await rows.output("a", NOW - DAY)
    await rows.do(usage.record_outputs, use, ["a"], now=NOW)

    assert part(await rows.output_row("a"), "fresh_at", "source_updated_at") == (fresh_at, NOW - DAY)


@pytest.mark.parametrize("use", ["retrieved", "cited"])
async def test_a_use_in_the_past_makes_nothing_less_fresh(rows: Rows, use: Use) -> None:
    await rows.output("a", NOW)
    await rows.do(usage.record_outputs, use, ["a"], now=NOW - DAY)

    assert part(await rows.output_row("a"), "fresh_at") == (NOW,)


@pytest.mark.parametrize("use", USES)
async def test_each_use_of_an_entry_is_counted_apart_and_makes_its_row(rows: Rows, use: Use) -> None:
    await rows.do(usage.record_entries, use, ["e", "e", "other"], now=NOW - DAY)
    await rows.do(usage.record_entries, use, ["e"], now=NOW)

    found = await rows.do(usage.entry, "e")
    assert part(found, *COUNTERS) == counters(use, 3)
    assert part(await rows.do(usage.entry, "other"), use) == (1,)
    assert await rows.do(usage.entry, "unknown") is None


async def test_the_three_counters_of_an_entry_do_not_disturb_each_other(rows: Rows) -> None:
    for number, use in enumerate(USES):
        await rows.do(usage.record_entries, use, ["e"] * (number + 1), now=NOW + number)

    assert part(await rows.do(usage.entry, "e"), *COUNTERS) == (1, NOW, 2, NOW + 1, 3, NOW + 2)


async def test_no_use_changes_nothing(rows: Rows) -> None:
    await rows.output("a")
    before = await rows.everything()

    assert await rows.do(usage.record_outputs, "cited", [], now=NOW) == 0
    await rows.do(usage.record_entries, "cited", [], now=NOW)
    assert await rows.everything() == before


async def test_costs_add_up_per_day_and_kind(rows: Rows) -> None:
    midnight = NOW - NOW % DAY + DAY
    for kind, requests, tokens, millis, now in (
        (EXTRACTION, 1, 100, 1_000, NOW),
        (EXTRACTION, 2, 50, 500, midnight - 1),
        (EXTRACTION, 4, 7, 3, midnight),
        (CONSOLIDATION, 8, 9, 0, NOW),
    ):
        await rows.do(usage.spend, kind, usage.SpentTotals(requests, tokens, millis / 1000), now=now)

    assert [tuple(row.values()) for row in await rows.query("test.budget")] == [
        ("2027-01-15", CONSOLIDATION, 8, 9, 0),
        ("2027-01-15", EXTRACTION, 3, 150, 1_500),
        ("2027-01-16", EXTRACTION, 4, 7, 3),
    ]


@pytest.mark.parametrize(
    ("now", "day"), [(0, "1970-01-01"), (DAY - 1, "1970-01-01"), (DAY, "1970-01-02"), (NOW, "2027-01-15")]
)
def test_a_day_is_a_day_of_utc(now: int, day: str) -> None:
    assert usage.day_of(now) == day


async def test_how_often_an_entry_was_of_use_can_be_forgotten(rows: Rows) -> None:
    await rows.do(usage.record_entries, "cited", ["a", "b"], now=NOW)

    await rows.do(usage.forget_entry, "a")

    assert await rows.do(usage.entry, "a") is None
    assert await rows.do(usage.entry, "b") is not None

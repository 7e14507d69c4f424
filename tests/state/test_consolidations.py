"""The consolidation job of a memory root: asking for it, claiming it, ending it. One row per rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec import structs
from rows import DAY, ELSEWHERE, HERE, HOUR, NOW, ROOT, Rows, part

from commonplace.state import consolidation_jobs, jobs, outputs
from commonplace.state.jobs import CONSOLIDATION, Claim, ClaimRefusal

Columns = dict[str, Any]
COOLDOWN = 21_600
HELD = Claim(CONSOLIDATION, ROOT, "token", 7)
ANOTHER = "/another/memories"


async def enqueue(rows: Rows, watermark: int = 100, root: str = ROOT) -> None:
    await rows.do(consolidation_jobs.enqueue, root, watermark)


async def claim(rows: Rows, *, root: str = ROOT, now: int = NOW, **options: Any) -> Claim | ClaimRefusal:
    return await rows.do(consolidation_jobs.claim, root, HERE, "new", now=now, **options)


async def succeed(
    rows: Rows, selected: Iterable[tuple[str, int]] = (), *, held: Claim = HELD, watermark: int = 7, now: int = NOW
) -> bool:
    return await rows.do(consolidation_jobs.succeed, held, watermark, selected, now=now)


async def running(rows: Rows, **columns: Any) -> None:
    await rows.running(ROOT, kind=CONSOLIDATION, **columns)


# Asking for a consolidation, cell by cell.

BUSY = {"status": "running", "ownership_token": "token", "lease_until": NOW + 1, "retry_at": 5}
OVER = {"finished_at": 9, "last_error": "why", "lease_until": 4, "ownership_token": "old", "retry_at": NOW + 9}

REQUESTS: dict[str, tuple[Columns, Columns]] = {
    "a running job stays running": (BUSY, {"status": "running"}),
    "a running job keeps its retry time": (BUSY, {"retry_at": 5}),
    "a running job keeps its claim": (BUSY, {"ownership_token": "token", "lease_until": NOW + 1}),
    "a running job has its retries restored": (BUSY | {"retry_remaining": 0}, {"retry_remaining": 3}),
    "a running job keeps more retries": (BUSY | {"retry_remaining": 5}, {"retry_remaining": 5}),
    "a running job's watermark grows": (BUSY | {"input_watermark": 99}, {"input_watermark": 100}),
    "a running job's watermark grows even for the same": (BUSY | {"input_watermark": 100}, {"input_watermark": 101}),
    "a running job's watermark grows even for an older one": (
        BUSY | {"input_watermark": 500},
        {"input_watermark": 501},
    ),
    "a running job's missing watermark is nought": (BUSY | {"input_watermark": None}, {"input_watermark": 100}),
    "a running job keeps its success": (BUSY | {"last_success_watermark": 3}, {"last_success_watermark": 3}),
    "a failed job becomes pending": (OVER | {"status": "error"}, {"status": "pending"}),
    "a done job becomes pending": (OVER | {"status": "done"}, {"status": "pending"}),
    "a pending job stays pending": (OVER | {"status": "pending"}, {"status": "pending"}),
    "a failed job need not wait any more": (OVER | {"status": "error"}, {"retry_at": None}),
    "a failed job has its retries restored": (OVER | {"status": "error", "retry_remaining": 1}, {"retry_remaining": 3}),
    "a failed job keeps more retries": (OVER | {"status": "error", "retry_remaining": 4}, {"retry_remaining": 4}),
    "a job's watermark grows": (OVER | {"status": "done", "input_watermark": 99}, {"input_watermark": 100}),
    "a job's watermark grows even for an older one": (
        OVER | {"status": "done", "input_watermark": 500},
        {"input_watermark": 501},
    ),
    "a job keeps its success": (OVER | {"status": "done", "last_success_watermark": 3}, {"last_success_watermark": 3}),
    "a job keeps when and how it ended": (OVER | {"status": "error"}, {"finished_at": 9, "last_error": "why"}),
    "a job keeps its old claim": (OVER | {"status": "error"}, {"ownership_token": "old", "lease_until": 4}),
}


@pytest.mark.parametrize(("columns", "expected"), REQUESTS.values(), ids=REQUESTS)
async def test_when_a_consolidation_is_asked_for(rows: Rows, columns: Columns, expected: Columns) -> None:
    await rows.job(ROOT, kind=CONSOLIDATION, **columns)
    await enqueue(rows, 100)
    row = await rows.request()

    assert row is not None
    assert {name: row[name] for name in expected} == expected


async def test_the_first_request_makes_the_row(rows: Rows) -> None:
    await enqueue(rows, 100)
    row = await rows.request()

    assert row is not None
    assert {name: value for name, value in row.items() if value is not None} == {
        "kind": CONSOLIDATION,
        "job_key": ROOT,
        "status": "pending",
        "retry_remaining": 3,
        "input_watermark": 100,
        "last_success_watermark": 0,
        "failures": 0,
    }


# The table of claims, in its order.

CLAIMS: dict[str, tuple[Columns | None, Columns, int | ClaimRefusal]] = {
    # columns of the row; options of the claim; the watermark that was claimed, or why not
    "1 no row": (None, {}, 0),
    "2 it waits": ({"status": "error", "last_error": "why", "retry_at": NOW + 1}, {}, ClaimRefusal.BACKOFF),
    "2 its wait ends now": ({"status": "error", "last_error": "why", "retry_at": NOW}, {}, 50),
    "2 a person does not wait": (
        {"status": "error", "last_error": "why", "retry_at": NOW + 1},
        {"background": False},
        50,
    ),
    "2 waiting says more than running": (
        {"status": "running", "lease_until": NOW + 1, "retry_at": NOW + 1},
        {},
        ClaimRefusal.BACKOFF,
    ),
    "3 a live lease": ({"status": "running", "lease_until": NOW + 1}, {}, ClaimRefusal.RUNNING),
    "3 a live lease binds everyone": (
        {"status": "running", "lease_until": NOW + 1},
        {"background": False},
        ClaimRefusal.RUNNING,
    ),
    "3 a lease of a clock that was ahead is none": (
        {"status": "running", "lease_until": NOW + jobs.LONGEST_LEASE_SECONDS + 1},
        {},
        50,
    ),
    "3 a lease until now is stale": ({"status": "running", "lease_until": NOW}, {}, 50),
    "3 running without a lease is stale": ({"status": "running"}, {}, 50),
    "3 running says more than cooldown": (
        {"status": "running", "lease_until": NOW + 1, "finished_at": NOW},
        {},
        ClaimRefusal.RUNNING,
    ),
    "4 just done": ({"status": "done", "finished_at": NOW}, {}, ClaimRefusal.COOLDOWN),
    "4 a second before the cooldown ends": (
        {"status": "done", "finished_at": NOW - COOLDOWN + 1},
        {},
        ClaimRefusal.COOLDOWN,
    ),
    "4 no cooldown after a success in the future": ({"status": "done", "finished_at": NOW + DAY}, {}, 50),
    "4 the cooldown ends now": ({"status": "done", "finished_at": NOW - COOLDOWN}, {}, 50),
    "4 a person does not wait for the cooldown": ({"status": "done", "finished_at": NOW}, {"background": False}, 50),
    "4 no cooldown after a failure": ({"status": "pending", "finished_at": NOW, "last_error": "why"}, {}, 50),
    "5 asked for": ({"status": "pending"}, {}, 50),
    "5 no watermark is nought": ({"status": "pending", "input_watermark": None}, {}, 0),
    "5 nothing new is no reason not to": ({"status": "done", "finished_at": 1, "last_success_watermark": 50}, {}, 50),
    "5 retries do not matter": ({"status": "error", "last_error": "why", "retry_remaining": 0}, {}, 50),
}


@pytest.mark.parametrize(("columns", "options", "expected"), CLAIMS.values(), ids=CLAIMS)
async def test_the_table_of_claims_of_a_root(
    rows: Rows, columns: Columns | None, options: Columns, expected: int | ClaimRefusal
) -> None:
    if columns is not None:
        await rows.job(ROOT, kind=CONSOLIDATION, **({"input_watermark": 50} | columns))
    before = await rows.everything()

    found = await claim(rows, **options)

    is_claimed = not isinstance(expected, ClaimRefusal)
    assert found == (Claim(CONSOLIDATION, ROOT, "new", expected) if is_claimed else expected)
    assert (await rows.everything() != before) == is_claimed


async def test_a_claim_without_a_request_makes_the_row(rows: Rows) -> None:
    await claim(rows)

    assert await rows.request() == {
        "kind": CONSOLIDATION,
        "job_key": ROOT,
        "status": "running",
        "ownership_token": "new",
        **HERE.values(),
        "started_at": NOW,
        "finished_at": None,
        "lease_until": NOW + HOUR,
        "retry_at": None,
        "retry_remaining": 3,
        "last_error": None,
        "input_watermark": 0,
        "last_success_watermark": 0,
        "failures": 0,
    }


async def test_a_claim_renews_the_row(rows: Rows) -> None:
    old: Columns = {"started_at": 1, "finished_at": 2, "retry_at": 3, "retry_remaining": 1, "last_error": "why"}
    watermarks = {"input_watermark": 50, "last_success_watermark": 40}
    await rows.job(ROOT, kind=CONSOLIDATION, status="error", **watermarks, **old)
    await claim(rows, lease=90)

    assert await rows.request() == {
        "kind": CONSOLIDATION,
        "job_key": ROOT,
        "status": "running",
        "ownership_token": "new",
        **HERE.values(),
        "started_at": NOW,
        "finished_at": None,
        "lease_until": NOW + 90,
        "retry_at": None,
        "retry_remaining": 1,
        "last_error": None,
        "input_watermark": 50,
        "last_success_watermark": 40,
        "failures": 0,
    }


async def test_the_lease_of_a_dead_process_of_this_host_binds_nobody(rows: Rows) -> None:
    earlier = structs.replace(HERE, process_start="an earlier start")
    await running(rows, lease_until=NOW + HOUR, **earlier.values())

    assert isinstance(await claim(rows), Claim)


# What follows from both tables.


async def test_a_request_after_a_success_does_not_end_the_cooldown(rows: Rows) -> None:
    await running(rows)
    await succeed(rows)
    await enqueue(rows, NOW)

    assert await claim(rows, now=NOW + COOLDOWN - 1) is ClaimRefusal.COOLDOWN
    assert await claim(rows, now=NOW + COOLDOWN) == Claim(CONSOLIDATION, ROOT, "new", NOW)


async def test_a_request_after_a_failure_makes_it_claimable_at_once(rows: Rows) -> None:
    await running(rows)
    await rows.do(consolidation_jobs.fail, HELD, "why", now=NOW)
    waiting = await claim(rows)
    await enqueue(rows, NOW)

    assert waiting is ClaimRefusal.BACKOFF
    assert isinstance(await claim(rows), Claim)


async def test_a_crash_leaves_no_cooldown(rows: Rows) -> None:
    await rows.do(consolidation_jobs.claim, ROOT, ELSEWHERE, "first", now=NOW)

    assert await claim(rows, now=NOW + HOUR - 1) is ClaimRefusal.RUNNING
    assert isinstance(await claim(rows, now=NOW + HOUR), Claim)
    assert not await succeed(rows, held=Claim(CONSOLIDATION, ROOT, "first", 0))


async def test_a_heartbeat_keeps_the_root(rows: Rows) -> None:
    await running(rows, lease_until=NOW + 1)

    assert await rows.do(jobs.heartbeat, HELD, lease=HOUR, now=NOW)
    assert not await rows.do(jobs.heartbeat, structs.replace(HELD, token="other"), lease=DAY, now=NOW)
    assert await claim(rows, now=NOW + HOUR - 1) is ClaimRefusal.RUNNING


# Ending.


@pytest.mark.parametrize(("old", "watermark", "expected"), [(None, 7, 7), (3, 7, 7), (9, 7, 9)])
async def test_success_ends_the_job_and_its_watermark_never_goes_back(
    rows: Rows, old: int | None, watermark: int, expected: int
) -> None:
    await running(rows, last_success_watermark=old, last_error="before")

    assert await succeed(rows, watermark=watermark)
    names = ("status", "finished_at", "lease_until", "last_error", "last_success_watermark")
    assert part(await rows.request(), *names) == ("done", NOW, None, None, expected)


async def test_success_selects_exactly_the_snapshots_that_were_consolidated(rows: Rows) -> None:
    await running(rows)
    await rows.selected("no longer", 10)
    await rows.selected("still", 10)
    await rows.output("now", 20)
    await rows.output("changed meanwhile", 31)
    await rows.output("left out", 40)

    snapshots = [("still", 10), ("now", 20), ("changed meanwhile", 30), ("gone meanwhile", 50)]
    assert await succeed(rows, snapshots)
    found = {
        row["thread_id"]: part(row, "is_selected", "selected_source_updated_at", "selected_root")
        for row in await rows.query("test.outputs")
    }
    assert found == {
        "changed meanwhile": (0, None, None),
        "left out": (0, None, None),
        "no longer": (0, None, None),
        "now": (1, 20, ROOT),
        "still": (1, 10, ROOT),
    }


async def test_success_with_nothing_selected_lets_go_of_everything(rows: Rows) -> None:
    await running(rows)
    await rows.selected("a")

    assert await succeed(rows)
    assert part(await rows.output_row("a"), "is_selected", "selected_source_updated_at") == (0, None)


@pytest.mark.parametrize("columns", [{"ownership_token": "other"}, {"ownership_token": None}, {"status": "done"}])
async def test_success_without_the_claim_changes_nothing(rows: Rows, columns: Columns) -> None:
    await running(rows, **columns)
    await rows.selected("a", 10)
    await rows.output("b", 20)
    before = await rows.everything()

    assert not await succeed(rows, [("b", 20)])
    assert await rows.everything() == before


@pytest.mark.parametrize(("delay", "retry_at"), [(60, NOW + 60), (-1, NOW)])
@pytest.mark.parametrize(("retries", "left"), [(3, 2), (0, 0)])
@pytest.mark.parametrize("token", ["token", None])
async def test_failure_is_noted_by_the_holder_or_when_nobody_holds_it(
    rows: Rows, token: str | None, retries: int, left: int, delay: int, retry_at: int
) -> None:
    await running(rows, ownership_token=token, retry_remaining=retries)

    assert await rows.do(consolidation_jobs.fail, HELD, "why", now=NOW, delay=delay)
    names = ("status", "finished_at", "lease_until", "retry_at", "retry_remaining", "last_error")
    assert part(await rows.request(), *names) == ("error", NOW, None, retry_at, left, "why")


@pytest.mark.parametrize(
    "columns", [{"ownership_token": "other"}, {"status": "done"}, {"status": "pending", "ownership_token": None}]
)
async def test_failure_is_not_noted_where_another_one_works_or_nobody_does(rows: Rows, columns: Columns) -> None:
    await running(rows, **columns)
    before = await rows.everything()

    assert not await rows.do(consolidation_jobs.fail, HELD, "why", now=NOW)
    assert await rows.everything() == before


async def test_the_strict_form_of_failure_needs_the_token(rows: Rows) -> None:
    await running(rows, ownership_token=None)

    assert not await rows.do(jobs.fail, HELD, "why", now=NOW)


async def test_a_failure_waits_an_hour_unless_told_otherwise(rows: Rows) -> None:
    await running(rows)
    await rows.do(consolidation_jobs.fail, HELD, "why", now=NOW)

    assert await claim(rows, now=NOW + HOUR - 1) is ClaimRefusal.BACKOFF
    assert isinstance(await claim(rows, now=NOW + HOUR), Claim)


# Several roots in one database.


async def test_roots_are_claimed_and_asked_for_independently(rows: Rows) -> None:
    await running(rows)
    await enqueue(rows, 30, ANOTHER)

    assert await claim(rows) is ClaimRefusal.RUNNING
    assert await claim(rows, root=ANOTHER) == Claim(CONSOLIDATION, ANOTHER, "new", 30)


async def test_the_success_of_one_root_lets_another_one_keep_what_it_selected(rows: Rows) -> None:
    await running(rows)
    await rows.selected("mine", 10)
    await rows.selected("theirs", 10, root=ANOTHER)
    await succeed(rows)
    await rows.do(outputs.pollute, "theirs", root=ANOTHER, now=NOW)

    assert [row["is_selected"] for row in await rows.query("test.outputs")] == [0, 1]
    assert part(await rows.request(ANOTHER), "status") == ("pending",)

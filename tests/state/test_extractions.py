"""Extraction jobs: which threads may be claimed, by whom, and what finishing them changes. One row per rule."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs
from rows import DAY, ELSEWHERE, HERE, HOME, HOUR, NOW, ROOT, Rows, part
from rows import claim_one as _claim_one

from commonplace.state import extraction_jobs, jobs, outputs
from commonplace.state.database import Transaction
from commonplace.state.extraction_jobs import ClaimTerms, ExtractionClaim
from commonplace.state.jobs import CONSOLIDATION, EXTRACTION, RETRIES, Claim, ClaimRefusal, Worker
from commonplace.state.outputs import Output
from commonplace.state.threads import ThreadIndex
from ledgers import Script, user

TERMS = ClaimTerms(HOME, max_claims=16)
MARK = NOW - DAY
"""The watermark of a thread that is neither too fresh nor too old."""
CLAIM = Claim(EXTRACTION, "a", "token", MARK)
FOUND = Output("what was learned", "what happened", "a-slug")


def terms(**changes: Any) -> ClaimTerms:
    return structs.replace(TERMS, **changes)


async def claim_next(rows: Rows, chosen: ClaimTerms = TERMS, *, now: int = NOW) -> list[ExtractionClaim]:
    tokens = count(1)
    return await rows.do(extraction_jobs.claim_next, chosen, HERE, lambda: f"token {next(tokens)}", now=now)


async def claimed_keys(rows: Rows, chosen: ClaimTerms = TERMS) -> list[str]:
    return [found.claim.job_key for found in await claim_next(rows, chosen)]


async def claim_one(
    rows: Rows,
    watermark: int = MARK,
    chosen: ClaimTerms = TERMS,
    *,
    token: str = "new",
    worker: Worker = HERE,
    now: int = NOW,
) -> Claim | ClaimRefusal:
    return await rows.do(_claim_one, "a", watermark, worker, token, chosen, now=now)


# Which threads a start looks at.

CANDIDATES: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "an idle thread is": ({}, {}, True),
    "an archived one is not": ({"is_archived": 1}, {}, False),
    "one where no person said anything is not": ({"preview": ""}, {}, False),
    "a sub-agent is not": ({"is_root": 0, "source": "subagent:review"}, {}, False),
    "an editor's is": ({"source": "vscode"}, {}, True),
    "a headless one is": ({"source": "exec"}, {}, True),
    "another agent's is": ({"source": "claude-code"}, {}, True),
    "one started by a tool is not": ({"source": "mcp"}, {}, False),
    "one of an unknown source is not": ({"source": "unknown"}, {}, False),
    "a disabled one is not": ({"memory_mode": "disabled"}, {}, False),
    "a polluted one is not": ({"memory_mode": "polluted"}, {}, False),
    "the one that is talking is not": ({}, {"current": "a"}, False),
    "one that is not the one talking is": ({}, {"current": "b"}, True),
    "one of another home is not": ({"home": "/another"}, {}, False),
    "one that is just idle enough is": ({"updated_s": NOW - 6 * HOUR}, {}, True),
    "one that lacks a second of idleness is not": ({"updated_s": NOW - 6 * HOUR + 1}, {}, False),
    "one that is as old as allowed is": ({"updated_s": NOW - 30 * DAY}, {}, True),
    "one that is a second too old is not": ({"updated_s": NOW - 30 * DAY - 1}, {}, False),
    "with other settings, just idle enough is": ({"updated_s": NOW - HOUR}, {"min_idle_s": HOUR}, True),
    "with other settings, just not idle enough is not": ({"updated_s": NOW - HOUR + 1}, {"min_idle_s": HOUR}, False),
    "with other settings, old is": ({"updated_s": NOW - 90 * DAY}, {"max_age_days": 90}, True),
    "with other settings, too old is not": ({"updated_s": NOW - 90 * DAY - 1}, {"max_age_days": 90}, False),
    "negative idleness is none": ({"updated_s": NOW}, {"min_idle_s": -1}, True),
    "the future is not idle": ({"updated_s": NOW + 1}, {"min_idle_s": -1}, False),
    "a negative age is none": ({"updated_s": NOW - 1}, {"max_age_days": -1, "min_idle_s": 0}, False),
}


@pytest.mark.parametrize(("changes", "settings", "is_candidate"), CANDIDATES.values(), ids=CANDIDATES)
async def test_which_thread_is_a_candidate(
    rows: Rows, changes: dict[str, Any], settings: dict[str, Any], is_candidate: bool
) -> None:
    await rows.thread("a", **({"updated_s": MARK} | changes))

    assert await claimed_keys(rows, terms(**settings)) == (["a"] if is_candidate else [])


async def test_a_file_that_a_later_one_of_its_thread_replaced_is_no_candidate(rows: Rows) -> None:
    await rows.thread("a", MARK, path="/old")
    await rows.thread("a", MARK - DAY, path="/new", rollout_id="b")
    await rows.execute("threads.mark_replaced", home=HOME)

    assert [found.path for found in await claim_next(rows)] == ["/new"]


async def test_a_copied_file_is_claimed_once(rows: Rows) -> None:
    await rows.thread("a", path="/one")
    await rows.thread("a", path="/two")

    assert await claimed_keys(rows) == ["a"]


async def test_a_claim_says_what_there_is_to_read(rows: Rows) -> None:
    await rows.thread("a", MARK, source="vscode", cwd="/code", project="host/owner/name")

    claimed = await claim_next(rows)

    path = f"{HOME}/sessions/a.jsonl"
    assert claimed == [
        ExtractionClaim(Claim(EXTRACTION, "a", "token 1", MARK), path, "vscode", "/code", "host/owner/name")
    ]


async def test_the_newest_are_claimed_first_and_ties_are_broken_by_id(rows: Rows) -> None:
    for key, updated_s in (("b", MARK), ("old", MARK - 1), ("a", MARK), ("new", MARK + 1), ("c", MARK)):
        await rows.thread(key, updated_s)

    assert await claimed_keys(rows) == ["new", "c", "b", "a", "old"]


async def test_a_start_claims_no_more_than_it_may_and_the_next_one_goes_on(rows: Rows) -> None:
    for number in range(3):
        await rows.thread(str(number), MARK + number)

    assert await claimed_keys(rows, terms(max_claims=2)) == ["2", "1"]
    assert await claimed_keys(rows, terms(max_claims=2)) == ["0"]


@pytest.mark.parametrize("settings", [{"max_claims": 0}, {"max_claims": -1}, {"scan": 0}])
async def test_a_start_that_may_claim_nothing_changes_nothing(rows: Rows, settings: dict[str, int]) -> None:
    await rows.thread("a")
    before = await rows.everything()

    assert await claimed_keys(rows, terms(**settings)) == []
    assert await rows.everything() == before


async def test_fresh_threads_never_starve_old_ones(rows: Rows) -> None:
    await rows.thread("idle")
    for number in range(5):
        await rows.thread(f"fresh {number}", NOW - number)

    assert await claimed_keys(rows, terms(scan=1)) == ["idle"]


async def no_more(rows: Rows, state: str) -> None:
    """Put a thread that is newer than the others and needs no work."""
    await rows.thread("newer", MARK + 1)
    match state:
        case "has an output":
            await rows.output("newer", MARK + 1)
            await rows.execute("threads.restore_learned", home=HOME)
        case "taught nothing":
            await rows.job("newer", status="done", input_watermark=MARK + 1, last_success_watermark=MARK + 1)
            await rows.execute("threads.restore_learned", home=HOME)
        case "is being extracted":
            await rows.running("newer", input_watermark=MARK)
        case "is exhausted":
            await rows.job("newer", status="error", input_watermark=MARK + 1, retry_remaining=0)
        case _:
            await rows.job("newer", status="error", input_watermark=MARK + 1, retry_at=NOW + 1)


@pytest.mark.parametrize(
    "state", ["has an output", "taught nothing", "is being extracted", "is exhausted", "waits after a failure"]
)
async def test_the_scan_counts_no_thread_that(rows: Rows, state: str) -> None:
    await no_more(rows, state)
    await rows.thread("needs work", MARK)

    assert await claimed_keys(rows, terms(scan=1)) == ["needs work"]


async def test_the_scan_counts_threads_that_need_work(rows: Rows) -> None:
    await rows.thread("a", MARK)
    await rows.thread("b", MARK + 1)

    assert await claimed_keys(rows, terms(scan=1)) == ["b"]


async def test_what_settings_exclude_makes_room_for_the_next(rows: Rows) -> None:
    await rows.thread("excluded", MARK + 1, project="secret")
    await rows.thread("a", MARK)

    claimed = await claim_next(rows, ClaimTerms(HOME, max_claims=1, wanted=lambda row: row["project"] != "secret"))

    assert [found.claim.job_key for found in claimed] == ["a"]
    assert await rows.job_row("excluded") is None


async def test_a_foreground_start_takes_up_what_waits_after_a_failure(rows: Rows) -> None:
    await rows.thread("a", MARK)
    await rows.job("a", status="error", input_watermark=MARK, retry_at=NOW + 1, retry_remaining=1)

    assert await claimed_keys(rows) == []
    assert await claimed_keys(rows, terms(background=False)) == ["a"]


async def test_the_cap_counts_what_others_run(rows: Rows) -> None:
    for key in "abc":
        await rows.thread(key)
    await rows.running("another's")

    assert await claimed_keys(rows, terms(max_running=3)) == ["c", "b"]


async def test_building_the_index_again_makes_nothing_eligible_that_was_extracted(rows: Rows, home: Path) -> None:
    script = Script().turn(user("words"))
    script.write_home(home)
    index, chosen = ThreadIndex(rows.database), terms(home=str(home.resolve()), max_age_days=90)
    await index.refresh(home)
    (first,) = await claim_next(rows, chosen)
    await rows.do(extraction_jobs.succeed, first.claim, FOUND, root=ROOT, now=NOW)
    await index.refresh(home, rebuild=True)
    again = await claimed_keys(rows, chosen)
    script.raw(b'{"timestamp":"2026-12-31T00:00:00.000Z","type":"event_msg","payload":{"type":"x"}}').write_home(home)
    await index.refresh(home)

    assert first.claim.job_key == script.thread_id
    assert again == []
    assert await claimed_keys(rows, chosen) == [script.thread_id]


# The table of one claim, in its order.

Columns = dict[str, Any]
DONE = {"status": "done", "input_watermark": MARK - 1, "last_success_watermark": MARK - 1}
FAILED = {"status": "error", "input_watermark": MARK, "finished_at": NOW - 1, "last_error": "why"}
RUNNING = {"status": "running", "ownership_token": "old", "input_watermark": MARK}

CLAIMS: dict[str, tuple[Columns | None, Columns, bool | ClaimRefusal]] = {
    # columns of the job's row; output, others (that run) and terms; what comes of it
    "1 an output of the same time": (None, {"output": MARK}, ClaimRefusal.UP_TO_DATE),
    "1 a newer output": (None, {"output": MARK + 1}, ClaimRefusal.UP_TO_DATE),
    "1 an output that is a second older": (None, {"output": MARK - 1}, True),
    "1 comes before the cap": (None, {"output": MARK, "others": 1, "max_running": 1}, ClaimRefusal.UP_TO_DATE),
    "1 comes before exhaustion": (FAILED | {"retry_remaining": 0}, {"output": MARK}, ClaimRefusal.UP_TO_DATE),
    "2 a success at the same time": (DONE | {"last_success_watermark": MARK}, {}, ClaimRefusal.UP_TO_DATE),
    "2 a newer success": (DONE | {"last_success_watermark": MARK + 1}, {}, ClaimRefusal.UP_TO_DATE),
    "2 a success that is a second older": (DONE, {}, True),
    "2 comes before the cap": (
        DONE | {"last_success_watermark": MARK},
        {"others": 1, "max_running": 1},
        ClaimRefusal.UP_TO_DATE,
    ),
    "3 the cap is reached": (None, {"others": 2, "max_running": 2}, ClaimRefusal.RUNNING),
    "3 one below the cap": (None, {"others": 1, "max_running": 2}, True),
    "3 leases that run out now do not count": (None, {"others": 2, "max_running": 2, "lease_until": NOW}, True),
    "3 leases of a clock that was ahead do not count": (
        None,
        {"others": 2, "max_running": 2, "lease_until": NOW + jobs.LONGEST_LEASE_SECONDS + 1},
        True,
    ),
    "3 consolidations do not count": (None, {"others": 2, "max_running": 2, "kind": CONSOLIDATION}, True),
    "3 the cap binds foreground starts": (
        None,
        {"others": 1, "max_running": 1, "background": False},
        ClaimRefusal.RUNNING,
    ),
    "3 the cap, of a row that waits": (
        FAILED | {"retry_at": NOW + 1},
        {"others": 1, "max_running": 1},
        ClaimRefusal.BACKOFF,
    ),
    "3 the cap, of an exhausted row": (
        FAILED | {"retry_remaining": 0},
        {"others": 1, "max_running": 1},
        ClaimRefusal.EXHAUSTED,
    ),
    "4 no row": (None, {}, True),
    "5 a live lease": (RUNNING | {"lease_until": NOW + 1}, {}, ClaimRefusal.RUNNING),
    "5 a live lease, newer activity": (
        RUNNING | {"lease_until": NOW + 1, "input_watermark": MARK - 1},
        {},
        ClaimRefusal.RUNNING,
    ),
    "5 a live lease binds foreground starts": (
        RUNNING | {"lease_until": NOW + 1},
        {"background": False},
        ClaimRefusal.RUNNING,
    ),
    "5 a lease until now is stale": (RUNNING | {"lease_until": NOW}, {}, True),
    "5 the longest lease is live": (
        RUNNING | {"lease_until": NOW + jobs.LONGEST_LEASE_SECONDS},
        {},
        ClaimRefusal.RUNNING,
    ),
    "5 a lease of a clock that was ahead is none": (
        RUNNING | {"lease_until": NOW + jobs.LONGEST_LEASE_SECONDS + 1},
        {},
        True,
    ),
    "5 running without a lease is stale": (RUNNING, {}, True),
    "6 it waits": (FAILED | {"retry_at": NOW + 1}, {}, ClaimRefusal.BACKOFF),
    "6 its wait ends now": (FAILED | {"retry_at": NOW}, {}, True),
    "6 it waits, newer activity": (FAILED | {"retry_at": NOW + 1, "input_watermark": MARK - 1}, {}, True),
    "6 a foreground start does not wait": (FAILED | {"retry_at": NOW + 1}, {"background": False}, True),
    "7 no retry left": (FAILED | {"retry_remaining": 0}, {}, ClaimRefusal.EXHAUSTED),
    "7 less than none": (FAILED | {"retry_remaining": -1}, {}, ClaimRefusal.EXHAUSTED),
    "7 one retry left": (FAILED | {"retry_remaining": 1}, {}, True),
    "7 no retry left, newer activity": (FAILED | {"retry_remaining": 0, "input_watermark": MARK - 1}, {}, True),
    "7 exhaustion binds foreground starts": (
        FAILED | {"retry_remaining": 0},
        {"background": False},
        ClaimRefusal.EXHAUSTED,
    ),
    "7 exhausted says more than waiting": (
        FAILED | {"retry_remaining": 0, "retry_at": NOW + 1},
        {},
        ClaimRefusal.EXHAUSTED,
    ),
    "7 exhausted says more than running": (
        RUNNING | {"retry_remaining": 0, "lease_until": NOW + 1},
        {},
        ClaimRefusal.EXHAUSTED,
    ),
    "6 waiting says more than running": (
        RUNNING | {"retry_at": NOW + 1, "lease_until": NOW + 1},
        {},
        ClaimRefusal.BACKOFF,
    ),
    "8 a failed row": (FAILED, {}, True),
    "8 a row that was given back": ({"status": "pending", "input_watermark": MARK}, {}, True),
    "8 a row without a watermark": ({"status": "error", "retry_remaining": 0}, {}, True),
}


@pytest.mark.parametrize(("columns", "around", "expected"), CLAIMS.values(), ids=CLAIMS)
async def test_the_table_of_claims(
    rows: Rows, columns: Columns | None, around: Columns, expected: bool | ClaimRefusal
) -> None:
    settings = {name: around[name] for name in ("max_running", "background") if name in around}
    other: Columns = {name: around[name] for name in ("kind", "lease_until") if name in around}
    for number in range(around.get("others", 0)):
        await rows.running(f"other {number}", **other)
    if "output" in around:
        await rows.output("a", around["output"])
    if columns is not None:
        await rows.job("a", **columns)
    before = await rows.everything()

    found = await claim_one(rows, chosen=terms(**settings))

    if isinstance(found, Claim):
        found = msgspec.structs.replace(found, tries_left=RETRIES)  # which has a table of its own
    assert found == (Claim(EXTRACTION, "a", "new", MARK) if expected is True else expected)
    assert (await rows.everything() == before) == (expected is not True)


@pytest.mark.parametrize(
    ("columns", "tries"),
    [
        (None, RETRIES),
        (FAILED | {"retry_remaining": 2}, 2),
        (FAILED | {"retry_remaining": 1}, 1),
        (FAILED | {"retry_remaining": 1, "input_watermark": MARK - 1}, RETRIES),
        (FAILED | {"retry_remaining": 1, "input_watermark": None}, RETRIES),
    ],
    ids=["nobody tried", "one failed", "the last try", "newer activity", "no watermark"],
)
async def test_a_claim_knows_how_many_tries_are_left(rows: Rows, columns: Columns | None, tries: int) -> None:
    if columns is not None:
        await rows.job("a", **columns)

    found = await claim_one(rows)

    assert isinstance(found, Claim)
    assert found.tries_left == tries


async def test_a_first_claim_makes_the_row(rows: Rows) -> None:
    await claim_one(rows)

    assert await rows.job_row("a") == {
        "kind": EXTRACTION,
        "job_key": "a",
        "status": "running",
        "ownership_token": "new",
        **HERE.values(),
        "started_at": NOW,
        "finished_at": None,
        "lease_until": NOW + 300,
        "retry_at": None,
        "retry_remaining": 3,
        "last_error": None,
        "input_watermark": MARK,
        "last_success_watermark": None,
        "failures": 0,
    }


@pytest.mark.parametrize(("old_mark", "retries"), [(MARK, 2), (MARK - 1, 3), (None, 3)])
async def test_a_later_claim_renews_the_row_and_only_newer_activity_restores_retries(
    rows: Rows, old_mark: int | None, retries: int
) -> None:
    old: Columns = {"started_at": 1, "finished_at": 2, "retry_at": 3, "retry_remaining": 2, "last_error": "why"}
    await rows.job("a", status="error", input_watermark=old_mark, last_success_watermark=7, **old)
    await claim_one(rows)

    assert await rows.job_row("a") == {
        "kind": EXTRACTION,
        "job_key": "a",
        "status": "running",
        "ownership_token": "new",
        **HERE.values(),
        "started_at": NOW,
        "finished_at": None,
        "lease_until": NOW + 300,
        "retry_at": None,
        "retry_remaining": retries,
        "last_error": None,
        "input_watermark": MARK,
        "last_success_watermark": 7,
        "failures": 0,
    }


async def test_a_take_over_costs_no_retry_and_the_old_holder_has_nothing_left(rows: Rows) -> None:
    await rows.running("a", "old", lease_until=NOW, retry_remaining=1, input_watermark=MARK)

    found = await claim_one(rows)

    assert isinstance(found, Claim)
    assert part(await rows.job_row("a"), "ownership_token", "retry_remaining") == ("new", 1)
    assert not await rows.do(jobs.fail, Claim(EXTRACTION, "a", "old", MARK), "late", now=NOW)


async def test_three_failures_exhaust_a_watermark_until_there_is_newer_activity(rows: Rows) -> None:
    left: list[Any] = []
    for number in range(3):
        found = await claim_one(rows, now=NOW + number * HOUR)
        assert isinstance(found, Claim)
        await rows.do(jobs.fail, found, "why", now=NOW + number * HOUR)
        left.append(part(await rows.job_row("a"), "retry_remaining", "retry_at"))
    late = await claim_one(rows, now=NOW + 30 * DAY)
    newer = await claim_one(rows, MARK + 1, now=NOW + 2 * HOUR)

    assert left == [(2, NOW + HOUR), (1, NOW + 2 * HOUR), (0, NOW + 3 * HOUR)]
    assert late is ClaimRefusal.EXHAUSTED
    assert isinstance(newer, Claim)
    assert part(await rows.job_row("a"), "retry_remaining") == (3,)


# Finishing, keeping and giving back.


def _succeed(tx: Transaction, held: Claim) -> bool:
    return extraction_jobs.succeed(tx, held, FOUND, root=ROOT, now=NOW)


def _nothing_learned(tx: Transaction, held: Claim) -> bool:
    return extraction_jobs.succeed_without_output(tx, held, root=ROOT, now=NOW)


def _fail(tx: Transaction, held: Claim) -> bool:
    return jobs.fail(tx, held, "why", now=NOW)


def _heartbeat(tx: Transaction, held: Claim) -> bool:
    return jobs.heartbeat(tx, held, lease=300, now=NOW)


def _release(tx: Transaction, held: Claim) -> bool:
    return jobs.release(tx, [held]) == 1


ENDINGS: dict[str, Callable[[Transaction, Claim], bool]] = {
    "success": _succeed,
    "success without output": _nothing_learned,
    "failure": _fail,
    "a heartbeat": _heartbeat,
    "a release": _release,
}
LOST: dict[str, Columns | None] = {
    "another token": {"ownership_token": "another"},
    "no token": {"ownership_token": None},
    "done already": {"status": "done"},
    "failed already": {"status": "error"},
    "given back": {"status": "pending"},
    "deleted": None,
}


@pytest.mark.parametrize("columns", LOST.values(), ids=LOST)
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
async def test_without_the_claim_nothing_happens(
    rows: Rows, ending: Callable[[Transaction, Claim], bool], columns: Columns | None
) -> None:
    await rows.thread("a", MARK)
    await rows.selected("a", MARK - 1)
    if columns is not None:
        await rows.running("a", **columns)
    before = await rows.everything()

    assert not await rows.do(ending, CLAIM)
    assert await rows.everything() == before


@pytest.mark.parametrize("name", [name for name in ENDINGS if name != "a heartbeat"])
async def test_a_claim_whose_lease_ran_out_can_be_finished_until_somebody_takes_it(rows: Rows, name: str) -> None:
    await rows.running("a", lease_until=NOW - 1, input_watermark=MARK)

    assert await rows.do(ENDINGS[name], CLAIM)


async def test_success_ends_the_job_keeps_the_output_and_asks_for_a_consolidation(rows: Rows) -> None:
    await rows.thread("a", MARK)
    await rows.running("a", input_watermark=MARK, retry_remaining=2, last_error="before")

    assert await rows.do(_succeed, CLAIM)
    names = ("status", "finished_at", "lease_until", "last_error", "last_success_watermark", "retry_remaining")
    assert part(await rows.job_row("a"), *names) == ("done", NOW, None, None, MARK, 2)
    names = ("source_updated_at", "raw_memory", "rollout_summary", "rollout_slug", "generated_at", "fresh_at")
    expected = (MARK, "what was learned", "what happened", "a-slug", NOW, MARK)
    assert part(await rows.output_row("a"), *names) == expected
    assert part(await rows.request(), "status", "input_watermark") == ("pending", MARK)
    assert [row["learned_s"] for row in await rows.query("test.threads")] == [MARK]


async def test_success_does_not_replace_a_newer_output(rows: Rows) -> None:
    await rows.running("a", input_watermark=MARK)
    await rows.output("a", MARK + 1)

    assert await rows.do(_succeed, CLAIM)
    assert part(await rows.output_row("a"), "source_updated_at", "raw_memory") == (MARK + 1, "raw a")
    assert part(await rows.job_row("a"), "status") == ("done",)


async def test_success_without_output_forgets_what_was_learned_before_and_asks_for_a_consolidation(rows: Rows) -> None:
    await rows.thread("a", MARK)
    await rows.running("a", input_watermark=MARK)
    await rows.output("a", MARK - DAY)

    assert await rows.do(_nothing_learned, CLAIM)
    assert part(await rows.job_row("a"), "status", "last_success_watermark") == ("done", MARK)
    assert await rows.output_row("a") is None
    assert part(await rows.request(), "status", "input_watermark") == ("pending", MARK)
    assert [row["learned_s"] for row in await rows.query("test.threads")] == [MARK]


async def test_success_without_output_asks_for_nothing_when_there_was_nothing(rows: Rows) -> None:
    await rows.thread("a", MARK)
    await rows.running("a", input_watermark=MARK)

    assert await rows.do(_nothing_learned, CLAIM)
    assert await rows.request() is None
    assert await claim_one(rows) is ClaimRefusal.UP_TO_DATE


@pytest.mark.parametrize("ending", [_succeed, _nothing_learned])
async def test_what_was_finished_never_goes_back(rows: Rows, ending: Callable[[Transaction, Claim], bool]) -> None:
    await rows.thread("a", MARK + 9)
    await rows.execute("threads.learned", thread_id="a", watermark=MARK + 9)
    await rows.running("a", input_watermark=MARK, last_success_watermark=MARK + 9)

    assert await rows.do(ending, CLAIM)
    assert part(await rows.job_row("a"), "last_success_watermark") == (MARK + 9,)
    assert [row["learned_s"] for row in await rows.query("test.threads")] == [MARK + 9]


@pytest.mark.parametrize(("delay", "retry_at"), [(60, NOW + 60), (0, NOW), (-5, NOW)])
@pytest.mark.parametrize(("retries", "left"), [(3, 2), (1, 0), (0, 0)])
async def test_failure_costs_a_retry_and_says_why(
    rows: Rows, retries: int, left: int, delay: int, retry_at: int
) -> None:
    await rows.running("a", input_watermark=MARK, retry_remaining=retries, last_success_watermark=7)

    assert await rows.do(jobs.fail, CLAIM, "why", now=NOW, delay=delay)
    names = ("status", "finished_at", "lease_until", "retry_at", "retry_remaining", "last_error")
    assert part(await rows.job_row("a"), *names) == ("error", NOW, None, retry_at, left, "why")
    assert part(await rows.job_row("a"), "input_watermark", "last_success_watermark") == (MARK, 7)
    assert await rows.request() is None


async def test_a_heartbeat_that_comes_too_late_does_not_revive_a_claim(rows: Rows) -> None:
    held = await claim_one(rows, worker=ELSEWHERE)
    assert isinstance(held, Claim)

    assert not await rows.do(jobs.heartbeat, held, lease=300, now=NOW + 300)
    assert isinstance(await claim_one(rows, now=NOW + 300), Claim)


async def test_a_heartbeat_keeps_others_away_for_another_lease(rows: Rows) -> None:
    held = await claim_one(rows, worker=ELSEWHERE)
    assert isinstance(held, Claim)

    assert await rows.do(jobs.heartbeat, held, lease=300, now=NOW + 299)
    assert await claim_one(rows, now=NOW + 598) is ClaimRefusal.RUNNING
    assert isinstance(await claim_one(rows, now=NOW + 599), Claim)


async def test_what_is_given_back_can_be_claimed_at_once_and_cost_no_retry(rows: Rows) -> None:
    held = await claim_one(rows, token="first", worker=ELSEWHERE)
    assert isinstance(held, Claim)
    foreign = Claim(EXTRACTION, "b", "token", MARK)

    assert await rows.do(jobs.release, [held, foreign]) == 1
    assert part(await rows.job_row("a"), "status", "lease_until", "ownership_token") == ("pending", None, None)
    assert isinstance(await claim_one(rows, token="second"), Claim)
    assert part(await rows.job_row("a"), "ownership_token", "retry_remaining") == ("second", 3)


# Processes that died.


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives until its input is closed."""
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        yield process


def worker_of(process: subprocess.Popen[bytes]) -> Worker:
    start = jobs.process_start(process.pid)
    assert start
    return Worker("child", HERE.host, process.pid, start)


def end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait()


def end_unseen(process: subprocess.Popen[bytes]) -> None:
    """End a process, and leave what the system keeps of it until its parent asks."""
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


async def test_the_lease_of_a_process_that_died_on_this_host_is_free_at_once(
    rows: Rows, child: subprocess.Popen[bytes]
) -> None:
    await rows.running("a", input_watermark=MARK, retry_remaining=2, **worker_of(child).values())
    while_alive = await claim_one(rows)
    end(child)

    assert while_alive is ClaimRefusal.RUNNING
    assert isinstance(await claim_one(rows), Claim)
    assert part(await rows.job_row("a"), "retry_remaining") == (2,)


async def test_a_process_that_ended_and_was_not_waited_for_is_dead(rows: Rows, child: subprocess.Popen[bytes]) -> None:
    await rows.running("a", input_watermark=MARK, **worker_of(child).values())
    end_unseen(child)

    assert isinstance(await claim_one(rows), Claim)


async def test_a_pid_that_was_given_to_another_process_does_not_keep_a_lease(
    rows: Rows, child: subprocess.Popen[bytes]
) -> None:
    reused = structs.replace(worker_of(child), process_start="an earlier start")
    await rows.running("a", input_watermark=MARK, **reused.values())

    assert isinstance(await claim_one(rows), Claim)


async def test_a_pid_of_ours_that_an_earlier_process_had_does_not_keep_a_lease(rows: Rows) -> None:
    earlier = structs.replace(HERE, process_start="an earlier start")
    await rows.running("a", input_watermark=MARK, **earlier.values())

    assert isinstance(await claim_one(rows), Claim)


async def test_a_lease_of_our_own_process_is_respected(rows: Rows) -> None:
    await rows.running("a", input_watermark=MARK, **HERE.values())

    assert await claim_one(rows) is ClaimRefusal.RUNNING


async def test_nothing_can_be_told_about_a_process_of_another_host(rows: Rows, child: subprocess.Popen[bytes]) -> None:
    elsewhere = structs.replace(worker_of(child), host="elsewhere.invalid")
    end(child)
    await rows.running("a", input_watermark=MARK, **elsewhere.values())

    assert await claim_one(rows) is ClaimRefusal.RUNNING


async def test_a_start_takes_over_from_the_dead_and_the_cap_does_not_count_them(
    rows: Rows, child: subprocess.Popen[bytes]
) -> None:
    dead = worker_of(child)
    end(child)
    await rows.thread("a", MARK)
    await rows.running("a", input_watermark=MARK, **dead.values())
    await rows.running("b", **dead.values())

    assert await claimed_keys(rows, terms(max_running=1)) == ["a"]


async def test_freeing_says_how_many_and_leaves_the_living_alone(rows: Rows, child: subprocess.Popen[bytes]) -> None:
    dead = worker_of(child)
    end(child)
    await rows.running("a", "one", **dead.values())
    await rows.running(ROOT, "two", kind=CONSOLIDATION, **dead.values())
    await rows.running("c", "three", **HERE.values())
    await rows.running("d", "four")

    assert await rows.do(jobs.free_dead, HERE, NOW) == 2
    leases = {row["job_key"]: row["lease_until"] - NOW for row in await rows.query("test.jobs")}
    assert leases == {"a": 0, ROOT: 0, "c": 300, "d": 300}
    assert await rows.do(jobs.free_dead, HERE, NOW) == 0


def test_an_output_is_empty_when_there_is_only_space_in_it() -> None:
    assert [outputs.Output(*pair).is_empty for pair in (("", ""), (" \n", "\t"), ("x", ""), ("", "x"))] == [
        True,
        True,
        False,
        False,
    ]


async def test_what_a_clock_that_was_ahead_noted_keeps_no_background_start_waiting(rows: Rows) -> None:
    """A lease and a failure in the future are passed over where candidates are looked for, too."""
    ahead = NOW + 30 * DAY
    for key in ("held", "failed", "failed now"):
        await rows.thread(key, MARK)
    await rows.running("held", lease_until=ahead, input_watermark=MARK)
    failed: Columns = {"status": "error", "input_watermark": MARK, "retry_remaining": 2}
    await rows.job("failed", **failed, finished_at=ahead, retry_at=ahead + HOUR)
    await rows.job("failed now", **failed, finished_at=NOW, retry_at=NOW + HOUR)

    assert ["held", "failed"] == await claimed_keys(rows)


async def test_a_process_gives_back_all_that_it_holds_and_nothing_else(rows: Rows) -> None:
    await rows.running("mine", **HERE.values())
    await rows.running("mine, too", kind=CONSOLIDATION, **HERE.values())
    await rows.running("elsewhere")
    before_it = structs.replace(HERE, process_start="before it")
    await rows.running("its pid", **before_it.values())

    assert 2 == await rows.do(jobs.release_process, HERE, NOW)
    states = {row["job_key"]: row["status"] for row in await rows.query("test.jobs")}
    assert {"mine": "pending", "mine, too": "pending", "elsewhere": "running", "its pid": "running"} == states

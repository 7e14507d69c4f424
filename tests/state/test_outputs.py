"""What threads taught: stored, selected, no longer used, forgotten. One row per rule."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from rows import DAY, HERE, HOME, NOW, ROOT, Rows, claim_one, part

from commonplace.state import extraction_jobs, jobs, outputs, usage
from commonplace.state.extraction_jobs import ClaimTerms
from commonplace.state.jobs import CONSOLIDATION, EXTRACTION, Claim, ClaimRefusal
from commonplace.state.outputs import Output

Columns = dict[str, Any]
CUTOFF = NOW - 30 * DAY
"""What is less fresh than this is stale, if something is as fresh as now."""


async def select(rows: Rows, *, home: str = HOME, limit: int = 100, max_unused_days: int = 30) -> list[str]:
    """Return whose texts become files."""
    found = await rows.do(outputs.select, home, limit=limit, max_unused_days=max_unused_days)
    return [row["thread_id"] for row in found if row["is_filed"]]


async def learned(rows: Rows, key: str, source_updated_at: int = NOW - DAY, **columns: Any) -> None:
    """Put a thread and what it taught."""
    await rows.thread(key, source_updated_at)
    await rows.output(key, source_updated_at, **columns)


# Storing.


@pytest.mark.parametrize(("watermark", "is_stored"), [(99, False), (100, True), (101, True)])
async def test_an_output_is_replaced_only_by_one_that_is_not_older(rows: Rows, watermark: int, is_stored: bool) -> None:
    await rows.output("a", 100, generated_at=1, rollout_slug="old")

    assert await rows.do(outputs.put, "a", watermark, Output("new raw", "new summary"), now=NOW) is is_stored
    names = ("source_updated_at", "raw_memory", "rollout_summary", "rollout_slug", "generated_at")
    new, old = (watermark, "new raw", "new summary", None, NOW), (100, "raw a", "summary a", "old", 1)
    assert part(await rows.output_row("a"), *names) == (new if is_stored else old)


async def test_replacing_keeps_usage_pin_and_selection(rows: Rows) -> None:
    kept: Columns = {
        "retrieved": 1,
        "last_retrieved": 2,
        "injected": 3,
        "last_injected": 4,
        "cited": 5,
        "last_cited": 6,
    }
    kept |= {"is_pinned": 1, "is_selected": 1, "selected_source_updated_at": 100, "selected_root": ROOT}
    await rows.output("a", 100, **kept)
    await rows.do(outputs.put, "a", 200, Output("new", "new"), now=NOW)

    assert part(await rows.output_row("a"), *kept) == tuple(kept.values())


@pytest.mark.parametrize(("fresh_at", "expected"), [(150, 200), (200, 200), (250, 250)])
async def test_newer_activity_makes_fresher_but_never_less_fresh(rows: Rows, fresh_at: int, expected: int) -> None:
    await rows.output("a", 100, fresh_at=fresh_at)
    await rows.do(outputs.put, "a", 200, Output("new", "new"), now=NOW)

    assert part(await rows.output_row("a"), "fresh_at") == (expected,)


async def test_an_output_that_becomes_empty_or_full_says_so(rows: Rows) -> None:
    found: list[Any] = []
    for text in ("x", " \n", "y"):
        await rows.do(outputs.put, "a", 100, Output(text, ""), now=NOW)
        found.append(part(await rows.output_row("a"), "is_empty"))

    assert found == [(0,), (1,), (0,)]


# Selecting.


@pytest.mark.parametrize(
    ("raw", "summary", "is_selected"), [("", "", False), (" \n", "\t ", False), ("x", "", True), ("", "x", True)]
)
async def test_empty_outputs_are_never_selected(rows: Rows, raw: str, summary: str, is_selected: bool) -> None:
    await rows.thread("a")
    await rows.do(outputs.put, "a", NOW - DAY, Output(raw, summary), now=NOW)
    assert await rows.do(outputs.pin, "a")

    assert await select(rows) == (["a"] if is_selected else [])


async def stale_first(rows: Rows) -> list[str]:
    """Return the one of two that is ranked first, beside one that is as fresh as now."""
    await learned(rows, "now", NOW)
    return [name for name in await select(rows, limit=2) if name != "now"]


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("by", ["source", "retrieved", "cited"])
async def test_an_output_is_fresh_by_the_newest_of_three_times(
    rows: Rows, by: Literal["source", "retrieved", "cited"], late: int
) -> None:
    moment = CUTOFF - late
    await learned(rows, "a", moment if by == "source" else CUTOFF - 9 * DAY)
    await learned(rows, "b", CUTOFF)
    if by != "source":
        await rows.do(usage.record_outputs, by, ["a"], now=moment)
        await rows.do(usage.record_outputs, "cited" if by == "retrieved" else "retrieved", ["a"], now=moment - DAY)

    assert await stale_first(rows) == (["b"] if late or by == "source" else ["a"])


async def test_being_carried_by_prompts_keeps_nothing_fresh(rows: Rows) -> None:
    await learned(rows, "a", CUTOFF - 1, cited=1)
    await learned(rows, "b", CUTOFF)
    await rows.do(usage.record_outputs, "injected", ["a"] * 100, now=NOW)

    assert await stale_first(rows) == ["b"]


async def test_being_used_a_lot_long_ago_keeps_nothing_fresh(rows: Rows) -> None:
    await learned(rows, "a", CUTOFF - DAY)
    await learned(rows, "b", CUTOFF)
    await rows.do(usage.record_outputs, "cited", ["a"] * 100, now=CUTOFF - 1)

    assert await stale_first(rows) == ["b"]


async def test_nothing_is_stale_while_nothing_newer_happens(rows: Rows) -> None:
    await learned(rows, "a", CUTOFF - 300 * DAY, cited=1)
    await learned(rows, "b", CUTOFF - 290 * DAY)

    assert await select(rows, limit=1) == ["a"]


@pytest.mark.parametrize(("days", "expected"), [(1, ["day"]), (0, ["more"]), (-5, ["more"])])
async def test_how_long_unused_is_a_setting(rows: Rows, days: int, expected: list[str]) -> None:
    await learned(rows, "day", NOW - DAY)
    await learned(rows, "more", NOW - DAY - 1, cited=1)
    await learned(rows, "now", NOW, cited=2)

    found = await select(rows, limit=2, max_unused_days=days)
    assert [name for name in found if name != "now"] == expected


async def test_what_a_person_pinned_is_never_stale(rows: Rows) -> None:
    await learned(rows, "a", 1)
    await learned(rows, "b", CUTOFF - 1, cited=1)
    assert await rows.do(outputs.pin, "a")

    assert await stale_first(rows) == ["a"]


async def test_every_output_is_consolidated_however_old_it_is(rows: Rows) -> None:
    for key, moment in (("a", 1), ("b", NOW)):
        await learned(rows, key, moment)

    found = await rows.do(outputs.select, HOME, limit=1, max_unused_days=0)
    assert [(row["thread_id"], row["is_filed"]) for row in found] == [("a", False), ("b", True)]


RANKING: dict[str, tuple[Columns, Columns]] = {
    # columns of the better one ("b" unless the rule is about ids), of the other
    "cited more": ({"cited": 2}, {"cited": 1, "retrieved": 9, "fresh_at": NOW}),
    "cited the same, retrieved more": ({"cited": 1, "retrieved": 2}, {"cited": 1, "retrieved": 1, "fresh_at": NOW}),
    "used the same, used last": ({"fresh_at": NOW - 1}, {"fresh_at": NOW - 2, "source_updated_at": NOW - 2}),
    "used at the same time, newer session": (
        {"fresh_at": NOW, "source_updated_at": NOW - 1},
        {"fresh_at": NOW, "source_updated_at": NOW - 2},
    ),
    "carried by prompts is nothing": ({"fresh_at": NOW - 1}, {"fresh_at": NOW - 2, "injected": 99}),
    "generated later is nothing": ({"fresh_at": NOW - 1}, {"fresh_at": NOW - 2, "generated_at": NOW + 9}),
}


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize(("better", "other"), RANKING.values(), ids=RANKING)
async def test_the_most_useful_are_selected(
    rows: Rows, better: Columns, other: Columns, names: tuple[str, str]
) -> None:
    for key, columns in zip(names, (better, other), strict=True):
        await learned(rows, key, **columns)

    assert await select(rows, limit=1) == [names[0]]


async def test_of_equals_the_later_id_is_selected(rows: Rows) -> None:
    for key in ("b", "c", "a"):
        await learned(rows, key)

    assert await select(rows, limit=1) == ["c"]


@pytest.mark.parametrize(
    ("limit", "expected"), [(-1, []), (0, []), (2, ["a", "c"]), (3, ["a", "b", "c"]), (9, ["a", "b", "c"])]
)
async def test_the_result_stands_in_the_order_of_ids_whatever_the_ranking(
    rows: Rows, limit: int, expected: list[str]
) -> None:
    for key, cited in (("b", 1), ("c", 2), ("a", 3)):
        await learned(rows, key, cited=cited)

    assert await select(rows, limit=limit) == expected


VISIBLE: dict[str, tuple[Columns | None, bool]] = {
    "an enabled thread": ({}, True),
    "an archived thread": ({"is_archived": 1}, True),
    "a thread that is talking right now": ({"updated_s": NOW}, True),
    "a disabled thread": ({"memory_mode": "disabled"}, False),
    "a polluted thread": ({"memory_mode": "polluted"}, False),
    "a thread of another home": ({"home": "/another"}, False),
    "a thread that is gone": (None, False),
}


@pytest.mark.parametrize(("changes", "is_visible"), VISIBLE.values(), ids=VISIBLE)
async def test_what_memory_may_not_use_is_invisible_and_takes_no_place(
    rows: Rows, changes: Columns | None, is_visible: bool
) -> None:
    if changes is not None:
        await rows.thread("a", **({"updated_s": NOW - DAY} | changes))
    await rows.output("a", cited=9)
    await learned(rows, "b")

    assert await select(rows, limit=1) == (["a"] if is_visible else ["b"])
    assert await rows.output_row("a") is not None


async def test_a_selected_output_comes_with_what_its_thread_says(rows: Rows) -> None:
    place: Columns = {"path": "/p", "cwd": "/code", "git_branch": "main", "project": "host/owner/name"}
    await rows.thread("a", **place)
    await rows.output("a", NOW - DAY, rollout_slug="slug", generated_at=5)

    (found,) = await rows.do(outputs.select, HOME, limit=9, max_unused_days=30)

    made: Columns = {"raw_memory": "raw a", "rollout_summary": "summary a", "rollout_slug": "slug", "generated_at": 5}
    last: Columns = {"is_selected": 0, "selected_source_updated_at": None, "lessons": None, "is_pinned": 0}
    last |= {"fresh_at": NOW - DAY, "is_filed": True, "person": None}
    assert found == {"thread_id": "a", "source_updated_at": NOW - DAY, **made, **last, **place}


async def test_a_thread_whose_file_was_copied_is_selected_once_by_the_file_that_is_not_archived(rows: Rows) -> None:
    await learned(rows, "a", cited=9)
    await rows.thread("a", path="/an/archived/copy", is_archived=1)
    await learned(rows, "b")

    found = await rows.do(outputs.select, HOME, limit=2, max_unused_days=30)

    assert [row["path"] for row in found] == [f"{HOME}/sessions/a.jsonl", f"{HOME}/sessions/b.jsonl"]


async def test_of_a_reverted_thread_the_newest_file_is_selected(rows: Rows) -> None:
    await rows.thread("a", path="/1-old")
    await rows.thread("a", path="/2-new", rollout_id="later")
    await rows.execute("threads.mark_replaced", home=HOME)
    await rows.output("a")

    found = await rows.do(outputs.select, HOME, limit=2, max_unused_days=30)

    assert [row["path"] for row in found] == ["/2-new"]


async def extract(rows: Rows, watermark: int) -> Claim | ClaimRefusal:
    return await rows.do(claim_one, "a", watermark, HERE, "token", ClaimTerms(HOME, max_claims=1), now=NOW)


# No longer using, deleting, clearing.


@pytest.mark.parametrize(("mode", "changed"), [("enabled", True), ("disabled", True), ("polluted", False)])
async def test_polluting_hides_a_thread_and_asks_for_a_consolidation_that_forgets_it(
    rows: Rows, mode: str, changed: bool
) -> None:
    await rows.thread("a", memory_mode=mode)
    await rows.selected("a")

    assert await rows.do(outputs.pollute, "a", root=ROOT, now=NOW) is changed
    assert await select(rows) == []
    assert await rows.output_row("a") is not None
    assert part(await rows.request(), "status", "input_watermark") == ("pending", NOW)


@pytest.mark.parametrize("has_output", [True, False])
async def test_polluting_what_no_consolidation_holds_asks_for_nothing(rows: Rows, has_output: bool) -> None:
    await rows.thread("a")
    if has_output:
        await rows.output("a")

    assert await rows.do(outputs.pollute, "a", root=ROOT, now=NOW)
    assert await rows.request() is None


async def test_polluting_a_thread_that_is_not_known_changes_nothing(rows: Rows) -> None:
    before = await rows.everything()

    assert not await rows.do(outputs.pollute, "unknown", root=ROOT, now=NOW)
    assert await rows.everything() == before


async def test_a_polluted_thread_stays_so_when_its_file_is_indexed_again(rows: Rows) -> None:
    await rows.thread("a")
    await rows.do(outputs.pollute, "a", root=ROOT, now=NOW)
    await rows.thread("a", NOW, memory_mode="enabled")

    assert [row["memory_mode"] for row in await rows.query("test.threads")] == ["polluted"]


@pytest.mark.parametrize("is_selected", [True, False])
async def test_deleting_a_thread_forgets_what_it_taught_and_the_work_on_it(rows: Rows, is_selected: bool) -> None:
    for key in ("a", "b"):
        await (rows.selected(key) if is_selected else rows.output(key))
        await rows.running(key)

    assert await rows.do(outputs.delete_thread, "a", root=ROOT, now=NOW)
    assert [row["thread_id"] for row in await rows.query("test.outputs")] == ["b"]
    assert (await rows.job_row("a"), part(await rows.job_row("b"), "status")) == (None, ("running",))
    assert part(await rows.request(), "status", "input_watermark") == (("pending", NOW) if is_selected else None)


async def test_deleting_a_thread_that_taught_nothing_says_so(rows: Rows) -> None:
    await rows.running("a", "token")

    assert not await rows.do(outputs.delete_thread, "a", root=ROOT, now=NOW)
    assert await rows.everything() == {"threads": [], "jobs": [], "outputs": [], "entries": [], "budget": []}


async def test_what_is_finished_after_its_thread_was_deleted_is_not_kept(rows: Rows) -> None:
    await rows.thread("a")
    held = await extract(rows, NOW - DAY)
    assert isinstance(held, Claim)
    await rows.do(outputs.delete_thread, "a", root=ROOT, now=NOW)

    assert not await rows.do(extraction_jobs.succeed, held, Output("x", "y"), root=ROOT, now=NOW)
    assert await rows.output_row("a") is None


async def test_clearing_keeps_modes_and_makes_everything_eligible_again(rows: Rows) -> None:
    for key, mode in (("a", "enabled"), ("b", "disabled"), ("c", "enabled")):
        await rows.thread(key, memory_mode=mode)
        await rows.selected(key)
    await rows.job("a", status="done", last_success_watermark=NOW, input_watermark=NOW)
    await rows.job("c", status="error", retry_remaining=0, input_watermark=NOW)
    await rows.running(ROOT, kind=CONSOLIDATION)
    await rows.job("another kind's", kind="something else")
    await rows.execute("threads.restore_learned", home=HOME)
    await rows.do(outputs.clear)

    found = await rows.everything()
    claimed = await rows.do(extraction_jobs.claim_next, ClaimTerms(HOME, max_claims=9), HERE, lambda: "token", now=NOW)

    assert [row["job_key"] for row in found["jobs"]] == ["another kind's"]
    assert found["outputs"] == []
    assert [row["memory_mode"] for row in found["threads"]] == ["enabled", "disabled", "enabled"]
    assert [one.claim.job_key for one in claimed] == ["c", "a"]


async def test_what_was_claimed_before_clearing_cannot_be_finished_after_it(rows: Rows) -> None:
    await rows.running("a")
    await rows.do(outputs.clear)

    assert not await rows.do(jobs.heartbeat, Claim(EXTRACTION, "a", "token", 1), lease=300, now=NOW)


async def test_counts_are_whole_numbers_on_every_database(rows: Rows) -> None:
    await rows.selected("a")
    await rows.output("b")
    await rows.thread("a", size=2**40)
    (outputs_count,) = await rows.query("outputs.count")
    (threads_count,) = await rows.query("threads.count", home=HOME)

    assert outputs_count == {"outputs": 2, "selected": 1}
    assert threads_count == {"threads": 1, "files": 1, "bytes": 2**40}
    assert {type(value) for value in (*outputs_count.values(), *threads_count.values())} == {int}

"""When learning may begin by itself: once in a while for a home, and only if something is due."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from contender import HOME, NOW
from rows import DAY, Rows

from commonplace.state import consolidation_jobs, jobs, learning_starts
from commonplace.state.database import Transaction
from commonplace.state.extraction_jobs import ClaimTerms
from commonplace.state.jobs import CONSOLIDATION, Worker

SELF = jobs.this_process()
DEAD = Worker("dead", SELF.host, 2**22 + 1, "long ago")

MOMENTS: dict[str, tuple[int, bool]] = {
    "at the same time": (0, False),
    "a moment too early": (599, False),
    "after ten minutes": (600, True),
    "when the clock was set back": (-1, True),
}


@pytest.mark.parametrize("moment", MOMENTS)
async def test_learning_begins_again(rows: Rows, moment: str) -> None:
    later, expected = MOMENTS[moment]
    assert await rows.do(learning_starts.begin, HOME, now=NOW)

    assert expected is await rows.do(learning_starts.begin, HOME, now=NOW + later)
    assert await rows.do(learning_starts.begin, "/home/other", now=NOW)


async def test_it_is_known_whether_learning_ever_began(rows: Rows) -> None:
    assert not await rows.do(learning_starts.has_begun, HOME)

    await rows.do(learning_starts.begin, HOME, now=NOW)

    assert await rows.do(learning_starts.has_begun, HOME)
    assert not await rows.do(learning_starts.has_begun, "/home/other")


def running(tx: Transaction, worker: Worker = SELF, lease: int = 3_600) -> None:
    claim = consolidation_jobs.claim(tx, HOME, worker, "token", now=NOW, lease=lease)
    assert isinstance(claim, jobs.Claim)


def done(tx: Transaction) -> None:
    claim = consolidation_jobs.claim(tx, HOME, SELF, "token", now=NOW)
    assert isinstance(claim, jobs.Claim)
    consolidation_jobs.succeed(tx, claim, 1, [], now=NOW)


def failed(tx: Transaction) -> None:
    claim = consolidation_jobs.claim(tx, HOME, SELF, "token", now=NOW)
    assert isinstance(claim, jobs.Claim)
    consolidation_jobs.fail(tx, claim, "no room", now=NOW, delay=3_600)


def done_and_asked_again(tx: Transaction) -> None:
    done(tx)
    consolidation_jobs.enqueue(tx, HOME, NOW)


CONSOLIDATIONS: dict[str, tuple[Callable[[Transaction], None], int, bool]] = {
    "one that was asked for is due": (lambda tx: consolidation_jobs.enqueue(tx, HOME, NOW), 0, True),
    "one that runs is not": (running, 10, False),
    "one whose lease ran out is": (running, 3_600, True),
    "one whose process is dead is": (lambda tx: running(tx, DEAD), 10, True),
    "one that succeeded is not for a while": (done, 21_599, False),
    "asking again does not end that while": (done_and_asked_again, 21_599, False),
    "later it is, for notes, edits and what aged": (done, 21_600, True),
    "one that failed is not for a while": (failed, 3_599, False),
    "it is tried again afterwards": (failed, 3_600, True),
}


@pytest.mark.parametrize("state", CONSOLIDATIONS)
async def test_a_consolidation_is_due(rows: Rows, state: str) -> None:
    prepare, later, expected = CONSOLIDATIONS[state]
    await rows.do(prepare)

    assert expected is await due(rows, now=NOW + later)


async def due(rows: Rows, *, now: int = NOW, has_memory: bool = False, wanted: bool = True) -> bool:
    terms = ClaimTerms(home=HOME, max_claims=1, wanted=lambda _: wanted)
    return await rows.do(learning_starts.is_anything_due, terms, SELF, has_memory=has_memory, now=now)


@pytest.mark.parametrize("has_memory", [True, False])
async def test_where_nothing_ever_ran_only_a_workspace_is_looked_after(rows: Rows, has_memory: bool) -> None:
    assert has_memory is await due(rows, has_memory=has_memory)
    assert [] == await rows.query("jobs.get", kind=CONSOLIDATION, job_key=HOME)


SESSIONS: dict[str, tuple[dict[str, object], bool, bool]] = {
    "a quiet one is": ({}, True, True),
    "one that settings exclude is not": ({}, False, False),
    "one that is still going on is not": ({"updated_s": NOW - 60}, True, False),
    "one of a sub-agent is not": ({"is_root": 0}, True, False),
    "one of somebody unknown is not": ({"source": "mcp"}, True, False),
    "one that memory may not use is not": ({"memory_mode": "polluted"}, True, False),
}


@pytest.mark.parametrize("session", SESSIONS)
async def test_a_session_is_due(rows: Rows, session: str) -> None:
    changes, wanted, expected = SESSIONS[session]
    await rows.thread("a", **{"updated_s": NOW - DAY, **changes})  # pyright: ignore[reportArgumentType]

    assert expected is await due(rows, wanted=wanted)
    assert [] == await rows.query("test.jobs")

"""One of many processes that work on the same database, and the rows that they work on.

`python contender.py DATABASE BATCH CAP DIE_AFTER` opens the database, says so, waits for a word, then claims and
finishes until it is given nothing, and prints what it was told is done. If DIE_AFTER is not 0, it kills itself inside
the transaction that finishes its n-th job.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

import processes
from commonplace.state import extraction_jobs, jobs
from commonplace.state.database import Database, Transaction
from commonplace.state.outputs import Output
from commonplace.state.postgres import PostgresDatabase
from commonplace.state.sqlite import SqliteDatabase

HOME = "/home"
ROOT = "/home/memories"
NOW = 1_800_000_000


def thread_id(number: int) -> str:
    return f"01a1dddc-{number >> 16 & 0xFFFF:04x}-7{number >> 4 & 0xFFF:03x}-8000-{number:012x}"


def thread_row(key: str, updated_s: int, **changes: Any) -> dict[str, Any]:
    """Return the values of a thread's row, as the index would write them."""
    empty = ("git_branch", "git_commit", "git_url", "model", "name", "title", "base_id", "parent_id")
    values: dict[str, Any] = dict.fromkeys(empty)
    values |= dict.fromkeys(
        ("size", "mtime_ns", "scanned", "turn_state", "turns", "tokens", "skipped", "is_archived"), 0
    )
    values |= {"path": f"{HOME}/sessions/{key}.jsonl", "home": HOME, "thread_id": key, "rollout_id": key}
    values |= {"is_complete": 1, "is_root": 1, "source": "cli", "cwd": "/code", "project": "/code"}
    values |= {"preview": "words", "created_at": "2026-01-01T00:00:00.000Z", "updated_at": f"{updated_s:020}"}
    return values | {"updated_s": updated_s, "memory_mode": "enabled", **changes}


async def connect(address: str) -> Database:
    """Open a database by its address or path."""
    if address.startswith("/"):
        return await SqliteDatabase.open(Path(address))
    return await PostgresDatabase.open(address)


@dataclass(frozen=True, slots=True)
class Race:
    """How many processes worked off one queue."""

    codes: list[int]
    done: list[str]
    """What processes that ended in an orderly way were told is done."""
    most: int
    """The most claims that any of them saw alive at once."""
    errors: str
    seconds: float
    """From the word to the last end, without the start-up of the programs."""


def race(address: str, deaths: Sequence[int], *, batch: int, cap: int) -> Race:
    """Let one process per entry work off a queue, all at once; an entry says at which job it dies (0: never)."""
    code = Path(__file__).read_text("utf-8")
    running = [
        processes.Process([address, batch, cap, death], stdin=processes.PIPE, text=True, code=code) for death in deaths
    ]
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()
    begun = time.perf_counter()
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate() for process in running]
    taken = time.perf_counter() - begun
    ends = [json.loads(out) for out, _ in said if out]
    return Race(
        codes=[process.returncode for process in running],
        done=[key for end in ends for key in end["done"]],
        most=max((end["most"] for end in ends), default=0),
        errors="".join(errors for _, errors in said),
        seconds=taken,
    )


def fill(tx: Transaction, numbers: range, size: int) -> None:
    """Put in threads over four weeks; every second one was extracted, some of those were cited, retrieved or pinned."""
    times = {number: NOW - 86_400 - number * 28 * 86_400 // size for number in numbers}
    tx.execute_many("threads.put", [thread_row(thread_id(number), times[number]) for number in numbers])
    known = [(thread_id(number), times[number]) for number in numbers if number % 2]
    claims: list[dict[str, Any]] = [
        {"kind": jobs.EXTRACTION, "job_key": key, "ownership_token": key, "now": NOW, "watermark": mark}
        for key, mark in known
    ]
    more = {"retry_remaining": 3, "last_success_watermark": None, "lease_until": NOW + 300}
    more |= jobs.Worker("elsewhere:1", "elsewhere.invalid", 1, "then").values()
    tx.execute_many("jobs.insert_claim", [claim | more | {"input_watermark": claim["watermark"]} for claim in claims])
    tx.execute_many("jobs.succeed", claims)
    tx.execute_many("threads.learned", [{"thread_id": key, "watermark": mark} for key, mark in known])
    texts = {
        "raw_memory": "what was learned " * 120,
        "rollout_summary": "what was done " * 60,
        "rollout_slug": "slug",
        "lessons": None,
    }
    made = [{"thread_id": key, "source_updated_at": mark, "is_empty": 0, "now": NOW, **texts} for key, mark in known]
    tx.execute_many("outputs.put", made)
    tx.execute_many("usage.output_retrieved", [{"id": key, "n": 1, "now": NOW} for key, _ in known[::5]])
    tx.execute_many("usage.output_cited", [{"id": key, "n": 1, "now": NOW} for key, _ in known[::10]])
    tx.execute_many("outputs.pin", [{"thread_id": key, "is_pinned": 1} for key, _ in known[::100]])


async def contend(address: str, batch: int, cap: int, die_after: int) -> dict[str, Any]:
    """Claim and finish until there is nothing to claim."""
    database = await connect(address)
    print("ready", flush=True)
    sys.stdin.readline()
    worker = jobs.this_process()
    terms = extraction_jobs.ClaimTerms(HOME, max_claims=batch, max_running=cap)
    done: list[str] = []
    most = 0

    def claim(tx: Transaction) -> tuple[list[extraction_jobs.ExtractionClaim], int]:
        claimed = extraction_jobs.claim_next(tx, terms, worker, lambda: str(uuid.uuid4()), now=NOW)
        return claimed, tx.query("jobs.count_running", kind=jobs.EXTRACTION, now=NOW)[0]["n"]

    def finish(tx: Transaction, held: jobs.Claim) -> bool:
        finished = extraction_jobs.succeed(tx, held, Output(f"made of {held.job_key}", "sum"), root=ROOT, now=NOW)
        if len(done) + 1 == die_after:
            os.kill(os.getpid(), signal.SIGKILL)
        return finished

    while True:
        claimed, running = await database.write(claim)
        most = max(most, running)
        if not claimed:
            break
        for job in claimed:
            if await database.write(lambda tx, held=job.claim: finish(tx, held)):
                done.append(job.claim.job_key)  # noqa: PERF401 (`finish` counts them as they come)
    await database.close()
    return {"done": done, "most": most}


def main(address: str, batch: str, cap: str, die_after: str) -> None:
    """Contend, and say what was done."""
    print(json.dumps(anyio.run(contend, address, int(batch), int(cap), int(die_after))))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""One of many processes that work on the same database, and the rows that they work on.

`python contender.py DATABASE BATCH CAP [DIE_AFTER]` claims and finishes until it is given nothing, then prints what it
was told is done. With DIE_AFTER it kills itself inside the transaction that finishes its n-th job, as a crash would.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from commonplace.state import extractions, jobs
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
    values: dict[str, Any] = dict.fromkeys(("git_branch", "git_commit", "git_url", "model", "name", "base_id"))
    values |= dict.fromkeys(("size", "mtime_ns", "scanned", "turn_state", "turns", "tokens", "skipped", "is_archived"), 0)
    values |= {"path": f"{HOME}/sessions/{key}.jsonl", "home": HOME, "thread_id": key, "rollout_id": key}
    values |= {"is_complete": 1, "is_root": 1, "source": "cli", "cwd": "/code", "project": "/code"}
    values |= {"preview": "words", "created_at": "2026-01-01T00:00:00.000Z", "updated_at": f"{updated_s:020}"}
    return values | {"updated_s": updated_s, "memory_mode": "enabled", **changes}


async def connect(address: str) -> Database:
    """Open a database by its address or path."""
    if address.startswith("postgresql:"):
        return await PostgresDatabase.open(address)
    return await SqliteDatabase.open(Path(address))


def start(address: str, *, batch: int, cap: int, die_after: int = 0) -> subprocess.Popen[str]:
    """Start a contender."""
    command = [sys.executable, __file__, address, str(batch), str(cap), str(die_after)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def contend(address: str, batch: int, cap: int, die_after: int) -> dict[str, Any]:
    """Claim and finish until there is nothing to claim."""
    database = await connect(address)
    worker = jobs.this_process()
    terms = extractions.Terms(HOME, max_claims=batch, max_running=cap)
    done: list[str] = []
    most = 0

    def claim(tx: Transaction) -> tuple[list[extractions.Extraction], int]:
        claimed = extractions.claim_next(tx, terms, worker, lambda: str(uuid.uuid4()), now=NOW)
        return claimed, tx.query("jobs.count_running", kind=jobs.EXTRACTION, now=NOW)[0]["n"]

    def finish(tx: Transaction, held: jobs.Claim) -> bool:
        finished = extractions.succeed(tx, held, Output(f"made of {held.job_key}", "sum"), root=ROOT, now=NOW)
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
                done.append(job.claim.job_key)
    await database.close()
    return {"done": done, "most": most}


def main(arguments: Sequence[str]) -> None:
    """Contend, and say what was done."""
    address, *numbers = arguments
    print(json.dumps(anyio.run(contend, address, *(int(number) for number in numbers))))


if __name__ == "__main__":
    main(sys.argv[1:])

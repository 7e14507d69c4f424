"""Claims on shared work: which process does it, until when, and how it ended.

A claim is a token on a row with a lease. It holds while the lease is greater than now; finishing, failing, releasing
and heartbeats must present the token and otherwise change nothing. A lease of a dead process on this host is free at
once; on other hosts it expires. Time is always a parameter, in whole seconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.state.database import Row, Transaction

EXTRACTION: Final = "memory_stage1"
CONSOLIDATION: Final = "memory_consolidate_global"
RETRIES: Final = 3
"""How often a job is tried before it is exhausted."""
RETRY_SECONDS: Final = 3600
"""How long a failed job waits before a background start tries it again."""

LONGEST_LEASE_SECONDS: Final = 21_600
"""A lease that ends later than this from now was given by a clock that was ahead, and does not count: if whoever has it
is dead, everybody else would wait until that time. The queries say the same number.
"""


class ClaimRefusal(StrEnum):
    """Why a job was not claimed."""

    UP_TO_DATE = "up_to_date"
    RUNNING = "running"
    BACKOFF = "retry_backoff"
    EXHAUSTED = "retry_exhausted"
    COOLDOWN = "cooldown"


class Worker(msgspec.Struct, frozen=True):
    """A process that works, with the facts by which others can tell whether it still lives."""

    worker_id: str
    host: str
    pid: int
    process_start: str

    def values(self) -> dict[str, Any]:
        """Return the columns that name it."""
        return {
            "worker_id": self.worker_id,
            "host": self.host,
            "pid": self.pid,
            "process_start": self.process_start,
        }


class Claim(msgspec.Struct, frozen=True):
    """The right to work on a job, for a while."""

    kind: str
    job_key: str
    token: str
    watermark: int
    tries_left: int = RETRIES
    """How many tries are left, this one included: 1 is the last."""
    failures: int = 0
    """How often it failed since it last succeeded."""

    def values(self) -> dict[str, Any]:
        """Return the columns that prove it."""
        return {"kind": self.kind, "job_key": self.job_key, "ownership_token": self.token}


def this_process(host: str | None = None) -> Worker:
    """Return the identity of the process that asks; `host` names its host, if the system's name does not."""
    pid = os.getpid()
    host = host or os.uname().nodename
    return Worker(f"{host}:{pid}", host, pid, process_start(pid) or "")


def process_start(pid: int) -> str | None:
    """Return when a process of this host began (boot id and ticks), or None if it does not live."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()
    except OSError:
        return _alive_without_proc(pid)
    fields = stat.rpartition(")")[2].split()
    if fields[0] in "ZX":  # it ended; only its parent has not asked yet how
        return None
    return f"{boot}:{fields[19]}"


def _alive_without_proc(pid: int) -> str | None:
    """Say whether a process lives where there is no /proc: by its pid alone."""
    if Path("/proc/self").exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        return ""
    return ""


def is_running(row: Row, now: int) -> bool:
    """Say whether a job is claimed with a live lease."""
    return row["status"] == "running" and now < (row["lease_until"] or 0) <= now + LONGEST_LEASE_SECONDS


def backs_off(row: Row, now: int) -> bool:
    """Say whether a job failed a short while ago; a failure in the future was noted by a clock that was ahead."""
    return (row["retry_at"] or 0) > now and (row["finished_at"] or 0) <= now


def get(tx: Transaction, kind: str, job_key: str) -> Row | None:
    """Return a job's row."""
    rows = tx.query("jobs.get", kind=kind, job_key=job_key)
    return rows[0] if rows else None


def free_dead(tx: Transaction, worker: Worker, now: int) -> int:
    """End the leases of processes of this host that are dead; return how many."""
    freed = 0
    starts: dict[int, str | None] = {worker.pid: worker.process_start}  # everybody waits: ask once per process
    for row in tx.query("jobs.running_on_host", host=worker.host, now=now):
        pid = row["pid"]
        if pid not in starts:
            starts[pid] = process_start(pid)
        if starts[pid] != row["process_start"]:
            key = {name: row[name] for name in ("kind", "job_key", "ownership_token")}
            freed += tx.execute("jobs.expire", now=now, **key)
    return freed


def heartbeat(tx: Transaction, claim: Claim, *, lease: int, now: int) -> bool:
    """Keep a claim for longer; False if it is lost."""
    return tx.execute("jobs.heartbeat", lease_until=now + lease, now=now, **claim.values()) > 0


def release(tx: Transaction, claims: Iterable[Claim]) -> int:
    """Give claims back at once, when a process ends in order; return how many were still held."""
    return sum(tx.execute("jobs.release", **claim.values()) for claim in claims)


def release_process(tx: Transaction, worker: Worker, now: int) -> int:
    """Give back every claim of a process; return how many there were."""
    own = (worker.pid, worker.process_start)
    held = tx.query("jobs.running_on_host", host=worker.host, now=now)
    claims = [row for row in held if (row["pid"], row["process_start"]) == own]
    return release(tx, [Claim(row["kind"], row["job_key"], row["ownership_token"], 0) for row in claims])


def fail(tx: Transaction, claim: Claim, reason: str, *, now: int, delay: int = RETRY_SECONDS) -> bool:
    """Note that a claimed job failed; return False if the claim is lost."""
    values = {"last_error": reason, "retry_at": now + max(0, delay), "now": now}
    return tx.execute("jobs.fail", **values, **claim.values()) > 0

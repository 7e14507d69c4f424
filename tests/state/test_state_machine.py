"""Made-up histories of several workers on one database, checked against a small model after every step.

Workers claim, keep, finish, fail, give back and crash, on two hosts; the clock goes on, threads are talked to, switched
off, forgotten. Whatever happens: a job has one live owner, what was acknowledged can be read until a rule deletes it,
the cap holds, success does not go back, and who lost a claim can change nothing with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

import anyio.from_thread
import anyio.to_thread
import pytest
import rows
from contender import HOME, ROOT, thread_id, thread_row
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,  # pyright: ignore[reportUnknownVariableType]
)

from commonplace.state import consolidation_jobs, extraction_jobs, jobs, outputs, usage
from commonplace.state.database import Database, Row, Transaction
from commonplace.state.jobs import CONSOLIDATION, EXTRACTION, Claim, Worker

P = ParamSpec("P")
T = TypeVar("T")
Job = tuple[str, str]

START = 1_800_000_000
CAP = 3
LEASE = 300
LONG_LEASE = 3_600
KEYS = [thread_id(number) for number in range(4)]
ROOTS = [ROOT, "/other/memories"]
JOBS: list[Job] = [*((EXTRACTION, key) for key in KEYS), *((CONSOLIDATION, root) for root in ROOTS)]
HOSTS = ("here", "there")

key = st.sampled_from(KEYS)
number = st.integers(0, 11)
"""Which of the workers, or of the claims that are held: counted round."""


@dataclass(eq=False)
class Held:
    """A claim as its worker knows it."""

    claim: Claim
    worker: Worker
    until: int
    is_revoked: bool = False
    """The job was forgotten, and this claim with it."""

    @property
    def job(self) -> Job:
        return self.claim.kind, self.claim.job_key


@dataclass
class Processes:
    """Which processes live, as their hosts tell."""

    starts: dict[int, str] = field(default_factory=dict[int, str])
    begun: int = 0

    def begin(self, host: str, pid: int | None = None) -> Worker:
        """Start a process, with a pid that was used before if one is given."""
        self.begun += 1
        pid = pid or 1000 + self.begun
        self.starts[pid] = f"start {self.begun}"
        return Worker(f"{host}:{pid}", host, pid, self.starts[pid])

    def lives(self, worker: Worker) -> bool:
        return self.starts.get(worker.pid) == worker.process_start


class Histories(RuleBasedStateMachine):
    """One history."""

    def __init__(self, database: Database, processes: Processes) -> None:
        super().__init__()
        self.database = database
        self.processes = processes
        self.now = START
        self.tokens = 0
        self.workers: list[Worker] = []
        self.threads: set[str] = set()
        self.held: list[Held] = []
        self.owners: dict[Job, Held] = {}
        self.outputs: dict[str, tuple[int, str]] = {}
        self.successes: dict[Job, int] = {}

    # what the rules are made of

    def do(self, function: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one function of a store in a transaction of its own."""

        def body(tx: Transaction) -> T:
            return function(tx, *args, **kwargs)

        return anyio.from_thread.run(self.database.write, body)

    def everything(self) -> dict[str, list[Row]]:
        """Return all rows of the jobs and threads that there may be."""

        def body(tx: Transaction) -> dict[str, list[Row]]:
            found = {f"{kind} {key}": tx.query("jobs.get", kind=kind, job_key=key) for kind, key in JOBS}
            for key in KEYS:
                found[f"output {key}"] = tx.query("outputs.get", thread_id=key)
                found[f"thread {key}"] = tx.query("threads.by_id", home=HOME, thread_id=key)
            return found

        return anyio.from_thread.run(self.database.read, body)

    def new_token(self) -> str:
        self.tokens += 1
        return f"token {self.tokens}"

    def worker(self, number: int) -> Worker:
        return self.workers[number % len(self.workers)]

    def granted(self, worker: Worker, claim: Claim, lease: int) -> None:
        """A claim was given: nobody may have held the job."""
        job = (claim.kind, claim.job_key)
        before = self.owners.get(job)
        assert before is None or before.until <= self.now, f"{job} was taken from a live owner"
        self.owners[job] = Held(claim, worker, self.now + lease)
        self.held.append(self.owners[job])

    def freed_dead(self, worker: Worker) -> None:
        """Whoever claims frees what dead processes of the same host held."""
        for held in self.owners.values():
            if held.worker.host == worker.host and not self.processes.lives(held.worker):
                held.until = min(held.until, self.now)

    def finish(self, held: Held, function: Callable[[Transaction], bool]) -> bool:
        """Finish a job; with a claim that was lost, nothing may change."""
        self.held.remove(held)
        owned = self.owners.get(held.job) is held
        before = None if owned else self.everything()
        assert owned == self.do(function)
        if before is None:
            del self.owners[held.job]
        else:
            assert before == self.everything()
        return owned

    def forget(self, *forgotten: Job) -> None:
        """Jobs were deleted by a rule."""
        for job in forgotten:
            self.successes.pop(job, None)
            if owner := self.owners.pop(job, None):
                owner.is_revoked = True

    def leave(self, worker: Worker, pid: int | None) -> None:
        """A process ended; another one comes up on its host."""
        self.held = [held for held in self.held if held.worker != worker]
        del self.processes.starts[worker.pid]
        self.workers[self.workers.index(worker)] = self.processes.begin(worker.host, pid)

    # rules

    @initialize()
    def begin(self) -> None:
        def body(tx: Transaction) -> None:
            outputs.clear(tx)
            tx.execute("threads.drop_home", home=HOME)

        self.do(body)
        self.processes.starts.clear()
        self.threads_are_talked_to(set(KEYS), 5)
        self.workers = [self.processes.begin(HOSTS[number % 2]) for number in range(4)]

    @rule(seconds=st.sampled_from([1, 60, LEASE - 1, LEASE, LONG_LEASE, 21_600, 86_400 * 3]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @rule(keys=st.sets(key, min_size=1), ago=st.sampled_from([0, 0, 0, 5, 400, 50_000]))
    def threads_are_talked_to(self, keys: set[str], ago: int) -> None:
        rows = [thread_row(key, self.now - ago) for key in sorted(keys)]
        self.do(lambda tx: tx.execute_many("threads.put", rows))
        self.threads |= keys

    @rule(who=number, most=st.integers(1, 4), background=st.booleans())
    def claim(self, who: int, most: int, background: bool) -> None:
        worker = self.worker(who)
        terms = extraction_jobs.ClaimTerms(
            HOME, max_claims=most, min_idle_s=0, max_running=CAP, lease=LEASE, background=background
        )
        claimed = self.do(extraction_jobs.claim_next, terms, worker, self.new_token, now=self.now)
        self.freed_dead(worker)
        assert len(claimed) <= most
        for one in claimed:
            self.granted(worker, one.claim, LEASE)

    @rule(who=number)
    def leases_run_out_and_another_takes_over(self, who: int) -> None:
        self.now += LONG_LEASE
        self.claim(who, 4, background=False)
        for root in ROOTS:
            self.claim_consolidation(who, root, background=False)

    @precondition(lambda self: any(self.owners.get(held.job) is not held for held in self.held))
    @rule()
    def who_lost_a_claim_tries_everything(self) -> None:
        before = self.everything()
        for held in [held for held in self.held if self.owners.get(held.job) is not held]:
            claim, found = held.claim, outputs.Output("of a lost claim", "")
            assert not self.do(jobs.heartbeat, claim, lease=LEASE, now=self.now)
            assert not self.do(jobs.fail, claim, "lost", now=self.now)
            assert not self.do(jobs.release, [claim])
            if claim.kind == EXTRACTION:
                assert not self.do(extraction_jobs.succeed, claim, found, root=ROOT, now=self.now)
                assert not self.do(extraction_jobs.succeed_without_output, claim, root=ROOT, now=self.now)
            else:
                assert not self.do(consolidation_jobs.succeed, claim, self.now, [], now=self.now)
                assert not self.do(consolidation_jobs.fail, claim, "lost", now=self.now)
        assert before == self.everything()

    @precondition(lambda self: self.threads)
    @rule(who=number, key=key, ahead=st.sampled_from([0, 0, 1, -1]))
    def claim_one(self, who: int, key: str, ahead: int) -> None:
        worker = self.worker(who)
        terms = extraction_jobs.ClaimTerms(HOME, max_claims=1, max_running=CAP, lease=LEASE)
        threads = self.everything()[f"thread {key}"]
        mark = (threads[0]["updated_s"] if threads else self.now) + ahead
        claim = self.do(rows.claim_one, key, mark, worker, self.new_token(), terms, now=self.now)
        self.freed_dead(worker)
        if isinstance(claim, Claim):
            self.granted(worker, claim, LEASE)

    @rule(who=number, root=st.sampled_from(ROOTS), background=st.booleans())
    def claim_consolidation(self, who: int, root: str, background: bool) -> None:
        worker = self.worker(who)
        claim = self.do(
            consolidation_jobs.claim,
            root,
            worker,
            self.new_token(),
            now=self.now,
            lease=LONG_LEASE,
            background=background,
        )
        self.freed_dead(worker)
        if isinstance(claim, Claim):
            self.granted(worker, claim, LONG_LEASE)

    @precondition(lambda self: self.held)
    @rule(which=number)
    def heartbeat(self, which: int) -> None:
        held = self.held[which % len(self.held)]
        owned = self.owners.get(held.job) is held
        lease = LEASE if held.claim.kind == EXTRACTION else LONG_LEASE
        kept = owned and (held.claim.kind == CONSOLIDATION or held.until > self.now)
        before = None if kept else self.everything()
        assert kept == self.do(jobs.heartbeat, held.claim, lease=lease, now=self.now)
        if kept:
            held.until = self.now + lease
        else:
            assert before == self.everything()

    @precondition(lambda self: self.held)
    @rule(which=number, is_empty=st.booleans())
    def succeed(self, which: int, is_empty: bool) -> None:
        held = self.held[which % len(self.held)]
        if held.claim.kind == CONSOLIDATION:
            self.consolidated(held)
            return
        claim, text = held.claim, "" if is_empty else f"learned with {held.claim.token}"
        found = outputs.Output(text, text)
        if self.finish(held, lambda tx: extraction_jobs.succeed(tx, claim, found, root=ROOT, now=self.now)):
            self.succeeded(held.job, claim.watermark)
            if claim.watermark >= self.outputs.get(claim.job_key, (-1, ""))[0]:
                self.outputs[claim.job_key] = (claim.watermark, text)

    @precondition(lambda self: any(held.claim.kind == EXTRACTION for held in self.held))
    @rule(which=number)
    def succeed_without_output(self, which: int) -> None:
        some = [held for held in self.held if held.claim.kind == EXTRACTION]
        held = some[which % len(some)]
        claim = held.claim
        if self.finish(held, lambda tx: extraction_jobs.succeed_without_output(tx, claim, root=ROOT, now=self.now)):
            self.succeeded(held.job, claim.watermark)
            self.outputs.pop(claim.job_key, None)

    def consolidated(self, held: Held) -> None:
        def body(tx: Transaction) -> bool:
            chosen = outputs.select(tx, HOME, limit=4, max_unused_days=30)
            snapshot = [(row["thread_id"], row["source_updated_at"]) for row in chosen]
            return consolidation_jobs.succeed(tx, held.claim, held.claim.watermark, snapshot, now=self.now)

        if self.finish(held, body):
            self.succeeded(held.job, held.claim.watermark)

    def succeeded(self, job: Job, watermark: int) -> None:
        self.successes[job] = max(self.successes.get(job, 0), watermark)

    @precondition(lambda self: self.held)
    @rule(which=number, delay=st.sampled_from([0, 3_600]))
    def fail(self, which: int, delay: int) -> None:
        held = self.held[which % len(self.held)]
        failing = consolidation_jobs.fail if held.claim.kind == CONSOLIDATION else jobs.fail
        self.finish(held, lambda tx: failing(tx, held.claim, "reason", now=self.now, delay=delay))

    @precondition(lambda self: self.held)
    @rule(which=number)
    def give_back(self, which: int) -> None:
        held = self.held[which % len(self.held)]
        self.finish(held, lambda tx: jobs.release(tx, [held.claim]) == 1)

    @rule(who=number)
    def orderly_exit(self, who: int) -> None:
        worker = self.worker(who)
        mine = [held for held in self.held if held.worker == worker]
        owned = [held for held in mine if self.owners.get(held.job) is held]
        assert len(owned) == self.do(jobs.release, [held.claim for held in mine])
        for held in owned:
            del self.owners[held.job]
        self.leave(worker, None)

    @rule(who=number, same_pid=st.booleans())
    def crash(self, who: int, same_pid: bool) -> None:
        worker = self.held[who % len(self.held)].worker if self.held else self.worker(who)
        self.leave(worker, worker.pid if same_pid else None)

    @rule(key=key, mode=st.sampled_from(["enabled", "enabled", "disabled"]))
    def mode_changes(self, key: str, mode: str) -> None:
        self.do(lambda tx: tx.execute("threads.set_mode", thread_id=key, memory_mode=mode))

    @rule(key=key)
    def pollute(self, key: str) -> None:
        self.do(outputs.pollute, key, root=ROOT, now=self.now)

    @rule(key=key, use=st.sampled_from(["retrieved", "injected", "cited"]))
    def use_output(self, key: str, use: usage.Use) -> None:
        assert (key in self.outputs) == self.do(usage.record_outputs, use, [key], now=self.now)

    @rule(key=key)
    def thread_is_deleted(self, key: str) -> None:
        def body(tx: Transaction) -> bool:
            deleted = outputs.delete_thread(tx, key, root=ROOT, now=self.now)
            tx.execute("threads.drop", home=HOME, path=thread_row(key, 0)["path"])
            return deleted

        assert (self.outputs.pop(key, None) is not None) == self.do(body)
        self.threads.discard(key)
        self.forget((EXTRACTION, key))

    @rule(really=st.integers(0, 2))
    def everything_is_cleared(self, really: int) -> None:
        if not really:
            self.do(outputs.clear)
            self.outputs.clear()
            self.forget(*JOBS)

    # what always holds

    @invariant()
    def the_rows_are_as_the_rules_say(self) -> None:
        rows = self.everything()
        stored = {key: rows[f"output {key}"] for key in KEYS}
        assert self.outputs == {
            key: (found[0]["source_updated_at"], found[0]["raw_memory"]) for key, found in stored.items() if found
        }
        running: dict[Job, tuple[str, int]] = {}
        for job in JOBS:
            for row in rows[" ".join(job)]:
                assert (row["last_success_watermark"] or 0) == self.successes.get(job, 0)
                if jobs.is_running(row, self.now):
                    running[job] = (row["ownership_token"], row["lease_until"])
        live = {job: held for job, held in self.owners.items() if held.until > self.now}
        assert running == {job: (held.claim.token, held.until) for job, held in live.items()}
        assert sum(job[0] == EXTRACTION for job in live) <= CAP

    @invariant()
    def nobody_shares_a_job(self) -> None:
        alive = [held for held in self.held if held.until > self.now and not held.is_revoked]
        assert all(count == 1 for count in Counter(held.job for held in alive).values())

    def teardown(self) -> None:
        """In the end, one worker who goes on until nothing is eligible has learned all that may be learned."""
        if not self.workers:
            return
        self.now += LONG_LEASE
        worker = self.workers[0]
        terms = extraction_jobs.ClaimTerms(HOME, max_claims=2, min_idle_s=0, max_running=CAP, background=False)
        while claimed := self.do(extraction_jobs.claim_next, terms, worker, self.new_token, now=self.now):
            for one in claimed:
                assert self.do(extraction_jobs.succeed_without_output, one.claim, root=ROOT, now=self.now)
        rows = self.everything()
        for key in KEYS:
            for thread in rows[f"thread {key}"]:
                assert not self.may_be_learned(thread, rows[f"{EXTRACTION} {key}"], rows[f"output {key}"])

    def may_be_learned(self, thread: Row, job: list[Row], output: list[Row]) -> bool:
        mark = thread["updated_s"]
        known = max(
            [-1, *(row["last_success_watermark"] or -1 for row in job), *(row["source_updated_at"] for row in output)]
        )
        spent = any(row["retry_remaining"] <= 0 and mark <= (row["input_watermark"] or -1) for row in job)
        is_open = thread["memory_mode"] == "enabled" and mark >= self.now - 30 * 86_400
        return is_open and mark > known and not spent


async def run_histories(database: Database, monkeypatch: pytest.MonkeyPatch, chosen: settings) -> None:
    processes = Processes()
    monkeypatch.setattr(jobs, "process_start", processes.starts.get)

    def run() -> None:
        machine: Any = lambda: Histories(database, processes)  # noqa: E731 (a factory is what is asked for)
        run_state_machine_as_test(machine, settings=chosen)

    await anyio.to_thread.run_sync(run)


async def test_any_history_keeps_the_promises(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await run_histories(database, monkeypatch, settings())


@pytest.mark.soak
async def test_any_long_history_keeps_the_promises(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await run_histories(database, monkeypatch, settings(max_examples=400, stateful_step_count=100))

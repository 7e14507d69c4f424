"""Phase 1: sessions one by one, each to what it taught.

A batch of sessions is claimed, read and extracted. What came of a session is stored when it is there, together with
what else came in the same moment; whoever stops the work keeps what was read. A heartbeat keeps the claims while the
work goes on; a claim that was lost meanwhile stores nothing. What fails is noted with its reason and
tried again later; it never stops the others. What does not have the shape that consolidation reads is a failure, not a
memory.

What is not the fault of a session stops the run and costs no session a try: a spent budget, a key that is refused, an
account with nothing left, a server that asks to wait longer than the run may last, a database that is away. So does a
server that fails again and again (`CircuitBreaker`); the sessions that it failed on count as failed.

The embedded extractor is a plain function of a file: where there is much to read, processes run it on all cores.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import anyio
import anyio.to_process
import anyio.to_thread
import msgspec

from commonplace.config import Settings
from commonplace.errors import CommonplaceError, StateError
from commonplace.learning import select
from commonplace.learning.extract.circuit_breaker import NOBODYS_FAULT, CircuitBreaker
from commonplace.learning.extract.rules import RuleExtractor
from commonplace.learning.extract.session_reading import Extractor, SessionReading, extract_embedded, read_session
from commonplace.memory.edits import removal
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.files import output_shape
from commonplace.state import extraction_jobs, jobs, outputs, projects
from commonplace.state.database import Database, Row, Transaction
from commonplace.state.extraction_jobs import ExtractionClaim
from commonplace.state.jobs import Claim, Worker

_BATCH: Final = 32
"""How many sessions are claimed together."""
_LARGE_BATCH: Final = 128
"""The same for the embedded reader: at the end of each batch, cores wait for the one that reads the last session."""
Progress = Callable[[int, int], None]
"""Is told how many sessions, and how many bytes of them, were read."""
_MUCH: Final = 8_000_000
"""From so many bytes of sessions in a batch on, processes are worth their start."""
_STORED_EVERY: Final = 0.25
"""Seconds between two writes: a session that a model read is stored at once, many that rules read go together."""


class FailedExtraction(msgspec.Struct):
    """A session that could not be read this time."""

    thread_id: str
    reason: str


class ExtractionResult(msgspec.Struct):
    """The result of phase 1."""

    extracted: int = 0
    no_output: int = 0
    failed: list[FailedExtraction] = []
    stopped: str | None = None
    """Why nothing more was read although something may be left."""
    read_bytes: int = 0
    """The size of the files that were read."""

    @property
    def count(self) -> int:
        """How many sessions were looked at."""
        return self.extracted + self.no_output + len(self.failed)


class _SessionDeferred(msgspec.Struct, frozen=True):
    """A session is not read in this run; nothing is lost by that."""


_Results = dict[str, SessionReading | str | _SessionDeferred]
"""What came of each session, or why it could not be read."""


class ExtractionPhase(msgspec.Struct):
    """The settings and collaborators of phase 1."""

    settings: Settings
    database: Database
    extractor: Extractor
    worker: Worker
    background: bool = False
    current: str | None = None
    limit: int | None = None
    """How many sessions are read at most; a background start has a limit of its own."""
    since_s: int | None = None
    """Only sessions that went on after this are read, however old others may be."""
    use_processes: bool = False
    """Much is read on all cores. Processes import the main module, so only a program that knows it may ask for them."""
    ending: anyio.Event | None = None
    """Set: sessions that are being read are finished, and nothing more is begun."""

    @property
    def is_ending(self) -> bool:
        """Whether nothing more is to be begun."""
        return self.ending is not None and self.ending.is_set()


async def run(phase: ExtractionPhase, progress: Progress | None = None) -> ExtractionResult:
    """Extract until nothing is eligible; a background start stops at its limit."""
    done = ExtractionResult()
    limit = phase.settings.memory.max_rollouts_per_start if phase.background else phase.limit
    tried: set[str] = set()
    breaker = CircuitBreaker()
    while (limit is None or limit > 0) and breaker.why is None and not phase.is_ending:
        most = _LARGE_BATCH if isinstance(phase.extractor, RuleExtractor) else _BATCH
        batch = await _claim(phase, min(most, limit) if limit is not None else most, tried)
        if not batch:
            break
        tried.update(each.claim.job_key for each in batch)
        await _work(phase, batch, done, breaker, progress)
        if limit is not None:
            limit -= len(batch)
    done.stopped = breaker.why
    return done


async def _claim(phase: ExtractionPhase, count: int, tried: set[str]) -> list[ExtractionClaim]:
    """Claim some sessions; one that failed in this run is left for the next."""
    now = _now(phase)
    terms = select.claim_terms(
        phase.settings, background=phase.background, max_claims=count, current=phase.current, since_s=phase.since_s
    )

    def is_new(row: Row) -> bool:
        return row["thread_id"] not in tried and terms.wanted(row)

    def body(tx: Transaction) -> list[ExtractionClaim]:
        new = msgspec.structs.replace(terms, wanted=is_new)
        return extraction_jobs.claim_next(tx, new, phase.worker, lambda: secrets.token_hex(16), now=now)

    return await phase.database.write(body)


async def _work(
    phase: ExtractionPhase,
    batch: list[ExtractionClaim],
    done: ExtractionResult,
    breaker: CircuitBreaker,
    progress: Progress | None,
) -> None:
    """Extract a batch and store what came of it; whatever happens, no claim is left behind."""
    results: _Results = {}
    claims = [each.claim for each in batch]
    forgotten = await anyio.to_thread.run_sync(Forgotten.load, phase.settings.home)
    is_much = phase.use_processes and _cores() > 1 and sum(map(_size, batch)) >= _MUCH
    is_alone = isinstance(phase.extractor, RuleExtractor) and not is_much
    limiter = anyio.CapacityLimiter(1 if is_alone else phase.settings.memory.extract_concurrency)
    store = _ResultStore(phase, batch, results, done, progress)
    readings = _Readings(phase, forgotten, limiter, breaker, results, store, is_much=is_much)
    try:
        async with anyio.create_task_group() as heart:
            heart.start_soon(_beat, phase, claims, results)
            heart.start_soon(store.flush_regularly)
            async with anyio.create_task_group() as group:
                for each in batch:
                    group.start_soon(readings.read, each)
            heart.cancel_scope.cancel()
        await store.flush()
    except BaseException:
        with anyio.CancelScope(shield=True), contextlib.suppress(StateError):  # the cause is told, not what it led to
            await store.flush()
            await phase.database.write(lambda tx: jobs.release(tx, claims))
        raise


class _ResultStore:
    """Stores the results of a batch as they come."""

    def __init__(
        self,
        phase: ExtractionPhase,
        batch: list[ExtractionClaim],
        results: _Results,
        done: ExtractionResult,
        progress: Progress | None,
    ) -> None:
        self._phase = phase
        self._batch = {each.claim.job_key: each for each in batch}
        self._results = results
        self._done = done
        self._progress = progress
        self._sizes = {each.claim.job_key: _size(each) for each in batch}
        self._stored: set[str] = set()
        self._lock = anyio.Lock()

    def show(self) -> None:
        """Show how many sessions are read."""
        if self._progress is not None:
            waiting = self._results.keys() - self._stored
            self._progress(self._done.count + len(waiting), self._done.read_bytes + self._bytes(waiting))

    def _bytes(self, keys: Iterable[str]) -> int:
        return sum(self._sizes[key] for key in keys)

    async def flush_regularly(self) -> None:
        """Store what is there, again and again until cancelled."""
        while True:
            await anyio.sleep(_STORED_EVERY)
            with anyio.CancelScope(shield=True), contextlib.suppress(StateError):  # the last flush tells of it
                await self.flush()

    async def flush(self) -> None:
        """Store every result that is not stored yet."""
        async with self._lock:
            fresh = {key: each for key, each in self._results.items() if key not in self._stored}
            if fresh:
                await _store(self._phase, [self._batch[key] for key in fresh], fresh, self._done)
                self._stored.update(fresh)
                self._done.read_bytes += self._bytes(fresh)


class _Readings(msgspec.Struct):
    """The sessions of a batch that are read side by side."""

    phase: ExtractionPhase
    forgotten: Forgotten
    limiter: anyio.CapacityLimiter
    breaker: CircuitBreaker
    results: _Results
    store: _ResultStore
    is_much: bool
    """There is so much to read that processes are worth their start."""

    async def read(self, each: ExtractionClaim) -> None:
        """Put what came of a session into the results."""
        await self._take_in(each)
        self.store.show()

    async def _take_in(self, each: ExtractionClaim) -> None:
        key = each.claim.job_key
        async with self.limiter:
            if self.breaker.why is not None or self.phase.is_ending:
                self.results[key] = _SessionDeferred()
                return
            try:
                found = await self._read(each)
                self.results[key] = found if isinstance(found, str) else output_shape.problem(found.output) or found
                self.breaker.succeeded()
            except NOBODYS_FAULT as error:
                self.breaker.failed(error)
                self.results[key] = _SessionDeferred()
            except CommonplaceError as error:
                self.breaker.failed(error)
                self.results[key] = error.sentence()
            except OSError as error:
                self.results[key] = f"{each.path}: {error.strerror}."
            except Exception as error:  # an extractor that breaks on one session must not cost the others
                self.results[key] = f"The extractor failed: {type(error).__name__}: {error}."

    async def _read(self, each: ExtractionClaim) -> SessionReading | str:
        """Return what came of a session, or why it could not be read."""
        path, extractor = Path(each.path), self.phase.extractor
        if not isinstance(extractor, RuleExtractor):
            is_last = each.claim.tries_left <= 1
            return await read_session(extractor, path, each.project, self.forgotten, is_last=is_last)
        if self.is_much:
            return await anyio.to_process.run_sync(
                extract_embedded, path, each.project, self.forgotten, cancellable=True
            )
        return await anyio.to_thread.run_sync(extract_embedded, path, each.project, self.forgotten)


def _cores() -> int:
    """Return on how many cores this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _size(each: ExtractionClaim) -> int:
    try:
        return Path(each.path).stat().st_size
    except OSError:  # reading it tells what is wrong
        return 0


async def _beat(phase: ExtractionPhase, claims: list[Claim], results: _Results) -> None:
    """Keep the claims that are still worked on."""
    lease = phase.settings.memory.extract_lease_seconds
    while True:
        await anyio.sleep(phase.settings.memory.extract_heartbeat_seconds)
        now = _now(phase)
        open_claims = [claim for claim in claims if claim.job_key not in results]

        def body(tx: Transaction, now: int = now, held: list[Claim] = open_claims) -> None:
            for claim in held:
                jobs.heartbeat(tx, claim, lease=lease, now=now)

        with contextlib.suppress(StateError):  # it may be there again for the next one
            await phase.database.write(body)


async def _store(
    phase: ExtractionPhase, batch: list[ExtractionClaim], results: _Results, done: ExtractionResult
) -> None:
    now, terms = _now(phase), select.claim_terms(phase.settings, background=False, max_claims=0)
    forgotten = await anyio.to_thread.run_sync(Forgotten.load, phase.settings.home)  # it may have grown meanwhile

    def body(tx: Transaction) -> ExtractionResult:
        stored = ExtractionResult()
        for each in batch:
            found, claim = results[each.claim.job_key], each.claim
            if isinstance(found, _SessionDeferred):
                jobs.release(tx, [claim])
            elif isinstance(found, str):
                if jobs.fail(tx, claim, found, now=now):
                    stored.failed = [*stored.failed, FailedExtraction(claim.job_key, found)]
            else:
                output = removal.output(found.output, forgotten)
                is_half = output.lessons is None and not (output.raw_memory and output.rollout_summary)
                if output.is_empty or is_half:
                    is_stored = extraction_jobs.succeed_without_output(tx, claim, root=terms.memory, now=now)
                else:
                    is_stored = extraction_jobs.succeed(tx, claim, output, root=terms.memory, now=now)
                    if is_stored and terms.memory != terms.home:
                        outputs.keep_person(tx, claim.job_key, terms.home)
                if is_stored:
                    projects.put_evidence(tx, {claim.job_key: msgspec.json.encode(found.evidence).decode()})
                stored.extracted += is_stored and output.has_text and not is_half
                stored.no_output += is_stored and (is_half or not output.has_text)
        return stored

    stored = await phase.database.write(body)
    done.extracted += stored.extracted
    done.no_output += stored.no_output
    done.failed = [*done.failed, *stored.failed]


def _now(phase: ExtractionPhase) -> int:
    return int(phase.settings.now().timestamp())

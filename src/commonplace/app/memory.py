"""What was learned, and the work on it, as surfaces ask for it."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import msgspec

from commonplace.errors import BadInput
from commonplace.memory.edits.history import Change
from commonplace.protocol.ids import wire_time
from commonplace.rollout import decisions
from commonplace.rollout.chain import read_head
from commonplace.sessions.resolve import resolve
from commonplace.state import usage
from commonplace.state.database import Transaction
from commonplace.state.usage import Limits

if TYPE_CHECKING:
    from commonplace.app.book import Book
    from commonplace.config import Settings
    from commonplace.learning.learn import Consent
    from commonplace.learning.run import Report
    from commonplace.memory.audit import Audit
    from commonplace.memory.edits.edits import Told
    from commonplace.memory.edits.forget import Forgot
    from commonplace.memory.edits.migration import Migrated
    from commonplace.memory.listing import Page, Why
    from commonplace.memory.recall.section import Prompt
    from commonplace.memory.recall.usage_counts import Receipt
    from commonplace.protocol.citations import Citation

# What reads sessions takes a while to import: each call brings only what it needs.
PHASES = (1, 2)
LIMIT = 200
MODES = ("enabled", "disabled")
SHOWN_FAILURES = 20


class FailedJob(msgspec.Struct):
    """An extraction that failed last."""

    thread_id: str
    reason: str
    retry_at: str | None


class Lock(msgspec.Struct):
    """A claim with a live lease, and who holds it."""

    kind: str
    key: str
    worker: str
    until: str


class Cost(msgspec.Struct):
    """What models cost today for one kind of work, and what they may cost (None: no limit)."""

    model: str
    requests: int
    tokens: int
    seconds: float
    run: Limits
    """Of one run."""
    day: Limits
    """Of one day (UTC)."""


class Status(msgspec.Struct):
    """How memory is doing (the JSON of `memory status`)."""

    threads: dict[str, int]
    jobs: dict[str, int]
    failed: list[FailedJob]
    outputs: int
    selected: int
    budget: dict[str, Cost]
    """By kind of job, for those that a model does or did today."""
    locks: list[Lock]


class Memory:
    """The memory of a book."""

    def __init__(self, book: Book) -> None:
        self._book = book

    async def run(self, *, phases: tuple[int, ...] = PHASES, progress: Callable[[int], None] | None = None) -> Report:
        """Learn from every session that is eligible, and wait until that is done."""
        from commonplace.learning import run as learning

        return await learning.run(self._book, learning.Wish(phases), progress=progress)

    async def list(
        self, *, project: str | None = None, kind: str | None = None, limit: int = LIMIT, cursor: str | None = None
    ) -> Page:
        """Return some of what the memory holds, the most useful first (raises BadInput)."""
        from commonplace.memory import listing

        return await listing.page(self._book, project=project, kind=kind, limit=limit, cursor=cursor)

    async def why(self, text: str) -> Why:
        """Return what an entry rests on, in the words that taught it (raises BadInput)."""
        from commonplace.memory import listing

        return await listing.why(self._book, text)

    async def note(self, told: Told, folder: Path | None = None) -> Path:
        """Write down what a person wants remembered, changed or forgotten; return the note's file (raises BadInput)."""
        from commonplace.memory.edits import edits

        return await edits.note(self._book, told, folder or Path.cwd())

    async def forget(self, text: str, *, dry_run: bool = False) -> Forgot:
        """Forget an entry, or whatever holds a text, everywhere but in the ledgers (raises BadInput)."""
        from commonplace.memory.edits import forget as forgetting

        return await forgetting.forget(self._book, text, dry_run=dry_run)

    async def pin(self, text: str, *, pinned: bool = True) -> dict[str, Any]:
        """Keep an entry from ageing, or no longer (raises BadInput)."""
        from commonplace.memory.edits import edits

        return await edits.pin(self._book, text, pinned=pinned)

    async def history(self, entry: str | None = None) -> builtins.list[Change]:
        """Return how the memory changed, oldest first (raises BadInput)."""
        from commonplace.memory.edits import edits

        return await anyio.to_thread.run_sync(edits.changes, self._book, entry)

    async def reset(self) -> dict[str, int]:
        """Begin anew: nothing is learned, modes and what was forgotten stay (raises WorkspaceError)."""
        from commonplace.memory.edits import edits

        return await edits.reset(self._book)

    async def migrate(self, folder: Path) -> Migrated:
        """Take over a memory that another program, or an older version, left in a folder (raises BadInput)."""
        from commonplace.memory.edits import migration

        return await migration.migrate(self._book, folder)

    async def prompt(
        self,
        *,
        folder: Path | None = None,
        project: str | None = None,
        budget: int | None = None,
        tools: Collection[str] = (),
        count: bool = True,
    ) -> Prompt:
        """Return what to tell an agent that works in a folder, or on a project (raises BadInput)."""
        from commonplace.memory.recall import scoped_prompt

        return await scoped_prompt.prompt(
            self._book, folder=folder, scope=project, budget=budget, tools=tools, count=count
        )

    async def cited(self, said: str | Citation) -> Receipt:
        """Count what an answer cites; return what of it exists and what does not."""
        from commonplace.memory.recall import usage_counts

        return await usage_counts.cited(self._book, said)

    async def audit(self) -> Audit:
        """Return what is wrong with the memory; nothing is changed."""
        from commonplace.memory import audit_run

        return await audit_run.audit(self._book)

    async def evaluate(
        self, model: str, *, sets: Sequence[str] = (), limit: int | None = None, consent: Consent | None = None
    ) -> dict[str, Any]:
        """Return how well a model, or `embedded`, reads the gold set (raises BadInput, BadSetting, BudgetSpent)."""
        from commonplace.learning.evaluate import run as evaluating

        return await evaluating.run(self._book, model, sets=sets or evaluating.DEFAULT, limit=limit, consent=consent)

    async def status(self) -> Status:
        """Count threads, work, results and cost, as of now."""
        await (await self._book.index()).refresh(self._book.home)
        home, now = str(self._book.home.resolve()), int(self._book.settings.now().timestamp())
        return await (await self._book.database()).read(lambda tx: _status(tx, self._book.settings, home, now))

    async def set_mode(self, thread: str, mode: str) -> dict[str, Any]:
        """Decide whether memory may learn from a thread; the decision is kept beside the ledgers."""
        if mode not in MODES:
            raise BadInput(f"{mode!r} is not a mode.", hint="Use enabled or disabled.")
        target = await resolve(self._book, thread)
        _, meta = await anyio.to_thread.run_sync(read_head, target.path)
        moment = wire_time(self._book.settings.now())
        await anyio.to_thread.run_sync(
            lambda: decisions.append(self._book.home, "mode", moment, thread_id=meta.id, memory_mode=mode)
        )
        await (await self._book.index()).set_mode(meta.id, mode)
        return {"thread_id": meta.id, "memory_mode": mode}


def _status(tx: Transaction, settings: Settings, home: str, now: int) -> Status:
    states: dict[str, int] = {}
    for row in tx.query("jobs.states"):
        states[row["status"]] = states.get(row["status"], 0) + row["n"]
    failed = [
        FailedJob(row["job_key"], row["last_error"] or "", _time(row["retry_at"]))
        for row in tx.query("jobs.failed", limit=SHOWN_FAILURES)
    ]
    held = [
        Lock(row["kind"], row["job_key"], row["worker_id"], _time(row["lease_until"]) or "")
        for row in tx.query("jobs.leases", now=now)
    ]
    from commonplace.learning import providers

    spent: dict[str, Cost] = {}
    for kind, name in providers.NAMES.items():
        today = usage.spent(tx, kind, now=now)
        run, day = (providers.limits(settings, kind, span) for span in ("run", "day"))
        model = settings[f"memory.{name}_model"]
        if model != providers.EMBEDDED or today.requests:
            spent[kind] = Cost(model, today.requests, today.tokens, today.seconds, run, day)
    count = tx.query("outputs.count")[0]
    modes = {row["memory_mode"]: row["n"] for row in tx.query("threads.modes", home=home)}
    return Status(modes, states, failed, count["outputs"], int(count["selected"]), spent, held)


def _time(seconds: int | None) -> str | None:
    return None if seconds is None else wire_time(datetime.fromtimestamp(seconds, UTC))

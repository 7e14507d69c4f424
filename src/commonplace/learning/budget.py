"""What models may cost: asked before every request, noted after it.

Two limits, each on requests, tokens and time: of one run, counted here, and of one day, counted in the database for all
processes. Before a request its tokens are an estimate, and requests under way count with theirs, so that several at
once do not all slip below a limit that has room for one; afterwards what the server counted stands in the books. A
limit on requests is never passed, except by what a connection repeats by itself and, for a day's, by what other
processes have under way; one on tokens may also be passed by what the last answers were longer than estimated. Time is
that of the clock on the wall, from a run's first request to its last answer; whoever works asks how much is
`seconds_left` and stops there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

import anyio

from commonplace.errors import BudgetSpent
from commonplace.state import usage
from commonplace.state.database import Database
from commonplace.state.jobs import CONSOLIDATION, EXTRACTION
from commonplace.state.usage import Limits, SpentTotals

_NONE: Final = Limits()
_WORK: Final = {EXTRACTION: "reading sessions", CONSOLIDATION: "putting the memory together"}


class Spending(Protocol):
    """Decides whether a request may be made, and records its cost."""

    async def admit(self, tokens: int) -> None:
        """Admit a request of about so many tokens.

        Raises:
            BudgetSpent: it may not.
        """
        ...

    async def record(self, requests: int, tokens: int) -> None:
        """Record the cost of a request that was admitted for this task; call it however the request ended."""
        ...

    async def seconds_left(self) -> float | None:
        """Return how many seconds are left; None without a limit."""
        ...

    def time_refusal(self) -> BudgetSpent:
        """Return the error for work that was stopped because no time was left."""
        ...


class Unlimited:
    """No limits; only counts."""

    def __init__(self) -> None:
        self.total = SpentTotals()

    async def admit(self, tokens: int) -> None:
        """Admit every request."""

    async def record(self, requests: int, tokens: int) -> None:
        """Add the cost to the totals."""
        self.total.requests += requests
        self.total.tokens += tokens

    async def seconds_left(self) -> float | None:
        """Return None: there is no limit."""
        return None

    def time_refusal(self) -> BudgetSpent:
        """Return the refusal; nobody asks for it, because the time never runs out."""
        raise AssertionError


class Budget:
    """The limits of a run and of a day. One object serves one run, on one event loop."""

    def __init__(
        self,
        database: Database,
        now: Callable[[], int],
        *,
        run: Limits = _NONE,
        day: Limits = _NONE,
        kind: str = EXTRACTION,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total = SpentTotals()
        """What this run has cost."""
        self._database = database
        self._now = now
        self._run = run
        self._day = day
        self._kind = kind
        self._monotonic = monotonic
        self._began: float | None = None
        """When the first request was made."""
        self._nearest = "run"
        """Which limit on time ends first, as far as somebody asked."""
        self._open: dict[int, int] = {}
        """The estimates of requests under way, by the task that makes them."""
        self._books = anyio.Lock()
        """A request is under way or it is spent, never both or neither."""

    async def admit(self, tokens: int) -> None:
        """Admit a request of about so many tokens, and reserve them until its cost is recorded.

        Raises:
            BudgetSpent: a limit of the run or of the day has no room for it.
        """
        async with self._books:
            waiting, reserved = len(self._open), sum(self._open.values()) + tokens
            run = SpentTotals(self.total.requests + waiting + 1, self.total.tokens + reserved, self._elapsed())
            self._refuse_over("run", self._run, run)
            today = await self._today()
            day = SpentTotals(today.requests + waiting + 1, today.tokens + reserved, today.seconds + self._unnoted())
            self._refuse_over("day", self._day, day)
            self._began = self._monotonic() if self._began is None else self._began
            self._open[anyio.get_current_task().id] = tokens

    async def record(self, requests: int, tokens: int) -> None:
        """Record the cost of a request, here and in the database."""
        now = self._now()
        async with self._books:
            self._open.pop(anyio.get_current_task().id, None)
            self.total.requests += requests
            self.total.tokens += tokens
            cost = SpentTotals(requests, tokens, int(self._unnoted() * 1000) / 1000)
            self.total.seconds += cost.seconds
            await self._database.write(lambda tx: usage.spend(tx, self._kind, cost, now=now))

    async def seconds_left(self) -> float | None:
        """Return how many seconds are left; None without a limit."""
        today = await self._today()
        ends = {
            name: limit - used
            for name, limit, used in (
                ("run", self._run.seconds, self._elapsed()),
                ("day", self._day.seconds, today.seconds + self._unnoted()),
            )
            if limit is not None
        }
        if not ends:
            return None
        self._nearest = min(ends, key=ends.__getitem__)
        return max(ends[self._nearest], 0.0)

    def time_refusal(self) -> BudgetSpent:
        """Return the error for work that was stopped because no time was left."""
        limits = self._run if self._nearest == "run" else self._day
        return self._refusal(self._nearest, f"{limits.seconds or 0:,} seconds")

    async def _today(self) -> SpentTotals:
        if self._day == _NONE:
            return SpentTotals()
        now = self._now()
        return await self._database.read(lambda tx: usage.spent(tx, self._kind, now=now))

    def _elapsed(self) -> float:
        return 0.0 if self._began is None else self._monotonic() - self._began

    def _unnoted(self) -> float:
        """Return how many seconds are not recorded in the database yet."""
        return max(self._elapsed() - self.total.seconds, 0.0)

    def _refuse_over(self, limit: str, limits: Limits, used: SpentTotals) -> None:
        """Raise BudgetSpent if that would be too much; time may be used to its last second."""
        if limits.requests is not None and used.requests > limits.requests:
            raise self._refusal(limit, f"{limits.requests:,} requests")
        if limits.tokens is not None and used.tokens > limits.tokens:
            raise self._refusal(limit, f"{limits.tokens:,} tokens")
        if limits.seconds is not None and used.seconds >= limits.seconds:
            raise self._refusal(limit, f"{limits.seconds:,} seconds")

    def _refusal(self, limit: str, told: str) -> BudgetSpent:
        when = "It goes on in the next run." if limit == "run" else "It goes on tomorrow (UTC)."
        return BudgetSpent(
            f"What a {limit} may spend on {_WORK.get(self._kind, self._kind)} is used up: {told}.",
            hint=f"{when} Raise the limit to go on now.",
            limit=limit,
        )

"""What reading by a model may cost: asked before every request, noted after it.

Two limits, each on requests and on tokens: of one run, counted here, and of one day, counted in the database for all
processes. Before a request its tokens are an estimate, and requests under way count with theirs, so that several at
once do not all slip below a limit that has room for one; afterwards what the server counted stands in the books. A
limit on requests is never passed, except by what a connection repeats by itself and, for a day's, by what other
processes have under way; one on tokens may also be passed by what the last answers were longer than estimated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import anyio
import msgspec

from commonplace.pipeline.extraction.failures import BudgetSpent
from commonplace.state import usage
from commonplace.state.database import Database
from commonplace.state.usage import Limits

KIND: Final = "extract"
"""What the books call this kind of work."""
_NONE: Final = Limits()


class Spending(Protocol):
    """Says whether a request may be made, and takes note of what it cost."""

    async def allowed(self, tokens: int) -> None:
        """Return if a request of about so many tokens may be made now.

        Raises:
            BudgetSpent: it may not.
        """
        ...

    async def spent(self, requests: int, tokens: int) -> None:
        """Note what the request that was allowed to this task cost; call it whatever became of it."""
        ...


class Spent(msgspec.Struct):
    """What was spent so far."""

    requests: int = 0
    tokens: int = 0


class Unlimited:
    """No limits; only counts."""

    def __init__(self) -> None:
        self.total = Spent()

    async def allowed(self, tokens: int) -> None:
        """Allow everything."""

    async def spent(self, requests: int, tokens: int) -> None:
        """Count it."""
        self.total.requests += requests
        self.total.tokens += tokens


class Budget:
    """Limits of a run and of a day. One object is one run; it belongs to one event loop."""

    def __init__(
        self, database: Database, now: Callable[[], int], *, run: Limits = _NONE, day: Limits = _NONE, kind: str = KIND
    ) -> None:
        self.total = Spent()
        """What this run has cost."""
        self._database = database
        self._now = now
        self._run = run
        self._day = day
        self._kind = kind
        self._open: dict[int, int] = {}
        """The estimates of requests under way, by the task that makes them."""
        self._books = anyio.Lock()
        """A request is under way or it is spent, never both or neither."""

    async def allowed(self, tokens: int) -> None:
        """Return if a request of about so many tokens may be made now.

        Raises:
            BudgetSpent: a limit of the run or of the day has no room for it.
        """
        async with self._books:
            waiting, reserved = len(self._open), sum(self._open.values()) + tokens
            if _over(self._run.requests, self.total.requests + waiting + 1):
                raise _refusal("run", _told(Limits(requests=self._run.requests)))
            if _over(self._run.tokens, self.total.tokens + reserved):
                raise _refusal("run", _told(Limits(tokens=self._run.tokens)))
            if await self._is_day_over(waiting, reserved):
                raise _refusal("day", _told(self._day))
            self._open[anyio.get_current_task().id] = tokens

    async def _is_day_over(self, waiting: int, reserved: int) -> bool:
        if self._day == _NONE:
            return False
        # what is spent and what is under way together must leave room: the same as smaller limits on what is spent
        left = Limits(_less(self._day.requests, waiting), _less(self._day.tokens, reserved - 1))
        now = self._now()
        return await self._database.read(lambda tx: usage.is_spent(tx, self._kind, left, now=now))

    async def spent(self, requests: int, tokens: int) -> None:
        """Note what a request cost, here and in the database."""
        now = self._now()
        async with self._books:
            self._open.pop(anyio.get_current_task().id, None)
            self.total.requests += requests
            self.total.tokens += tokens
            await self._database.write(
                lambda tx: usage.spend(tx, self._kind, requests=requests, tokens=tokens, now=now)
            )


def _over(limit: int | None, wanted: int) -> bool:
    return limit is not None and wanted > limit


def _less(limit: int | None, by: int) -> int | None:
    return None if limit is None else limit - by


def _told(limits: Limits) -> str:
    told = [f"{limits.requests:,} requests" if limits.requests is not None else ""]
    told.append(f"{limits.tokens:,} tokens" if limits.tokens is not None else "")
    return " and ".join(part for part in told if part)


def _refusal(limit: str, told: str) -> BudgetSpent:
    when = "It goes on in the next run." if limit == "run" else "It goes on tomorrow (UTC)."
    return BudgetSpent(
        f"What a {limit} may spend on reading sessions is used up: {told}.",
        hint=f"{when} Raise the limit to go on now.",
        limit=limit,
    )

"""The rate-limit guard: what is left of a model's limits is for the person, the memory takes only from plenty. Pure.

It judges the newest snapshot that a session's server sent with an answer. Of Codex's service that is its main limit
(other ones have other headers, which are not read); of the others it is what they count, requests and tokens. What is
not known allows: a server that sends no limits has none that we could spare.
"""

from __future__ import annotations

from collections.abc import Iterable

from commonplace.models.base import Limit


def allows(limits: Iterable[Limit], least_percent: int, *, now: float) -> bool:
    """Say whether every limit has at least this share left; one that has begun anew since then has all of it."""
    most = 100 - min(max(least_percent, 0), 100)
    return all(_allows(limit, most, now) for limit in limits)


def _allows(limit: Limit, most: float, now: float) -> bool:
    if limit.resets_at is not None and limit.resets_at <= now:
        return True
    is_reached = limit.remaining is not None and limit.remaining <= 0
    return not is_reached and limit.used_percent <= most

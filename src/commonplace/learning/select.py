"""Which sessions memory learns from, and why it does not learn from the others.

Sessions that a person had with an agent, neither too old nor still going on, in a mode that allows it, not excluded by
settings, and changed since they were last read. Sub-agents, internal agents, ephemeral sessions and agents that read
sessions for us never count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Final

from commonplace.config import Settings
from commonplace.models import agents
from commonplace.projects import scope
from commonplace.state import home_identity
from commonplace.state.database import Row
from commonplace.state.extraction_jobs import DAY, HOUR, LEARNED_SOURCES, ClaimTerms

_QUIET: Final = 600
"""A session that was quiet for so many seconds has ended as far as a typed command is concerned."""


def claim_terms(
    settings: Settings,
    *,
    background: bool,
    max_claims: int,
    current: str | None = None,
    since_s: int | None = None,
) -> ClaimTerms:
    """Return what a start may claim; `since_s` sets the oldest session.

    The limits of age and idleness bind background starts. A command that a person typed reads sessions of any age, and
    those that were quiet for ten minutes.
    """
    age = settings.memory.max_rollout_age_days if background else None
    idle = settings.memory.min_rollout_idle_hours * HOUR
    if since_s is not None:
        age = max(0, -(-(int(settings.now().timestamp()) - since_s) // DAY))
    return ClaimTerms(
        home=home_identity.home_key(settings),
        memory=home_identity.memory_key(settings),
        max_claims=max_claims,
        max_age_days=age,
        min_idle_s=idle if background else min(idle, _QUIET),
        max_running=settings.memory.max_running,
        lease=settings.memory.extract_lease_seconds,
        background=background,
        current=current,
        wanted=_wanted(settings),
    )


def _wanted(settings: Settings) -> Callable[[Row], bool]:
    """Return a function that says whether the settings allow learning from a thread."""
    patterns = settings.memory.exclude

    def is_wanted(row: Row) -> bool:
        if _is_reader(row):
            return False
        where = {"project": row["project"], "cwd": row["cwd"], "path": row["path"]}
        return not scope.excluded(patterns, source=row["source"], **where)

    return is_wanted if patterns else lambda row: not _is_reader(row)


def _is_reader(row: Row) -> bool:
    """Say whether a thread is an agent that read sessions for us."""
    return PurePath(row["cwd"] or "").name.startswith(agents.MARK)


def left_out(rows: Iterable[Row], bounds: ClaimTerms, now: int) -> dict[str, int]:
    """Count the threads of a home that are not learned from, by reason."""
    found: dict[str, int] = {}
    for row in rows:
        reason = why_not(row, bounds, now)
        if reason is not None:
            found[reason] = found.get(reason, 0) + 1
    return found


def why_not(row: Row, bounds: ClaimTerms, now: int) -> str | None:
    """Return why a thread is not learned from now; None if it is."""
    if not row["is_root"] or row["source"] not in LEARNED_SOURCES or _is_reader(row):
        return "not_a_persons_session"
    if row["memory_mode"] != "enabled":
        return row["memory_mode"]
    if row["is_archived"]:
        return "archived"
    if not bounds.wanted(row):
        return "excluded"
    if row["updated_s"] <= row["learned_s"]:
        return "already_learned"
    if bounds.max_age_days is not None and row["updated_s"] < now - bounds.max_age_days * DAY:
        return "too_old"
    if row["updated_s"] > now - bounds.min_idle_s:
        return "too_recent"
    return None

"""Which thread started which sub-agent. The ledgers say so too; only that a sub-agent was closed stands here alone.

A database that was lost therefore knows no open sub-agent: a session is resumed without them, and its agent may open
each again by its id.
"""

from __future__ import annotations

from commonplace.state.database import Transaction


def put(tx: Transaction, home: str, parent_id: str, child_id: str, *, is_open: bool, now: int) -> None:
    """Store that an agent was started, opened again or closed."""
    tx.execute("agents.put", home=home, parent_id=parent_id, child_id=child_id, is_open=int(is_open), now=now)


def open_children(tx: Transaction, home: str, parent_id: str) -> list[str]:
    """Return the agents that a thread started and that nobody closed, oldest first."""
    return [str(row["child_id"]) for row in tx.query("agents.open_children", home=home, parent_id=parent_id)]


def below(tx: Transaction, home: str, thread_id: str, *, deep: bool = True) -> set[str]:
    """Return the sub-agents of a thread that are listed, closed or not; `deep`: also those that they started."""
    found: set[str] = set()
    waiting = [thread_id]
    while waiting:
        rows = tx.query("threads.children", home=home, parent_id=waiting.pop())
        fresh = {str(row["thread_id"]) for row in rows} - found
        found |= fresh
        waiting += fresh if deep else ()
    return found


def drop(tx: Transaction, home: str, thread_id: str) -> None:
    """Forget a thread that was deleted."""
    tx.execute("agents.drop", home=home, thread_id=thread_id)

"""The variables that a command inherits: everything but what looks like a secret by its name.

A key that a person set for this program is no business of a script that a model wrote. Names that a person allows are
kept, names that the settings call keys are taken out whatever they look like.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from commonplace.redact.names import Rank, rank

_KEY_ENDS: Final = ("_KEY", "_KEYS", "_COOKIE", "_DSN")
_NAMED: Final = frozenset({"AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "DATABASE_URL", "COOKIE"})
"""Names that say nothing of a secret and carry one."""
_QUIET: Final = {"PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb", "NO_COLOR": "1"}
"""Nobody sees a terminal: nothing should wait for a key or paint."""


def of_command(
    environment: Mapping[str, str], *, allowed: Collection[str] = (), withheld: Collection[str] = ()
) -> dict[str, str]:
    """Return the variables for a command."""
    kept = {name: value for name, value in environment.items() if name in allowed or not is_secret(name, withheld)}
    return kept | _QUIET


def is_secret(name: str, withheld: Collection[str] = ()) -> bool:
    """Say whether a variable's name tells of a secret."""
    upper = name.upper()
    if name in withheld or upper in _NAMED:
        return True
    found = rank(name.encode("utf-8", "replace"))
    return found >= Rank.TOKEN or (found is Rank.WEAK and upper.endswith(_KEY_ENDS))

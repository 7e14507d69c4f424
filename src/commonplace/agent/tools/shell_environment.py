"""The environment variables that a command inherits: all but those whose names or values look like a secret.

A script that a model wrote must not see the keys that a person set for this program. The variables that the settings
name as keys are left out whatever they look like, and whatever its name, so is one with a value that redaction would
change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from commonplace.redact import redact_all
from commonplace.redact.names import Rank, rank

_KEY_ENDS: Final = ("_KEY", "_KEYS", "_COOKIE", "_DSN")
_NAMED: Final = frozenset({"AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "DATABASE_URL", "COOKIE"})
"""Names that say nothing of a secret and carry one."""
_PLAIN: Final = frozenset({"", "0", "1", "true", "false"})
_QUIET: Final = {"PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb", "NO_COLOR": "1"}
"""Nobody sees a terminal: nothing should wait for a key or paint."""


def command_variables(environment: Mapping[str, str], withheld: Collection[str] = ()) -> dict[str, str]:
    """Return the variables for a command; `withheld` are those that the settings name as keys."""
    kept = {name: value for name, value in environment.items() if not is_secret(name, withheld)}
    names = [name for name in kept if kept[name] not in _PLAIN]
    assigned = [f"{name}={kept[name]}" for name in names]
    told = zip(names, assigned, redact_all(assigned), strict=True)
    changed = {name for name, text, clean in told if text != clean}
    return {name: value for name, value in kept.items() if name not in changed} | _QUIET


def is_secret(name: str, withheld: Collection[str] = ()) -> bool:
    """Return whether a variable's name looks like a secret."""
    upper = name.upper()
    if name in withheld or upper in _NAMED:
        return True
    found = rank(name.encode("utf-8", "replace"))
    return found >= Rank.TOKEN or (found is Rank.WEAK and upper.endswith(_KEY_ENDS))

"""Variables that are set before a command, as lines show them: without values that are secret by their names."""

from __future__ import annotations

import re
from typing import Final

from commonplace.patterns import regex

_SECRET_NAME: Final = regex(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|PRIVATE", re.IGNORECASE)
_PLACE_NAME: Final = regex(
    r"(?:\w{1,40}_)?(?:PATH|HOME|ROOT|CACHE|TMP|TEMP|TMPDIR)|GO(?:PATH|CACHE|MODCACHE|ROOT|BIN)|NVM_DIR|XDG_\w{1,40}"
)
_MAX_VALUE: Final = 40


def without_secret(assignment: str) -> str:
    """Return `NAME=value`, or `NAME=…` if the name says that the value is a secret."""
    name = assignment.partition("=")[0]
    return f"{name}=…" if _SECRET_NAME.search(name) else assignment


def is_place(name: str) -> bool:
    """Return whether a variable says where a program or its files are on one machine."""
    return _PLACE_NAME.fullmatch(name) is not None


def short_assignment(assignment: str) -> str:
    """Return `NAME=value`, or `NAME=…` for a value that is secret by name, long, or bound to one machine or moment."""
    name, _, value = assignment.partition("=")
    is_shown = len(value) <= _MAX_VALUE and not any(sign in value for sign in "$`/\n")
    return without_secret(assignment) if is_shown else f"{name}=…"

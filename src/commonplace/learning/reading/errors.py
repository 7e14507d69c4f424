"""What a failed command says: the lines that tell what went wrong, and whether that teaches anything."""

from __future__ import annotations

import re
from typing import Final

from commonplace.learning.reading import tables
from commonplace.learning.reading.findings import FindingEvidence, quote
from commonplace.learning.reading.literals import LiteralGate
from commonplace.learning.reading.session_view import ToolUse
from commonplace.memory.injection import is_injection
from commonplace.patterns import regex

_ERROR: Final = tables.pattern("error")
_SUMMARY: Final = tables.pattern("counting")
_HIDDEN: Final = tables.pattern("hidden_error", flags=re.MULTILINE)
_PIPED: Final = regex(r"\|\s*(?:tail|head|tee)\b[^|]*$")
_LOCKED: Final = tables.pattern("locked")
_PASSING: Final = tables.pattern("passing", flags=re.NOFLAG)
_MAY_PASS: Final = LiteralGate({"passing": [_PASSING.pattern]})
_NO_SUCH_PLACE: Final = regex(r"\bcd: [^\n]{0,400}(?:No such file|Not a directory|no such file)")
_STOPPED: Final = 130
"""The exit code of a command that Ctrl-C ended."""
_SEARCHES: Final = ("grep", "rg ", "test ", "[ ", "diff ", "git diff")
_MAX_LINE: Final = 300
"""Longer lines, in characters, are data and not messages."""


def lines(output: str, count: int = 2) -> str:
    """Return the lines of an output that tell best what went wrong; nothing that tries to steer its reader."""
    found = [line.strip() for line in output.split("\n") if line.strip()]
    telling = [line for line in found if _ERROR.search(line) and len(line) < _MAX_LINE and not is_injection(line)]
    better = [line for line in telling if not _SUMMARY.search(line)] or telling
    return " | ".join(quote(line, 160) for line in dict.fromkeys(better[-count:]))


def worked(call: ToolUse) -> bool:
    """Say whether a command worked: by its exit status, unless a pipe hid that and the output tells an error."""
    return bool(call.ok) and not (_PIPED.search(call.command) and _HIDDEN.search(call.output))


def is_nothing(call: ToolUse) -> bool:
    """Say whether a failure says nothing: a vain search, a stopped run, a lock of others, a folder spelt wrong."""
    if call.code == _STOPPED or call.command.startswith(_SEARCHES):
        return True
    if _LOCKED.search(call.output) or _NO_SUCH_PLACE.search(call.output):
        return True
    return call.code == 1 and (not call.output.strip() or "nothing to commit" in call.output)


def is_passing(call: ToolUse) -> bool:
    """Say whether a failure comes and goes by itself: a network, a registry, a runner."""
    lower = call.output.lower()
    return bool(_MAY_PASS.open_for(lower)) and bool(_PASSING.search(lower))


def evidence(failed: ToolUse, line: str) -> FindingEvidence:
    """Return a failed command as evidence."""
    return FindingEvidence(failed.at, f"{quote(failed.command, 200)} -> {line or 'failed'}", "verified by exit status")

"""What a call changed in files: which, and the lines it put in, in any agent's way of writing it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import msgspec

from commonplace.learning.reading import tables
from commonplace.learning.reading.findings import quote
from commonplace.learning.reading.session_view import ToolUse
from commonplace.patterns import regex
from commonplace.redact import redact_all

_FILE: Final = regex(r"\*\*\* (?:Update|Add|Delete) File: (.+)|^\+\+\+ b/(.+)", re.MULTILINE)
_EDITS: Final = tables.words("edit_tools")


class _EditInput(msgspec.Struct):
    file_path: str = ""
    patch: str = ""
    new_string: str = ""
    content: str = ""


def is_edit(call: ToolUse) -> bool:
    """Say whether a call changed files."""
    return _is_edit_tool(call.name) or "*** Begin Patch" in call.command


@lru_cache(maxsize=256)
def _is_edit_tool(name: str) -> bool:
    return name.lower().rpartition("__")[2] in _EDITS


def files(call: ToolUse) -> list[str]:
    """Return the files that a call changed, without secrets: a view may have left them in the arguments."""
    edit = _edit(call)
    named = [name.strip() for one, two in _FILE.findall(edit.patch) if (name := one or two)]
    return redact_all(named or ([edit.file_path] if edit.file_path else []))


def names(call: ToolUse) -> tuple[str, ...]:
    """Return the first few files that a call changed."""
    return tuple(quote(name, 60) for name in files(call)[:3])


def _edit(call: ToolUse) -> _EditInput:
    if "*** Begin Patch" in call.arguments and not call.arguments.lstrip().startswith("{"):
        return _EditInput(patch=call.arguments)
    try:
        return msgspec.json.decode(call.arguments, type=_EditInput)
    except (msgspec.DecodeError, RecursionError):
        return _EditInput(patch=call.arguments)

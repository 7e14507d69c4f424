"""What a session tells about the project of its folder, taken from its view (`projects.evidence`)."""

from __future__ import annotations

import posixpath
from typing import Final

import msgspec

from commonplace.learning.reading.session_view import SessionView, ToolUse
from commonplace.patterns import regex
from commonplace.projects import evidence
from commonplace.projects.evidence import CallTrace, FolderEvidence, SessionTrace

_PATCHED: Final = regex(r"\*\*\* (?:Update|Add|Delete) File: (\S.*)")


class _EditArguments(msgspec.Struct):
    file_path: str | None = None
    filePath: str | None = None  # noqa: N815 (as it is on the wire)
    path: str | None = None
    notebook_path: str | None = None
    target_file: str | None = None
    absolute_path: str | None = None
    patch: str | None = None
    input: str | None = None


_arguments: Final = msgspec.json.Decoder(_EditArguments)


def evidence_of(view: SessionView) -> FolderEvidence:
    """Return what a session tells about the folder that it started in, and about those that it moved to."""
    calls = [
        _trace(event, view.cwd)
        for event in view.events()
        if isinstance(event, ToolUse) and not event.is_memory and not event.refused
    ]
    return evidence.evidence_of(SessionTrace(view.cwd, view.branch, view.repository_url, view.commit_hash, calls))


def _trace(call: ToolUse, start: str) -> CallTrace:
    cwd = call.cwd or start
    folder = posixpath.join(cwd, call.folder) if call.folder else cwd
    return CallTrace(folder, call.command, _files(call), call.output)


def _files(call: ToolUse) -> tuple[str, ...]:
    """Return the files that the arguments of a call name."""
    if "*** Begin Patch" in call.command or call.arguments.startswith("*** Begin Patch"):
        return tuple(_PATCHED.findall(call.command or call.arguments))
    if call.command:
        return ()
    try:
        given = _arguments.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        return ()
    named = (given.file_path, given.filePath, given.path, given.notebook_path, given.target_file, given.absolute_path)
    patched = _PATCHED.findall(given.patch or given.input or "")
    return (*(name for name in named if name), *patched)

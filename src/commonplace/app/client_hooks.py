"""What Claude Code tells at the start and the end of a session, and what we do then.

At the start the session gets the section of its folder's project, marked as memory by how it begins, so that it is
never learned again. At the end the session is imported. Both read what the client says as hints: fields that are
missing or wrong are as good as absent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec


class HookInput(msgspec.Struct, frozen=True):
    """The part of a hook's input that matters here."""

    cwd: Path | None = None
    transcript: Path | None = None


def parse(data: bytes) -> HookInput:
    """Return what a hook was told; nothing of it if that is not JSON."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return HookInput()
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return HookInput(_path(fields.get("cwd")), _path(fields.get("transcript_path")))


def _path(value: Any) -> Path | None:
    usable = isinstance(value, str) and value.startswith("/") and "\0" not in value
    return Path(value) if usable else None


async def start_section(told: HookInput, notes: bool) -> str:
    """Return the section for a session that begins and may write notes or not; nothing when there is no memory."""
    from commonplace.app import book as books
    from commonplace.memory.recall import scoped_prompt

    async with books.open() as book:
        tools = ("list", "read", "search", "find", *(("add_ad_hoc_note",) if notes else ()))
        made = await scoped_prompt.prompt(book.memory_store, folder=told.cwd, count=True, tools=tools)
    return made.text


async def import_ended(told: HookInput) -> None:
    """Import a session that has ended."""
    from commonplace.app import book as books
    from commonplace.sessions import imports

    if told.transcript is None or not told.transcript.is_file():
        return
    async with books.open() as book:
        chosen = imports.choose("claude-code", [told.transcript], book.state.environment)
        await book.importer.run(chosen)

"""The hooks of Claude Code: what we answer at the start and do at the end of a session.

At the start the session gets the memory section of its folder's project; the section's first words mark it as memory,
so that it is never learned again. At the end the session is imported. Both treat the client's input as hints: fields
that are missing or wrong count as absent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec


class HookInput(msgspec.Struct, frozen=True):
    """The fields of a hook's input that are used here."""

    cwd: Path | None = None
    transcript: Path | None = None


def parse(data: bytes) -> HookInput:
    """Return the input of a hook; an empty one if it is not JSON."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return HookInput()
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return HookInput(_path(fields.get("cwd")), _path(fields.get("transcript_path")))


def _path(value: Any) -> Path | None:
    usable = isinstance(value, str) and value.startswith("/") and "\0" not in value
    return Path(value) if usable else None


async def start_section(hook: HookInput, notes: bool) -> str:
    """Return the memory section for a session that begins, with or without notes; empty if there is no memory."""
    from commonplace.app import book as books
    from commonplace.memory.recall import scoped_prompt

    async with books.open() as book:
        tools = ("list", "read", "search", "find", *(("add_ad_hoc_note",) if notes else ()))
        made = await scoped_prompt.prompt(book.memory_store, folder=hook.cwd, count=True, tools=tools)
    return made.text


async def import_ended(hook: HookInput) -> None:
    """Import a session that has ended."""
    from commonplace.app import book as books
    from commonplace.sessions import imports

    if hook.transcript is None or not hook.transcript.is_file():
        return
    async with books.open() as book:
        chosen = imports.choose("claude-code", [hook.transcript], book.state.environment)
        await book.importer.run(chosen)

"""The entries that an agent may be given: those of the memory store, or what another program wrote into MEMORY.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio.to_thread
import msgspec

from commonplace.errors import StateError
from commonplace.memory.entries import GLOBAL, Entry
from commonplace.memory.files import existing_handbook, handbook, raw_memories, skills, validation
from commonplace.memory.files.handbook import HandbookBlock
from commonplace.memory.recall import receipts
from commonplace.memory.store import KnownEntry, MemoryStore
from commonplace.memory.workspace import layout
from commonplace.patterns import regex
from commonplace.projects.identity import Repositories

_CWD: Final = regex(r"^applies_to:.*?\bcwd=([^;,]+)")


async def known_entries(store: MemoryStore) -> list[KnownEntry]:
    """Return the entries of the memory, from the files if the database fails; also those that another program wrote."""
    try:
        found = await store.known_entries()
        if await store.is_mirrored():
            return found
    except StateError as error:
        await store.home.degrade(str(error).rstrip("."))
        found = await store.known_entries()
    return await anyio.to_thread.run_sync(_told_by_others, store.home.path, found)


def _told_by_others(home: Path, entries: list[KnownEntry]) -> list[KnownEntry]:
    """Return the entries of a `MEMORY.md` that holds nothing of what its sessions taught: another program wrote it."""
    root = home / layout.FOLDER
    text = receipts.read(root, layout.MEMORY) or ""
    blocks = handbook.parse(text)[0]
    if (
        not any(block.lessons for block in blocks)
        or receipts.WorkspaceFiles(root, [each.entry for each in entries]).lessons()
    ):
        return entries
    taught = {each.thread_id: each for each in raw_memories.read(home)}
    by_file = {
        f"{layout.SUMMARIES}/{name}.md": taught[key] for key, name in raw_memories.stems(taught.values()).items()
    }
    look = Repositories()
    lines = text.split("\n")
    ends = [block.first - 1 for block in blocks[1:]] + [len(lines)]
    told: dict[str, Entry] = {}
    for block, end in zip(blocks, ends, strict=True):
        scope = block_scope(block, lambda cwd: look(cwd).identity or cwd) or GLOBAL
        for entry in existing_handbook.entries("\n".join(lines[block.first - 1 : end]), by_file):
            if not validation.is_unfit(entry.text):
                told.setdefault(entry.id, msgspec.structs.replace(entry, scope=scope))
    return [KnownEntry(entry) for entry in told.values()] or entries


def block_scope(block: HandbookBlock, project_of: Callable[[str], str]) -> str | None:
    """Return whom a block is for: as it says, else by the folder that it applies to; None if neither tells."""
    own = skills.declared_scope(block)
    if own is not None:
        return own
    cwd = cwd_of(block)
    return project_of(cwd) if cwd is not None else None


def cwd_of(block: HandbookBlock) -> str | None:
    """Return the folder that a block applies to, if it names one."""
    cwd = next((found[1].strip() for line in block.head if (found := _CWD.match(line.text))), "")
    return cwd if cwd.startswith("/") else None

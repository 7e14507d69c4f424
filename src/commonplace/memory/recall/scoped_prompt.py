"""The prompt section of a folder or a project: which scope that is, what is known there, and counting what was told.

The memory is asked as it is: rows if there are any, else the files. A database that is locked or missing costs the
counting, never the section.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio.to_thread
import msgspec

from commonplace.errors import BadInput, CommonplaceError, StateError
from commonplace.memory import listing
from commonplace.memory.entries import GLOBAL, Entry
from commonplace.memory.files import handbook, raw_memories, skills
from commonplace.memory.files.handbook import Block
from commonplace.memory.listing import Known
from commonplace.memory.recall import receipts, section
from commonplace.memory.recall.section import Material, Prompt
from commonplace.memory.workspace import layout, staging
from commonplace.projects.identity import Repositories, identify
from commonplace.redact import redact
from commonplace.rollout import decisions
from commonplace.state import entries as rows

if TYPE_CHECKING:
    from commonplace.app.book import Book

_PROFILE: Final = re.compile(r"^## User Profile[ \t]*\n(.*?)(?=^#{1,2} |\Z)", re.MULTILINE | re.DOTALL)
_NOTHING: Final = ("", "v1", "Nothing is known yet.")
"""Lines of a summary that say nothing."""
_CWD: Final = re.compile(r"^applies_to:.*?\bcwd=([^;,]+)")
_TOLD: Final = "told by the memory"
"""How what was taken from somebody else's memory says where it comes from."""
_MOST: Final = 10**9


async def prompt(
    book: Book,
    *,
    folder: Path | None = None,
    scope: str | None = None,
    budget: int | None = None,
    count: bool = False,
    tools: Collection[str] = (),
) -> Prompt:
    """Return the section for a project (`scope`: a name, an identity or a folder), else for a folder's.

    `tools` are the memory tools that the agent has; `count` notes that it was told.

    Raises:
        BadInput: no project is called that, or the budget is below zero.
    """
    limit = book.settings["memory.prompt_tokens"] if budget is None else budget
    if limit < 0:
        raise BadInput("A budget cannot be below zero.", hint="Give a number of tokens.")
    if not book.settings["memory.use"]:
        return Prompt("", 0, None, [], [])
    found = [each.entry for each in await known(book)]
    place = await scope_of(book, folder or Path.cwd(), scope, {entry.scope for entry in found})
    material = await anyio.to_thread.run_sync(_material, book.home, place, found, tools)
    made = section.build(material, min(limit, _MOST))
    if count and made.included:
        from commonplace.memory.recall import usage_counts

        told = set(made.included)
        await usage_counts.count(book, "injected", [entry for entry in found if entry.id in told])
    return made


async def known(book: Book) -> list[Known]:
    """Return what the memory holds, from the files if the database fails; also what another program wrote there."""
    try:
        found = await listing.known(book)
        if await _is_mirrored(book):
            return found
    except StateError as error:
        await book.degrade(str(error).rstrip("."))
        found = await listing.known(book)
    return await anyio.to_thread.run_sync(_told_by_others, book.home, found)


async def _is_mirrored(book: Book) -> bool:
    if not book.has_index():
        return False
    root = str(book.home.resolve())
    return await (await book.database()).read(lambda tx: rows.mirrored(tx, root)) is not None


def _told_by_others(home: Path, found: list[Known]) -> list[Known]:
    """Return what `MEMORY.md` says if it holds nothing of what its sessions taught: then somebody else wrote it."""
    root = home / layout.FOLDER
    text = receipts.read(root, layout.MEMORY) or ""
    blocks = handbook.parse(text)[0]
    if not any(block.lessons for block in blocks) or receipts.Shelf(root, [each.entry for each in found]).lessons():
        return found
    from commonplace.memory.files import existing_handbook, validation

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
    return [Known(entry) for entry in told.values()] or found


async def scope_of(book: Book, folder: Path, named: str | None, scopes: Collection[str]) -> str:
    """Return the scope that a project's name means, else that of a folder: as the disk says, as threads noted there.

    Raises:
        BadInput: no project is called that.
    """
    if named is not None:
        return await listing.scope_of(book, named, scopes)
    place = folder.expanduser().absolute()
    identity = await anyio.to_thread.run_sync(identify, place)
    if identity in scopes:
        return str(identity)
    try:
        noted = await _noted(book, place)
    except StateError:
        noted = None
    if noted is not None and (noted in scopes or identity is None):
        return noted  # a repository that was renamed since is known by its old name until memory is made anew
    return identity or str(await anyio.to_thread.run_sync(place.resolve))


async def _noted(book: Book, place: Path) -> str | None:
    """Return the project that threads in a folder belong to, if it is not just the folder."""
    if not book.has_index():
        return None
    home = str(book.home.resolve())
    rows = await (await book.database()).read(lambda tx: tx.query("threads.current", home=home))
    ways = {str(place), str(place.resolve())}
    newest = max((row for row in rows if row["cwd"] in ways), key=lambda row: row["updated_s"], default=None)
    return newest["project"] or None if newest is not None else None


def _material(home: Path, scope: str, found: list[Entry], tools: Collection[str]) -> Material:
    from commonplace.learning.consolidate.handbook import titles

    root = home / layout.FOLDER
    with contextlib.suppress(CommonplaceError, OSError):  # whoever writes next puts it right
        staging.recover(root)
    shelf = receipts.Shelf(root, found)
    lines: dict[str, int] = {}
    for number, ids in shelf.lessons().items():
        for name in ids:
            lines.setdefault(name, number)
    summary = shelf.text(layout.SUMMARY) or ""
    profile = _PROFILE.search(summary)
    told = " ".join(profile[1].split()) if profile else ""
    look = Repositories()
    offered = skills.read(root, lambda block: block_scope(block, lambda cwd: look(cwd).identity or cwd))
    others = sorted({entry.scope for entry in found} - {GLOBAL, scope})
    names = titles([*others, scope])
    return Material(
        root=str(root),
        scope=scope,
        entries=found,
        lines=lines,
        profile="" if told in _NOTHING else told,
        summary=_visible(scope, shelf, look) if _is_others(found) else [],
        skills=[each for each in offered if each.is_for(scope)],
        others=[names[each] for each in others],
        tools=tools,
        clean=cleaner(home),
    )


def _is_others(found: list[Entry]) -> bool:
    """Say whether somebody else wrote the memory, or a part of it."""
    return not found or any(source.how.startswith(_TOLD) for entry in found for source in entry.sources)


def cleaner(home: Path) -> Callable[[str], str]:
    """Return what takes secrets and forgotten words out of a text."""
    lines = decisions.forgotten(home)
    if not lines:
        return redact
    from commonplace.memory.edits.forgotten import Forgotten

    forgotten = Forgotten(lines)
    return lambda text: forgotten.without(redact(text))


def block_scope(block: Block, project_of: Callable[[str], str]) -> str | None:
    """Return whom a block is for: as it says, else by the folder that it applies to; None if neither tells."""
    own = skills.declared(block)
    if own is not None:
        return own
    cwd = cwd_of(block)
    return project_of(cwd) if cwd is not None else None


def cwd_of(block: Block) -> str | None:
    """Return the folder that a block applies to, if it names one."""
    cwd = next((found[1].strip() for line in block.head if (found := _CWD.match(line.text))), "")
    return cwd if cwd.startswith("/") else None


def _visible(scope: str, shelf: receipts.Shelf, look: Repositories) -> list[str]:
    """Return what a summary that somebody else wrote says to a project; what it says of others stays out."""
    from commonplace.memory.recall import visibility

    summary = shelf.text(layout.SUMMARY) or ""
    if not summary:
        return []
    view = visibility.View(scope, lambda cwd: look(cwd).identity)
    blanked = visibility.blanked(view, layout.SUMMARY, summary, visibility.Beside(shelf.text))
    from commonplace.memory.files import validation

    told = [line.strip() for line in _PROFILE.sub("", blanked).split("\n") if not validation.is_unfit(line)]
    return told if any(line not in _NOTHING and not line.startswith("#") for line in told) else []

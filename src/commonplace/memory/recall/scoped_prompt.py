"""The memory section of a prompt, for a folder or a project; entries that it includes count as injected.

Entries come from rows if there are any, else from the files. A database that is locked or missing costs the counting,
never the section.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

import anyio.to_thread

from commonplace.errors import BadInput, CommonplaceError
from commonplace.memory import audience
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.entries import GLOBAL, Entry
from commonplace.memory.files import skills, validation
from commonplace.memory.recall import known_entries, receipts, section, usage_counts, visibility
from commonplace.memory.recall.section import Prompt, SectionInput
from commonplace.memory.store import MemoryStore
from commonplace.memory.workspace import layout, staging
from commonplace.patterns import regex
from commonplace.projects import lookup
from commonplace.projects.identity import Repositories
from commonplace.projects.scope import short_names
from commonplace.redact import redact
from commonplace.rollout import decisions

_PROFILE: Final = regex(r"^## User Profile[ \t]*\n(.*?)(?:(?=^#{1,2} )|\Z)", re.MULTILINE | re.DOTALL)
_NOTHING: Final = ("", "v1", "Nothing is known yet.")
"""Lines of a summary that say nothing."""
_TOLD: Final = "told by the memory"
"""How what was taken from somebody else's memory says where it comes from."""
_MOST: Final = 10**9


async def prompt(
    store: MemoryStore,
    *,
    folder: Path | None = None,
    scope: str | None = None,
    budget: int | None = None,
    count: bool = False,
    tools: Collection[str] = (),
    cites: bool = False,
    only: bool = False,
    known: list[Entry] | None = None,
    place: str | None = None,
) -> Prompt:
    """Return the section for a project (`scope`: a name, an identity or a folder), else for a folder's.

    `tools` are the memory tools that the agent has; `cites` says that the agent takes citations out of its answers, so
    that it may be asked for them; `count` notes that it was told; `only` keeps the names of other projects out. `known`
    are all entries and `place` is the project's identity, if the caller has them.

    Raises:
        BadInput: no project is called that, or the budget is below zero.
    """
    limit = store.home.settings.memory.prompt_tokens if budget is None else budget
    if limit < 0:
        raise BadInput("A budget cannot be below zero.", hint="Give a number of tokens.")
    if not store.home.settings.memory.use:
        return Prompt("", 0, None, [], [])
    found = [each.entry for each in await known_entries.known_entries(store)] if known is None else known
    if place is None:
        scopes = {entry.scope for entry in found}
        place = await lookup.folder_scope(store.home, folder or Path.cwd(), scope, scopes)
    material = await anyio.to_thread.run_sync(_material, store.home.path, place, found, tools)
    material.cites = cites
    material.audience = await anyio.to_thread.run_sync(audience.of_prompt, store.home, folder or Path.cwd(), found)
    if material.audience.titles:
        material.profile = ""  # it tells where all of them work
    if only:
        material.others = []
    made = section.build(material, min(limit, _MOST))
    if count and made.included:
        told = set(made.included)
        await usage_counts.count(store, "injected", [entry for entry in found if entry.id in told])
    return made


async def best_lessons(
    store: MemoryStore, folder: Path, most_bytes: int, *, project: str | None = None
) -> tuple[str, str | None, list[str]]:
    """Return the best lessons for a folder or a project, a line each, within a number of bytes; the scope; their ids.

    Raises:
        BadInput: no project is called that.
    """
    if not store.home.settings.memory.use:
        return "", None, []
    entries = [each.entry for each in await known_entries.known_entries(store)]
    scope = await lookup.folder_scope(store.home, folder, project, {entry.scope for entry in entries})
    clean = cleaner(store.home.path)
    reader = await anyio.to_thread.run_sync(audience.of_prompt, store.home, folder, entries)
    lines: list[str] = []
    ids: list[str] = []
    for entry in entries:
        if not entry.is_told or (not entry.is_global and entry.scope != scope) or not reader.may_be_told(entry):
            continue
        line = f"- {section.harmless(clean(entry.text))}{reader.credit(entry)}"
        most_bytes -= len(line.encode()) + 1
        if most_bytes < 0:
            break
        lines.append(line)
        ids.append(entry.id)
    return redact("\n".join(lines)), scope, ids


def _material(home: Path, scope: str, entries: list[Entry], tools: Collection[str]) -> SectionInput:
    root = home / layout.FOLDER
    with contextlib.suppress(CommonplaceError, OSError):  # whoever writes next puts it right
        staging.recover(root)
    shelf = receipts.WorkspaceFiles(root, entries)
    lines: dict[str, int] = {}
    for number, ids in shelf.lessons().items():
        for name in ids:
            lines.setdefault(name, number)
    summary = shelf.text(layout.SUMMARY) or ""
    profile = _PROFILE.search(summary)
    told = " ".join(profile[1].split()) if profile else ""
    look = Repositories()
    offered = skills.read(root, lambda block: known_entries.block_scope(block, lambda cwd: look(cwd).identity or cwd))
    others = sorted({entry.scope for entry in entries} - {GLOBAL, scope})
    names = short_names([*others, scope])
    return SectionInput(
        root=str(root),
        scope=scope,
        entries=entries,
        lines=lines,
        profile="" if told in _NOTHING else told,
        summary=_visible(scope, shelf, look) if _is_others(entries) else [],
        skills=[each for each in offered if each.is_for(scope)],
        others=[names[each] for each in others],
        tools=tools,
        clean=cleaner(home),
    )


def _is_others(entries: list[Entry]) -> bool:
    """Say whether somebody else wrote the memory, or a part of it."""
    return not entries or any(source.how.startswith(_TOLD) for entry in entries for source in entry.sources)


def cleaner(home: Path) -> Callable[[str], str]:
    """Return what takes secrets and forgotten words out of a text."""
    lines = decisions.forgotten(home)
    if not lines:
        return redact
    forgotten = Forgotten(lines)
    return lambda text: forgotten.without_forgotten(redact(text))


def _visible(scope: str, shelf: receipts.WorkspaceFiles, look: Repositories) -> list[str]:
    """Return what a summary that somebody else wrote says to a project; what it says of others stays out."""
    summary = shelf.text(layout.SUMMARY) or ""
    if not summary:
        return []
    view = visibility.Visibility(scope, lambda cwd: look(cwd).identity)
    blanked = visibility.visible_text(view, layout.SUMMARY, summary, visibility.OwnershipFiles(shelf.text))
    told = [line.strip() for line in _PROFILE.sub("", blanked).split("\n") if not validation.is_unfit(line)]
    return told if any(line not in _NOTHING and not line.startswith("#") for line in told) else []

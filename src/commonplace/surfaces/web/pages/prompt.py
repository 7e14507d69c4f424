"""Prompt: what an agent would be told in a folder, line by line; what was left out; what another rank changes."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from commonplace.errors import BadInput
from commonplace.learning import entry_changes
from commonplace.learning.entry_changes import OrderEntries, PinEntry
from commonplace.memory.entries import Entry
from commonplace.memory.recall import known_entries, prompt_lines, scoped_prompt
from commonplace.memory.recall.prompt_lines import PromptLine
from commonplace.memory.recall.section import Prompt
from commonplace.surfaces.web import rendering
from commonplace.surfaces.web.access import visitor
from commonplace.surfaces.web.site import Site, Undoable

_REASONS: Final = {
    "budget": "no room within the budget",
    "other_project": "it belongs to another project",
    "doubtful": "doubtful: it waits for your review",
    "forgotten": "its words were forgotten",
}
_MOST_BUDGET: Final = 100_000
_LEFT: Final = 200
"""How many of the entries that were left out are shown."""


async def show(request: Request) -> Response:
    """Show the section of a project or a folder, and what trying another rank would change in it."""
    site: Site = request.app.state.site
    asked = request.query_params
    folder, project = asked.get("folder", "").strip(), asked.get("project", "")
    default = site.book.settings.memory.prompt_tokens
    wanted = asked.get("budget", "")
    budget = min(int(wanted), _MOST_BUDGET) if wanted.isdecimal() and len(wanted) < 9 else default
    store = site.book.memory_store
    known = await known_entries.known_entries(store)
    entries = [each.entry for each in known]
    counts = Counter(entry.scope for entry in entries if not entry.is_global)
    scopes = sorted(counts)
    if not folder and not project and scopes:
        project = max(scopes, key=lambda scope: counts[scope])
    told = await _section(site, folder, project, budget, entries)
    tried = asked.get("try", "")
    moved = _moved(entries, tried, asked.get("to", "")) if tried else None
    clean = site.cleaner()
    by_id = {each.entry.id: each for each in known}
    lines = prompt_lines.explained(told, entries, clean)
    values: dict[str, Any] = {
        "folder": folder,
        "project": project,
        "budget": budget,
        "told": told,
        "lines": lines,
        "beside": _neighbours(lines),
        "left": [
            {"id": each.id, "reason": _REASONS.get(each.reason, each.reason), "text": clean(by_id[each.id].entry.text)}
            for each in told.left_out
            if each.id in by_id and each.reason != "other_project"
        ][:_LEFT],
        "others": sum(each.reason == "other_project" for each in told.left_out),
        "names": site.project_names([*scopes, *([told.scope] if told.scope else [])]),
        "scopes": scopes,
        "trial": None,
    }
    if moved is not None and tried in by_id:
        after = await _section(site, folder, project, budget, moved)
        values["trial"] = {
            "entry": tried,
            "to": asked.get("to", ""),
            "text": clean(by_id[tried].entry.text),
            "version": entry_changes.version(by_id[tried]),
            "order": " ".join(_order(entries, moved, tried)),
            "lines": rendering.line_diff(told.text, after.text),
            "is_same": told.text == after.text,
            "tokens": after.tokens,
        }
    return rendering.page(request, "prompt.html", "prompt", values)


async def _section(site: Site, folder: str, project: str, budget: int, entries: list[Entry]) -> Prompt:
    """Return the section; nothing is counted, since nobody is told."""
    place = Path(os.path.expanduser(folder)) if folder else None  # noqa: PTH111 (an unknown user's stays as it is)
    if place is not None and (not place.is_absolute() or "\0" in folder):
        raise BadInput(f"{folder} is no whole path.", hint="Give the folder from the root on.")
    known = {entry.scope for entry in entries}
    return await scoped_prompt.prompt(
        site.book.memory_store,
        folder=place,
        scope=project or None if place is None and project not in known else None,
        place=project if place is None and project in known else None,
        budget=budget,
        known=entries,
    )


def _moved(entries: list[Entry], entry_id: str, to: str) -> list[Entry] | None:
    """Return the entries as they would be if one were pinned, or moved before or behind another of the section."""
    chosen = next((entry for entry in entries if entry.id == entry_id), None)
    if chosen is None:
        return None
    rest = [entry for entry in entries if entry.id != entry_id]
    if to == "pin":
        return [msgspec.structs.replace(chosen, pinned=True), *rest]
    side, _, name = to.partition(":")
    spot = next((place for place, entry in enumerate(rest) if entry.id == name), None)
    if spot is None or side not in ("before", "after"):
        return None
    spot += side == "after"
    return [*rest[:spot], chosen, *rest[spot:]]


def _neighbours(lines: list[PromptLine]) -> dict[str, tuple[str | None, str | None]]:
    """Return for each entry of a section the ones before and behind it below the same heading."""
    groups: list[list[str]] = [[]]
    for line in lines:
        if line.text.startswith("## "):
            groups.append([])
        elif line.entry is not None:
            groups[-1].append(line.entry)
    return {
        name: (group[place - 1] if place else None, group[place + 1] if place + 1 < len(group) else None)
        for group in groups
        for place, name in enumerate(group)
    }


def _order(before: list[Entry], after: list[Entry], entry_id: str) -> list[str]:
    """Return the entries between the old and the new place of one, in their new order: those that change places."""
    old, new = [entry.id for entry in before], [entry.id for entry in after]
    low, high = sorted((old.index(entry_id), new.index(entry_id)))
    return new[low : high + 1] if high > low else []


async def rank(request: Request) -> Response:
    """Pin an entry, or let it change places, as it was tried."""
    site: Site = request.app.state.site
    form = visitor(request.scope).form
    entry_id = form.get("entry", "")
    names = tuple(form.get("order", "").split())
    wanted = PinEntry(entry_id, pinned=True) if form.get("to") == "pin" else OrderEntries(entry_id, names)
    async with site.changing:
        changed = await site.book.changes.change(wanted, form.get("version", ""))
    text = "The rank is changed." if changed.entry else "It is stored, but other reasons count more for the order."
    name = site.note_undo(Undoable(text, changed.undo))
    kept = {key: form.get(key, "") for key in ("folder", "project", "budget")}
    return RedirectResponse(rendering.address("/prompt", done=name, **kept), 303)

"""Entry: the text, what it rests on in the words of the conversations, its history, its use, and its changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from commonplace.errors import BadInput
from commonplace.learning import entry_changes
from commonplace.memory import life
from commonplace.memory.entries import GLOBAL, SECTION_OF
from commonplace.memory.life import Life
from commonplace.surfaces.web import plots, rendering
from commonplace.surfaces.web.pages.memory import EntryRow, rows
from commonplace.surfaces.web.site import Site


async def show(request: Request) -> Response:
    """Show one entry, or what became of one that is gone."""
    site: Site = request.app.state.site
    entry_id = request.path_params["entry_id"]
    found = await life.life(site.book.memory_store, entry_id)
    if found is None:
        raise BadInput(f"No entry ever had the id {entry_id!r}.", hint="Memory lists what there is.")
    values = await entry_values(site, found)
    values["places"] = None
    if request.query_params.get("look") == "1" and found.known is not None:
        values["places"] = await life.appearances(site.book.memory_store, found.known.entry)
    return rendering.page(request, "entry.html", "memory", values)


async def entry_values(site: Site, found: Life) -> dict[str, Any]:
    """Return what the page of an entry shows, without secrets and forgotten words."""
    clean = site.cleaner()
    known = await site.book.memory_store.known_entries()
    scopes = sorted({each.entry.scope for each in known} | ({found.known.entry.scope} if found.known else set()))
    names = site.project_names(scopes)
    row: EntryRow | None = None
    others: list[EntryRow] = []
    if found.known is not None:
        (row,) = rows(site, [found.known], names, {})
        own = found.known.entry
        near = [each for each in known if each.entry.id != own.id and each.entry.scope == own.scope]
        near = [each for each in near if SECTION_OF[each.entry.kind] == SECTION_OF[own.kind]]
        others = rows(site, near[:200], names, {})
    sources = [
        {
            "link": each.link,
            "role": each.role,
            "time": each.time,
            "quote": clean(each.link.quote),
            "message": clean(each.message),
            "is_gone": not each.message and (each.link.path is None or not Path(each.link.path).exists()),
        }
        for each in found.sources
    ]
    changes = [
        {"change": each, "before": clean(each.before or ""), "after": clean(each.after or ""), "cause": each.cause}
        for each in reversed(found.changes)
    ]
    return {
        "entry_id": found.id,
        "row": row,
        "version": entry_changes.version(found.known) if found.known is not None else "",
        "by_hand": found.known is not None and found.known.entry.is_by_hand,
        "confidence": found.known.entry.confidence if found.known is not None else None,
        "sources": sources,
        "changes": changes,
        "uses": found.uses,
        "line": plots.timeline(found.moments, site.book.state.now(), clean),
        "words": plots.WORDS,
        "moments": [{"moment": each, "text": clean(each.text)} for each in found.moments],
        "others": others,
        "scopes": [(scope, names[scope]) for scope in [GLOBAL, *scopes] if row is None or scope != row.scope],
    }

"""Review: candidates and doubtful entries one after the other, with their words; single keys decide."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from commonplace.errors import BadInput
from commonplace.learning import entry_changes
from commonplace.learning.entry_changes import Undo
from commonplace.memory.store import KnownEntry
from commonplace.surfaces.web import rendering
from commonplace.surfaces.web.access import visitor
from commonplace.surfaces.web.site import Site, Undoable

_SHOWN: Final = 20
"""How many a page shows; the next ones come when these are decided."""


async def show(request: Request) -> Response:
    """Show what waits for a decision."""
    site: Site = request.app.state.site
    project = request.query_params.get("project", "")
    waiting = await site.book.memory.review()
    counts: dict[str, int] = {}
    for each in waiting:
        counts[each.scope] = counts.get(each.scope, 0) + 1
    names = site.project_names(list(counts))
    chosen = [each for each in waiting if not project or each.scope == project]
    versions = await _versions(site)
    clean = site.cleaner()
    items = [
        {
            "id": each.id,
            "text": clean(each.text),
            "kind": each.kind,
            "project": names[each.scope],
            "candidate": each.candidate,
            "reason": each.reason if isinstance(each.reason, str) else "",
            "support": each.support,
            "version": versions.get(each.id, "-"),
            "chain": [
                {"link": link, "quote": clean(link.quote)}
                for link in (each.chain if not isinstance(each.chain, msgspec.UnsetType) else [])[:3]
            ],
        }
        for each in chosen[:_SHOWN]
    ]
    values = {
        "items": items,
        "total": len(chosen),
        "project": project,
        "projects": sorted(counts.items(), key=lambda pair: -pair[1]),
        "names": names,
        "is_due": site.is_rebuild_due,
        "asks_first": site.book.settings.memory.review,
    }
    return rendering.page(request, "review.html", "review", values)


async def _versions(site: Site) -> dict[str, str]:
    store = site.book.memory_store
    known: list[KnownEntry] = [*await store.known_entries(), *await store.candidates()]
    return {each.entry.id: entry_changes.version(each) for each in known}


async def decide(request: Request) -> Response:
    """Keep or drop one or more; the memory's files follow with the next run, or when the review is finished."""
    site: Site = request.app.state.site
    form = visitor(request.scope).form
    ids, seen = form.get("entry", "").split(), form.get("version", "").replace("-", " - ").split()
    verdict = form.get("verdict", "")
    if verdict not in ("keep", "drop") or not ids or len(ids) != len(seen):
        raise BadInput("A review keeps or drops.", hint="Go back to Review.")
    async with site.changing:
        now = await _versions(site)
        if any(now.get(name, "-") != version for name, version in zip(ids, seen, strict=True)):
            hint = "Nothing was decided. Load Review again, and decide about what it says now."
            raise BadInput("Something on this page changed meanwhile.", hint=hint)
        await site.book.memory.decide(ids, "keep" if verdict == "keep" else "drop", rebuild=False)
        site.is_rebuild_due = True
    text = f"{'Kept' if verdict == 'keep' else 'Dropped'}: {site.cleaner()(form.get('text', ''))[:80] or len(ids)}"
    name = site.note_undo(Undoable(text, Undo(reviews=tuple((each, None) for each in ids))))
    return RedirectResponse(rendering.address("/review", project=form.get("project", ""), done=name), 303)


async def finish(request: Request) -> Response:
    """Make the memory's files anew after decisions."""
    site: Site = request.app.state.site
    async with site.changing:
        await site.book.memory.rebuild()
        site.is_rebuild_due = False
    name = site.note_undo(Undoable("The memory follows your decisions now."))
    return RedirectResponse(f"/review?done={name}", 303)

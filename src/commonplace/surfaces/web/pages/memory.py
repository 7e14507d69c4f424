"""Memory: every entry, by project, filtered and searched; the ranked search answers as one types."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from commonplace.memory import audit_run
from commonplace.memory.edits.review import is_doubtful
from commonplace.memory.entries import GLOBAL, KINDS, SECTION_OF
from commonplace.memory.store import KnownEntry
from commonplace.protocol.ids import wire_second
from commonplace.search.query import Query
from commonplace.surfaces.web import rendering
from commonplace.surfaces.web.site import Site

PAGE: Final = 60
"""How many entries a page shows."""
_FOUND: Final = 50
"""How many entries a search shows."""
_RECENT_SECONDS: Final = 14 * 86_400
"""What was learned in this time is recent."""
FILTERS: Final = {
    "": "All",
    "recent": "Recent",
    "pinned": "Pinned",
    "candidates": "Candidates",
    "doubtful": "Doubtful",
    "unused": "Unused",
    "stale": "Stale",
    "duplicates": "Near-duplicates",
}


class EntryRow(msgspec.Struct):
    """An entry as a list shows it."""

    id: str
    text: str
    kind: str
    scope: str
    project: str
    """A short name of the scope."""
    place: str
    """The scope, without secrets."""
    section: str
    support: int
    retrieved: int
    injected: int
    cited: int
    last_seen: str
    pinned: bool
    candidate: bool
    doubtful: bool
    note: str = ""
    """Why the filter shows it."""


def rows(site: Site, known: list[KnownEntry], names: dict[str, str], notes: dict[str, str]) -> list[EntryRow]:
    """Return entries as a list shows them, without secrets and forgotten words."""
    clean = site.cleaner()
    return [
        EntryRow(
            each.entry.id,
            clean(each.entry.text),
            each.entry.kind,
            each.entry.scope,
            names.get(each.entry.scope, each.entry.scope),
            clean(each.entry.scope),
            SECTION_OF[each.entry.kind],
            each.entry.support,
            each.retrieved,
            each.injected,
            each.cited,
            wire_second(each.entry.last_seen_s),
            each.entry.pinned,
            each.is_candidate,
            is_doubtful(each.entry),
            clean(notes.get(each.entry.id, "")),
        )
        for each in known
    ]


async def listing(request: Request) -> Response:
    """Show a page of entries."""
    site: Site = request.app.state.site
    asked = request.query_params
    chosen, query = asked.get("filter", ""), asked.get("q", "").strip()
    project, kind = asked.get("project", ""), asked.get("kind", "")
    start = int(asked["start"]) if asked.get("start", "").isdecimal() and len(asked["start"]) < 9 else 0
    known = await site.book.memory_store.known_entries()
    waiting = await site.book.memory_store.candidates()
    counts: dict[str, int] = {}
    for each in known:
        counts[each.entry.scope] = counts.get(each.entry.scope, 0) + 1
    names = site.project_names(list(counts | dict.fromkeys((each.entry.scope for each in waiting), 0)))
    found, notes = await _chosen(site, chosen, query, known, waiting)
    found = [
        each for each in found if (not project or each.entry.scope == project) and (not kind or each.entry.kind == kind)
    ]
    values: dict[str, Any] = {
        "rows": rows(site, found[start : start + PAGE], names, notes),
        "count": len(found),
        "start": start,
        "next": start + PAGE if start + PAGE < len(found) else None,
        "back": max(0, start - PAGE) if start else None,
        "query": query,
        "chosen": chosen if chosen in FILTERS else "",
        "project": project,
        "kind": kind,
        "filters": FILTERS,
        "kinds": KINDS,
        "projects": sorted(counts.items(), key=lambda pair: (pair[0] != GLOBAL, -pair[1], pair[0])),
        "names": names,
        "total": len(known),
        "waiting": len(waiting),
    }
    return rendering.page(request, "_entries.html" if asked.get("part") else "memory.html", "memory", values)


async def _chosen(
    site: Site, chosen: str, query: str, known: list[KnownEntry], waiting: list[KnownEntry]
) -> tuple[list[KnownEntry], dict[str, str]]:
    """Return the entries that a search or a filter means, and why each is shown."""
    if query:
        by_id = {each.entry.id: each for each in (*known, *waiting)}
        search = site.book.search
        await search.refresh(sessions=False)
        hits = await search.memory(Query(query[:500], _FOUND))
        names = dict.fromkeys(hit.entry_id for hit in hits if isinstance(hit.entry_id, str))
        known = [by_id[name] for name in names if name in by_id]
        waiting = [each for each in known if each.is_candidate]
    match chosen:
        case "candidates":
            return waiting, {}
        case "recent":
            since = site.book.state.now_s() - _RECENT_SECONDS
            recent = [each for each in known if each.entry.first_seen_s >= since]
            return sorted(recent, key=lambda each: -each.entry.first_seen_s), {}
        case "pinned":
            return [each for each in known if each.entry.pinned], {}
        case "doubtful":
            return [each for each in known if is_doubtful(each.entry)], {}
        case "unused" | "stale" | "duplicates":
            notes = await audit_run.problems(site.book.memory_store, chosen, known)
            return [each for each in known if each.entry.id in notes], notes
        case _:
            return known, {}

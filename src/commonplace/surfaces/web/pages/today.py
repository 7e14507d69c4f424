"""Today: what was learned lately, what waits for a decision, what agents were told, and what it cost."""

from __future__ import annotations

from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response

from commonplace.learning import overview
from commonplace.surfaces.web import plots, rendering
from commonplace.surfaces.web.pages.memory import rows
from commonplace.surfaces.web.site import Site


async def show(request: Request) -> Response:
    """Show the overview."""
    site: Site = request.app.state.site
    found = await overview.overview(site.book.memory_store)
    site.refresh_soon()
    shown = [*found.learned, *(each.known for each in (*found.told, *found.used))]
    names = site.project_names(list(dict.fromkeys(each.entry.scope for each in shown)))
    now = site.book.state.now()
    days = [(now - timedelta(days=back)).strftime("%Y-%m-%d") for back in reversed(range(overview.DAYS))]
    tokens = {day: sum(each.tokens for each in found.spent if each.day == day) for day in days}
    values = {
        "found": found,
        "learned": rows(site, found.learned, names, {}),
        "told": [(row, each.time) for row, each in _with_rows(site, found.told, names)],
        "used": [(row, each.time) for row, each in _with_rows(site, found.used, names)],
        "days": overview.DAYS,
        "requests": sum(each.requests for each in found.spent),
        "tokens": sum(tokens.values()),
        "plot": plots.bars([(day, tokens[day]) for day in days], "Tokens that models took, by day")
        if any(tokens.values())
        else "",
    }
    return rendering.page(request, "today.html", "today", values)


def _with_rows(
    site: Site, used: list[overview.UsedEntry], names: dict[str, str]
) -> list[tuple[object, overview.UsedEntry]]:
    return list(zip(rows(site, [each.known for each in used], names, {}), used, strict=True))

"""Pipeline: jobs and leases, what is not read and why, what models cost, and starting or pausing the background."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from commonplace import config
from commonplace.app import background_process
from commonplace.config import edit
from commonplace.errors import BadInput
from commonplace.learning import pipeline
from commonplace.surfaces.web import plots, rendering
from commonplace.surfaces.web.access import visitor
from commonplace.surfaces.web.site import Site, Undoable

_WORDS: Final = {
    "already_learned": "learned already",
    "too_old": "too old",
    "too_recent": "too recent: it may still go on",
    "archived": "archived",
    "disabled": "you turned memory off for them",
    "polluted": "they hold text of outside",
    "excluded": "excluded by memory.exclude",
    "not_a_persons_session": "no session of a person (sub-agents, programs)",
    "empty": "nothing was said in them",
    "copy": "copies of other sessions",
    "deleted": "deleted here before",
    "not_a_session": "no sessions",
    "unreadable": "cannot be read",
}


async def show(request: Request) -> Response:
    """Show how learning stands."""
    site: Site = request.app.state.site
    found = await pipeline.pipeline(site.book.state)
    settings = config.load(site.book.state.environment)  # another process may have changed them
    now = site.book.state.now()
    days = [(now - timedelta(days=back)).strftime("%Y-%m-%d") for back in reversed(range(pipeline.DAYS))]
    tokens = {day: float(sum(each.tokens for each in found.spent if each.day == day)) for day in days}
    clean = site.cleaner()
    values = {
        "found": found,
        "jobs": [(each, clean(each.reason)) for each in found.jobs],
        "unread": [(each, _WORDS.get(each.reason, each.reason.replace("_", " "))) for each in found.unread],
        "is_paused": not settings.memory.background,
        "plot": plots.bars(list(tokens.items()), "Tokens that models took, by day") if any(tokens.values()) else "",
        "days": pipeline.DAYS,
    }
    return rendering.page(request, "pipeline.html", "pipeline", values)


async def act(request: Request) -> Response:
    """Run learning now, or pause and go on."""
    site: Site = request.app.state.site
    match visitor(request.scope).form.get("action"):
        case "run":
            await anyio.to_thread.run_sync(background_process.start_run, site.book.state)
            text = "Learning runs in a process of its own. This page shows how it goes on."
        case "pause" | "resume" as action:
            value = "false" if action == "pause" else "true"
            await anyio.to_thread.run_sync(edit.change, site.book.home, "memory.background", value)
            text = "Nothing is learned by itself any more." if action == "pause" else "Learning starts by itself again."
        case _:
            raise BadInput("The pipeline can run, pause and go on.", hint="Go back to Pipeline.")
    return RedirectResponse(f"/pipeline?done={site.note_undo(Undoable(text))}", 303)

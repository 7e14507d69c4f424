"""Changes of entries: a preview first, then the change, then a way back. Who is late is told, and shown both texts."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from commonplace.errors import BadInput, EntryOutdated
from commonplace.learning import entry_changes
from commonplace.learning.entry_changes import (
    DecideEntry,
    EntryRequest,
    ForgetEntry,
    JoinEntries,
    PinEntry,
    RescopeEntry,
    RewordEntry,
    Undo,
)
from commonplace.memory import life
from commonplace.memory.entries import Entry
from commonplace.surfaces.web import rendering
from commonplace.surfaces.web.access import visitor
from commonplace.surfaces.web.site import Site, Undoable

_DONE = {
    "reword": "The entry has new words.",
    "rescope": "The entry holds elsewhere now.",
    "join": "The two entries are one now.",
    "pin": "The entry is pinned.",
    "unpin": "The entry is no longer pinned.",
    "keep": "The entry is kept.",
    "drop": "The entry is dropped.",
    "forget": "The entry is forgotten.",
}
_TITLES = {
    "reword": "Say it in other words",
    "rescope": "Let it hold elsewhere",
    "join": "Merge it into another entry",
    "pin": "Pin it",
    "unpin": "Unpin it",
    "keep": "Keep it",
    "drop": "Drop it",
    "forget": "Forget it",
}


def requested(entry_id: str, form: dict[str, str]) -> EntryRequest:
    """Return the change that a form asks for (raises BadInput)."""
    match form.get("kind"):
        case "reword":
            return RewordEntry(entry_id, form.get("text", ""))
        case "rescope":
            return RescopeEntry(entry_id, form.get("scope", ""))
        case "join":
            return JoinEntries(entry_id, form.get("into", ""))
        case "pin" | "unpin" as kind:
            return PinEntry(entry_id, pinned=kind == "pin")
        case "keep" | "drop" as verdict:
            return DecideEntry(entry_id, verdict)
        case "forget":
            return ForgetEntry(entry_id)
        case _:
            raise BadInput("This form asks for no change that there is.", hint="Go back to the entry.")


async def preview(request: Request) -> Response:
    """Show what a change would do; nothing is changed."""
    site: Site = request.app.state.site
    entry_id, form = request.path_params["entry_id"], visitor(request.scope).form
    wanted = requested(entry_id, form)
    try:
        told = await site.book.changes.preview(wanted, form.get("version", ""))
    except EntryOutdated as error:
        return await _outdated(request, error)
    clean = site.cleaner()
    names = site.project_names([each.scope for pair in told for each in (pair.before, pair.after) if each is not None])
    values = {
        "entry_id": entry_id,
        "title": _TITLES[form["kind"]],
        "form": form,
        "differences": [_shown(pair.before, pair.after, names, clean) for pair in told],
    }
    return rendering.page(request, "preview.html", "memory", values)


def _shown(before: Entry | None, after: Entry | None, names: dict[str, str], clean: Any) -> dict[str, Any]:
    either = after or before
    assert either is not None
    facts: list[str] = []
    if before is not None and after is not None:
        if before.scope != after.scope:
            facts.append(f"{names[before.scope]} → {names[after.scope]}")
        if before.pinned != after.pinned:
            facts.append("pinned: it comes first and does not age" if after.pinned else "no longer pinned")
        if before.is_listed != after.is_listed:
            facts.append("becomes an entry" if after.is_listed else "becomes a candidate")
        if before.support != after.support:
            facts.append(f"support {before.support} → {after.support}")
    return {
        "id": either.id,
        "what": "comes" if before is None else "goes" if after is None else "changes",
        "project": names[either.scope],
        "pieces": rendering.word_diff(clean(before.text) if before else "", clean(after.text) if after else ""),
        "facts": facts,
    }


async def make(request: Request) -> Response:
    """Make a change, and lead to what it made."""
    site: Site = request.app.state.site
    entry_id, form = request.path_params["entry_id"], visitor(request.scope).form
    wanted = requested(entry_id, form)
    async with site.changing:
        try:
            changed = await site.book.changes.change(wanted, form.get("version", ""))
        except EntryOutdated as error:
            return await _outdated(request, error)
    text = _DONE[form["kind"]]
    if changed.entry is None and form["kind"] in ("reword", "rescope", "join"):
        text = "What you asked for is stored, but other words of yours count more: nothing shows it yet."
    name = site.note_undo(Undoable(text, changed.undo))
    back = form.get("back", "")
    if back not in ("/review", "/prompt"):
        back = f"/entry/{changed.entry}" if changed.entry else "/memory"
    return RedirectResponse(f"{back}?done={name}", 303)


async def take_back(request: Request) -> Response:
    """Take a change back."""
    site: Site = request.app.state.site
    name = visitor(request.scope).form.get("id", "")
    async with site.changing:
        done = site.undos.get(name)
        if done is None or done.undo is None:
            raise BadInput(
                "This change was taken back already, or the server has forgotten it.", hint="Look at Memory."
            )
        site.undos[name] = Undoable("It was taken back already.")
        await site.book.changes.undo(done.undo)
    told = site.note_undo(Undoable(_back_text(done.undo)))
    return RedirectResponse(f"/memory?done={told}", 303)


def _back_text(undo: Undo) -> str:
    if undo.remember:
        return "Its words are back as a note of yours; what it rested on before stays forgotten."
    return "The change was taken back."


async def _outdated(request: Request, error: EntryOutdated) -> Response:
    """Show somebody who is late what the entry says now, and what they wanted."""
    site: Site = request.app.state.site
    entry_id, form = request.path_params["entry_id"], visitor(request.scope).form
    now = str(error.data["now"] or "")
    found = await life.life(site.book.memory_store, now or entry_id)
    known = found.known if found is not None else None
    clean = site.cleaner()
    last = found.changes[-1] if found is not None and found.changes else None
    values = {
        "entry_id": known.entry.id if known is not None else entry_id,
        "exists": known is not None,
        "now": clean(known.entry.text) if known is not None else "",
        "version": entry_changes.version(known) if known is not None else "",
        "yours": clean(form.get("text", "")),
        "form": form,
        "title": _TITLES.get(form.get("kind", ""), ""),
        "cause": last.cause if last is not None else "",
        "time": last.time if last is not None else "",
    }
    return rendering.page(request, "outdated.html", "memory", values, 409)

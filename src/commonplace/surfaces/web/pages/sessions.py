"""Sessions: the list, the search, and a reader in which every turn has an address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from commonplace.errors import UnknownThread
from commonplace.protocol.ids import is_uuid
from commonplace.rollout import chain
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain_blobs import ChainStore
from commonplace.search.query import Query
from commonplace.sessions import excerpt, markdown
from commonplace.sessions.excerpt import Excerpt, ExcerptCall, ExcerptMark, Said
from commonplace.sessions.family import family
from commonplace.sessions.resolve import SessionFile, resolve
from commonplace.surfaces.web import plots, rendering
from commonplace.surfaces.web.rendering import DiffPiece
from commonplace.surfaces.web.site import Site

_PAGE: Final = 50
_SHOWN: Final = 6_000
"""How many characters of a text the reader shows unfolded; the whole is one link away."""
_CLEANED: Final = 2 * _SHOWN
"""How much of a longer text is cleaned: more than is shown, so that the cut goes through no secret."""
_WHOLE: Final = 2_000_000
"""How many characters the page of one text shows."""
_PLOT_BYTES: Final = 16 * 2**20
"""Files up to this size have their plot on the page; reading larger ones whole is asked for."""
_DIFFS: Final = ("*** Begin Patch\n", "\ndiff --git ", "\n--- ", "\n@@")


async def listing(request: Request) -> Response:
    """Show a page of sessions, or what a search finds in them."""
    site: Site = request.app.state.site
    asked = request.query_params
    query, source = asked.get("q", "").strip(), asked.get("source", "")
    clean = site.cleaner()
    values: dict[str, Any] = {"query": query, "source": source, "hits": [], "threads": [], "next": None}
    values["archived"] = asked.get("archived", "") == "1"
    if query:
        values["is_whole"] = await site.index_sessions()
        for hit in await site.book.search.sessions(Query(query[:500], _PAGE)):
            text = {
                "text": clean(hit.text)[:600],
                "reply": clean(hit.reply)[:400] if isinstance(hit.reply, str) else "",
                "project": clean(hit.project or ""),
            }
            values["hits"].append({"hit": hit, **text})
    else:
        page = await site.book.sessions.list(
            limit=_PAGE,
            cursor=asked.get("cursor") or None,
            source=source or None,
            archived=values["archived"],
            refresh=False,
        )
        site.refresh_soon()
        values["threads"] = [
            {"row": each, "title": clean(each.title or each.preview)[:200], "project": clean(each.project)}
            for each in page.threads
        ]
        values["next"] = page.next_cursor
    return rendering.page(request, "_sessions.html" if asked.get("part") else "sessions.html", "sessions", values)


async def _file(request: Request) -> SessionFile:
    """Return the file of the thread that an address names; only ids are names here, never paths."""
    site: Site = request.app.state.site
    thread = request.path_params["thread_id"]
    if not is_uuid(thread):
        raise UnknownThread(f"{thread[:80]!r} is not the id of a session.", hint="Sessions lists what there is.")
    return await resolve(site.book.state, thread)


async def read(request: Request) -> Response:
    """Show a stretch of a session: its last turns, or those around an address."""
    site: Site = request.app.state.site
    target = await _file(request)
    asked = request.query_params
    at, before, after = (_number(asked.get(name)) for name in ("at", "before", "after"))

    def look() -> Excerpt:
        if at is not None:
            return excerpt.around(target.path, at)
        if after is not None:
            return excerpt.following(target.path, after)
        return excerpt.newest(target.path, before=before)

    found = await anyio.to_thread.run_sync(look)
    clean = site.cleaner()
    words = asked.get("words", "")[:400]
    blocks = await anyio.to_thread.run_sync(lambda: [_shown(each, clean, words, at) for each in found.blocks])
    row = await (await site.book.state.index()).row(site.book.home, target.path)
    wants_plot = asked.get("plot") == "1" or found.size <= _PLOT_BYTES
    plot = await anyio.to_thread.run_sync(_plot, target) if wants_plot else ""
    base = found.parent
    values: dict[str, Any] = {
        "thread_id": found.meta.id,
        "title": clean((row.title or row.preview) if row is not None else "")[:200] or "Session",
        "source": row.source if row is not None else clean(found.meta.originator),
        "project": clean(row.project if row is not None else found.meta.cwd),
        "begun": found.meta.timestamp,
        "turns": row.turns if row is not None else None,
        "size": found.size,
        "blocks": blocks,
        "before": found.before,
        "after": found.after,
        "at": at,
        "base": base if found.before is None and base is not None and is_uuid(base.thread_id) else None,
        "plot": plot,
        "offers_plot": not wants_plot,
    }
    return rendering.page(request, "session.html", "sessions", values)


def _plot(target: SessionFile) -> Any:
    points, compacted = excerpt.tokens(target.path)
    places = [sum(point.offset < offset for point in points) for offset in compacted]
    every = max(1, len(points) // 600)
    thinned = [(point.time[:16].replace("T", " "), float(point.tokens)) for point in points[::every]]
    return plots.curve(thinned, [place // every for place in places], "Tokens of each request over time")


def _number(text: str | None) -> int | None:
    """Return a place in a file; None if the text names none that a file can have."""
    return int(text) if text and text.isdecimal() and len(text) < 14 else None


def _shown(block: excerpt.Block, clean: Callable[[str], str], words: str, at: int | None) -> dict[str, Any]:
    """Return what the reader shows of a block, without secrets and forgotten words."""
    shown: dict[str, Any] = {"offset": block.offset, "time": block.time, "is_meant": block.offset == at}
    match block:
        case Said(who=who, text=text, images=images, begins_turn=begins):
            cut = clean(text[:_CLEANED])[:_SHOWN]
            pieces = rendering.marked(cut, words) if words else [DiffPiece("same", cut)]
            shown |= {"type": "said", "who": who, "pieces": pieces, "images": images, "begins": begins}
            shown |= {"is_cut": len(text) > _SHOWN}
        case ExcerptCall():
            given, output = clean(_readable(block.input)[:_CLEANED])[:_SHOWN], clean((block.output or "")[:_CLEANED])
            shown |= {"type": "call", "name": clean(block.name)[:200], "ok": block.ok, "images": block.images}
            shown |= {
                "summary": " ".join(given.split())[:140],
                "input": _lines(given),
                "output": _lines(output[:_SHOWN]),
            }
            shown |= {"has_output": block.output is not None, "output_offset": block.output_offset}
            shown |= {"is_cut": len(block.input) > _SHOWN or len(block.output or "") > _SHOWN}
            shown |= {"is_meant": at is not None and at in (block.offset, block.output_offset)}
            if words and shown["is_meant"]:
                shown["marked"] = words
        case ExcerptMark(what=what, text=text):
            shown |= {"type": "mark", "what": what, "text": clean(text[:_CLEANED])[:_SHOWN], "score": block.score}
    return shown


def _readable(arguments: str) -> str:
    """Return the arguments of a call as a person reads them: the text of the one that matters, or all by name."""
    try:
        given: Any = msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        return arguments
    if not isinstance(given, dict):
        return arguments
    fields: dict[str, Any] = {str(key): value for key, value in given.items()}  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
    if {"old_string", "new_string"} <= fields.keys():
        gone = "\n".join(f"-{line}" for line in str(fields["old_string"]).split("\n"))
        come = "\n".join(f"+{line}" for line in str(fields["new_string"]).split("\n"))
        return f"--- {fields.get('file_path', '')}\n{gone}\n{come}"
    return (
        "\n".join(f"{name}: {_value(value)}" for name, value in fields.items())
        if len(fields) != 1
        else _value(next(iter(fields.values())))
    )


def _value(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):  # pyright: ignore[reportUnknownVariableType]
        return " ".join(value)  # pyright: ignore[reportUnknownArgumentType]
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _lines(text: str) -> list[DiffPiece]:
    """Return a text with the lines of a diff marked; as one piece if it is none."""
    if not any(start in f"\n{text}" for start in _DIFFS):
        return [DiffPiece("same", text)] if text else []
    kinds = {"+": "ins", "-": "del", "@": "hunk"}
    return [DiffPiece(kinds.get(line[:1], "same"), line + "\n") for line in text.split("\n")]


async def whole(request: Request) -> Response:
    """Show the whole text of one line."""
    site: Site = request.app.state.site
    target = await _file(request)
    offset = _number(request.path_params["offset"])
    clean = site.cleaner()

    def look() -> str:
        blocks = excerpt.following(target.path, offset).blocks if offset is not None else ()
        block = next((each for each in blocks if each.offset == offset), None)
        if block is None:
            raise UnknownThread("No line begins at this byte.", hint="The file may have changed.")
        text = block.text if not isinstance(block, ExcerptCall) else f"{block.input}\n\n{block.output or ''}"
        return clean(text[:_WHOLE])

    return PlainTextResponse(await anyio.to_thread.run_sync(look))


async def image(request: Request) -> Response:
    """Show an image of a line; only kinds that cannot hold programs."""
    site: Site = request.app.state.site
    target = await _file(request)
    offset, number = (_number(request.path_params[name]) for name in ("offset", "number"))

    def look() -> tuple[bytes, str] | None:
        if offset is None or number is None:
            return None
        ledger = chain.open_ledger(target.path, [site.book.home])
        store = ChainStore(BlobStore(site.book.home if target.is_ours else target.home), ledger)
        return excerpt.image(ledger, store, offset, number)

    found = await anyio.to_thread.run_sync(look)
    return Response(found[0], media_type=found[1]) if found is not None else Response(status_code=404)


async def export(request: Request) -> Response:
    """Send a session, or the turn around an address, as a Markdown file."""
    site: Site = request.app.state.site
    target = await _file(request)
    at = _number(request.query_params.get("at"))
    clean = site.cleaner()
    name = f"session-{request.path_params['thread_id'][:13]}{'' if at is None else f'-{at}'}.md"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    if at is not None:
        text = await anyio.to_thread.run_sync(markdown.turn, target.path, at, clean)
        return Response(text, media_type="text/markdown; charset=utf-8", headers=headers)
    return StreamingResponse(markdown.whole(target.path, clean), media_type="text/markdown", headers=headers)


async def tree(request: Request) -> Response:
    """Show what a session was forked from, its forks, and its sub-agents."""
    site: Site = request.app.state.site
    target = await _file(request)
    found = await family(site.book.state, target.path)
    index = await site.book.state.index()
    clean = site.cleaner()

    async def named(thread: str) -> dict[str, str]:
        path = await index.find(site.book.home, thread) if is_uuid(thread) else None
        row = await index.row(site.book.home, path) if path is not None else None
        told = clean(row.title or row.preview)[:160] if row is not None else ""
        return {"id": thread, "title": told or thread, "time": row.updated_at if row is not None else ""}

    values = {
        "thread_id": request.path_params["thread_id"],
        "above": [await named(each) for each in (found.parent, found.forked_from) if each],
        "own": await named(request.path_params["thread_id"]),
        "forks": [await named(each) for each in found.forks],
        "children": [await named(each) for each in found.children],
    }
    return rendering.page(request, "family.html", "sessions", values)

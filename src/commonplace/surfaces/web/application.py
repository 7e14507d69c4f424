"""The application behind the door: its pages by their addresses, and what they share while the server runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from commonplace import package_files
from commonplace.app.book import Book
from commonplace.errors import BadInput, CommonplaceError, UnknownThread
from commonplace.surfaces.web import rendering
from commonplace.surfaces.web.access import THEMES, visitor
from commonplace.surfaces.web.pages import changes, entry, memory, pipeline, prompt, review, sessions, today
from commonplace.surfaces.web.site import Site

_TYPES: Final = {"svg": "image/svg+xml", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
_YEAR: Final = 365 * 86_400


def _static() -> dict[str, tuple[bytes, str]]:
    """Return the files that are served as they are, by their names; nothing else can be asked for."""
    folder = package_files.ROOT / "surfaces/web/static"
    return {
        each.name: (each.read_bytes(), _TYPES[each.name.rpartition(".")[2]])
        for each in folder.iterdir()
        if each.name.rpartition(".")[2] in _TYPES
    }


async def _theme(request: Request) -> Response:
    """Choose how the page looks."""
    form = visitor(request.scope).form
    back = form.get("back", "/")
    answer = RedirectResponse(back if back.startswith("/") and not back.startswith("//") else "/", 303)
    chosen = form.get("theme", "")
    life = _YEAR if chosen in THEMES else 0
    answer.set_cookie("commonplace_theme", chosen if life else "", max_age=life, httponly=True, samesite="strict")
    return answer


async def _failed(request: Request, error: Exception) -> Response:
    """Show an error as a page that says what to do."""
    assert isinstance(error, CommonplaceError)
    status = 404 if isinstance(error, UnknownThread) else 400 if isinstance(error, BadInput) else 503
    clean = request.app.state.site.cleaner()
    values = {"title": "That did not work", "message": clean(error.message), "hint": clean(error.hint)}
    return rendering.page(request, "problem.html", "", values, status)


async def _unreadable(request: Request, error: Exception) -> Response:
    """Say which file cannot be read: a session may go while somebody reads it."""
    assert isinstance(error, OSError)
    message = request.app.state.site.cleaner()(f"{error.filename or 'A file'}: {error.strerror or error}.")
    hint = "It may have been moved or removed. Sessions lists what there is."
    values = {"title": "A file cannot be read", "message": message, "hint": hint}
    return rendering.page(request, "problem.html", "", values, 503)


async def _missing(request: Request, _: Exception) -> Response:
    values = {"title": "There is no such page", "message": "Nothing is at this address.", "hint": ""}
    return rendering.page(request, "problem.html", "", values, 404)


async def _broken(request: Request, error: Exception) -> Response:
    message = f"This page could not be made ({type(error).__name__}). Nothing was changed by looking at it."
    hint = "`commonplace doctor` checks files and database against each other."
    return rendering.page(request, "problem.html", "", {"title": "Broken", "message": message, "hint": hint}, 500)


@asynccontextmanager
async def build(book: Book) -> AsyncGenerator[Starlette]:
    """Yield the application of one book."""
    files = _static()

    async def static(request: Request) -> Response:
        found = files.get(request.path_params["name"])
        return Response(found[0], media_type=found[1]) if found is not None else Response(status_code=404)

    async def icon(_: Request) -> Response:
        return Response(files["icon.svg"][0], media_type=files["icon.svg"][1])

    application = Starlette(
        routes=[
            Route("/", today.show),
            Route("/review", review.show),
            Route("/review/decide", review.decide, methods=["POST"]),
            Route("/review/finish", review.finish, methods=["POST"]),
            Route("/prompt", prompt.show),
            Route("/prompt/rank", prompt.rank, methods=["POST"]),
            Route("/pipeline", pipeline.show),
            Route("/pipeline/act", pipeline.act, methods=["POST"]),
            Route("/memory", memory.listing),
            Route("/entry/{entry_id}", entry.show),
            Route("/entry/{entry_id}/preview", changes.preview, methods=["POST"]),
            Route("/entry/{entry_id}/change", changes.make, methods=["POST"]),
            Route("/sessions", sessions.listing),
            Route("/sessions/{thread_id}", sessions.read),
            Route("/sessions/{thread_id}/export", sessions.export),
            Route("/sessions/{thread_id}/family", sessions.tree),
            Route("/sessions/{thread_id}/line/{offset}", sessions.whole),
            Route("/sessions/{thread_id}/image/{offset}/{number}", sessions.image),
            Route("/undo", changes.take_back, methods=["POST"]),
            Route("/theme", _theme, methods=["POST"]),
            Route("/static/{name}", static),
            Route("/favicon.ico", icon),
        ],
        exception_handlers={CommonplaceError: _failed, OSError: _unreadable, 404: _missing, 500: _broken},
    )
    async with anyio.create_task_group() as tasks:
        application.state.site = site = Site(book, tasks)
        await site.warm_up()
        yield application
        tasks.cancel_scope.cancel()

"""The methods that only look: threads, turns, models, settings; and those of the memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from commonplace import config
from commonplace.config import Settings
from commonplace.config.sources import FILE
from commonplace.errors import BadInput, CommonplaceError, UnknownThread
from commonplace.memory.edits.edits import NoteRequest
from commonplace.models import catalog
from commonplace.models.providers import choose
from commonplace.rollout import layout
from commonplace.state.thread_pages import ThreadRow
from commonplace.surfaces.app_server import spawned_threads, thread_methods, thread_views
from commonplace.surfaces.app_server.connection import Connection, Reply
from commonplace.surfaces.app_server.item_shapes import AgentMessageItem, UserMessageItem
from commonplace.surfaces.app_server.messages import invalid
from commonplace.surfaces.app_server.params import (
    ConfigReadParams,
    MemoryNoteParams,
    MemoryReadParams,
    MemorySearchParams,
    ModelListParams,
    NoParams,
    PageParams,
    ThreadListParams,
    ThreadReadParams,
    TurnListParams,
)
from commonplace.surfaces.app_server.server import AppServer, checked
from commonplace.surfaces.app_server.shapes import (
    ConfigOrigin,
    ConfigReadResult,
    EffortOption,
    Empty,
    LoadedListResult,
    MemoryNoteResult,
    MemoryReadResult,
    MemorySearchResult,
    MemoryStatusResult,
    ModelListResult,
    ThreadListResult,
    ThreadReadResult,
    TurnListResult,
    WireModel,
    WireThread,
    WireTurn,
)

T = TypeVar("T")
_LIMIT: Final = 25
_MOST: Final = 100
_READ: Final = 500
_INTERACTIVE: Final = ("cli", "vscode")
_CODEX_KEYS: Final = {"effort": "model_reasoning_effort", "approval": "approval_policy", "sandbox": "sandbox_mode"}
"""Settings that Codex knows under another name."""


async def thread_list(server: AppServer, client: Connection, params: ThreadListParams) -> Reply:
    """Return a page of the threads that can be resumed."""
    del client
    if params.sort_key == "section_position" and params.section_id is None:
        raise invalid("section-position sorting requires a section filter")
    among = await spawned_threads.below(server, params.parent_thread_id, params.ancestor_thread_id)
    usual = _INTERACTIVE if among is None else (spawned_threads.ALL,)
    sources = spawned_threads.sources(params.source_kinds or usual)
    rows = [row for row in await _rows(server, sources, archived=bool(params.archived)) if _is_wanted(row, params)]
    rows = [row for row in rows if row.source in sources and (among is None or row.thread_id in among)]
    key: Callable[[ThreadRow], tuple[str, str]] = (
        (lambda row: (row.updated_at, row.thread_id))
        if params.sort_key in ("updated_at", "recency_at")
        else (lambda row: (row.created_at, row.thread_id))
    )
    rows.sort(key=key, reverse=params.sort_direction != "asc")
    page, cursor = _page(rows, params.cursor, params.limit, lambda row: row.thread_id)
    found = [thread for row in page if (thread := await _stored(server, row)) is not None]
    wanted = None if params.model_providers is None else {*params.model_providers}
    data = [thread for thread in found if not wanted or thread.model_provider in wanted]
    return Reply(ThreadListResult(data=data, next_cursor=cursor, backwards_cursor=data[0].id if data else None))


async def _stored(server: AppServer, row: ThreadRow) -> WireThread | None:
    """Return a thread of a page; None if its file cannot be read any more, which hides no other thread."""
    try:
        return await thread_views.stored(server, row.thread_id)
    except (CommonplaceError, OSError) as error:
        server.log(f"A thread was left out of the list: {error}")
        return None


async def _rows(server: AppServer, sources: frozenset[str], *, archived: bool) -> list[ThreadRow]:
    """Return the threads of our home, and the sub-agents of some sources."""
    home = server.book.state
    rows: list[ThreadRow] = []
    for source in (None, *sorted(each for each in sources if each.startswith("subagent:"))):
        cursor: str | None = None
        while True:
            fresh = source is None and cursor is None
            page = await server.book.sessions.list(
                limit=_READ, cursor=cursor, source=source, archived=archived, refresh=fresh
            )
            rows += [row for row in page.threads if layout.is_under(str(Path(row.path).resolve()), home.folder)]
            cursor = page.next_cursor
            if cursor is None:
                break
    return rows


def _is_wanted(row: ThreadRow, params: ThreadListParams) -> bool:
    folders = [params.cwd] if isinstance(params.cwd, str) else params.cwd
    term = (params.search_term or "").lower()
    if params.section_id is not None or not (row.preview or row.title):
        return False  # there are no sections; a thread in which nobody said anything yet is not worth resuming
    return (folders is None or row.cwd in folders) and (
        not term or term in row.preview.lower() or term in row.title.lower()
    )


def _page(
    rows: Sequence[T], cursor: str | None, limit: int | None, name: Callable[[T], str]
) -> tuple[list[T], str | None]:
    """Return a page that begins behind the row that a cursor names, and the cursor of the next (raises RpcError)."""
    begin = 0
    if cursor is not None:
        at = next((number for number, row in enumerate(rows) if name(row) == cursor), None)
        if at is None:
            raise invalid(f"invalid cursor: {cursor[:200]}")
        begin = at + 1
    size = max(1, min(_LIMIT if limit is None else limit, _MOST))
    page = [*rows[begin : begin + size]]
    return page, name(page[-1]) if page and begin + size < len(rows) else None


async def loaded_list(server: AppServer, client: Connection, params: PageParams) -> Reply:
    """Return the ids of the threads that are open."""
    del client
    page, cursor = _page(sorted(server.threads), params.cursor, params.limit or _MOST, lambda name: name)
    return Reply(LoadedListResult(data=page, next_cursor=cursor))


async def thread_read(server: AppServer, client: Connection, params: ThreadReadParams) -> Reply:
    """Return a thread, open or not."""
    del client
    name = checked(params.thread_id)
    opened = server.threads.get(name)
    if opened is not None:
        if params.include_turns and opened.thread.path is None:
            raise invalid("ephemeral threads do not support includeTurns")
        thread = await thread_views.view(server, opened, with_turns=params.include_turns)
        return Reply(ThreadReadResult(thread=thread, read_state=opened.read.shown))
    try:
        return Reply(ThreadReadResult(thread=await thread_views.stored(server, name, with_turns=params.include_turns)))
    except UnknownThread:
        raise invalid(f"thread not loaded: {name}") from None


async def turns_list(server: AppServer, client: Connection, params: TurnListParams) -> Reply:
    """Return a page of the turns of a thread, newest first unless asked otherwise."""
    del client
    name = checked(params.thread_id)
    opened = server.threads.get(name)
    if opened is not None and (opened.thread.path is None or not opened.thread.path.exists()):
        return Reply(TurnListResult(data=[]))
    try:
        turns = await thread_views.stored_turns(server, name)
    except UnknownThread:
        raise invalid(f"thread not loaded: {name}") from None
    if params.sort_direction != "asc":
        turns.reverse()
    page, cursor = _page(turns, params.cursor, params.limit, lambda turn: turn.id)
    if params.items_view != "full":
        page = [_less(turn, summary=params.items_view != "notLoaded") for turn in page]
    return Reply(TurnListResult(data=page, next_cursor=cursor, backwards_cursor=page[0].id if page else None))


def _less(turn: WireTurn, *, summary: bool) -> WireTurn:
    """Return a turn with what was said first and answered last, or without items."""
    if not summary:
        return msgspec.structs.replace(turn, items=[], items_view="notLoaded")
    first = [item for item in turn.items if isinstance(item, UserMessageItem)][:1]
    last = [item for item in turn.items if isinstance(item, AgentMessageItem)][-1:]
    return msgspec.structs.replace(turn, items=[*first, *last], items_view="summary")


async def model_list(server: AppServer, client: Connection, params: ModelListParams) -> Reply:
    """Return the models that are known, the person's own first."""
    del client
    default = _default(server)
    names = catalog.names()
    names = names if default is None else [default, *(name for name in names if name != default)]
    page, cursor = _page(names, params.cursor, params.limit or _MOST, lambda name: name)
    return Reply(ModelListResult(data=[_model(name, is_default=name == default) for name in page], next_cursor=cursor))


def _default(server: AppServer) -> str | None:
    try:
        return choose(server.book.settings, server.model).slug
    except BadInput:
        return None


def _model(name: str, *, is_default: bool) -> WireModel:
    info = catalog.model_info(name)
    maker = f" of {info.provider}" if info.provider is not None else ""
    return WireModel(
        id=name,
        model=name,
        display_name=name,
        description=f"A model{maker} with a window of {info.window:,} tokens.",
        hidden=False,
        is_default=is_default,
        supported_reasoning_efforts=[EffortOption(reasoning_effort=each) for each in info.efforts],
        default_reasoning_effort=info.effort or "none",
        input_modalities=[*info.modalities],
    )


async def config_read(server: AppServer, client: Connection, params: ConfigReadParams) -> Reply:
    """Return the effective settings, under our names and under those of Codex."""
    del client, params
    settings = server.book.settings
    values: dict[str, Any] = {}
    origins: dict[str, ConfigOrigin] = {}
    for setting in config.SETTINGS:
        origin = _origin(settings, setting.key)
        for key in (setting.key, _CODEX_KEYS.get(setting.key)):
            if key is not None:
                table, names = values, key.split(".")
                for name in names[:-1]:
                    table = table.setdefault(name, {})
                table[names[-1]] = setting.of(settings)
                if origin is not None:
                    origins[key] = origin
    model = thread_methods.model_name(server, None) or settings.model
    if model is not None:
        provider, _, slug = model.partition(":")
        values |= {"model": slug or provider, "model_provider": provider if slug else None}
    return Reply(ConfigReadResult(config=values, origins=origins))


def _origin(settings: Settings, key: str) -> ConfigOrigin | None:
    """Return where a setting was set, in Codex's words; None for a default."""
    source = settings.sources.get(key, "default")
    if source == "default":
        return None
    if not source.startswith(FILE):
        return ConfigOrigin(name={"type": "sessionFlags"})  # the command line, or a variable
    return ConfigOrigin(name={"type": "user", "file": str(settings.home / FILE), "profile": settings.profile})


async def memory_status(server: AppServer, client: Connection, params: NoParams) -> Reply:
    """Return jobs, outputs and budgets of the memory."""
    del client, params
    found = await server.book.memory.status()
    return Reply(MemoryStatusResult(v2_consolidated_threads=found.selected, status=msgspec.to_builtins(found)))


async def memory_search(server: AppServer, client: Connection, params: MemorySearchParams) -> Reply:
    """Return what answers a question best, of memory and sessions."""
    del client
    hits = await server.book.search(params.query, limit=params.limit, project=params.project)
    return Reply(MemorySearchResult(hits=[msgspec.to_builtins(hit) for hit in hits]))


async def memory_read(server: AppServer, client: Connection, params: MemoryReadParams) -> Reply:
    """Return some lines of a file of the memory."""
    del client
    read = await server.book.memory.read(
        params.path, first=params.first_line, lines=params.max_lines, project=params.project
    )
    return Reply(
        MemoryReadResult(
            path=read.path, content=read.content, start_line=read.start_line_number, truncated=read.truncated
        )
    )


async def memory_note(server: AppServer, client: Connection, params: MemoryNoteParams) -> Reply:
    """Write a note down."""
    del client
    path = await server.book.memory.note(NoteRequest(text=params.text), thread_methods.folder(params.cwd))
    return Reply(MemoryNoteResult(path=str(path)))


async def memory_reset(server: AppServer, client: Connection, params: NoParams) -> Reply:
    """Forget everything that was learned."""
    del client, params
    await server.book.memory.reset()
    return Reply(Empty())

"""The methods that open, change and close threads."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.app import config_overrides
from commonplace.app.threads import OptionChanges
from commonplace.errors import BadInput, CommonplaceError, UnknownThread
from commonplace.models.providers import choose, is_provider
from commonplace.surfaces.app_server import approval_params, spawned_threads, thread_views
from commonplace.surfaces.app_server.connection import Connection, Reply
from commonplace.surfaces.app_server.messages import invalid
from commonplace.surfaces.app_server.open_thread import ServedThread
from commonplace.surfaces.app_server.params import (
    MemoryModeParams,
    ReadStateParams,
    ThreadForkParams,
    ThreadNameParams,
    ThreadParams,
    ThreadResumeParams,
    ThreadRevertParams,
    ThreadRollbackParams,
    ThreadStartParams,
)
from commonplace.surfaces.app_server.server import AppServer, checked
from commonplace.surfaces.app_server.shapes import (
    Empty,
    NotLoadedStatus,
    ReadStateResult,
    ThreadResult,
    UnsubscribeResult,
    WireThread,
)
from commonplace.surfaces.app_server.turn_events import usage

SOURCE: Final = "vscode"
"""Where threads of editors and SDKs come from, in Codex's words."""
_OF_THREAD: Final = ("model", "sandbox", "approval", "effort", "sandbox_network")
"""The settings that a request's `config` can change for one thread."""


async def start(server: AppServer, client: Connection, params: ThreadStartParams) -> Reply:
    """Start a thread."""
    wanted = _options(server, client, params)
    wanted["ephemeral"] = bool(params.ephemeral)
    wanted["thread_source"] = params.thread_source or "user"
    opened = server.opened(await server.book.start(**wanted), client)
    if params.experimental_raw_events:
        opened.tell_raw_items()
    _configure(opened, client, params)
    thread = await thread_views.view(server, opened)

    def then() -> None:
        _tell_started(server, thread)
        spawned_threads.follow(server, opened)

    return Reply(thread_views.opened_result(opened, thread), then)


async def resume(server: AppServer, client: Connection, params: ThreadResumeParams) -> Reply:
    """Go on with a thread; one that is open is attached to."""
    thread_id = checked(params.thread_id)
    opened = server.threads.get(thread_id)
    is_new = opened is None
    if opened is None:
        await _must_be_there(server, thread_id)
        opened = server.opened(await server.book.resume(thread_id, **_options(server, client, params)), client)
        _configure(opened, client, params)
    opened.subscribe(client)
    thread = await thread_views.view(server, opened, with_turns=not params.exclude_turns)
    if params.exclude_turns is None:
        _tell_whole_history(client, thread)

    def then() -> None:
        _tell_usage(opened, client, thread)
        if is_new:
            spawned_threads.follow(server, opened)
        else:
            spawned_threads.subscribe(server, opened, client)

    return Reply(thread_views.opened_result(opened, thread), then)


async def fork(server: AppServer, client: Connection, params: ThreadForkParams) -> Reply:
    """Go on with a copy of a thread, up to a turn."""
    thread_id = checked(params.thread_id)
    wanted = _options(server, client, params)
    await server.book.check(**wanted)
    opened = server.threads.get(thread_id)
    if opened is not None:
        if params.last_turn_id and opened.running is not None and opened.running.id == params.last_turn_id:
            raise invalid(f"turn is in progress: {params.last_turn_id}")
        await opened.thread.session.ledger.persist()
    else:
        await _must_be_there(server, thread_id)
    at = await _last_turn(server, thread_id, params)
    if params.ephemeral and at is None:
        return await _fork_beside(server, client, params, wanted, thread_id)
    try:
        made = await server.book.sessions.fork(thread_id, at=at, originator=wanted.get("originator"))
    except UnknownThread:
        raise invalid(f"no rollout found for thread id {thread_id}") from None
    except BadInput as error:
        raise invalid(f"turn not found: {at}" if at else error.sentence()) from None
    if params.ephemeral:
        reply = await _fork_beside(server, client, params, wanted, made.thread_id)
        await server.book.sessions.delete(made.thread_id)
        return reply
    fresh = server.opened(await server.book.resume(made.thread_id, **wanted), client)
    _configure(fresh, client, params)
    thread = await thread_views.view(server, fresh, with_turns=not params.exclude_turns)
    if params.exclude_turns is None:
        _tell_whole_history(client, thread)

    def then() -> None:
        _tell_usage(fresh, client, thread)
        _tell_started(server, thread)
        spawned_threads.follow(server, fresh)

    return Reply(thread_views.opened_result(fresh, thread), then)


async def _last_turn(server: AppServer, thread_id: str, params: ThreadForkParams) -> str | None:
    """Return the last turn of a copy; None if it has all (raises RpcError: there is none)."""
    if params.before_turn_id is None:
        return params.last_turn_id
    if params.last_turn_id is not None:
        raise invalid("`beforeTurnId` cannot be combined with `lastTurnId`")
    ids = [turn.id for turn in await server.book.sessions.turns(thread_id)]
    if params.before_turn_id not in ids:
        raise invalid(f"turn not found: {params.before_turn_id}")
    if params.before_turn_id == ids[0]:
        raise invalid(f"no turn comes before {params.before_turn_id}; start a new thread")
    return ids[ids.index(params.before_turn_id) - 1]


async def _fork_beside(
    server: AppServer, client: Connection, params: ThreadForkParams, wanted: OptionChanges, source: str
) -> Reply:
    """Go on beside a thread, in a copy that leaves no file."""
    if not params.exclude_turns:
        raise invalid("ephemeral paginated thread/fork requires `excludeTurns: true`")
    fresh = server.opened(await server.book.resume(source, **{**wanted, "ephemeral": True}), client)
    _configure(fresh, client, params)
    thread = await thread_views.view(server, fresh)
    thread = msgspec.structs.replace(thread, forked_from_id=params.thread_id)
    return Reply(thread_views.opened_result(fresh, thread), lambda: _tell_started(server, thread))


def _options(
    server: AppServer, client: Connection, params: ThreadStartParams | ThreadResumeParams | ThreadForkParams
) -> OptionChanges:
    """Return the options of a thread (raises RpcError, BadSetting: they cannot be used)."""
    given = config_overrides.of(params.config or {})
    flags, info = given.checked_flags("the request's `config`"), client.client
    asked = approval_params.changes(client, params.approval_policy or flags.get("approval"))
    wanted: dict[str, Any] = {
        "cwd": params.cwd or ".",
        "model": model_name(server, params.model or flags.get("model"), params.model_provider or given.provider),
        "sandbox": params.sandbox or flags.get("sandbox"),
        "approval": asked.get("approval"),
        "effort": flags.get("effort"),
        "personality": params.personality,
        "base": params.base_instructions,
        "developer": params.developer_instructions,
        "source": SOURCE,
        "originator": info.name if info is not None else "commonplace",
    }
    return OptionChanges(**wanted)


def _configure(
    opened: ServedThread, client: Connection, params: ThreadStartParams | ThreadResumeParams | ThreadForkParams
) -> None:
    """Set what a request's `config` says beyond the options of a thread, and tell what of it means nothing there."""
    given = config_overrides.of(params.config or {})
    granular = approval_params.changes(client, params.approval_policy).get("granular")
    opened.thread.change(network=given.flags.get("sandbox_network"), granular=granular)
    whole = [key for key in given.flags if key not in _OF_THREAD] + [f"providers.{name}" for name in given.providers]
    wider = (
        f"{key} holds for the whole server and is let be; give it to the command, or to config.toml." for key in whole
    )
    for note in [*given.notes(), *wider]:
        client.notify("warning", {"threadId": None, "message": note})


def model_name(server: AppServer, named: str | None, provider: str | None = None) -> str | None:
    """Return a model with its provider: as named, else that of the person's model, as Codex does."""
    settings = server.book.settings
    wanted = named or server.model or (settings.model if provider is not None else None)
    if wanted is None or is_provider(settings, wanted.partition(":")[0]):
        if wanted is None or provider is None or named is not None:
            return wanted
        wanted = wanted.partition(":")[2]
    if provider is None:
        default = server.model or settings.model
        provider = choose(settings, default).name if default is not None else None
    return wanted if provider is None else f"{provider}:{wanted}"


def _tell_started(server: AppServer, thread: WireThread) -> None:
    server.broadcast("thread/started", {"thread": thread_views.without_turns(thread)})


def _tell_usage(opened: ServedThread, client: Connection, thread: WireThread) -> None:
    """Tell a client of the tokens that a thread used before it came."""
    used = opened.thread.usage
    if used is not None:
        turn_id = thread.turns[-1].id if thread.turns else ""
        told = {"threadId": opened.id, "turnId": turn_id, "tokenUsage": usage(used)}
        client.notify("thread/tokenUsage/updated", told)


def _tell_whole_history(client: Connection, thread: WireThread) -> None:
    """Tell a client that the protocol wants histories in pages, as Codex tells it."""
    if thread.history_mode == "paginated" and client.client is not None and client.client.experimental:
        summary = "The protocol deprecates whole histories in answers: send `excludeTurns`, then `thread/turns/list`."
        client.notify("deprecationNotice", {"summary": summary, "details": None})


async def _must_be_there(server: AppServer, thread_id: str, *, archived: bool = False) -> None:
    """Check that a thread has a file, in the archive or outside of it (raises RpcError)."""
    try:
        found = await server.book.sessions.describe(thread_id)
    except UnknownThread:
        kind = "archived rollout" if archived else "rollout"
        raise invalid(f"no {kind} found for thread id {thread_id}") from None
    if archived and not found.archived:
        raise invalid(f"no archived rollout found for thread id {thread_id}")
    if found.archived and not archived:
        raise invalid(f"thread {thread_id} is archived; unarchive it first")


async def _with_file(server: AppServer, thread_id: str) -> str:
    """Return the id of a thread that has a file; an open one gets it now (raises RpcError: there is none)."""
    name = checked(thread_id)
    opened = server.threads.get(name)
    if opened is None:
        try:
            await server.book.sessions.describe(name)
        except UnknownThread:
            raise invalid(f"no rollout found for thread id {name}") from None
    elif opened.thread.path is None:
        raise invalid(f"thread {name} is ephemeral and has no file")
    else:
        await opened.thread.session.ledger.persist()
    return name


async def archive(server: AppServer, client: Connection, params: ThreadParams) -> Reply:
    """Move a thread to the archive, with its sub-agents; an open one is closed first."""
    del client
    name = await _with_file(server, params.thread_id)
    await _must_be_there(server, name)
    was_open = name in server.threads
    await server.close_thread(name)
    await server.book.sessions.archive(name)
    archived = [name]
    for child in sorted(await spawned_threads.below(server, None, name) or ()):
        with contextlib.suppress(CommonplaceError):  # it is in the archive already, or another process works in it
            await server.book.sessions.archive(child)
            archived.append(child)

    def then() -> None:
        if was_open:
            server.broadcast("thread/status/changed", {"threadId": name, "status": NotLoadedStatus()})
        for each in archived:
            server.broadcast("thread/archived", {"threadId": each})

    return Reply(Empty(), then)


async def unarchive(server: AppServer, client: Connection, params: ThreadParams) -> Reply:
    """Move a thread back out of the archive."""
    del client
    name = checked(params.thread_id)
    await _must_be_there(server, name, archived=True)
    await server.book.sessions.unarchive(name)
    thread = await thread_views.stored(server, name)
    return Reply(ThreadResult(thread=thread), lambda: server.broadcast("thread/unarchived", {"threadId": name}))


async def delete(server: AppServer, client: Connection, params: ThreadParams) -> Reply:
    """Remove a thread for good."""
    del client
    name = await _with_file(server, params.thread_id)
    await server.close_thread(name)
    await server.book.sessions.delete(name)
    return Reply(Empty(), lambda: server.broadcast("thread/deleted", {"threadId": name}))


async def unsubscribe(server: AppServer, client: Connection, params: ThreadParams) -> Reply:
    """Tell a client no more of a thread."""
    opened = server.threads.get(checked(params.thread_id))
    if opened is None:
        return Reply(UnsubscribeResult(status="notLoaded"))
    return Reply(UnsubscribeResult(status="unsubscribed" if server.leave(opened, client) else "notSubscribed"))


async def set_name(server: AppServer, client: Connection, params: ThreadNameParams) -> Reply:
    """Give a thread a name."""
    del client
    if not params.name.strip():
        raise invalid("thread name must not be empty")
    name = await _with_file(server, params.thread_id)
    called = (await server.book.sessions.rename(name, params.name))["name"]
    told = {"threadId": name, "threadName": called}
    return Reply(Empty(), lambda: server.broadcast("thread/name/updated", told))


async def rollback(server: AppServer, client: Connection, params: ThreadRollbackParams) -> Reply:
    """Take back the last turns; files stay as they are."""
    del client
    if params.num_turns < 1:
        raise invalid("numTurns must be >= 1")
    name = await _with_file(server, params.thread_id)
    spoken = [turn for turn in await server.book.sessions.turns(name) if turn.user_turns]
    return await _roll_back(server, name, sum(turn.user_turns for turn in spoken[-params.num_turns :]) or 1)


async def revert(server: AppServer, client: Connection, params: ThreadRevertParams) -> Reply:
    """Take back a turn and all after it."""
    del client
    name = await _with_file(server, params.thread_id)
    turns = await server.book.sessions.turns(name)
    at = next((number for number, turn in enumerate(turns) if turn.id == params.before_turn_id), None)
    if at is None:
        raise invalid(f"turn not found: {params.before_turn_id}")
    spoken = sum(turn.user_turns for turn in turns[at:])
    if not spoken or any(turn.compacts for turn in turns[at:]):
        raise invalid(
            f"a compaction cannot be taken back: {params.before_turn_id}; fork the thread with `beforeTurnId`"
        )
    reply = await _roll_back(server, name, spoken)
    return Reply(reply.result, lambda: server.broadcast("thread/reverted", {"threadId": name}))


async def _roll_back(server: AppServer, name: str, turns: int) -> Reply:
    opened = server.threads.get(name)
    if opened is not None:
        if opened.running is not None:
            raise invalid("a turn is running; interrupt it first")
        await opened.thread.roll_back(turns)
        return Reply(ThreadResult(thread=await thread_views.view(server, opened, with_turns=True)))
    await _must_be_there(server, name)
    await server.book.sessions.rollback(name, turns)
    return Reply(ThreadResult(thread=await thread_views.stored(server, name, with_turns=True)))


async def mark(server: AppServer, client: Connection, params: ReadStateParams) -> Reply:
    """Mark an open thread as read or unread."""
    del client
    opened = server.open_thread(params.thread_id)
    opened.read.mark(params.operation.type, params.expected_revision)
    shown = opened.read.shown
    return Reply(
        ReadStateResult(read_state=shown), lambda: opened.tell("thread/readState/changed", {"readState": shown})
    )


async def set_memory_mode(server: AppServer, client: Connection, params: MemoryModeParams) -> Reply:
    """Decide whether memory learns from a thread."""
    del client
    name = checked(params.thread_id)
    if (opened := server.threads.get(name)) is not None:
        await opened.thread.set_memory(params.mode)
    else:
        await _must_be_there(server, name)
        await server.book.memory.set_mode(name, params.mode)
    return Reply(Empty())


def folder(text: str | None) -> Path | None:
    """Return a folder that a client named (raises RpcError: there is none)."""
    if text is None:
        return None
    place = Path(text).expanduser().absolute()
    if not place.is_dir():
        raise invalid(f"cwd is no folder: {text[:500]}")
    return place

"""The table of methods: params, result, what works on them, and what needs the experimental capability."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from commonplace.surfaces.app_server import account_methods, params, queries, shapes, thread_methods, turn_methods
from commonplace.surfaces.app_server.connection import Connection, Reply
from commonplace.surfaces.app_server.server import AppServer


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """One method."""

    params: type[Any]
    result: type[Any]
    run: Callable[[AppServer, Connection, Any], Awaitable[Reply]]
    experimental: bool = False
    experimental_fields: tuple[str, ...] = ()


_CONTEXT: Final = ("additionalContext", "responsesapiClientMetadata")
_NEW: Final = ("runtimeWorkspaceRoots", "permissions", "environments", "dynamicTools", "historyMode", "multiAgentMode")

METHODS: Final[dict[str, Method]] = {
    "thread/start": Method(
        params=params.ThreadStartParams,
        result=shapes.ThreadOpened,
        run=thread_methods.start,
        experimental_fields=_NEW,
    ),
    "thread/resume": Method(
        params=params.ThreadResumeParams,
        result=shapes.ThreadOpened,
        run=thread_methods.resume,
        experimental_fields=("history", "path", "excludeTurns", *_NEW),
    ),
    "thread/fork": Method(
        params=params.ThreadForkParams,
        result=shapes.ThreadOpened,
        run=thread_methods.fork,
        experimental_fields=("path", "excludeTurns", "beforeTurnId", *_NEW),
    ),
    "thread/list": Method(params=params.ThreadListParams, result=shapes.ThreadListResult, run=queries.thread_list),
    "thread/loaded/list": Method(params=params.PageParams, result=shapes.LoadedListResult, run=queries.loaded_list),
    "thread/read": Method(params=params.ThreadReadParams, result=shapes.ThreadResult, run=queries.thread_read),
    "thread/turns/list": Method(
        params=params.TurnListParams, result=shapes.TurnListResult, run=queries.turns_list, experimental=True
    ),
    "thread/archive": Method(params=params.ThreadParams, result=shapes.Empty, run=thread_methods.archive),
    "thread/unarchive": Method(params=params.ThreadParams, result=shapes.ThreadResult, run=thread_methods.unarchive),
    "thread/delete": Method(params=params.ThreadParams, result=shapes.Empty, run=thread_methods.delete),
    "thread/unsubscribe": Method(
        params=params.ThreadParams, result=shapes.UnsubscribeResult, run=thread_methods.unsubscribe
    ),
    "thread/name/set": Method(params=params.ThreadNameParams, result=shapes.Empty, run=thread_methods.set_name),
    "thread/rollback": Method(
        params=params.ThreadRollbackParams, result=shapes.ThreadResult, run=thread_methods.rollback
    ),
    "thread/revert": Method(
        params=params.ThreadRevertParams, result=shapes.ThreadResult, run=thread_methods.revert, experimental=True
    ),
    "thread/compact/start": Method(params=params.ThreadParams, result=shapes.Empty, run=turn_methods.compact),
    "thread/memoryMode/set": Method(
        params=params.MemoryModeParams, result=shapes.Empty, run=thread_methods.set_memory_mode, experimental=True
    ),
    "turn/start": Method(
        params=params.TurnStartParams,
        result=shapes.TurnResult,
        run=turn_methods.start,
        experimental_fields=(*_CONTEXT, *_NEW, "collaborationMode"),
    ),
    "turn/steer": Method(
        params=params.TurnSteerParams,
        result=shapes.TurnSteerResult,
        run=turn_methods.steer,
        experimental_fields=_CONTEXT,
    ),
    "turn/interrupt": Method(params=params.TurnInterruptParams, result=shapes.Empty, run=turn_methods.interrupt),
    "model/list": Method(params=params.ModelListParams, result=shapes.ModelListResult, run=queries.model_list),
    "config/read": Method(params=params.ConfigReadParams, result=shapes.ConfigReadResult, run=queries.config_read),
    "account/read": Method(params=params.AccountReadParams, result=shapes.AccountReadResult, run=account_methods.read),
    "account/login/start": Method(params=params.LoginParams, result=shapes.LoginResult, run=account_methods.login),
    "account/login/cancel": Method(
        params=params.LoginCancelParams, result=shapes.LoginCancelResult, run=account_methods.cancel_login
    ),
    "account/logout": Method(params=params.NoParams, result=shapes.Empty, run=account_methods.logout),
    "memory/status": Method(
        params=params.NoParams, result=shapes.MemoryStatusResult, run=queries.memory_status, experimental=True
    ),
    "memory/search": Method(
        params=params.MemorySearchParams, result=shapes.MemorySearchResult, run=queries.memory_search, experimental=True
    ),
    "memory/read": Method(
        params=params.MemoryReadParams, result=shapes.MemoryReadResult, run=queries.memory_read, experimental=True
    ),
    "memory/note": Method(
        params=params.MemoryNoteParams, result=shapes.MemoryNoteResult, run=queries.memory_note, experimental=True
    ),
    "memory/reset": Method(params=params.NoParams, result=shapes.Empty, run=queries.memory_reset, experimental=True),
}

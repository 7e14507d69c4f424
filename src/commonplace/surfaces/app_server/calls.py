"""Every method of the protocol: what goes in, what comes out, and what needs the experimental capability.

The server's table (`methods`), the schema and the client of the library are made of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from commonplace.surfaces.app_server import params, shapes

P = TypeVar("P")
R = TypeVar("R")


@dataclass(frozen=True)
class RpcMethod(Generic[P, R]):
    """One method."""

    name: str
    params: type[P]
    result: type[R]
    experimental: bool = False
    experimental_fields: tuple[str, ...] = ()


_CONTEXT: Final = ("additionalContext", "responsesapiClientMetadata")
_NEW: Final = ("runtimeWorkspaceRoots", "permissions", "environments", "dynamicTools", "historyMode", "multiAgentMode")

INITIALIZE: Final = RpcMethod("initialize", params.InitializeParams, shapes.InitializeResult)
THREAD_START: Final = RpcMethod(
    "thread/start",
    params.ThreadStartParams,
    shapes.ThreadOpened,
    experimental_fields=(
        "allowProviderModelFallback",
        "experimentalRawEvents",
        "projectId",
        "selectedCapabilityRoots",
        *_NEW,
    ),
)
THREAD_RESUME: Final = RpcMethod(
    "thread/resume",
    params.ThreadResumeParams,
    shapes.ThreadOpened,
    experimental_fields=("history", "path", "excludeTurns", "initialTurnsPage", *_NEW),
)
THREAD_FORK: Final = RpcMethod(
    "thread/fork",
    params.ThreadForkParams,
    shapes.ThreadOpened,
    experimental_fields=("path", "excludeTurns", "beforeTurnId", *_NEW),
)
THREAD_LIST: Final = RpcMethod(
    "thread/list",
    params.ThreadListParams,
    shapes.ThreadListResult,
    experimental_fields=("parentThreadId", "ancestorThreadId", "projectId"),
)
THREAD_LOADED_LIST: Final = RpcMethod("thread/loaded/list", params.PageParams, shapes.LoadedListResult)
THREAD_READ: Final = RpcMethod("thread/read", params.ThreadReadParams, shapes.ThreadReadResult)
THREAD_READ_STATE_UPDATE: Final = RpcMethod("thread/readState/update", params.ReadStateParams, shapes.ReadStateResult)
THREAD_TURNS_LIST: Final = RpcMethod(
    "thread/turns/list", params.TurnListParams, shapes.TurnListResult, experimental=True
)
THREAD_ARCHIVE: Final = RpcMethod("thread/archive", params.ThreadParams, shapes.Empty)
THREAD_UNARCHIVE: Final = RpcMethod("thread/unarchive", params.ThreadParams, shapes.ThreadResult)
THREAD_DELETE: Final = RpcMethod("thread/delete", params.ThreadParams, shapes.Empty)
THREAD_UNSUBSCRIBE: Final = RpcMethod("thread/unsubscribe", params.ThreadParams, shapes.UnsubscribeResult)
THREAD_NAME_SET: Final = RpcMethod("thread/name/set", params.ThreadNameParams, shapes.Empty)
THREAD_ROLLBACK: Final = RpcMethod("thread/rollback", params.ThreadRollbackParams, shapes.ThreadResult)
THREAD_REVERT: Final = RpcMethod("thread/revert", params.ThreadRevertParams, shapes.ThreadResult, experimental=True)
THREAD_COMPACT_START: Final = RpcMethod("thread/compact/start", params.ThreadParams, shapes.Empty)
THREAD_MEMORY_MODE_SET: Final = RpcMethod(
    "thread/memoryMode/set", params.MemoryModeParams, shapes.Empty, experimental=True
)
TURN_START: Final = RpcMethod(
    "turn/start", params.TurnStartParams, shapes.TurnResult, experimental_fields=(*_CONTEXT, *_NEW, "collaborationMode")
)
TURN_STEER: Final = RpcMethod(
    "turn/steer", params.TurnSteerParams, shapes.TurnSteerResult, experimental_fields=_CONTEXT
)
TURN_INTERRUPT: Final = RpcMethod("turn/interrupt", params.TurnInterruptParams, shapes.Empty)
MODEL_LIST: Final = RpcMethod("model/list", params.ModelListParams, shapes.ModelListResult)
CONFIG_READ: Final = RpcMethod("config/read", params.ConfigReadParams, shapes.ConfigReadResult)
ACCOUNT_READ: Final = RpcMethod("account/read", params.AccountReadParams, shapes.AccountReadResult)
ACCOUNT_LOGIN_START: Final = RpcMethod("account/login/start", params.LoginParams, shapes.LoginResult)
ACCOUNT_LOGIN_CANCEL: Final = RpcMethod("account/login/cancel", params.LoginCancelParams, shapes.LoginCancelResult)
ACCOUNT_LOGOUT: Final = RpcMethod("account/logout", params.NoParams, shapes.Empty)
MEMORY_STATUS: Final = RpcMethod("memory/status", params.NoParams, shapes.MemoryStatusResult, experimental=True)
MEMORY_SEARCH: Final = RpcMethod(
    "memory/search", params.MemorySearchParams, shapes.MemorySearchResult, experimental=True
)
MEMORY_READ: Final = RpcMethod("memory/read", params.MemoryReadParams, shapes.MemoryReadResult, experimental=True)
MEMORY_NOTE: Final = RpcMethod("memory/note", params.MemoryNoteParams, shapes.MemoryNoteResult, experimental=True)
MEMORY_RESET: Final = RpcMethod("memory/reset", params.NoParams, shapes.Empty, experimental=True)

ALL: Final[tuple[RpcMethod[Any, Any], ...]] = (
    INITIALIZE,
    THREAD_START,
    THREAD_RESUME,
    THREAD_FORK,
    THREAD_LIST,
    THREAD_LOADED_LIST,
    THREAD_READ,
    THREAD_READ_STATE_UPDATE,
    THREAD_TURNS_LIST,
    THREAD_ARCHIVE,
    THREAD_UNARCHIVE,
    THREAD_DELETE,
    THREAD_UNSUBSCRIBE,
    THREAD_NAME_SET,
    THREAD_ROLLBACK,
    THREAD_REVERT,
    THREAD_COMPACT_START,
    THREAD_MEMORY_MODE_SET,
    TURN_START,
    TURN_STEER,
    TURN_INTERRUPT,
    MODEL_LIST,
    CONFIG_READ,
    ACCOUNT_READ,
    ACCOUNT_LOGIN_START,
    ACCOUNT_LOGIN_CANCEL,
    ACCOUNT_LOGOUT,
    MEMORY_STATUS,
    MEMORY_SEARCH,
    MEMORY_READ,
    MEMORY_NOTE,
    MEMORY_RESET,
)

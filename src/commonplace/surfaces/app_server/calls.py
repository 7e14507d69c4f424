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
class Call(Generic[P, R]):
    """One method."""

    name: str
    params: type[P]
    result: type[R]
    experimental: bool = False
    experimental_fields: tuple[str, ...] = ()


_CONTEXT: Final = ("additionalContext", "responsesapiClientMetadata")
_NEW: Final = ("runtimeWorkspaceRoots", "permissions", "environments", "dynamicTools", "historyMode", "multiAgentMode")

INITIALIZE: Final = Call("initialize", params.InitializeParams, shapes.InitializeResult)
THREAD_START: Final = Call("thread/start", params.ThreadStartParams, shapes.ThreadOpened, experimental_fields=_NEW)
THREAD_RESUME: Final = Call(
    "thread/resume",
    params.ThreadResumeParams,
    shapes.ThreadOpened,
    experimental_fields=("history", "path", "excludeTurns", *_NEW),
)
THREAD_FORK: Final = Call(
    "thread/fork",
    params.ThreadForkParams,
    shapes.ThreadOpened,
    experimental_fields=("path", "excludeTurns", "beforeTurnId", *_NEW),
)
THREAD_LIST: Final = Call(
    "thread/list",
    params.ThreadListParams,
    shapes.ThreadListResult,
    experimental_fields=("parentThreadId", "ancestorThreadId"),
)
THREAD_LOADED_LIST: Final = Call("thread/loaded/list", params.PageParams, shapes.LoadedListResult)
THREAD_READ: Final = Call("thread/read", params.ThreadReadParams, shapes.ThreadReadResult)
THREAD_READ_STATE_UPDATE: Final = Call("thread/readState/update", params.ReadStateParams, shapes.ReadStateResult)
THREAD_TURNS_LIST: Final = Call("thread/turns/list", params.TurnListParams, shapes.TurnListResult, experimental=True)
THREAD_ARCHIVE: Final = Call("thread/archive", params.ThreadParams, shapes.Empty)
THREAD_UNARCHIVE: Final = Call("thread/unarchive", params.ThreadParams, shapes.ThreadResult)
THREAD_DELETE: Final = Call("thread/delete", params.ThreadParams, shapes.Empty)
THREAD_UNSUBSCRIBE: Final = Call("thread/unsubscribe", params.ThreadParams, shapes.UnsubscribeResult)
THREAD_NAME_SET: Final = Call("thread/name/set", params.ThreadNameParams, shapes.Empty)
THREAD_ROLLBACK: Final = Call("thread/rollback", params.ThreadRollbackParams, shapes.ThreadResult)
THREAD_REVERT: Final = Call("thread/revert", params.ThreadRevertParams, shapes.ThreadResult, experimental=True)
THREAD_COMPACT_START: Final = Call("thread/compact/start", params.ThreadParams, shapes.Empty)
THREAD_MEMORY_MODE_SET: Final = Call("thread/memoryMode/set", params.MemoryModeParams, shapes.Empty, experimental=True)
TURN_START: Final = Call(
    "turn/start", params.TurnStartParams, shapes.TurnResult, experimental_fields=(*_CONTEXT, *_NEW, "collaborationMode")
)
TURN_STEER: Final = Call("turn/steer", params.TurnSteerParams, shapes.TurnSteerResult, experimental_fields=_CONTEXT)
TURN_INTERRUPT: Final = Call("turn/interrupt", params.TurnInterruptParams, shapes.Empty)
MODEL_LIST: Final = Call("model/list", params.ModelListParams, shapes.ModelListResult)
CONFIG_READ: Final = Call("config/read", params.ConfigReadParams, shapes.ConfigReadResult)
ACCOUNT_READ: Final = Call("account/read", params.AccountReadParams, shapes.AccountReadResult)
ACCOUNT_LOGIN_START: Final = Call("account/login/start", params.LoginParams, shapes.LoginResult)
ACCOUNT_LOGIN_CANCEL: Final = Call("account/login/cancel", params.LoginCancelParams, shapes.LoginCancelResult)
ACCOUNT_LOGOUT: Final = Call("account/logout", params.NoParams, shapes.Empty)
MEMORY_STATUS: Final = Call("memory/status", params.NoParams, shapes.MemoryStatusResult, experimental=True)
MEMORY_SEARCH: Final = Call("memory/search", params.MemorySearchParams, shapes.MemorySearchResult, experimental=True)
MEMORY_READ: Final = Call("memory/read", params.MemoryReadParams, shapes.MemoryReadResult, experimental=True)
MEMORY_NOTE: Final = Call("memory/note", params.MemoryNoteParams, shapes.MemoryNoteResult, experimental=True)
MEMORY_RESET: Final = Call("memory/reset", params.NoParams, shapes.Empty, experimental=True)

ALL: Final[tuple[Call[Any, Any], ...]] = (
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

"""The table of methods: what works on each call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec

from commonplace.surfaces.app_server import account_methods, calls, queries, thread_methods, turn_methods
from commonplace.surfaces.app_server.calls import RpcMethod
from commonplace.surfaces.app_server.connection import Connection, Reply
from commonplace.surfaces.app_server.server import AppServer
from commonplace.surfaces.app_server.turn_methods import Run

P = TypeVar("P")


class Method(msgspec.Struct, frozen=True):
    """One method and what works on it."""

    call: RpcMethod[Any, Any]
    run: Callable[[AppServer, Any], Run]
    """Takes the request when it comes, and returns what works on it when its turn comes."""


def _method(call: RpcMethod[P, Any], run: Callable[[AppServer, Connection, P], Awaitable[Reply]]) -> Method:
    """Return a method whose function takes the params of its call."""
    return Method(call, lambda server, params: run)


_TABLE: Final = (
    _method(calls.THREAD_START, thread_methods.start),
    _method(calls.THREAD_RESUME, thread_methods.resume),
    _method(calls.THREAD_FORK, thread_methods.fork),
    _method(calls.THREAD_LIST, queries.thread_list),
    _method(calls.THREAD_LOADED_LIST, queries.loaded_list),
    _method(calls.THREAD_READ, queries.thread_read),
    _method(calls.THREAD_READ_STATE_UPDATE, thread_methods.mark),
    _method(calls.THREAD_TURNS_LIST, queries.turns_list),
    _method(calls.THREAD_ARCHIVE, thread_methods.archive),
    _method(calls.THREAD_UNARCHIVE, thread_methods.unarchive),
    _method(calls.THREAD_DELETE, thread_methods.delete),
    _method(calls.THREAD_UNSUBSCRIBE, thread_methods.unsubscribe),
    _method(calls.THREAD_NAME_SET, thread_methods.set_name),
    _method(calls.THREAD_ROLLBACK, thread_methods.rollback),
    _method(calls.THREAD_REVERT, thread_methods.revert),
    _method(calls.THREAD_COMPACT_START, turn_methods.compact),
    _method(calls.THREAD_MEMORY_MODE_SET, thread_methods.set_memory_mode),
    _method(calls.TURN_START, turn_methods.start),
    _method(calls.TURN_STEER, turn_methods.steer),
    Method(calls.TURN_INTERRUPT, turn_methods.interrupt),
    _method(calls.MODEL_LIST, queries.model_list),
    _method(calls.CONFIG_READ, queries.config_read),
    _method(calls.ACCOUNT_READ, account_methods.read),
    _method(calls.ACCOUNT_LOGIN_START, account_methods.login),
    _method(calls.ACCOUNT_LOGIN_CANCEL, account_methods.cancel_login),
    _method(calls.ACCOUNT_LOGOUT, account_methods.logout),
    _method(calls.MEMORY_STATUS, queries.memory_status),
    _method(calls.MEMORY_SEARCH, queries.memory_search),
    _method(calls.MEMORY_READ, queries.memory_read),
    _method(calls.MEMORY_NOTE, queries.memory_note),
    _method(calls.MEMORY_RESET, queries.memory_reset),
)
METHODS: Final[dict[str, Method]] = {method.call.name: method for method in _TABLE}

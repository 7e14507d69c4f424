"""The methods that start, steer and end turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from commonplace.agent.turn_changes import TurnChanges
from commonplace.config import Sandbox
from commonplace.surfaces.app_server import approval_params, inputs, thread_methods, thread_views
from commonplace.surfaces.app_server.connection import Connection, Reply
from commonplace.surfaces.app_server.messages import invalid
from commonplace.surfaces.app_server.params import ThreadParams, TurnInterruptParams, TurnStartParams, TurnSteerParams
from commonplace.surfaces.app_server.server import AppServer
from commonplace.surfaces.app_server.shapes import Empty

Run = Callable[[AppServer, Connection, Any], Awaitable[Reply]]
"""What works on a request."""
_MODES: Final[dict[str, Sandbox]] = {
    "dangerFullAccess": "danger-full-access",
    "externalSandbox": "danger-full-access",
    "readOnly": "read-only",
    "workspaceWrite": "workspace-write",
}


async def start(server: AppServer, client: Connection, params: TurnStartParams) -> Reply:
    """Start a turn, or steer the one that runs; settings hold for the turns after it, too."""
    opened = server.open_thread(params.thread_id)
    given = inputs.read(params.input, params.additional_context, params.output_schema, params.client_user_message_id)
    if params.tool_output is not None:
        given = inputs.external(given, params.tool_output)
    changes = _changes(server, client, params)

    def change() -> None:
        before = opened.thread.profile
        opened.thread.change(**changes)
        if opened.thread.profile != before:
            opened.tell("thread/settings/updated", {"threadSettings": thread_views.settings(opened)})

    return await opened.start_turn(given, change)


def _changes(server: AppServer, client: Connection, params: TurnStartParams) -> TurnChanges:
    """Return the settings that a turn changes (raises RpcError: they cannot be used)."""
    changes = TurnChanges(cwd=thread_methods.folder(params.cwd), effort=params.effort, summary=params.summary)
    if params.model is not None:
        changes["model"] = thread_methods.model_name(server, params.model)
    changes |= approval_params.changes(client, params.approval_policy)
    if params.personality is not None:
        changes["personality"] = params.personality
    if (wanted := params.collaboration_mode) is not None:
        settings = wanted.settings
        changes |= {"mode": wanted.mode, "model": thread_methods.model_name(server, settings.model)}
        changes["mode_words"] = settings.developer_instructions
        changes["effort"] = settings.reasoning_effort or params.effort
    if (allowed := params.sandbox_policy) is not None:
        changes["sandbox"] = _MODES[allowed.type]
        changes["network"] = allowed.network_access in (True, "enabled")
        changes["roots"] = tuple(Path(root).expanduser().absolute() for root in allowed.writable_roots or ())
    return changes


async def steer(server: AppServer, client: Connection, params: TurnSteerParams) -> Reply:
    """Put input into the running turn."""
    del client
    opened = server.open_thread(params.thread_id)
    if not params.expected_turn_id:
        raise invalid("expectedTurnId must not be empty")
    given = inputs.read(params.input, params.additional_context, None, params.client_user_message_id)
    return opened.steer(given, params.expected_turn_id)


def interrupt(server: AppServer, params: TurnInterruptParams) -> Run:
    """End the running turn: the one that runs when the request comes, which another one may end before it."""
    opened = server.threads.get(params.thread_id.lower())
    ran = opened.running.id if opened is not None and opened.running is not None else None

    async def run(server: AppServer, client: Connection, params: TurnInterruptParams) -> Reply:
        del client
        opened = server.open_thread(params.thread_id)
        if ran is not None and ran == params.turn_id and opened.was_interrupted(ran):
            return Reply(Empty())
        return await opened.interrupt(params.turn_id)

    return run


async def compact(server: AppServer, client: Connection, params: ThreadParams) -> Reply:
    """Start to shorten the history."""
    del client
    return await server.open_thread(params.thread_id).start_compaction()

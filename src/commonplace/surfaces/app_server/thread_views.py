"""Threads and turns as clients see them, from what the library says of them."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from commonplace.agent.sandbox import policy
from commonplace.sessions.turn_list import StoredTurn, ThreadDescription
from commonplace.surfaces.app_server import items
from commonplace.surfaces.app_server.open_thread import ServedThread
from commonplace.surfaces.app_server.server import AppServer
from commonplace.surfaces.app_server.shapes import (
    NotLoadedStatus,
    ThreadOpened,
    ThreadStatus,
    TurnStatus,
    WireGitInfo,
    WireThread,
    WireTurn,
)
from commonplace.surfaces.app_server.turn_events import camel, stored_failure
from commonplace.version import __version__

Json = dict[str, Any]
_STATUS: Final[dict[str, TurnStatus]] = {
    "completed": "completed",
    "interrupted": "interrupted",
    "failed": "failed",
    "in_progress": "inProgress",
}
_SOURCES: Final = frozenset({"cli", "vscode", "exec", "appServer", "unknown"})
_SUB_AGENTS: Final = ("review", "compact", "memory_consolidation")
_SUB_AGENT_TABLES: Final = frozenset({"thread_spawn", "other"})
_MODES: Final = {"read-only": "readOnly", "workspace-write": "workspaceWrite", "danger-full-access": "dangerFullAccess"}


async def stored(server: AppServer, thread_id: str, *, with_turns: bool = False) -> WireThread:
    """Return a thread as its file has it, open or not (raises UnknownThread, LedgerError)."""
    found = await server.book.sessions.describe(thread_id)
    opened = server.threads.get(thread_id)
    turns = await stored_turns(server, thread_id) if with_turns else []
    if opened is None:
        return describe(found, NotLoadedStatus(), turns)
    profile, thread = opened.thread.profile, describe(found, opened.status, turns)
    return msgspec.structs.replace(thread, model=profile.choice.slug, reasoning_effort=profile.effort)


async def stored_turns(server: AppServer, thread_id: str) -> list[WireTurn]:
    """Return the turns of a thread, oldest first; a turn that no server runs any more was interrupted."""
    opened = server.threads.get(thread_id)
    if opened is not None:
        await opened.thread.session.ledger.flush()
    running = opened.running.id if opened is not None and opened.running is not None else None
    return [turn(each, running) for each in await server.book.sessions.turns(thread_id)]


async def view(server: AppServer, opened: ServedThread, *, with_turns: bool = False) -> WireThread:
    """Return an open thread; one in which nothing happened yet has no file."""
    if opened.thread.path is not None and opened.thread.path.exists():
        return await stored(server, opened.id, with_turns=with_turns)
    return without_file(server, opened)


def without_file(server: AppServer, opened: ServedThread) -> WireThread:
    """Return an open thread as it is known without its file."""
    session = opened.thread.session
    profile, now = opened.thread.profile, int(server.book.settings.now().timestamp())
    agent = profile.agent
    return WireThread(
        id=opened.id,
        session_id=opened.id if agent is None else agent.session_id,
        parent_thread_id=None if agent is None else agent.parent_id,
        preview=opened.thread.first_words(),
        ephemeral=opened.thread.path is None,
        model_provider=profile.choice.name,
        model=profile.choice.slug,
        reasoning_effort=profile.effort,
        created_at=now,
        updated_at=now,
        recency_at=now,
        status=opened.status,
        path=None if session.ledger.path is None else str(session.ledger.path),
        cwd=str(profile.cwd),
        cli_version=__version__,
        originator=profile.originator,
        source=source(profile.source),
        thread_source=profile.thread_source,
        agent_nickname=None if agent is None else agent.nickname,
        agent_role=None if agent is None else agent.role,
        can_accept_direct_input=True,
    )


def describe(found: ThreadDescription, status: ThreadStatus, turns: list[WireTurn]) -> WireThread:
    """Return a thread from what its file says."""
    git = found.git
    return WireThread(
        id=found.thread_id,
        session_id=found.session_id,
        forked_from_id=found.forked_from,
        parent_thread_id=found.parent,
        preview=found.preview,
        history_mode="paginated" if found.history_mode == "paginated" else "legacy",
        model_provider=found.provider,
        created_at=found.created_at,
        updated_at=found.updated_at,
        recency_at=found.updated_at,
        status=status,
        path=str(found.path),
        cwd=found.cwd,
        cli_version=found.version,
        originator=found.originator or None,
        source=source(found.source),
        thread_source=found.thread_source,
        agent_nickname=found.agent_nickname,
        agent_role=found.agent_role,
        git_info=None
        if git is None
        else WireGitInfo(sha=git.commit_hash, branch=git.branch, origin_url=git.repository_url),
        name=found.name,
        can_accept_direct_input=True,
        turns=turns,
    )


def source(noted: Any) -> Any:
    """Return where a thread comes from, in the words that clients know."""
    if isinstance(noted, str):
        return noted if noted in _SOURCES else {"custom": noted}
    inner: Any = cast("Json", noted).get("subagent") if isinstance(noted, dict) else None
    if isinstance(inner, dict):
        table = cast("Json", inner)
        return {"subAgent": table if not table.keys().isdisjoint(_SUB_AGENT_TABLES) else {"other": "unknown"}}
    if inner is None:
        return "unknown"
    return {"subAgent": inner if inner in _SUB_AGENTS else {"other": "unknown"}}


def turn(found: StoredTurn, running: str | None) -> WireTurn:
    """Return a turn from what its thread's file says."""
    status = _STATUS[found.status]
    if status == "inProgress" and found.id != running:
        status = "interrupted"
    return WireTurn(
        id=found.id,
        items=items.all_stored(found.items),
        status=status,
        error=None if found.error is None else stored_failure(found.error, found.error_code),
        started_at=found.started_at,
        completed_at=found.completed_at,
        duration_ms=found.duration_ms,
    )


def opened_result(opened: ServedThread, thread: WireThread) -> ThreadOpened:
    """Return the result of starting, resuming or forking a thread."""
    profile = opened.thread.profile
    return ThreadOpened(
        thread=thread,
        model=profile.choice.slug,
        model_provider=profile.choice.name,
        cwd=str(profile.cwd),
        runtime_workspace_roots=[str(profile.cwd), *map(str, profile.roots)],
        approval_policy=profile.approval_policy,
        sandbox=_sandbox(opened),
        reasoning_effort=profile.effective_effort,
    )


def settings(opened: ServedThread) -> Json:
    """Return how the next turn of a thread runs."""
    profile = opened.thread.profile
    model = {"model": profile.choice.slug, "reasoning_effort": profile.effort, "developer_instructions": None}
    return {
        "model": profile.choice.slug,
        "modelProvider": profile.choice.name,
        "serviceTier": None,
        "cwd": str(profile.cwd),
        "approvalPolicy": profile.approval_policy,
        "approvalsReviewer": "user",
        "sandboxPolicy": _sandbox(opened),
        "effort": profile.effective_effort,
        "summary": profile.summary,
        "personality": profile.personality,
        "collaborationMode": {"mode": "plan" if profile.mode == "plan" else "default", "settings": model},
    }


def _sandbox(opened: ServedThread) -> Json:
    profile = opened.thread.profile
    allowed = policy.wire(opened.thread.session.sandbox.policy(profile))
    return {camel(key): value for key, value in allowed.items()} | {"type": _MODES[profile.sandbox]}


def without_turns(thread: WireThread) -> WireThread:
    """Return a thread without its turns, as notifications carry it."""
    return msgspec.structs.replace(thread, turns=[])

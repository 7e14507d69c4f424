"""Who a sub-agent is, as the first line of its ledger tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from commonplace.protocol.rollout import SessionMeta

THREAD_SOURCE: Final = "subagent"
"""What started a sub-agent's thread, in the words of the format."""

_KNOWN: Final = ("review", "compact")
"""Purposes that the format has names for."""


class AgentIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """A sub-agent: whose it is, how deep in the tree, and what it is called."""

    parent_id: str
    """The thread that started it."""
    session_id: str
    """The thread at the root of the tree."""
    depth: int
    """1 for a sub-agent of the root."""
    nickname: str | None = None
    role: str | None = None
    purpose: str | None = None
    """What a delegate of this program is for; None for a sub-agent that a model started."""

    def source(self) -> dict[str, Any]:
        """Return where its thread comes from, as its first line says it."""
        if self.purpose is not None:
            return {THREAD_SOURCE: self.purpose if self.purpose in _KNOWN else {"other": self.purpose}}
        spawned = {
            "parent_thread_id": self.parent_id,
            "depth": self.depth,
            "agent_path": None,
            "agent_nickname": self.nickname,
            "agent_role": self.role,
        }
        return {THREAD_SOURCE: {"thread_spawn": spawned}}

    def meta(self) -> dict[str, Any]:
        """Return the fields that its first line has besides those of every thread."""
        fields = {
            "session_id": self.session_id,
            "parent_thread_id": self.parent_id,
            "source": self.source(),
            "thread_source": self.purpose or THREAD_SOURCE,
            "agent_nickname": self.nickname,
            "agent_role": self.role,
        }
        return {name: value for name, value in fields.items() if value is not None}


class _Spawned(msgspec.Struct):
    parent_thread_id: str
    depth: int = 1
    agent_nickname: str | None = None
    agent_role: str | None = None


def of_meta(meta: SessionMeta) -> AgentIdentity | None:
    """Return who the sub-agent of a ledger is; None for a thread that no agent started."""
    source: Any = meta.source
    inner: Any = cast("Mapping[str, Any]", source).get(THREAD_SOURCE) if isinstance(source, dict) else None
    spawned: Any = cast("Mapping[str, Any]", inner).get("thread_spawn") if isinstance(inner, dict) else None
    try:
        found = msgspec.convert(spawned, _Spawned)
    except msgspec.ValidationError:
        return None
    return AgentIdentity(
        parent_id=found.parent_thread_id,
        session_id=meta.session_id or found.parent_thread_id,
        depth=max(found.depth, 1),
        nickname=meta.agent_nickname or found.agent_nickname,
        role=meta.agent_role or found.agent_role,
    )

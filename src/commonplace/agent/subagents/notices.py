"""What a parent is told when a sub-agent is done: a text in its history, in Codex's form, that starts no turn."""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.agent.subagents.status import AgentStatus
from commonplace.context import truncate
from commonplace.context.injected_messages import InjectedText

KIND: Final = "multi_agent.subagent_notification"
TOKENS: Final = 2_000
"""Room for what the agent said last: a notice comes unasked, and wait_agent gives the whole."""


def completion(thread_id: str, status: AgentStatus) -> InjectedText:
    """Return the notice that an agent is done."""
    message = None if status.message is None else truncate.truncate(status.message, TOKENS)
    told = {"agent_path": thread_id, "status": AgentStatus(status.kind, message).wire()}
    text = f"<subagent_notification>\n{msgspec.json.encode(told).decode()}\n</subagent_notification>"
    return InjectedText("user", text, KIND, alone=True)

"""How deep agents may start agents, how many may be open, and how long one may wait for them. Pure."""

from __future__ import annotations

from typing import Final

from commonplace.agent.tools.arguments import bad_arguments
from commonplace.config import AgentSettings
from commonplace.errors import ToolError

DEFAULT_WAIT_MS: Final = 30_000
"""How long `wait_agent` waits when it is not told."""
LEAST_WAIT_MS: Final = 10_000
"""A shorter wait would have the model ask again and again."""
MOST_WAIT_MS: Final = 3_600_000
"""An hour: whoever waits longer is better told by the notice."""


def may_start(agents: AgentSettings, depth: int) -> bool:
    """Return whether an agent of a depth (0: the session itself) gets the tools that start others."""
    return agents.enabled and depth < agents.max_depth


def check_depth(agents: AgentSettings, depth: int) -> None:
    """Refuse an agent that would stand deeper than is allowed (raises ToolError)."""
    if depth > agents.max_depth:
        raise ToolError("depth", "Agent depth limit reached.", hint="Solve the task yourself.")


def check_room(agents: AgentSettings, open_agents: int) -> None:
    """Refuse one more agent where as many are open as may be (raises ToolError)."""
    if open_agents >= agents.max_concurrent_threads_per_session:
        raise ToolError(
            "limit",
            f"agent thread limit reached ({agents.max_concurrent_threads_per_session})",
            hint="Close an agent that is done with close_agent.",
        )


def wait_seconds(timeout_ms: int | None) -> float:
    """Return how long to wait (raises ToolError: the time is not above 0)."""
    wanted = DEFAULT_WAIT_MS if timeout_ms is None else timeout_ms
    if wanted <= 0:
        raise bad_arguments("timeout_ms must be greater than zero")
    return min(max(wanted, LEAST_WAIT_MS), MOST_WAIT_MS) / 1000

"""What a session begins with: a new thread's nothing, or what a ledger tells of an old one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from anyio.abc import TaskGroup

from commonplace.agent.hooks.points import Start
from commonplace.agent.tools.processes import Processes
from commonplace.context.history import History
from commonplace.context.reconstruct import Window
from commonplace.protocol.rollout import TurnContext
from commonplace.rollout.recorder import Recorder

if TYPE_CHECKING:
    from commonplace.context.digest.tally import Tally


class Begun(msgspec.Struct, kw_only=True):
    """The state at the beginning."""

    processes: Processes
    tasks: TaskGroup
    """Where what goes on in the background lives."""
    recorder: Recorder | None = None
    """None: the session leaves no file."""
    history: History = msgspec.field(default_factory=History)
    window: Window
    reference: TurnContext | None = None
    """The context that the model was last told in full."""
    baseline: Mapping[str, Any] | None = None
    """The newest snapshot of the world."""
    previous_model: str | None = None
    start: Start = "startup"
    """Why it begins, for hooks."""
    tally: Callable[[], Tally] | None = None
    """Counts everything that an old thread did; it takes a while, so only a compaction asks for it."""

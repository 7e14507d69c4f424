"""The memory mode of a thread: a person decides whether memory may learn from it; the decision is kept beside the
ledgers.
"""

from __future__ import annotations

from typing import Any, Final

import anyio.to_thread

from commonplace.errors import BadInput
from commonplace.protocol.ids import wire_time
from commonplace.rollout import decisions
from commonplace.rollout.chain import read_head
from commonplace.sessions.resolve import resolve
from commonplace.state.home import Home

MODES: Final = ("enabled", "disabled")


async def set_mode(home: Home, thread: str, mode: str) -> dict[str, Any]:
    """Decide whether memory may learn from a thread (raises BadInput, UnknownThread)."""
    if mode not in MODES:
        raise BadInput(f"{mode!r} is not a mode.", hint="Use enabled or disabled.")
    target = await resolve(home, thread)
    _, meta = await anyio.to_thread.run_sync(read_head, target.path)
    moment = wire_time(home.now())
    await anyio.to_thread.run_sync(
        lambda: decisions.append(home.path, "mode", moment, thread_id=meta.id, memory_mode=mode)
    )
    await (await home.index()).set_mode(meta.id, mode)
    return {"thread_id": meta.id, "memory_mode": mode}

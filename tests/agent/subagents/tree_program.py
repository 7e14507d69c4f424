"""A session that grows a tree of 30 sub-agents and says so; whoever started it kills it then.

    argument    the folder to work in

The session starts five agents, each of which starts five that never end their turns.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator

import anyio
import msgspec

from commonplace.app import book as books
from commonplace.models.base import Event, Request
from commonplace.models.scripted import ScriptedModel, answer, call, say

FLAGS = {"agents.max_depth": 2, "agents.max_concurrent_threads_per_session": 30}


class Gardener:
    """A model that starts five agents where its task says how many rows are to grow."""

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        said = [msgspec.json.decode(raw) for raw in request.input]
        tasks = [part["text"] for item in said for part in item.get("content") or () if "text" in part]
        rows = int(next(text for text in tasks if text.startswith("grow "))[5:])
        if rows == 0:
            await anyio.sleep_forever()
        begun = any(item["type"] == "function_call_output" for item in said)
        task = {"message": f"grow {rows - 1}", "agent_type": "worker"}
        calls = [call("spawn_agent", task, f"s{number}") for number in range(5)]
        async for event in ScriptedModel(answer(say("Grown.")) if begun else answer(*calls)).stream(request):
            yield event

    async def aclose(self) -> None:
        pass


async def main(folder: str) -> None:
    async with books.open(flags=FLAGS) as book:
        thread = await book.start(cwd=folder, speaker=Gardener(), sandbox="danger-full-access")
        await thread.turn("grow 2")
        grown = anyio.Event()

        def look(_: object) -> None:
            kinds = sorted(agent.status.kind for agent in thread.agents)
            if kinds == ["completed"] * 5 + ["running"] * 25:
                grown.set()

        assert thread.tree is not None
        thread.tree.listen(look)
        await grown.wait()
        names = [[each.thread_id, each.parent_id, each.nickname, each.role] for each in thread.agents]
        os.write(1, msgspec.json.encode({"root": thread.id, "agents": names}) + b"\n")
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])

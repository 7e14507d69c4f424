"""Agents that are started, told, closed, opened again and interrupted in any order, at any moment.

Whatever happened: never more agents are open than may be, a parent is told at most once for each start and each resume,
closed agents have no turn, every ledger is sound, and the session goes on.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest
from session_invariants import ledger, recorded_wrongly

import commonplace
from commonplace.agent import events, user_input
from commonplace.agent.subagents import restoration
from commonplace.agent.subagents.agent import Agent
from commonplace.agent.subagents.inheritance import Wish
from commonplace.agent.subagents.tree import AgentTree
from commonplace.agent.thread import Thread
from commonplace.errors import BadInput, ToolError
from commonplace.models.base import Event, Request
from commonplace.models.scripted import ScriptedModel, answer, call, say

PLACES = 4
FLAGS = {"agents.max_depth": 2, "agents.max_concurrent_threads_per_session": PLACES}


class Worker:
    """A model that works for a while, sometimes calls a tool, and ends."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        for _ in range(self._chance.randrange(6)):
            await anyio.lowlevel.checkpoint()
        calls = [call("update_plan", {"plan": []}, f"p{self._chance.random()}")]
        if any(getattr(each, "name", "") == "spawn_agent" for each in request.tools):
            calls.append(call("spawn_agent", {"message": "work"}, f"s{self._chance.random()}"))
        step = answer(*calls) if self._chance.random() < 0.3 else answer(say("Done."))
        async for event in ScriptedModel(step).stream(request):
            await anyio.lowlevel.checkpoint()
            yield event

    async def aclose(self) -> None:
        pass


class Play:
    """One session, and what is done to its agents."""

    def __init__(self, thread: Thread, chance: random.Random) -> None:
        assert isinstance(thread.tree, AgentTree)
        self.thread, self.tree, self.chance = thread, thread.tree, chance
        self.begun: Counter[str] = Counter()
        """How often each agent was opened."""
        self.seen: list[Agent] = []
        self.most = 0
        self.tree.listen(self.look)

    @property
    def ids(self) -> list[str]:
        return sorted(self.begun)

    def look(self, agent: Agent) -> None:
        if agent not in self.seen:
            self.seen.append(agent)
            self.begun[agent.thread_id] += agent.live() is not None
        live = [each for each in self.tree.agents() if each.live() is not None]
        self.most = max(self.most, len(live))

    async def act(self) -> None:
        """Do something that may not be possible."""
        for _ in range(self.chance.randrange(8)):
            await anyio.lowlevel.checkpoint()
        acts = [self.spawn, self.send, self.close, self.resume, self.wait, self.interrupt, self.turn]
        with contextlib.suppress(ToolError, BadInput):
            await self.chance.choice([*acts, self.spawn, self.send])()

    def some(self) -> str:
        return self.chance.choice([*self.ids, self.thread.id])

    async def spawn(self) -> None:
        await self.tree.spawn(self.some(), user_input.text("work"), None, Wish(), fork=self.chance.random() < 0.3)

    async def send(self) -> None:
        await self.tree.send(self.some(), user_input.text("more"), interrupt=self.chance.random() < 0.3)

    async def close(self) -> None:
        await self.tree.close(self.some())

    async def resume(self) -> None:
        await restoration.resume(self.tree, self.some())

    async def wait(self) -> None:
        await self.tree.wait([self.some()], 0.01)

    async def interrupt(self) -> None:
        await self.thread.interrupt()

    async def turn(self) -> None:
        await self.thread.turn("go on")


async def play(folder: Path, seed: int, acts: int) -> None:
    chance = random.Random(seed)
    async with commonplace.open(flags=FLAGS) as book:
        thread = await book.start(cwd=folder, speaker=Worker(chance), sandbox="danger-full-access")
        it = Play(thread, chance)
        for _ in range(acts):
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(it.act)
        await thread.interrupt()
        end = await thread.turn("The last one.")
        assert isinstance(end, events.TurnCompleted), end
        paths = [Path(each.path) for name in it.ids for each in [await book.sessions.describe(name)]]
        closed = [agent for name in it.ids if (agent := it.tree.find(name)) is not None and agent.live() is None]
        assert {agent.status.kind for agent in closed} <= {"shutdown", "not_found"}
        assert it.most <= PLACES
        own = thread.path
        assert own is not None
        if seed % 2:  # the book is closed while they work
            book.tasks.start_soon(thread.turn, "And once more.")
            await anyio.lowlevel.checkpoint()
    for path in (own, *paths):
        assert recorded_wrongly(path) == [], path
    for name in it.ids:
        agent = it.tree.find(name)
        assert agent is not None
        (parent,) = [path for path in (own, *paths) if agent.identity.parent_id in path.name]
        assert notices(parent, name) <= it.begun[name]


def notices(path: Path, thread_id: str) -> int:
    """Return how often a ledger has the notice that an agent is done."""
    begin = f'<subagent_notification>\n{{"agent_path":"{thread_id}"'
    contents: list[list[dict[str, Any]]] = [line["payload"].get("content") or [] for line in ledger(path)]
    return sum(str(part.get("text", "")).startswith(begin) for content in contents for part in content)


@pytest.mark.parametrize("seed", [1, 2])
async def test_whatever_is_done_to_agents_at_once_their_tree_stays_sound(tmp_path: Path, seed: int) -> None:
    with anyio.fail_after(100):
        await play(tmp_path, seed, 12)


@pytest.mark.soak
async def test_many_more_of_them(tmp_path: Path) -> None:
    for seed in range(100, 140):
        with anyio.fail_after(200):
            await play(tmp_path, seed, 40)

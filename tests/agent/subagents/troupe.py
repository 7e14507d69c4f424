"""A model that plays the agents of one session: each thread has a script of its own.

The first thread that asks is the root and follows the first script; a sub-agent is known by the task that it was given
first. What each was asked is kept by its name in the troupe.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import msgspec
from scripted_session import Model

from commonplace.agent import events
from commonplace.agent.thread import Thread
from commonplace.app.book import Book
from commonplace.models.base import Event, FunctionTool, Request
from commonplace.models.scripted import Answer, Step, answer, call, say

Json = dict[str, Any]
ROOT = "root"


class Troupe:
    """Scripts by name: `root`, and sub-agents by their tasks."""

    def __init__(self, *root: Step, **others: tuple[Step, ...]) -> None:
        self.models = {ROOT: Model(*root), **{name.replace("_", " "): Model(*steps) for name, steps in others.items()}}
        self._names: dict[str, str] = {}

    def add(self, name: str, *steps: Step) -> None:
        self.models.setdefault(name, Model()).add(*steps)

    def check(self) -> None:
        for model in self.models.values():
            model.check()

    async def aclose(self) -> None:
        pass

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        key = request.prompt_cache_key or ""
        if key not in self._names:
            self._names[key] = self._name(request)
        async for event in self.models[self._names[key]].stream(request):
            yield event

    def _name(self, request: Request) -> str:
        """Return whose request the first one of a thread is."""
        if not self._names:
            return ROOT
        texts = b"\n".join(request.input).decode()
        found = [name for name in self.models if name != ROOT and f'"{name}"' in texts]
        assert len(found) == 1, f"{found} of {[*self.models]}: {texts[-500:]}"
        return found[0]

    def items(self, name: str = ROOT, at: int = -1) -> list[Json]:
        return [msgspec.json.decode(raw) for raw in self.models[name].requests[at].input]

    def offered(self, name: str) -> set[str]:
        """Return the tools about agents that the model of one is offered."""
        tools = self.models[name].requests[0].tools
        return {each.name for each in tools if isinstance(each, FunctionTool) and each.namespace == "multi_agent_v1"}

    def output(self, call_id: str, name: str = ROOT) -> Any:
        """Return what the newest request of an agent says of a call, parsed where it is JSON."""
        (text,) = [each["output"] for each in self.items(name) if each.get("call_id") == call_id and "output" in each]
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text

    def notices(self, name: str = ROOT, at: int = -1) -> list[Json]:
        """Return what a request says of agents that are done."""
        texts: list[str] = [part.get("text", "") for item in self.items(name, at) for part in item.get("content") or ()]
        begin, end = "<subagent_notification>\n", "\n</subagent_notification>"
        return [msgspec.json.decode(text[len(begin) : -len(end)]) for text in texts if text.startswith(begin)]


def spawn(task: str, call_id: str = "s1", **more: Any) -> Json:
    return call("spawn_agent", {"message": task, **more}, call_id, namespace="multi_agent_v1")


def tool(name: str, call_id: str, **arguments: Any) -> Json:
    return call(name, arguments, call_id, namespace="multi_agent_v1")


def about(make: Callable[[str], Json], spawned: str = "s1") -> Callable[[Request], Answer]:
    """Return a step that calls a tool about the agent that an earlier call started."""

    def step(request: Request) -> Answer:
        outputs = [msgspec.json.decode(raw, type=Json) for raw in request.input]
        (text,) = [each["output"] for each in outputs if each.get("call_id") == spawned and "output" in each]
        return answer(make(msgspec.json.decode(text)["agent_id"]))

    return step


def waits(call_id: str = "w1", spawned: str = "s1") -> Callable[[Request], Answer]:
    return about(lambda agent: tool("wait_agent", call_id, targets=[agent]), spawned)


async def started(book: Book, tmp_path: Path, troupe: Troupe, **wishes: Any) -> Thread:
    (tmp_path / "project").mkdir(exist_ok=True)
    wanted: dict[str, Any] = {"cwd": tmp_path / "project", "speaker": troupe, "sandbox": "danger-full-access", **wishes}
    return await book.start(**wanted)


def finished(end: events.End) -> str | None:
    assert isinstance(end, events.TurnCompleted), end
    return end.message


__all__ = ["ROOT", "Troupe", "about", "answer", "call", "finished", "say", "spawn", "started", "tool", "waits"]

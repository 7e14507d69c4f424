"""A thread that no client hears is closed after a while; one that a client comes back to stays open."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

import commonplace
from anchors.scripted_responses import ScriptedResponses
from commonplace.surfaces.app_server.connection import Connection
from commonplace.surfaces.app_server.dispatch import Dispatcher
from commonplace.surfaces.app_server.server import AppServer
from exec_driver import make_place

UNKNOWN = "01a1dddc-8646-7c22-bb1d-cc3d829fde08"


class Heard:
    """The way to a client in this process."""

    def __init__(self) -> None:
        self.send_stream, self.stream = anyio.create_memory_object_stream[bytes](1000)

    def send(self, message: bytes) -> None:
        self.send_stream.send_nowait(message)

    async def drained(self) -> None:
        return

    async def until(self, part: bytes) -> bytes:
        async for message in self.stream:
            if part in message:
                return message
        raise AssertionError(part)


async def test_a_thread_that_nobody_hears_is_closed_when_its_time_is_over(tmp_path: Path) -> None:
    with ScriptedResponses([]) as model:
        place = make_place(tmp_path, model.base_url)
        async with commonplace.open(environment=place.environment()) as book, anyio.create_task_group() as tasks:
            server = AppServer(book, lambda _: None)
            heard = Heard()
            stack = ExitStack()
            stack.enter_context(heard.send_stream)
            stack.enter_context(heard.stream)
            client = Connection(Dispatcher(server), heard, tasks, lambda _: None)

            async def ask(method: str, **params: Any) -> dict[str, Any]:
                line = json.dumps({"id": method, "method": method, "params": params})
                await client.take(line)
                return json.loads(await heard.until(f'"id":"{method}"'.encode()))

            await ask("initialize", clientInfo={"name": "a", "version": "1"})
            thread = (await ask("thread/start", cwd=str(place.cwd)))["result"]["thread"]["id"]
            assert (await ask("thread/unsubscribe", threadId=thread))["result"] == {"status": "unsubscribed"}
            assert (await ask("thread/resume", threadId=thread))["result"]["thread"]["status"] == {"type": "idle"}
            server.idle_seconds = 0.0
            assert (await ask("thread/unsubscribe", threadId=thread))["result"] == {"status": "unsubscribed"}
            assert json.loads(await heard.until(b"thread/closed"))["params"] == {"threadId": thread}
            assert (await ask("thread/unsubscribe", threadId=thread))["result"] == {"status": "notLoaded"}
            stack.close()
            tasks.cancel_scope.cancel()


async def test_requests_about_one_thread_wait_for_each_other_whoever_sends_them(tmp_path: Path) -> None:
    with ScriptedResponses([]) as model:
        place = make_place(tmp_path, model.base_url)
        order: list[str] = []
        async with commonplace.open(environment=place.environment()) as book, anyio.create_task_group() as tasks:
            server = AppServer(book, lambda _: None)

            async def work(name: str, thread: str | None) -> None:
                async with server.turnstile(thread):
                    order.append(f"{name} begins")
                    await anyio.lowlevel.checkpoint()
                    order.append(f"{name} ends")

            for name, thread in (("a", UNKNOWN), ("b", UNKNOWN.upper()), ("c", None)):
                tasks.start_soon(work, name, thread)

    assert [each for each in order if each[0] != "c"] == ["a begins", "a ends", "b begins", "b ends"]
    assert order.index("c begins") < order.index("a ends")

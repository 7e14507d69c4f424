"""One client, without a transport: order, bounds, answers, errors, and what happens when it goes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from commonplace.errors import BadInput
from commonplace.surfaces.app_server.connection import QUEUE, ConnectedClient, Connection, Reply
from commonplace.surfaces.app_server.messages import ClientRequest, RpcError

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


class Wire:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[Json] = []

    def send(self, message: bytes) -> None:
        self.sent.append(json.loads(message))

    async def drained(self) -> None:
        pass


class Desk:
    """Works on requests as the test says: `wait` waits for its event, `fail` fails."""

    def __init__(self) -> None:
        self.open = anyio.Event()
        self.done: list[Any] = []
        self.cancelled: list[Any] = []
        self.left: list[Connection] = []

    def prepare(self, client: Connection, request: ClientRequest) -> Callable[[], Awaitable[Reply]]:
        del client
        if request.method == "refused":
            raise RpcError(-32601, "no such method")
        if request.method == "unprepared":
            raise ZeroDivisionError("a bug")

        async def work() -> Reply:
            try:
                if request.method == "wait":
                    await self.open.wait()
            except anyio.get_cancelled_exc_class():
                self.cancelled.append(request.id)
                raise
            match request.method:
                case "domain":
                    raise BadInput("It is wrong.", hint="Mend it.")
                case "data":
                    raise RpcError(-32602, "too large", {"max_chars": 1})
                case "bug":
                    raise ZeroDivisionError("a bug")
                case _:
                    self.done.append(request.id)
                    return Reply({"ok": request.id}, lambda: self.done.append("then"))

        return work

    def gone(self, client: Connection) -> None:
        self.left.append(client)


class Scene:
    def __init__(self, client: Connection, wire: Wire, desk: Desk, log: list[str]) -> None:
        self.client, self.wire, self.desk, self.log = client, wire, desk, log

    async def take(self, message: Any) -> None:
        await self.client.take(message if isinstance(message, bytes) else json.dumps(message).encode())

    async def settle(self) -> None:
        await self.client.settled()


@asynccontextmanager
async def scene() -> AsyncGenerator[Scene]:
    async with anyio.create_task_group() as tasks:
        wire, desk, log = Wire(), Desk(), list[str]()
        client = Connection(desk, wire, tasks, log.append)
        client.client = ConnectedClient("test", "1")
        yield Scene(client, wire, desk, log)
        tasks.cancel_scope.cancel()


def ask(number: Any, method: str, thread: str | None = None) -> Json:
    return {"id": number, "method": method, "params": {} if thread is None else {"threadId": thread}}


async def test_requests_of_one_thread_are_worked_on_in_order_and_others_beside_them() -> None:
    async with scene() as each:
        await each.take(ask(1, "wait", "a"))
        await each.take(ask(2, "now", "a"))
        await each.take(ask(3, "now", "b"))
        await each.take(ask(4, "now"))
        assert each.desk.done == [3, "then", 4, "then"]
        each.desk.open.set()
        await each.settle()

        assert each.desk.done == [3, "then", 4, "then", 1, "then", 2, "then"]
        assert [message["id"] for message in each.wire.sent] == [3, 4, 1, 2]


async def test_beyond_the_queue_a_request_is_refused_and_later_ones_are_taken_again() -> None:
    async with scene() as each:
        for number in range(QUEUE + 2):
            await each.take(ask(number, "wait"))
        assert [(message["id"], message["error"]["code"]) for message in each.wire.sent] == [
            (QUEUE, -32001),
            (QUEUE + 1, -32001),
        ]
        each.desk.open.set()
        await each.settle()
        await each.take(ask("late", "now"))
        await each.settle()

        assert each.wire.sent[-1] == {"id": "late", "result": {"ok": "late"}}
        assert len(each.wire.sent) == QUEUE + 3


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("refused", {"code": -32601, "message": "no such method"}),
        ("domain", {"code": -32600, "message": "It is wrong. Mend it."}),
        ("data", {"code": -32602, "message": "too large", "data": {"max_chars": 1}}),
        ("bug", {"code": -32603, "message": "Internal error: ZeroDivisionError: a bug"}),
        ("unprepared", {"code": -32603, "message": "Internal error: ZeroDivisionError: a bug"}),
    ],
)
async def test_a_request_that_fails_is_answered_with_an_error(method: str, error: Json) -> None:
    async with scene() as each:
        await each.take(ask(1, method))
        await each.settle()
        await each.take(ask(2, "now"))
        await each.settle()

        assert each.wire.sent == [{"error": error, "id": 1}, {"id": 2, "result": {"ok": 2}}]


async def test_what_is_no_message_is_logged_and_answered_where_it_has_an_id() -> None:
    async with scene() as each:
        for line in (b"", b"{", b"[]", b'{"method": "other"}', b'{"id": 9, "result": 1}', b'{"id": 4, "method": 5}'):
            await each.take(line)

        assert [(message["id"], message["error"]["code"]) for message in each.wire.sent] == [(4, -32600)]
        assert len(each.log) == 6


async def test_an_answer_reaches_whoever_asked() -> None:
    async with scene() as each:
        answers: list[Any] = []
        ids: list[Any] = []

        async def question(text: str) -> None:
            answers.append((text, await each.client.ask("q", {"text": text}, ids.append)))

        async with anyio.create_task_group() as group:
            group.start_soon(question, "a")
            await anyio.lowlevel.checkpoint()
            group.start_soon(question, "b")
            while len(ids) < 2:
                await anyio.lowlevel.checkpoint()
            await each.take({"id": ids[1], "result": "for b"})
            await each.take({"id": ids[0], "error": {"code": 1, "message": "no"}})

        assert answers == [("b", "for b"), ("a", None)]
        assert [message["params"]["text"] for message in each.wire.sent] == ["a", "b"]


async def test_when_the_client_goes_its_requests_are_cancelled_and_its_questions_have_no_answer() -> None:
    async with scene() as each:
        await each.take(ask(1, "wait", "a"))
        await each.take(ask(2, "wait", "a"))
        await each.take(ask(3, "wait"))
        answers: list[Any] = []

        async def question() -> None:
            answers.append(await each.client.ask("q", {}))

        async with anyio.create_task_group() as group:
            group.start_soon(question)
            while not each.wire.sent:
                await anyio.lowlevel.checkpoint()
            each.client.close()
            each.client.close()

        assert answers == [None]
        while len(each.desk.cancelled) < 2:
            await anyio.lowlevel.checkpoint()
        assert sorted(each.desk.cancelled) == [1, 3]
        assert each.desk.left == [each.client]
        assert [message["method"] for message in each.wire.sent] == ["q"]


async def test_a_client_is_not_told_what_it_does_not_want() -> None:
    async with scene() as each:
        each.client.client = ConnectedClient("test", "1", muted=frozenset({"turn/started"}))
        each.client.notify("turn/started", {})
        each.client.notify("turn/startedX", {})
        each.client.client = None
        each.client.notify("early", {})

        assert [message["method"] for message in each.wire.sent] == ["turn/startedX"]

"""A child's question reaches its parent's client, with the child's identity, and the answer finds its way back."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from commonplace.agent import events
from commonplace.agent.approving import Approvals, Decision
from commonplace.agent.tools.registry import Action
from commonplace.errors import BadInput

pytestmark = pytest.mark.anyio
ACTION = Action("c1", "shell", "run", Path("/repo"), ("make", "deploy"))


class Client:
    """Somebody who listens to one session."""

    def __init__(self) -> None:
        self.heard: list[events.Asked] = []

    def __call__(self, event: events.Event) -> None:
        assert isinstance(event, events.Asked)
        self.heard.append(event)


async def test_a_childs_question_reaches_every_parent_under_its_path() -> None:
    clients = [Client(), Client(), Client()]
    root, child, grandchild = (Approvals(client, f"thread {place}") for place, client in enumerate(clients))
    root.adopt(child, "child")
    child.adopt(grandchild, "grandchild")
    given: list[Decision] = []

    async def ask() -> None:
        given.append(await grandchild.decision("turn", ACTION))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        told = [client.heard[0] for client in clients]
        (request,) = {each.request_id for each in told}
        assert [each.agent for each in told] == ["child/grandchild", "grandchild", None]
        assert {each.thread_id for each in told} == {"thread 2"}
        root.decide(request, "approved")

    assert given == ["approved"]
    for client, approvals in zip(clients, (root, child, grandchild), strict=True):
        with pytest.raises(BadInput, match="no open question"):
            approvals.decide(client.heard[0].request_id, "approved")


async def test_a_question_that_the_child_answered_itself_is_closed_for_the_parent() -> None:
    mine, yours = Client(), Client()
    root, child = Approvals(mine, "root"), Approvals(yours, "child")
    root.adopt(child, "child")
    async with anyio.create_task_group() as group:
        group.start_soon(child.decision, "turn", ACTION)
        await anyio.wait_all_tasks_blocked()
        child.decide(yours.heard[0].request_id, "denied")
    with pytest.raises(BadInput, match="no open question"):
        root.decide(mine.heard[0].request_id, "approved")


async def test_what_is_allowed_in_a_child_is_not_allowed_in_its_parent() -> None:
    mine, yours = Client(), Client()
    root, child = Approvals(mine, "root"), Approvals(yours, "child")
    root.adopt(child, "child")
    async with anyio.create_task_group() as group:
        group.start_soon(child.decision, "turn", ACTION)
        await anyio.wait_all_tasks_blocked()
        root.decide(mine.heard[0].request_id, "approved_for_session")
    assert await child.decision("turn", ACTION) == "approved"
    assert len(yours.heard) == 1
    async with anyio.create_task_group() as group:
        group.start_soon(root.decision, "turn", ACTION)
        await anyio.wait_all_tasks_blocked()
        assert len(mine.heard) == 2
        group.cancel_scope.cancel()

"""Questions to a person: each is answered once, and what was allowed for the session is not asked about again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from commonplace.agent import events
from commonplace.agent.approvals.requests import ApprovalRequests, Decision
from commonplace.agent.tools.registry import Action
from commonplace.errors import BadInput

COMMAND = Action("c1", "run", Path("/srv"), ("bash", "-c", "make all"))
CHANGE = Action("c2", "change", Path("/srv"), paths=("/etc/hosts",))


class Listener:
    """Keeps the questions that it is told."""

    def __init__(self) -> None:
        self.questions: list[events.Asked] = []

    def __call__(self, event: events.Event) -> None:
        assert isinstance(event, events.Asked)
        self.questions.append(event)


async def _answered(ask: Callable[[], Awaitable[Decision]], answer: Callable[[], None]) -> Decision:
    given: list[Decision] = []

    async def wait() -> None:
        given.append(await ask())

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        answer()
    return given[0]


async def _asked(requests: ApprovalRequests, listener: Listener, action: Action, decision: Decision) -> Decision:
    return await _answered(
        lambda: requests.ask("turn", action), lambda: requests.decide(listener.questions[-1].request_id, decision)
    )


async def test_a_question_names_its_thread_and_is_answered_once() -> None:
    listener = Listener()
    requests = ApprovalRequests(listener, "thread")

    assert "denied" == await _asked(requests, listener, COMMAND, "denied")

    (question,) = listener.questions
    assert ("thread", "turn", "run") == (question.thread_id, question.turn_id, question.kind)
    with pytest.raises(BadInput, match="no open question"):
        requests.decide(question.request_id, "approved")


async def test_a_command_that_is_allowed_for_the_session_is_not_asked_about_again() -> None:
    listener = Listener()
    requests = ApprovalRequests(listener, "thread")
    await _asked(requests, listener, COMMAND, "approved_for_session")

    assert "approved" == await requests.ask("turn", COMMAND)

    assert 1 == len(listener.questions)
    assert frozenset() == requests.prefixes(COMMAND.cwd)


@pytest.mark.parametrize(
    ("command", "cwd", "programs"),
    [
        (COMMAND.command, "/srv/evil", ("/usr/bin/make",)),
        (COMMAND.command, "/", ("/usr/bin/make",)),
        (COMMAND.command, "/srv", ("/srv/.venv/bin/make",)),
        (COMMAND.command, "/srv", ()),
        (("bash", "-c", "make all "), "/srv", ("/usr/bin/make",)),
        (("bash", "-lc", "make all"), "/srv", ("/usr/bin/make",)),
        (("./bash", "-c", "make all"), "/srv", ("/usr/bin/make",)),
    ],
)
async def test_another_folder_or_another_program_is_asked_about_again(
    command: tuple[str, ...], cwd: str, programs: tuple[str, ...]
) -> None:
    listener = Listener()
    requests = ApprovalRequests(listener, "thread")

    async def ask(action: Action, known: tuple[str, ...]) -> None:
        await _answered(
            lambda: requests.ask("turn", action, programs=known),
            lambda: requests.decide(listener.questions[-1].request_id, "approved_for_session"),
        )

    await ask(COMMAND, ("/usr/bin/make",))
    await ask(Action("c9", "run", Path(cwd), command), programs)

    assert 2 == len(listener.questions)


async def test_a_change_is_asked_about_every_time() -> None:
    listener = Listener()
    requests = ApprovalRequests(listener, "thread")

    for _ in range(2):
        await _asked(requests, listener, CHANGE, "approved_for_session")

    assert 2 == len(listener.questions)


async def test_what_is_always_allowed_adds_to_what_is_known_of_the_folder() -> None:
    listener = Listener()
    requests = ApprovalRequests(listener, "thread", [("/usr/bin/touch",)], COMMAND.cwd)
    await _answered(
        lambda: requests.ask("turn", COMMAND, prefixes=(("/usr/bin/git", "commit"),)),
        lambda: requests.decide(listener.questions[-1].request_id, "approved_always"),
    )

    assert {("/usr/bin/touch",), ("/usr/bin/git", "commit")} == requests.prefixes(COMMAND.cwd)
    assert frozenset() == requests.prefixes(Path("/srv/evil"))


async def test_a_question_whose_turn_ends_is_closed() -> None:
    listener = Listener()
    requests = ApprovalRequests(listener, "thread")
    async with anyio.create_task_group() as group:
        group.start_soon(requests.ask, "turn", COMMAND)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()

    with pytest.raises(BadInput, match="no open question"):
        requests.decide(listener.questions[0].request_id, "approved")

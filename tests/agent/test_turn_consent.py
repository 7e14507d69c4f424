"""Questions before something is done, and bugs inside the program itself: a turn ends in order all the same."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from consent_doubles import answering
from scripted_session import stage

from commonplace.agent import events, turn_context
from commonplace.agent.approvals.requests import Decision
from commonplace.errors import BadInput
from commonplace.models.scripted import answer, call, say


@pytest.mark.parametrize(
    ("decision", "questions", "runs"), [("approved", 2, True), ("approved_for_session", 1, True), ("denied", 2, False)]
)
async def test_a_command_runs_as_the_person_decides(
    tmp_path: Path, decision: Decision, questions: int, runs: bool
) -> None:
    again = {"command": "echo x >> log", "justification": "to see"}
    async with stage(
        tmp_path,
        *[answer(call("shell", again, "c1")), answer(call("shell", again, "c2")), answer(say("So."))],
        sandbox="read-only",
        approval="untrusted",
    ) as here:
        asked = answering(here, decision)
        end = await here.run("Work.")

        assert isinstance(end, events.TurnCompleted)
        assert questions == len(asked)
        assert ("run", "to see", "c1") == (asked[0].kind, asked[0].reason, asked[0].item_id)
        assert runs == (here.cwd / "log").exists()
        shown = [item.status for item in here.completed() if isinstance(item, events.CommandExecution)]
        assert ["completed" if runs else "declined"] * 2 == shown
        assert runs or "did not allow it" in here.outputs()["c1"]


async def test_where_nobody_can_be_asked_the_model_is_told_so(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        answer(call("shell", {"command": "echo x >> log", "escalate": True}, "c1")),
        answer(say("So.")),
        sandbox="read-only",
    ) as here:
        await here.run("Work.")

        assert "nobody can be asked" in here.outputs()["c1"]
        assert not (here.cwd / "log").exists()


async def test_an_answer_to_a_question_that_nobody_asked_is_refused(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        with pytest.raises(BadInput, match="no open question"):
            here.session.decide("none", "approved")


async def test_a_bug_inside_a_turn_fails_the_turn_and_not_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_: object) -> None:
        raise KeyError("a bug")

    async with stage(tmp_path, answer(call("shell", {"command": "echo 1"}, "c1")), answer(say("Still here."))) as here:
        with monkeypatch.context() as patch:
            patch.setattr(turn_context, "step", bug)
            end = await here.run("Work.")

        assert isinstance(end, events.TurnFailed)
        assert "internal" == end.error.code
        assert "KeyError" in end.error.message
        assert isinstance(await here.run("And now?"), events.TurnCompleted)


async def test_a_listener_that_breaks_does_not_leave_the_session_in_a_turn(tmp_path: Path) -> None:
    def bad(event: events.Event) -> None:
        raise ZeroDivisionError

    async with stage(tmp_path, answer(say("One.")), answer(say("Two.")), check=False) as here:
        stop = here.session.listen(bad)
        with pytest.raises(ZeroDivisionError):
            await here.run("Work.")
        stop()
        here.model.instead(answer(say("Two.")))

        assert here.session.turn is None
        assert isinstance(await here.run("And now?"), events.TurnCompleted)


async def test_a_tool_that_is_cancelled_with_everything_around_it_still_has_an_output(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(call("shell", {"command": "echo begun; sleep 300"}, "c1"))) as here:
        with anyio.CancelScope() as scope:
            here.listeners.append(lambda event: scope.cancel() if isinstance(event, events.OutputDelta) else None)
            await here.run("Work.")
        here.listeners.clear()
        here.model.add(answer(say("Yes.")))
        await here.run("And now?")

        assert "begun" in here.outputs()["c1"]

"""The rules of consent: the table of `approvals.policy`, one row per cell, and cases beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted_session import BASE, choice

from commonplace.agent.approvals.policy import ActionRefused, judge
from commonplace.agent.profile import Profile
from commonplace.agent.tools.registry import Action
from commonplace.config import Approval, Sandbox

HERE = Path("/project")
LOOKS = Action("c", "run", HERE, ("bash", "-c", "ls -l | head"))
DOES = Action("c", "run", HERE, ("bash", "-c", "npm run build"))
FREE = Action("c", "run", HERE, ("bash", "-c", "npm run build"), escalated=True)
FREE_LOOK = Action("c", "run", HERE, ("bash", "-c", "ls"), escalated=True)
CHANGE = Action("c", "change", HERE, paths=("/project/a",))
CALL = Action("c", "call", HERE, ("mcp", "a", "b", "{}"))
READ = Action("c", "call", HERE, ("mcp", "a", "b", "{}"), read_only=True)
WHY = "it cannot be confined"
COLUMNS: tuple[Approval, ...] = ("untrusted", "on-request", "never")
ROWS = [
    ("a command that only looks", LOOKS, None, ("confined", "confined", "confined")),
    ("any other command", DOES, None, ("ask", "confined", "confined")),
    ("a command that asks to run unconfined", FREE, None, ("ask", "ask", "refused")),
    ("a command that only looks and asks to run unconfined", FREE_LOOK, None, ("ask", "ask", "refused")),
    ("a command that only looks and cannot be confined here", LOOKS, WHY, ("ask", "ask", "refused")),
    ("a command that cannot be confined here", DOES, WHY, ("ask", "ask", "refused")),
    ("a change inside the workspace", CHANGE, None, ("ask", "free", "free")),
    ("a change elsewhere, or to what is guarded", CHANGE, WHY, ("ask", "ask", "refused")),
    ("a server's tool that may change something", CALL, None, ("ask", "free", "free")),
    ("a server's tool that only reads", READ, None, ("free", "free", "free")),
]
CELLS = [
    pytest.param(action, problem, approval, verdict, id=f"{name}-{approval}")
    for name, action, problem, verdicts in ROWS
    for approval, verdict in zip(COLUMNS, verdicts, strict=True)
]


def profile(approval: Approval, sandbox: Sandbox = "workspace-write") -> Profile:
    return Profile(cwd=HERE, home=Path("/home"), choice=choice(), base=BASE, approval=approval, sandbox=sandbox)


def verdict(who: Profile, action: Action, problem: str | None, *, is_allowed: bool = False) -> str:
    try:
        return judge(who, action, problem, is_harmless=action is LOOKS or action is FREE_LOOK, is_allowed=is_allowed)
    except ActionRefused as refused:
        return "refused" if "nobody can be asked" in str(refused) else str(refused)


@pytest.mark.parametrize(("action", "problem", "approval", "wanted"), CELLS)
@pytest.mark.parametrize("sandbox", ["read-only", "workspace-write"])
def test_each_action_is_judged_by_the_table(
    action: Action, problem: str | None, approval: Approval, wanted: str, sandbox: Sandbox
) -> None:
    assert wanted == verdict(profile(approval, sandbox), action, problem)


@pytest.mark.parametrize("approval", ["on-request", "never"])
@pytest.mark.parametrize("action", [LOOKS, DOES, FREE, CHANGE, CALL, READ])
def test_with_full_access_nothing_is_asked_and_nothing_confined(approval: Approval, action: Action) -> None:
    assert "free" == verdict(profile(approval, "danger-full-access"), action, None)


@pytest.mark.parametrize(
    ("action", "wanted"),
    [
        (LOOKS, "free"),
        (FREE_LOOK, "free"),
        (DOES, "ask"),
        (FREE, "ask"),
        (CHANGE, "ask"),
        (CALL, "ask"),
        (READ, "free"),
    ],
)
def test_with_full_access_and_untrusted_commands_what_may_change_something_is_asked(
    action: Action, wanted: str
) -> None:
    assert wanted == verdict(profile("untrusted", "danger-full-access"), action, None)


@pytest.mark.parametrize("approval", COLUMNS)
@pytest.mark.parametrize(
    ("action", "problem", "wanted"),
    [
        (FREE, None, ("free", "free", "free")),
        (DOES, WHY, ("free", "free", "free")),
        (DOES, None, ("free", "confined", "confined")),
        (CHANGE, WHY, ("ask", "ask", "refused")),
        (CALL, None, ("ask", "free", "free")),
    ],
)
def test_what_a_person_allowed_for_good_runs_without_asking(
    approval: Approval, action: Action, problem: str | None, wanted: tuple[str, ...]
) -> None:
    assert wanted[COLUMNS.index(approval)] == verdict(profile(approval), action, problem, is_allowed=True)

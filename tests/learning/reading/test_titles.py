"""A session is called by its plan, its pull request or its branch."""

from __future__ import annotations

import pytest
from made_sessions import edit, model, ran, session, user

from commonplace.learning.reading.session_view import ViewEvent
from commonplace.learning.reading.titles import title_of

PLAN = "Implement the following plan:\n\n{}\n\nFirst the model, then the views."


def title(*events: ViewEvent, branch: str | None = None) -> str:
    view = session(*events)
    view.branch = branch
    return title_of(view)


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("# Move the cart to Redis", "Move the cart to Redis"),
        ("# Plan: Move the cart to Redis", "Move the cart to Redis"),
        ("## Implementation Plan for the cart", "the cart"),
        ("# Plan — the **new** cart:", "the new cart"),
        ("# Planet names in the footer.", "Planet names in the footer"),
        ("# Replace the plan selector", "Replace the plan selector"),
        ("Move the cart", ""),  # no heading
        (f"# {'a very long heading ' * 5}", ""),
    ],
)
def test_the_heading_of_a_plan_is_the_title(heading: str, expected: str) -> None:
    assert expected == title(user(PLAN.format(heading)), edit())


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("gh pr create --title 'Cart: total with tax' --body x", "Cart: total with tax"),
        ('git push && gh pr create -d -t "Total with tax."', "Total with tax"),
        ("gh pr create --fill", ""),
        ('gh pr create --title "$TITLE"', ""),
        ("echo gh pr create --title x", ""),
    ],
)
def test_the_title_of_a_pull_request_is_the_title(command: str, expected: str) -> None:
    assert expected == title(user("ship it"), ran(command))


def test_the_last_pull_request_counts() -> None:
    assert "two" == title(user("ship it"), ran("gh pr create --title one"), ran("gh pr create --title two"))


def test_a_pull_request_that_could_not_be_opened_does_not_count() -> None:
    assert "" == title(user("ship it"), ran("gh pr create --title one", 1, "no commits"))


@pytest.mark.parametrize(
    ("branch", "expected"),
    [
        ("fix/cart-total", "fix/cart-total"),
        ("main", ""),
        ("Master", ""),
        ("develop", ""),
        ("", ""),
        (None, ""),
        ("x" * 81, ""),
    ],
)
def test_a_branch_of_its_own_is_the_title(branch: str | None, expected: str) -> None:
    assert expected == title(user("fix the total"), edit(), branch=branch)


def test_a_plan_goes_before_a_pull_request_and_that_before_a_branch() -> None:
    opened, plan = ran("gh pr create --title opened"), user(PLAN.format("# planned"))

    assert "planned" == title(plan, opened, branch="branched")
    assert "opened" == title(user("ship it"), opened, branch="branched")


def test_a_heading_that_is_pasted_or_asked_about_is_no_title() -> None:
    assert "" == title(user("what does this mean?\n\n# Move the cart"), model())

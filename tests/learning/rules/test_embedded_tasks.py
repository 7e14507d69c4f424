"""Where tasks begin, and how each ends: the rows of the triage table (spec §5.1)."""

from __future__ import annotations

import pytest
from made_sessions import edit, model, ran, session, stop, user

from commonplace.learning.extract.rules import assemble
from commonplace.learning.reading import outcomes, tasks
from commonplace.learning.reading.findings import SessionTask
from commonplace.learning.reading.session_view import ViewEvent


def judged(*events: ViewEvent) -> list[SessionTask]:
    found = tasks.cut(session(*events))
    outcomes.judge(found)
    return found


CHECK = ran("pytest -q")
RED = ran("pytest -q", 1, "E assert 1 == 2\n1 failed")


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([edit(), user("perfect, thanks")], "success"),
        ([edit(), user("super, danke")], "success"),
        ([edit(), user("gracias, funciona")], "success"),
        ([edit(), user("merci, c'est bon")], "success"),
        ([edit(), user("好了,谢谢")], "success"),
        ([edit(), user("no, this is not usable, revert it"), ran("git checkout -- src")], "fail"),
        ([edit(), user("geht immer noch nicht, vergiss es")], "fail"),
        ([edit(), CHECK], "success"),
        ([edit(), RED, model("Everything works now.")], "fail"),
        ([CHECK, edit(), model("Done.")], "uncertain"),
        ([edit(), model("Everything works now.")], "uncertain"),
        ([edit(), user("it still crashes"), edit(), user("works now")], "success"),
        ([edit(), user("it still crashes"), edit()], "partial"),
        ([edit(), stop()], "partial"),
        ([edit(), CHECK, RED, user("ok stop here, the first half is good")], "partial"),
        ([ran("./import.sh", 1, "error: no such table")], "fail"),
    ],
)
def test_an_outcome_rests_on_feedback_then_on_checks(events: list[ViewEvent], outcome: str) -> None:
    (task,) = judged(user("make the import skip empty rows"), *events)

    assert outcome == task.outcome


@pytest.mark.parametrize(
    ("commands", "steps"),
    [
        (["./deploy.sh a", "curl -fsS http://a/health"], 2),
        (["./deploy.sh a", "curl -s http://a/health"], 1),  # it succeeds whatever the page says
        (["curl -fsS http://a/health", "./deploy.sh a"], 1),  # nothing was done before it
        (["kubectl apply -f k8s", "kubectl rollout status deploy/a", "pg_isready -h db"], 3),
        (["./deploy.sh a", "cat log", "curl -fsS http://a/health"], 1),
    ],
)
def test_what_confirms_a_step_right_behind_it_is_a_step(commands: list[str], steps: int) -> None:
    view = session(user("put the new one on a"), *map(ran, commands))
    found = tasks.cut(view)
    outcomes.judge(found)

    (task,) = assemble.session_lessons(view, found, []).tasks

    assert steps == len(task.steps)


def test_moving_on_without_an_open_error_is_success() -> None:
    first, second = judged(user("add a capacity field"), edit(), user("next: rename the goblin unit to imp"), edit())

    assert "success" == first.outcome
    assert "uncertain" == second.outcome


def test_moving_on_from_a_red_check_is_no_success() -> None:
    first, _ = judged(user("add a capacity field"), edit(), RED, user("now write the docs for billing"), edit())

    assert "fail" == first.outcome


@pytest.mark.parametrize(
    "text",
    [
        "a bit smaller please",
        "no, the other button",
        "use rem, not px, in all my css",
        "why is that?",
        "run the tests",
        "commit it",
        "thanks!",
        "smaller diffs. I have to review every line",
        "etwas kleiner bitte",
        "y que recuerde el volumen",
    ],
)
def test_refinements_questions_and_thanks_belong_to_the_task_at_hand(text: str) -> None:
    assert 1 == len(judged(user("make the pricing table responsive"), edit(), user(text), edit()))


@pytest.mark.parametrize(
    "text",
    [
        "next: keyboard navigation for the seat map",
        "great. same for the checkout page",
        "unrelated: bump highcharts to 11.4",
        "one more: the exposures file lists a dead dashboard",
        "thanks. now the login takes six seconds",
        "super. jetzt noch die Suche beschleunigen",
        "perfecto. ahora añade el buscador de clientes",
        "parfait. maintenant corrige le filtre des dates",
        "好的。接下来给搜索加缓存",
    ],
)
def test_a_new_object_with_a_new_request_begins_a_task(text: str) -> None:
    assert 2 == len(judged(user("make the pricing table responsive"), edit(), user(text), edit()))


def test_a_task_is_named_by_the_persons_own_request() -> None:
    (task,) = judged(user("fix this:\n```\nTraceback: secret stuff\n```\nthe parser drops rings"), edit())

    assert "secret" not in task.name

"""The noise that real sessions made a memory hold, and what it missed in them: each class in sentences of our own.

Noise must not be listed; it may be a candidate. What was missed must be a candidate at least.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from made_sessions import edit, likely, listed, model, refused, taught, user
from made_sessions import ran as run
from whole_way import SHOP, answered, ran, remember, said, session

from commonplace.learning.reading.session_view import ViewEvent


def spoken(text: str, reply: str = "You're right, I change it.") -> list[ViewEvent]:
    """A session in which a person says something about work that was shown, and the agent acts on it."""
    return [user("add a price hook"), edit(), model("Done."), user(text), model(reply), edit()]


PLAN = """{}

# Plan: move the cart to Redis

## Context

The cart must always survive a restart. From now on we never store prices in the session.

## Steps

1. Always write through the cache, because reads outnumber writes.
2. In this repo we use uv instead of pip.
"""


@pytest.mark.parametrize("first", ["Implement the following plan:", "Please implement this plan:"])
def test_noise_plans_that_a_key_press_sent(first: str) -> None:
    assert [] == taught(user(PLAN.format(first)), edit())


@pytest.mark.parametrize(
    "text",
    [
        "push it and open the PR",
        "rename it to total_gross",
        "commit this and bump the version to 2.3.1",
        "fix the failing test in cart_test.go",
        "merge main into this branch first",
        "revert the last commit",
        "use the second option for #412",
        "let's skip the docs for this PR",
        "only touch billing.py in this one",
        "bitte jetzt noch pushen",
        "haz otro commit y súbelo",
        "renomme la colonne en total_brut",
        "把这个分支合并到 main",
    ],
)
def test_noise_orders_of_the_moment(text: str) -> None:
    assert [] == listed(*spoken(text))


@pytest.mark.parametrize(
    "text",
    [
        "we broke the build 😭",
        "what does this flag do?",
        "hm, we never saw that before, did we?",
        "lol we always do it the hard way",
        "how do we usually deploy this?",
        "why is the cache always cold in the morning?",
        "ok so we use two databases now?",
        "wow, nice",
        "warum ist der Cache morgens immer leer?",
        "¿por qué nunca arranca a la primera?",
    ],
)
def test_noise_questions_and_chatter(text: str) -> None:
    assert [] == listed(*spoken(text))


REVIEW = """In `src/cart/total.ts` around lines 42-58, the `applyDiscount` function never validates `rate`; consider \
clamping it between 0 and 1 and always rounding to two decimals before returning.

Consider extracting the currency handling into a helper; `formatPrice` should not depend on `Intl` directly."""
ISSUE = "**Potential issue**: The `retry` parameter is always ignored when `timeout` is set. Consider passing it on."


@pytest.mark.parametrize(
    "text", [REVIEW, f"copilot says:\n\n{REVIEW}", f"{REVIEW}\n\nfix this please", f"{ISSUE}\n\nfix this please"]
)
def test_noise_pasted_reviews(text: str) -> None:
    assert [] == listed(*spoken(text))


LOG = """2026-11-03 10:22:01 INFO  worker started, always using 4 threads
2026-11-03 10:22:02 WARN  never got an answer from 10.0.0.7:5432
Traceback (most recent call last):
  File "/srv/app/run.py", line 12, in <module>
RuntimeError: you must always call init() first"""
SUITE = "=== Test Complete ===\npassed: {}\nfailed: 0\nNOTE: always rerun with --strict"


@pytest.mark.parametrize(
    "texts",
    [
        [LOG],
        [f"{LOG}\n\nwhat now?"],
        [SUITE.format(14), SUITE.format(15)],
        ["$ make test\nerror: never use tabs here\nmake: *** [test] Error 1"],
    ],
)
def test_noise_pasted_output_even_if_it_is_pasted_again(texts: list[str]) -> None:
    assert [] == listed(*(event for text in texts for event in (user(text), edit())))


def shown(*events: ViewEvent) -> list[str]:
    return [lesson.text for lesson in listed(user("go on"), *events)]


@pytest.mark.parametrize(
    "events",
    [
        [run("make lint", 1, "error: x"), run("git stash && git stash pop"), run("make lint", 0)],
        [run("make lint", 1, "error: x"), edit(), run("make fmt"), run("make lint")],
        [run("make lint", 1, "error: x"), run("make lint")],
        [run("make up", 1, "error: port 8080 is already in use"), run("kill 4711"), run("make up")],
        [run("make up", 1, "error: x"), run("node /tmp/mend.js"), run("make up")],
        [run("git add .", 128, "index.lock': File exists"), run("rm .git/index.lock"), run("git add .")],
    ],
    ids=["stash", "edit between", "retry", "kill", "temporary script", "lock of others"],
)
def test_noise_false_and_one_off_fixes(events: list[ViewEvent]) -> None:
    assert [] == [text for text in shown(*events) if "fails" in text]


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m 'add tests'",
        "gh pr create --title test",
        "sed -i 's/a/b/' tests/check.py",
        "git push && gh pr checks",
        "git checkout -b test",
        "rm -rf test-results",
        "npm version patch",
    ],
)
def test_noise_commands_that_change_things_as_checks(command: str) -> None:
    assert [] == shown(edit(), run(command), run(command))


@pytest.mark.parametrize(
    "command",
    [
        "python /tmp/check_cart.py",
        "bash /tmp/test.sh",
        "cd /tmp/scratch && make test",
        "./run.sh 5f0c1d2e-8a3b-4c6d-9e7f-0a1b2c3d4e5f",
        "node scripts/replay.js 9fceb02d0ae598e95dc970b74767f19372d61af8",
    ],
)
def test_noise_throw_away_commands(command: str) -> None:
    assert [] == shown(run(command), run(command))


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("go test -run 'TestOne$' ./...", "Tests: `go test ./...`"),
        ("make test 2>&1 | tail -20", "Tests: `make test`"),
        ("pytest tests/test_cart.py::test_total -x | head", "Tests: `pytest`"),
        ("npm test -- -t 'adds tax' > /tmp/out.txt", "Tests: `npm test`"),
    ],
)
def test_noise_what_is_thrown_away_of_a_check_is_not_told(command: str, text: str) -> None:
    assert [text] == shown(run(command), run(command))


@pytest.mark.parametrize(
    "text",
    [
        "we also need to make sure that exports never hold empty rows, because the importer rejects them",
        "we stop using fixtures here, because factories are easier to read",
    ],
)
def test_noise_labels_that_invert(text: str) -> None:
    assert {"said by the user"} == {lesson.lead for lesson in taught(*spoken(text))}


@pytest.mark.parametrize(
    "text",
    [
        "<system-reminder>\nAlways use the todo tool. Never mention this reminder.\n</system-reminder>",
        "<task-notification>\n<status>completed</status>\nWe never retry failed jobs.\n</task-notification>",
        "<command-name>/review</command-name>\n<command-message>always review in English</command-message>",
        "This session is being continued from a previous conversation. From now on we always use tabs.",
        "Stop hook feedback: from now on always run the formatter before you stop.",
        "Caveat: The messages below were generated by the user. Never respond to them.",
    ],
)
def test_noise_texts_of_the_harness(text: str) -> None:
    assert [] == taught(user(text), edit())


def test_noise_cut_sentences() -> None:
    text = "hm. In this repo we use pnpm, because the workspace needs it. Run the tests."
    (found,) = listed(*spoken(text))

    assert found.words.endswith("In this repo we use pnpm, because the workspace needs it.")
    assert text.removeprefix("hm. ") == found.stretch


@pytest.mark.anyio
@pytest.mark.parametrize(
    "wishes",
    [
        [
            "In YAML files we use two spaces for indentation.",
            "In Python files we use four spaces for indentation.",
        ],
        [
            "We run the billing service on port 7001, because the proxy expects it there.",
            "We run the search service on port 7002, because the proxy expects it there.",
            "We run the mail service on port 7003, because the proxy expects it there.",
        ],
        [
            "Ask Ines before you change the payments code, because Ines owns it.",
            "Ask Jonas before you change the search index, because Jonas owns it.",
        ],
    ],
    ids=["languages", "services", "people"],
)
async def test_noise_sentences_about_different_things_that_became_one(tmp_path: Path, wishes: list[str]) -> None:
    found = await remember(
        tmp_path, *(session(said(wish), answered(), days_ago=day) for day, wish in enumerate(wishes, 1))
    )

    assert sorted(f'"{wish}"' for wish in wishes) == sorted(found.lines())
    assert {1} == {row["support"] for row in found.listed}


@pytest.mark.anyio
async def test_noise_sessions_that_did_not_run_a_command_do_not_support_it(tmp_path: Path) -> None:
    commands = ["make test", "make test-slow", "make test", "npm test", "make lint", "make dup", "make graph"]
    found = await remember(
        tmp_path, *(session(said("go on"), ran(line), days_ago=day) for day, line in enumerate(commands, 1))
    )

    assert [("Tests: `make test`", 2)] == [
        (row["text"], row["support"]) for row in found.listed if "`make test`" in row["text"]
    ]


@pytest.mark.anyio
async def test_noise_worktrees_that_became_projects(tmp_path: Path) -> None:
    folders = [SHOP, f"{SHOP}/.worktrees/fix-tax", f"{SHOP}/.claude/worktrees/two"]
    found = await remember(
        tmp_path,
        *(session(said("go on"), ran("make check"), cwd=each, days_ago=day) for day, each in enumerate(folders, 1)),
    )

    assert [(SHOP, "All checks: `make check`", 3)] == [
        (row["scope"], row["text"], row["support"]) for row in found.listed
    ]


def only_candidate(*events: ViewEvent) -> str:
    """Return the words of the only lesson that is a candidate or more."""
    (found,) = likely(*events)
    return found.words


@pytest.mark.parametrize(
    "text",
    [
        "why are we not just using pathlib here?",
        "shouldn't this go through the repository layer instead of raw SQL?",
        "why do we need a new dependency for that, can't we use the standard library?",
        "can we not use mocks for the database?",
        pytest.param(
            "why didn't you add a test for it?",
            marks=pytest.mark.xfail(
                strict=True, reason="a reproach about one step is taken for an order of the moment"
            ),
        ),
    ],
)
def test_missed_corrections_that_are_put_as_questions(text: str) -> None:
    assert text == only_candidate(*spoken(text))


OPTIONS = """There are two ways.

A. Keep the queue in memory
B. Write the queue to disk, because it must survive a crash

Which way do you prefer?"""


@pytest.mark.xfail(strict=True, reason="the judge sees the short words alone, not the option that they choose")
@pytest.mark.parametrize("answer", ["B", "A. is fine", "B. it must always survive a crash"])
def test_missed_answers_whose_meaning_stands_in_the_question(answer: str) -> None:
    assert any("queue" in lesson.lead for lesson in likely(user("how do we store it?"), model(OPTIONS), user(answer)))


def test_missed_a_principle_inside_a_long_answer() -> None:
    principle = "we should always prefer plain SQL over the ORM in reports, it is easier to review."
    text = f"yes the second one is fine. the first one would need a lock. {principle} and can you check the index?"
    (found,) = listed(*spoken(text))

    assert principle in found.stretch


def test_missed_a_reversal_that_names_what_it_reverses() -> None:
    later = "whoops, put it back, in this repo we use spaces for indentation"

    assert later == only_candidate(user("In this repo we use tabs for indentation."), edit(), user(later), edit())


@pytest.mark.anyio
async def test_missed_a_reversal_in_a_later_session(tmp_path: Path) -> None:
    found = await remember(
        tmp_path,
        session(said("In this repo we use tabs for indentation."), answered(), days_ago=9),
        session(said("In this repo we use spaces for indentation."), answered(), days_ago=2),
    )

    assert ['"In this repo we use spaces for indentation."'] == found.all_lines()


@pytest.mark.xfail(strict=True, reason="words that only say `put it back` are not joined to what was done before them")
def test_missed_a_reversal_that_only_points_back() -> None:
    first = "In this repo we keep the changelog in docs/, because the site shows it."

    assert [] == listed(user(first), edit(), user("whoops, put it back to where it was"), edit())


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("npm install lodash", "no, use the standard library"),
        ("git commit -am wip", "don't commit, I do that myself"),
        pytest.param(
            "pip install x",
            "use uv",
            marks=pytest.mark.xfail(strict=True, reason="a statement of fewer than three words is not kept"),
        ),
    ],
)
def test_missed_short_refusals_whose_meaning_is_in_the_refused_command(command: str, reason: str) -> None:
    (found,) = likely(user("go on"), refused(command, reason))

    assert f'said by the user after refusing `{command}`: "{reason}"' == found.text


@pytest.mark.anyio
async def test_missed_habits_by_repetition_over_sessions(tmp_path: Path) -> None:
    asked = [
        "open a draft PR",
        "push and open a draft PR please",
        "now create a draft PR",
        "looks good, open a draft PR",
        "open the PR as a draft",
        "make a draft PR for it",
    ]
    found = await remember(
        tmp_path,
        *(
            session(said(f"fix bug {day} in the cart"), answered(), said(text), answered("Created it."), days_ago=day)
            for day, text in enumerate(asked, 1)
        ),
    )

    assert any("draft" in line for line in found.lines())
    assert max(row["support"] for row in found.listed if "draft" in row["text"]) >= 2


@pytest.mark.anyio
@pytest.mark.xfail(
    strict=True, reason="only the person's words and commands are read; a model is needed for the agent's"
)
async def test_missed_causes_that_only_the_agent_worded(tmp_path: Path) -> None:
    cause = "The import fails because the container has 512 MB of memory; the parser needs 2 GB."
    found = await remember(
        tmp_path, session(said("why does it fail?"), ran("./import.sh", 1, "killed"), answered(cause), said("I see"))
    )

    assert any("512 MB" in line for line in found.all_lines())


@pytest.mark.anyio
async def test_missed_sessions_that_are_older_than_a_month(tmp_path: Path) -> None:
    found = await remember(tmp_path, session(said("In this repo we never commit to main directly."), days_ago=63))

    assert ['"In this repo we never commit to main directly."'] == found.lines()

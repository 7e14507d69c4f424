"""An honest model over sixty sessions in six languages: none of its lines is refused, and all of them arrive.

The files beside this one hold sessions and the answers that a careful reader gave who saw nothing but the prompt. The
grounding was tuned on the first file; the others were written afterwards, before the grounding was looked at again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from learners import NOW, environment

from commonplace.app import book as books
from commonplace.learning import run as learning
from commonplace.learning.evaluate import files
from commonplace.learning.evaluate.cases import Case, CaseSession, ExpectedLessons
from commonplace.learning.run import LearningRequest
from model_server import Body, ModelServer, first_words

TUNED, UNSEEN, LATEST = "honest_sessions.jsonl", "more_honest_sessions.jsonl", "newest_honest_sessions.jsonl"
SETTINGS = '[memory]\nextract_model = "here:m-1"\nlines_per_project = 400\npercent_of_dialogue = 100\n'

REPORT = "I looked at the files that this touches, made the change in small steps and read the result once more. "


def sessions_of(name: str) -> list[dict[str, Any]]:
    lines = (Path(__file__).parent / name).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def with_long_answers(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a session's events with answers as long as agents give them: the size of the memory follows from them."""
    return [{"assistant": f"{each['assistant']}\n\n{REPORT * 12}"} if "assistant" in each else each for each in events]


def answerer(sessions: list[dict[str, Any]]) -> Callable[[Body], str]:
    """Return what answers with the lessons that were written down for the session that a request holds."""
    by_words = {each["events"][0]["user"].split("\n")[0]: each["lessons"] for each in sessions}

    def answer(body: Body) -> str:
        words = first_words(body)
        tasks = [{"title": words[:60], "outcome": "success"}]
        found = {"title": words[:60], "slug": "", "keywords": [], "tasks": tasks, "lessons": by_words[words]}
        return json.dumps(found)

    return answer


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        (TUNED, {"en": 10, "de": 10, "zh": 10}),
        (UNSEEN, {"en": 7, "de": 7, "es": 6}),
        (LATEST, {"en": 4, "fr": 3, "ja": 3}),
    ],
)
def test_there_are_so_many_sessions_in_each_language(name: str, counts: dict[str, int]) -> None:
    assert counts == Counter(each["language"] for each in sessions_of(name))


@pytest.mark.anyio
@pytest.mark.parametrize("name", [TUNED, UNSEEN, LATEST])
async def test_no_honest_line_is_refused_and_what_to_do_and_scopes_reach_the_memory(name: str, tmp_path: Path) -> None:
    sessions = sessions_of(name)
    for number, each in enumerate(sessions):
        session = CaseSession("codex", each["cwd"], with_long_answers(each["events"]), days_ago=1 + number / 100)
        files.write(Case(f"honest-{number}", "", [session], ExpectedLessons()), tmp_path, NOW)
    home = tmp_path / "home"
    home.mkdir()
    with ModelServer(answerer(sessions)) as server:
        (home / "config.toml").write_text(SETTINGS + server.provider(), "utf-8")
        async with books.open(environment=environment(home, "sqlite")) as book:
            await book.importer.run([("codex", tmp_path / "codex")])
            report = await learning.run(book.state, LearningRequest())
            status, waiting = await book.memory.status(), await book.memory.review()
    memory = (home / "memories" / "MEMORY.md").read_text("utf-8")
    everywhere = memory.partition("scope: global")[2].partition("\nscope: ")[0]
    told = [each for session in sessions for each in session["lessons"]]

    assert (len(sessions), 0, []) == (report.extracted, report.no_output, report.failed)
    assert [] == [(each.text, each.reason) for each in waiting if each.id.startswith("r")]
    assert 0 == status.refused
    assert [] == [each["what_to_do"] for each in told if each["what_to_do"] not in memory]
    assert [] == [each["quote"] for each in told if each["scope"] == "everywhere" and each["quote"] not in everywhere]
    assert [] == [
        each["text"] for each in told if each["section"] in ("environment", "failure") and each["text"] not in memory
    ]

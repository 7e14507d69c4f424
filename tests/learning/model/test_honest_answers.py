"""An honest model over thirty sessions in three languages: none of its lines is refused, and all of them arrive.

`honest_sessions.jsonl` holds sessions and the answers that a careful reader gave who saw nothing but the prompt.
"""

from __future__ import annotations

import json
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

SESSIONS: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "honest_sessions.jsonl").read_text("utf-8").splitlines()
]
SETTINGS = '[memory]\nextract_model = "here:m-1"\nlines_per_project = 400\npercent_of_dialogue = 100\n'


def answer(body: Body) -> str:
    """Answer with what was written down for the session that a request holds."""
    words = first_words(body)
    (found,) = [each for each in SESSIONS if each["events"][0]["user"].split("\n")[0] == words]
    tasks = [{"title": words[:60], "outcome": "success"}]
    return json.dumps({"title": words[:60], "slug": "", "keywords": [], "tasks": tasks, "lessons": found["lessons"]})


def test_there_are_thirty_sessions_in_three_languages() -> None:
    assert {"en": 10, "de": 10, "zh": 10} == {
        language: sum(each["language"] == language for each in SESSIONS) for language in ("en", "de", "zh")
    }


@pytest.mark.anyio
async def test_no_honest_line_is_refused_and_what_to_do_and_scopes_reach_the_memory(tmp_path: Path) -> None:
    for number, each in enumerate(SESSIONS):
        session = CaseSession("codex", each["cwd"], each["events"], days_ago=1 + number / 100)
        files.write(Case(f"honest-{number}", "", [session], ExpectedLessons()), tmp_path, NOW)
    home = tmp_path / "home"
    home.mkdir()
    with ModelServer(answer) as server:
        (home / "config.toml").write_text(SETTINGS + server.provider(), "utf-8")
        async with books.open(environment=environment(home, "sqlite")) as book:
            await book.importer.run([("codex", tmp_path / "codex")])
            report = await learning.run(book.state, LearningRequest())
            status, waiting = await book.memory.status(), await book.memory.review()
    memory = (home / "memories" / "MEMORY.md").read_text("utf-8")
    everywhere = memory.partition("scope: global")[2].partition("\nscope: ")[0]
    told = [each for session in SESSIONS for each in session["lessons"]]

    assert (30, 0, []) == (report.extracted, report.no_output, report.failed)
    assert (0, []) == (status.refused, [(each.text, each.reason) for each in waiting if each.id.startswith("r")])
    assert [] == [each["what_to_do"] for each in told if each["what_to_do"] not in memory]
    assert [] == [each["quote"] for each in told if each["scope"] == "everywhere" and each["quote"] not in everywhere]
    assert [] == [
        each["text"] for each in told if each["section"] in ("environment", "failure") and each["text"] not in memory
    ]

"""Answers of models in a few words, models that give them, and sessions that they are about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from made_sessions import model, ran, session, user

from commonplace.importers import claude_code, ledger_writer
from commonplace.learning.evaluate.cases import CaseSession
from commonplace.learning.reading.session_view import SessionView
from commonplace.models.base import Request, Usage
from commonplace.models.catalog import ModelInfo
from commonplace.models.providers import Choice, Provider
from commonplace.models.scripted import Answer, answer, say

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
PREFERENCES = "Preference signals:"
KNOWLEDGE = "Reusable knowledge:"
FAILURES = "Failures and how to do differently:"
STEPS = "Key steps:"
Sections = Mapping[str, Sequence[str]]


def choice(**changes: Any) -> Choice:
    """A model that is known, unless told otherwise."""
    values: dict[str, Any] = {"window": 200_000, "max_output": 8_000, "efforts": ("minimal", "low", "high"), **changes}
    provider = Provider(api="responses", base_url="http://127.0.0.1:1/v1")
    return Choice("here", provider, "m-1", ModelInfo(**values))


def tabs() -> SessionView:
    """A session that teaches a wish, a fix and a check."""
    return session(
        user("Fix the build. Always use uv, never pip."),
        ran("pip install x", 1, "error: externally-managed-environment"),
        ran("uv pip install x", 0, "Installed 1 package"),
        ran("uv run pytest -q", 0, "3 passed in 0.1s"),
        model("I installed it with uv and the tests pass."),
        user("great, thanks"),
    )


TABS: Sections = {
    PREFERENCES: ['said by the user: "Always use uv, never pip." -> always use uv, never pip [1]'],
    KNOWLEDGE: ["verify with `uv run pytest -q` (exit 0 here) [2]"],
    FAILURES: ["`pip install x` failed (externally-managed-environment); `uv pip install x` worked (exit 0) [3][4]"],
}
TABS_REFERENCES = (
    '[1] turn 1: "Always use uv, never pip."',
    '[2] turn 1: "uv run pytest -q"',
    '[3] turn 1: "pip install x"',
    '[4] turn 1: "uv pip install x"',
)


def _task(heading: str, number: int, name: str, sections: Sections, references: Sequence[str], lines: str) -> str:
    text = f"{heading} Task {number}: {name}\n{lines}\n"
    for title, bullets in sections.items():
        text += f"\n{title}\n" + "".join(f"- {bullet}\n" for bullet in bullets)
    named = "References:" if heading == "###" else "References"
    return text + (f"\n{named}\n" + "".join(f"- {each}\n" for each in references) if references else "")


def raw(
    sections: Sections = TABS,
    references: Sequence[str] = TABS_REFERENCES,
    *,
    name: str = "fix the build",
    outcome: str = "success",
    head: Mapping[str, str] | None = None,
    more: str = "",
) -> str:
    """A raw memory of one task, with more tasks after it as they stand."""
    values = {
        "description": "fixed the build with uv",
        "task": name,
        "task_group": "shop",
        "task_outcome": outcome,
        "cwd": "/home/dev/shop",
        "keywords": "uv, pip",
        **(head or {}),
    }
    front = "".join(f"{key}: {value}\n" for key, value in values.items())
    lines = f"\ntask: {name}\ntask_group: shop\ntask_outcome: {outcome}"
    return f"---\n{front}---\n\n{_task('###', 1, name, sections, references, lines)}{more}"


def summary(
    sections: Sections = TABS,
    references: Sequence[str] = TABS_REFERENCES,
    *,
    name: str = "fix the build",
    outcome: str = "success",
    title: str = "The build was fixed",
    context: str = "the build was broken",
) -> str:
    """A summary of one task."""
    task = _task("##", 1, name, sections, references, f"Outcome: {outcome}")
    return f"# {title}\n\nRollout context: {context}\n\n{task}"


def fields(
    sections: Sections = TABS, references: Sequence[str] = TABS_REFERENCES, *, slug: str | None = "a-slug", **told: Any
) -> dict[str, Any]:
    """The object of an answer."""
    both = {key: value for key, value in told.items() if key in ("name", "outcome")}
    return {
        "raw_memory": raw(sections, references, **both),
        "rollout_summary": summary(sections, references, **both),
        "rollout_slug": slug,
    }


def text(sections: Sections = TABS, references: Sequence[str] = TABS_REFERENCES, **told: Any) -> str:
    """An answer as JSON."""
    return json.dumps(fields(sections, references, **told))


NOTHING = json.dumps({"raw_memory": "", "rollout_summary": "", "rollout_slug": ""})


def says(words: str, **options: Any) -> Answer:
    """A step of a script: the model says this, and it costs a little."""
    return answer(say(words), **{"usage": Usage(input=900, output=100, total=1000), "piece": 4096, **options})


def bodies(requests: Sequence[Request]) -> str:
    """Everything that was sent, as one text."""
    return "\n".join(f"{each.instructions}\n{b''.join(each.input).decode()}" for each in requests)


def sent(request: Request, place: int = 0) -> str:
    """The words of one message of a request."""
    return str(json.loads(request.input[place])["content"][0]["text"])


def ledger(session: CaseSession, path: Path, folder: Path) -> Path:
    """A gold session as a ledger: Codex's own file, or Claude Code's imported."""
    if session.agent == "codex":
        return path
    place = ledger_writer.LedgerDestination(folder / "home", lambda: NOW, 65536)
    return ledger_writer.write(path, claude_code.convert, place)[0][0].path

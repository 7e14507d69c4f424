"""Answers of models in a few words, models that give them, and sessions that they are about."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
Row = dict[str, Any]


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


def lesson(section: str, text: str, quote: str, turn: int = 1, **fields: Any) -> Row:
    """One lesson of an answer."""
    return {
        "task": 1,
        "section": section,
        "text": text,
        "quote": quote,
        "turn": turn,
        "scope": "project",
        "what_to_do": "",
        **fields,
    }


def wish(words: str, turn: int = 1, **fields: Any) -> Row:
    """A wish in the person's words."""
    return lesson("preference", words, words, turn, **fields)


TABS: Sequence[Row] = (
    wish("Always use uv, never pip."),
    lesson("verify", "verify with `uv run pytest -q` (exit 0 here)", "uv run pytest -q"),
    lesson(
        "fix",
        "`pip install x` failed (externally-managed-environment); `uv pip install x` worked (exit 0)",
        "error: externally-managed-environment",
    ),
)


def fields(lessons: Sequence[Row] = TABS, *, name: str = "fix the build", **changes: Any) -> dict[str, Any]:
    """The object of an answer."""
    return {
        "title": "The build was fixed",
        "slug": "a-slug",
        "keywords": ["uv", "pip"],
        "tasks": [{"title": name, "outcome": "success"}],
        "lessons": list(lessons),
        **changes,
    }


def text(lessons: Sequence[Row] = TABS, **changes: Any) -> str:
    """An answer as JSON."""
    return json.dumps(fields(lessons, **changes))


NOTHING = json.dumps({"title": "", "slug": "", "keywords": [], "tasks": [], "lessons": []})


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

"""The real Codex takes the memory that Commonplace wrote into its prompt, as it would take its own."""

from __future__ import annotations

import contextlib
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import gold
from anchors.codex_driver import make_home, run_exec
from anchors.scripted_responses import ScriptedResponses, ScriptError, reply
from commonplace.app import book as books
from commonplace.learning import learn
from commonplace.learning.evaluate import files

pytestmark = pytest.mark.anchor

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
MEMORIES = '[features]\nmemories = true\n[memories]\nversion = "v1"\n'


async def learned(folder: Path) -> Path:
    """Learn from a few sessions; return the workspace."""
    for case in gold.load("together")[:6]:
        files.write(case, folder / "source", NOW)
    environment = {"COMMONPLACE_HOME": str(folder / "ours"), "COMMONPLACE_NOW": NOW.isoformat(), "HOME": str(folder)}
    async with books.open(environment=environment) as book:
        places = tuple(place for place in (folder / "source/codex", folder / "source/claude") if place.is_dir())
        report = await book.memory.learn(learn.LearningPlan(paths=places))
    assert report.consolidation.status == "succeeded", report.warnings
    return folder / "ours" / "memories"


def texts(request: list[dict[str, Any]]) -> list[str]:
    """What the developer's messages of a request say."""
    return [
        part["text"]
        for item in request
        if item.get("role") == "developer"
        for part in item.get("content", ())
        if part["type"] == "input_text"
    ]


async def test_codex_takes_our_memory_into_its_prompt(codex: Path, tmp_path: Path) -> None:
    workspace = await learned(tmp_path)
    summary = (workspace / "memory_summary.md").read_text("utf-8")
    seen: list[str] = []
    code = None
    # Codex also consolidates in the background: how many requests come after the first is up to its timing.
    with contextlib.suppress(ScriptError), ScriptedResponses([reply("Fine.") for _ in range(8)]) as server:
        home = make_home(codex, tmp_path / "codex-home", server.base_url, tables=MEMORIES)
        shutil.copytree(workspace, home.codex_home / "memories")
        code = run_exec(home, "hello").code
        seen = [text for request in server.inputs() for text in texts(request)]

    assert code == 0
    (memory,) = {text for text in seen if "MEMORY_SUMMARY BEGINS" in text}
    assert summary.strip() in memory

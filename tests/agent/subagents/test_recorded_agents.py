"""Sessions with sub-agents that the real Codex recorded: parent and child go on here as Codex saw them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from troupe import ROOT, Troupe, answer, finished, say, tool

import commonplace
from commonplace.protocol.items import PASSTHROUGH
from commonplace.rollout.chain import read_head

DATA = Path(__file__).parents[2] / "data" / "codex_recorded"
FAMILIES = ("sub_agent_v1", "sub_agent_v2")
Json = dict[str, Any]


def taken_over(home: Path, family: str) -> tuple[str, str]:
    """Put the files of a recording into a home; return the ids of the parent and of the child."""
    folder = home / "sessions" / "2026" / "11" / "15"
    folder.mkdir(parents=True)
    metas = [read_head(Path(shutil.copy(path, folder)))[1] for path in sorted((DATA / family).glob("rollout-*.jsonl"))]
    (parent,) = [meta.id for meta in metas if meta.parent_thread_id is None]
    (child,) = [meta.id for meta in metas if meta.parent_thread_id == parent]
    return parent, child


def seen_by_codex(family: str, thread_id: str) -> list[Json]:
    """What the model was shown last in a thread, without the base instructions and bookkeeping."""
    inputs = json.loads((DATA / family / "model_inputs.json").read_text("utf-8"))
    requests = json.loads((DATA / family / "requests.json").read_text("utf-8"))
    (*_, last) = [items for items, note in zip(inputs, requests, strict=True) if note["thread_id"] == thread_id]
    return [{key: value for key, value in item.items() if key != PASSTHROUGH} for item in last[1:]]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("who", [0, 1], ids=["parent", "child"])
async def test_a_recorded_thread_goes_on_with_what_codex_showed_its_model(
    tmp_path: Path, home: Path, family: str, who: int
) -> None:
    thread_id = taken_over(home, family)[who]
    troupe = Troupe(answer(say("On it goes.")))
    async with commonplace.open() as book:
        context = await book.sessions.context(thread_id)
        thread = await book.resume(thread_id, cwd=tmp_path, speaker=troupe)
        finished(await thread.turn("And now?"))

    seen = seen_by_codex(family, thread_id)
    ours = troupe.items()
    assert ours[: len(seen)] == seen
    answered = ours[len(seen)]
    assert (answered["type"], answered["role"]) == ("message", "assistant")
    assert [json.loads(bytes(raw))["type"] for raw in context.items] == [item["type"] for item in [*seen, answered]]


@pytest.mark.parametrize("family", FAMILIES)
async def test_the_parent_shows_its_child_and_opens_it_again_by_its_id(tmp_path: Path, home: Path, family: str) -> None:
    parent, child = taken_over(home, family)
    troupe = Troupe(
        answer(tool("resume_agent", "r1", id=child)),
        answer(tool("send_input", "i1", target=child, message="Sure?")),
        answer(tool("wait_agent", "w9", targets=[child])),
        answer(say("Sure.")),
    )
    troupe.add("Sure?", answer(say("Quite sure.")))
    async with commonplace.open() as book:
        shown = await book.sessions.show(parent)
        thread = await book.resume(parent, cwd=tmp_path, speaker=troupe)
        finished(await thread.turn("Ask it again."))
        (agent,) = thread.agents

    assert [each.thread_id for each in shown.sidechains] == [child]
    assert troupe.output("r1") == {"status": {"completed": "The answer is 7."}}
    assert troupe.output("w9")["status"] == {child: {"completed": "Quite sure."}}
    assert agent.parent_id == parent
    seen = seen_by_codex(family, child)
    assert troupe.items("Sure?", 0)[: len(seen)] == seen
    assert troupe.items(ROOT, 0)[: len(seen_by_codex(family, parent))] == seen_by_codex(family, parent)

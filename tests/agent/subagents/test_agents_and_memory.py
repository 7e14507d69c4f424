"""Sub-agents and the memory: they start no learning and are never learned from; what makes the memory starts none."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from troupe import Troupe, answer, finished, say, spawn, started, waits

import commonplace
import sources
from commonplace.agent.subagents.agent import Agent
from commonplace.app import background

TASK = "From now on always run the linter with the option strict."
WORDS = "From now on always use port 5433 for the database of this project."


async def test_a_sub_agent_starts_no_learning_and_is_not_learned_from(tmp_path: Path) -> None:
    troupe = Troupe(answer(spawn(TASK)), waits(), answer(say("It is noted.")))
    troupe.add(TASK, answer(say("Noted.")))
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe, source="cli")
        finished(await thread.turn(WORDS))
        (agent,) = thread.agents
        settings = msgspec.structs.replace(
            book.settings, memory=msgspec.structs.replace(book.settings.memory, background=True)
        )
        assert background.is_attended(settings, thread.session)
        children: list[Agent] = []
        assert thread.tree is not None
        thread.tree.listen(children.append)
        (child,) = [each.thread for each in children]
        assert child is not None
        assert not background.is_attended(settings, child.session)

    later = (datetime.now(UTC) + timedelta(days=2)).isoformat()
    async with commonplace.open(environment={**os.environ, "COMMONPLACE_NOW": later}) as book:
        listed = await book.sessions.list(source="subagent:thread_spawn")
        await book.memory.run()
        learned = " ".join(entry.text for entry in (await book.memory.list()).entries)

    assert [row.thread_id for row in listed.threads] == [agent.thread_id]
    assert "5433" in learned
    assert "linter" not in learned


def test_nothing_that_learns_knows_of_sub_agents() -> None:
    learning = [path for path in sources.MODULES if "learning" in path.relative_to(sources.PACKAGE).parts[:1]]

    assert learning
    assert [path.name for path in learning if "agent.subagents" in path.read_text("utf-8")] == []

"""A session with sub-agents: started, told, waited for, closed; what their parents are told; what the ledgers say."""

from __future__ import annotations

from pathlib import Path

from troupe import ROOT, Troupe, answer, finished, say, spawn, started, waits

import commonplace


async def test_an_agent_is_started_waited_for_and_its_answer_read(tmp_path: Path) -> None:
    troupe = Troupe(answer(spawn("count the files")), count_the_files=(answer(say("There are 7.")),))
    troupe.add(ROOT, waits(troupe), answer(say("The child says 7.")))
    async with commonplace.open() as book:
        thread = await started(book, tmp_path, troupe)
        assert finished(await thread.turn("How many files?")) == "The child says 7."
        (agent,) = thread.agents

    spawned = troupe.output("s1")
    assert spawned == {"agent_id": agent.thread_id, "nickname": agent.nickname}
    assert troupe.output("w1") == {"status": {agent.thread_id: {"completed": "There are 7."}}, "timed_out": False}
    assert troupe.notices() == [{"agent_path": agent.thread_id, "status": {"completed": "There are 7."}}]
    troupe.check()

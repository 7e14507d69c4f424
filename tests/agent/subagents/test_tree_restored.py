"""The tree of a session that is gone on with: found again after an orderly end, and after its process was killed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from troupe import ROOT, Troupe, about, answer, finished, say, spawn, started, tool, waits

import commonplace
import processes
from commonplace.errors import ThreadBusy

PROGRAM = Path(__file__).with_name("tree_program.py")
TASK = "count the files"


async def grown(tmp_path: Path) -> tuple[str, list[commonplace.AgentInfo]]:
    """Return a session that ended with three agents: one closed, one below the other; and what was told of them."""
    troupe = Troupe(
        answer(spawn(TASK, agent_type="worker")),
        count_the_files=(answer(spawn("look closer")), waits(), answer(say("7."))),
        look_closer=(answer(say("Seven.")),),
        go_away=(answer(say("Gone.")),),
    )
    troupe.add(
        ROOT,
        waits(),
        answer(spawn("go away", "s2")),
        waits("w2", "s2"),
        about(lambda agent: tool("close_agent", "c1", target=agent), "s2"),
        answer(say("Done.")),
    )
    async with commonplace.open(flags={"agents.max_depth": 2}) as book:
        thread = await started(book, tmp_path, troupe)
        finished(await thread.turn("Count."))
        told = thread.agents
    troupe.check()
    return thread.id, told


async def test_a_session_finds_its_agents_again_with_their_names_roles_and_answers(tmp_path: Path) -> None:
    root, before = await grown(tmp_path)
    troupe = Troupe()
    async with commonplace.open(flags={"agents.max_depth": 2}) as book:
        thread = await book.resume(root, cwd=tmp_path / "project", speaker=troupe)
        after = thread.agents
        assert [(each.depth, each.role) for each in after] == [(1, "worker"), (2, None)]
        for name in ("thread_id", "parent_id", "nickname", "role", "status", "path"):
            assert [getattr(each, name) for each in after] == [getattr(each, name) for each in before]
        top = after[0].thread_id
        troupe.models = {ROOT: Troupe().models[ROOT], TASK: Troupe().models[ROOT]}
        troupe.add(ROOT, answer(tool("send_input", "i1", target=top, message="Again.")))
        troupe.add(ROOT, answer(tool("wait_agent", "w9", targets=[top])), answer(say("8.")))
        troupe.add(TASK, answer(say("8 now.")))
        finished(await thread.turn("Again."))

    assert troupe.output("w9")["status"] == {top: {"completed": "8 now."}}
    texts = [part["text"] for item in troupe.items(TASK) for part in item.get("content") or ()]
    said = [text for text in texts if not text.startswith(("<", "#"))]
    assert said[0].startswith("You were started")
    assert said[1:] == [TASK, "7.", "Again."]


async def test_an_agent_that_is_gone_on_with_by_itself_stays_one(tmp_path: Path) -> None:
    _, (top, _) = await grown(tmp_path)
    async with commonplace.open() as book:
        thread = await book.resume(top.thread_id, cwd=tmp_path / "project", speaker=Troupe(), source="cli")
        profile = thread.profile
        assert profile.agent is not None
        assert profile.source == profile.agent.source()
        assert book.background.started == []
        page = await book.sessions.list()
        assert top.thread_id not in [row.thread_id for row in page.threads]


async def test_closing_an_agent_that_is_not_open_works_and_frees_its_place(tmp_path: Path) -> None:
    root, (top, below) = await grown(tmp_path)
    assert top.path is not None
    moved = top.path.with_suffix(".away")
    top.path.rename(moved)
    warnings: list[str] = []
    flags = {"agents.max_depth": 2}
    async with commonplace.open(flags=flags, warn=warnings.append) as book:
        thread = await book.resume(root, cwd=tmp_path / "project", speaker=Troupe())
        assert thread.agents == []
    moved.rename(top.path)
    async with commonplace.open(flags=flags) as book:
        thread = await book.resume(root, cwd=tmp_path / "project", speaker=Troupe())
        assert [each.thread_id for each in thread.agents] == [top.thread_id, below.thread_id]


async def test_a_session_takes_no_more_agents_back_than_may_be_open(tmp_path: Path) -> None:
    root, (top, below) = await grown(tmp_path)
    troupe = Troupe(answer(tool("close_agent", "c9", target=below.thread_id)), answer(say("Closed.")))
    flags = {"agents.max_depth": 2, "agents.max_concurrent_threads_per_session": 1}
    async with commonplace.open(flags=flags) as book:
        thread = await book.resume(root, cwd=tmp_path / "project", speaker=troupe)
        assert [each.status.kind for each in thread.agents] == ["completed", "not_found"]
        finished(await thread.turn("Close it."))
        assert [each.thread_id for each in thread.agents] == [top.thread_id]

    assert troupe.output("c9") == {"previous_status": "not_found"}


async def test_an_agent_that_could_not_be_opened_keeps_its_place_and_is_opened_later(tmp_path: Path) -> None:
    root, (top, below) = await grown(tmp_path)
    troupe = Troupe(answer(tool("resume_agent", "r9", id=below.thread_id)), answer(say("Open.")))
    flags = {"agents.max_depth": 2, "agents.max_concurrent_threads_per_session": 2}
    async with commonplace.open(flags={"agents.max_depth": 2}) as other:
        await other.resume(below.thread_id, cwd=tmp_path / "project", speaker=Troupe())
        async with commonplace.open(flags=flags) as book:
            thread = await book.resume(root, cwd=tmp_path / "project", speaker=troupe)
            assert [each.status.kind for each in thread.agents] == ["completed", "not_found"]
            await other.close()
            finished(await thread.turn("Open it."))
            assert [each.thread_id for each in thread.agents] == [top.thread_id, below.thread_id]

    assert troupe.output("r9") == {"status": {"completed": "Seven."}}


async def test_an_agent_of_another_session_is_not_opened(tmp_path: Path) -> None:
    _, (top, _) = await grown(tmp_path)
    troupe = Troupe(answer(tool("resume_agent", "r9", id=top.thread_id)), answer(say("No.")))
    async with commonplace.open(flags={"agents.max_depth": 2}) as book:
        thread = await started(book, tmp_path, troupe)
        finished(await thread.turn("Open it."))
        assert thread.agents == []

    assert f"agent with id {top.thread_id} not found" in troupe.output("r9")


async def test_agents_are_closed_with_their_session_and_others_may_write_to_their_threads(tmp_path: Path) -> None:
    root, (top, _) = await grown(tmp_path)
    async with commonplace.open(flags={"agents.max_depth": 2}) as book:
        thread = await book.resume(root, cwd=tmp_path / "project", speaker=Troupe())
        with pytest.raises(ThreadBusy):
            await book.resume(top.thread_id, cwd=tmp_path / "project", speaker=Troupe())
        await book.release(thread)
        again = await book.resume(top.thread_id, cwd=tmp_path / "project", speaker=Troupe())
        assert again.id == top.thread_id


async def test_a_tree_of_thirty_agents_is_found_again_after_its_process_was_killed(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    code = (
        f"import runpy, sys; sys.argv = ['x', {str(folder)!r}]; runpy.run_path({str(PROGRAM)!r}, run_name='__main__')"
    )
    with processes.Process(
        [], stdin=processes.DEVNULL, stdout=processes.PIPE, stderr=2, text=True, code=code
    ) as program:
        assert program.stdout is not None
        told = json.loads(program.stdout.readline())
        os.kill(program.pid, signal.SIGKILL)
    flags = {"agents.max_depth": 2, "agents.max_concurrent_threads_per_session": 30}
    async with commonplace.open(flags=flags) as book:
        thread = await book.resume(told["root"], cwd=folder, speaker=Troupe())
        found = thread.agents

    assert len(found) == 30
    assert [[each.thread_id, each.parent_id, each.nickname, each.role] for each in found] == told["agents"]
    assert sorted(each.status.kind for each in found) == ["completed"] * 5 + ["interrupted"] * 25
    assert len({each.nickname for each in found}) == 30

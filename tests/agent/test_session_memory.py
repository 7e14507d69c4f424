"""Memory in a session: told once per window, cited out of sight, counted, and never worth an error."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from scripted_session import Clock, stage, used
from session_invariants import kinds

from commonplace.agent import events
from commonplace.agent.session_environment import IsolatedEnvironment
from commonplace.agent.tools.memory_reads import MemoryRead
from commonplace.errors import StateError
from commonplace.models.scripted import answer, call, say
from commonplace.protocol.citations import Citation

SECTION = "## Memory\nThe person likes short answers."
LONG = "word " * 8_000
CITED = (
    "It is in the index.\n<oai-mem-citation>\n<citation_entries>\nMEMORY.md:1-2|note=[used it]\n</citation_entries>\n"
    "<rollout_ids>\n01a1dddc-5c08-7863-8c91-eb8a612fb6a1\n</rollout_ids>\n</oai-mem-citation>"
)


class Receipt(msgspec.Struct):
    entries: list[str]


class Remembering(IsolatedEnvironment):
    """Surroundings that remember, and note what they are asked."""

    def __init__(self, broken: Exception | None = None) -> None:
        clock = Clock()
        super().__init__({"PATH": "/usr/bin:/bin"}, clock.now, clock.monotonic)
        self.broken = broken
        self.citations: list[Citation] = []
        self.read: list[MemoryRead] = []

    async def remembered(self, cwd: Path) -> str:
        return SECTION

    async def cited(self, citation: Citation) -> msgspec.Struct | None:
        if self.broken is not None:
            raise self.broken
        self.citations.append(citation)
        return Receipt([entry.path for entry in citation.entries])

    async def retrieved(self, found: Sequence[MemoryRead]) -> None:
        if self.broken is not None:
            raise self.broken
        self.read.extend(found)


async def test_what_is_remembered_is_told_with_the_first_request_and_not_again(tmp_path: Path) -> None:
    async with stage(
        tmp_path, answer(say("1.")), answer(say("2.")), answer(say("3.")), environment=Remembering()
    ) as here:
        await here.run("One.")
        assert 1 == here.texts().count(SECTION)
        await here.run("Two.")
        await here.resume()
        await here.run("Three.")

        assert 1 == here.texts().count(SECTION)
        messages = [item for item in here.items() if item["type"] == "message"]
        told = [item["role"] for item in messages if SECTION in [part["text"] for part in item["content"]]]
        assert ["developer"] == told


class RememberingByFolder(Remembering):
    """Surroundings that remember something else in each project, and the same in all folders of one."""

    async def remembered(self, cwd: Path) -> str:
        return f"## Memory of {'other' if 'other' in cwd.parts else 'project'}"


async def test_a_turn_in_another_folder_is_told_what_is_remembered_there(tmp_path: Path) -> None:
    (tmp_path / "project" / "inner").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    first, second = "## Memory of project", "## Memory of other"
    async with stage(tmp_path, *[answer(say("Yes."))] * 5, environment=RememberingByFolder()) as here:
        told: list[tuple[int, int]] = []
        for folder in ("project", "project/inner", "other", "other", "project"):
            await here.run("Go on.", msgspec.structs.replace(here.profile, cwd=tmp_path / folder))
            told.append((here.texts().count(first), here.texts().count(second)))

        assert [(1, 0), (1, 0), (1, 1), (1, 1), (1, 1)] == told


async def test_what_is_remembered_is_told_again_after_a_compaction(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        answer(say(LONG), call("shell", {"command": "echo 1"}, "c1"), usage=used(95_000)),
        answer(say("The summary.")),
        answer(say("Done.")),
        environment=Remembering(),
    ) as here:
        await here.run("Work.")

        assert 1 == here.texts().count(SECTION)


@pytest.mark.parametrize("piece", [1, 3, 7, 64, 1_000])
async def test_a_citation_is_seen_by_nobody_is_counted_and_stays_in_the_item(tmp_path: Path, piece: int) -> None:
    outside = Remembering()
    async with stage(tmp_path, answer(say(CITED), piece=piece), answer(say("Yes.")), environment=outside) as here:
        end = await here.run("Where is it?")

        assert isinstance(end, events.TurnCompleted)
        assert end.message is not None
        assert "It is in the index." == end.message.strip()
        assert "oai-mem" not in "".join(each.text for each in here.events if isinstance(each, events.TextDelta))
        shown = next(item for item in here.completed() if isinstance(item, events.AgentMessage))
        assert "oai-mem" not in shown.text
        assert shown.citation is not None
        assert ["MEMORY.md"] == [entry.path for entry in outside.citations[0].entries]
        await here.session.ledger.flush()
        noted = next(line["payload"] for line in here.lines() if line["payload"].get("kind") == "citation")
        assert {"entries": ["MEMORY.md"]} == noted["receipt"]
        await here.run("Sure?")
        assert CITED in here.texts()
        assert 1 == len(outside.citations)


async def test_a_command_that_reads_the_memory_is_counted_when_the_turn_is_over(tmp_path: Path) -> None:
    outside = Remembering()
    (tmp_path / "home" / "memories").mkdir(parents=True)
    (tmp_path / "home" / "memories" / "MEMORY.md").write_text("Short answers.\n")
    command = {"command": f"cat {tmp_path / 'home' / 'memories' / 'MEMORY.md'}"}
    async with stage(tmp_path, answer(call("shell", command, "c1")), answer(say("Yes.")), environment=outside) as here:
        await here.run("What do you know?")

        assert [("memory_md", "read", "MEMORY.md")] == [(each.kind, each.use, each.path) for each in outside.read]
        assert "Short answers." in here.outputs()["c1"]


async def test_memory_that_cannot_be_counted_costs_a_warning(tmp_path: Path) -> None:
    outside = Remembering(StateError("The database is locked.", hint=""))
    async with stage(tmp_path, answer(say(CITED)), environment=outside) as here:
        end = await here.run("Where is it?")

        assert isinstance(end, events.TurnCompleted)
        assert "could not be counted" in next(each.message for each in here.events if isinstance(each, events.Warned))
        assert "task_complete" == kinds(here.lines())[-1]


async def test_of_an_answer_that_is_interrupted_in_its_citation_nothing_hidden_is_shown(tmp_path: Path) -> None:
    import anyio

    from commonplace.models import base

    async with stage(tmp_path, answer(say(CITED), piece=60), environment=Remembering()) as here:
        here.model.stalls = base.TextDelta
        async with anyio.create_task_group() as group:
            group.start_soon(here.run, "Where is it?")
            await here.until(events.TextDelta)
            await here.session.interrupt()

        shown = next(item for item in here.completed() if isinstance(item, events.AgentMessage))
        assert "It is in the index.\n" == shown.text

"""Going over the memory over real connections, in the languages of three APIs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from curated import SHOP, Memory, choice, edit, session, wish
from dialects import ALL, RESPONSES, Dialect, Said, patient
from scripted_http import Reply, ScriptedServer, serve

from commonplace.learning.budget import Spending, Unlimited
from commonplace.learning.consolidate.consolidator import ConsolidatedMemory
from commonplace.learning.consolidate.curator import Curator, CuratorLimits
from commonplace.memory.entries import entry_id
from commonplace.memory.files import validation

UV = "always use uv instead of pip"
WORDING = f'for packages, "{UV}"'
NAME = entry_id(SHOP, "preference", UV)
WORKS = Said(text=json.dumps({"edits": [edit("reword", NAME, text=WORDING)]}))
ENDS = Said(text='{"edits": []}')


async def go_over(
    server: ScriptedServer,
    dialect: Dialect,
    folder: Path,
    *,
    spending: Spending | None = None,
    settings: CuratorLimits | None = None,
) -> tuple[ConsolidatedMemory, str]:
    memory = Memory(folder)
    memory.add(session(1, wish(UV)))
    material = memory.material()

    def check(found: Any) -> list[str]:
        return validation.problems(material.root) + list(validation.entries(found))

    async with dialect.model(server.base_url, patient()) as connected:
        maker = Curator(connected, choice(), spending=spending, settings=settings)
        found = await maker.curate(material, maker.consolidate(material), check)
    return found, (material.root / "MEMORY.md").read_text("utf-8")


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
@pytest.mark.anyio
async def test_the_memory_is_gone_over_with_every_api(dialect: Dialect, tmp_path: Path) -> None:
    spending = Unlimited()
    async with serve(dialect.reply(WORKS)) as server:
        found, text = await go_over(server, dialect, tmp_path, spending=spending)
    body = json.dumps(server.seen[0].body)

    assert f"- {WORDING} [" in text
    assert [WORDING] == [entry.text for entry in found.entries]
    assert "move_to_global" in body
    assert 1 == spending.total.requests


@pytest.mark.anyio
async def test_a_busy_server_is_asked_again_and_every_request_counts(tmp_path: Path) -> None:
    spending = Unlimited()
    async with serve(RESPONSES.errors["rate"](), RESPONSES.reply(ENDS)) as server:
        await go_over(server, RESPONSES, tmp_path, spending=spending)

    assert 2 == spending.total.requests


@pytest.mark.parametrize("trouble", ["quota", "key", "context"])
@pytest.mark.anyio
async def test_what_cannot_pass_is_not_asked_again_and_is_told(trouble: str, tmp_path: Path) -> None:
    async with serve(RESPONSES.errors[trouble]()) as server:
        found, text = await go_over(server, RESPONSES, tmp_path)

    assert "did not go over 1 of 1 entries" in found.warnings[-1]
    assert UV in text


@pytest.mark.anyio
async def test_a_server_that_never_ends_is_left_when_the_time_is_over(tmp_path: Path) -> None:
    begun = RESPONSES.spoken(WORKS)[:300]
    async with serve(Reply([begun], hold=anyio.Event())) as server:
        found, _ = await go_over(server, RESPONSES, tmp_path, settings=CuratorLimits(seconds=0.5))
        if server.seen:  # or the time was over before there was a connection
            with anyio.fail_after(60):
                await server.left.wait()

    assert "took longer than" in found.warnings[-1]

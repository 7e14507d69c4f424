"""Going over the memory over real connections, in the languages of three APIs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from curated import NOW, Memory, choice, session, wish
from dialects import ALL, RESPONSES, Dialect, Said, patient
from scripted_http import Reply, ScriptedServer, serve

from commonplace.errors import ConsolidationFailed, NotAuthorised, QuotaExceeded, RateLimited
from commonplace.learning.budget import Spending, Unlimited
from commonplace.learning.consolidate.consolidator import ConsolidatedMemory
from commonplace.learning.consolidate.curator import Curator, CuratorLimits
from commonplace.memory.files import validation

UV = "always use uv instead of pip"
EDIT = {"path": "MEMORY.md", "changes": [{"old": f'- "{UV}"', "new": f'- for packages, "{UV}" -> uv'}]}
WORKS = Said(calls=(("edit", json.dumps(EDIT), "c1"), ("done", "{}", "c2")))
ENDS = Said(calls=(("done", "{}", "c3"),))


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
        maker = Curator(connected, choice(), spending=spending, settings=settings, now=lambda: NOW)
        found = await maker.curate(material, maker.consolidate(material), check)
    return found, (material.root / "MEMORY.md").read_text("utf-8")


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
@pytest.mark.anyio
async def test_the_memory_is_gone_over_with_every_api(dialect: Dialect, tmp_path: Path) -> None:
    spending = Unlimited()
    async with serve(dialect.reply(WORKS), dialect.reply(ENDS)) as server:
        found, text = await go_over(server, dialect, tmp_path, spending=spending)
    body = json.dumps(server.seen[0].body)

    assert any(line.startswith(f'- for packages, "{UV}" -> uv [') for line in text.split("\n"))
    assert [f'for packages, "{UV}" -> uv'] == [entry.text for entry in found.entries]
    assert all(f'"{name}"' in body for name in ("list", "read", "search", "edit", "write", "done"))
    assert "web_search" not in body
    assert (2, 300) == (spending.total.requests, spending.total.tokens)


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
@pytest.mark.anyio
async def test_a_busy_server_is_asked_again_and_every_request_counts(dialect: Dialect, tmp_path: Path) -> None:
    spending = Unlimited()
    async with serve(dialect.errors["rate"](), dialect.reply(ENDS), dialect.reply(ENDS)) as server:
        await go_over(server, dialect, tmp_path, spending=spending)

    assert 3 == spending.total.requests


@pytest.mark.parametrize(
    ("trouble", "error"),
    [("quota", QuotaExceeded), ("key", NotAuthorised), ("context", ConsolidationFailed)],
)
@pytest.mark.anyio
async def test_what_cannot_pass_is_not_asked_again(trouble: str, error: type[Exception], tmp_path: Path) -> None:
    async with serve(RESPONSES.errors[trouble]()) as server:
        with pytest.raises(error):
            await go_over(server, RESPONSES, tmp_path)


@pytest.mark.anyio
async def test_a_server_that_stays_busy_is_left_alone_after_a_few_tries(tmp_path: Path) -> None:
    async with serve(*[RESPONSES.errors["rate"]() for _ in range(5)]) as server:
        with pytest.raises(RateLimited):
            await go_over(server, RESPONSES, tmp_path)


@pytest.mark.anyio
async def test_a_server_that_never_ends_is_left_when_the_time_is_over(tmp_path: Path) -> None:
    begun = RESPONSES.spoken(WORKS)[:300]
    async with serve(Reply([begun], hold=anyio.Event())) as server:
        with pytest.raises(ConsolidationFailed, match="took longer than"):
            await go_over(server, RESPONSES, tmp_path, settings=CuratorLimits(seconds=0.5))
        if server.seen:  # or the time was over before there was a connection
            with anyio.fail_after(60):
                await server.left.wait()

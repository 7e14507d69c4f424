"""What the agent is told about its memory names the tools that it really has, under the names that it knows."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from beginnings import PNPM, Beside, make_beside

from commonplace.models.base import FunctionTool, Request
from commonplace.models.scripted import ScriptedModel, answer, say
from commonplace.models.tool_names import flat_name

CHAT = '[providers.local]\napi = "chat"\nbase_url = "http://127.0.0.1:9/v1"\n'
TOOLS = {"list", "read", "search", "find", "add_ad_hoc_note"}


def offered(request: Request) -> set[tuple[str | None, str]]:
    return {(tool.namespace, tool.name) for tool in request.tools if isinstance(tool, FunctionTool)}


def section(request: Request) -> str:
    items = [msgspec.json.decode(raw) for raw in request.input]
    texts = [part.get("text", "") for item in items for part in item.get("content") or ()]
    (found,) = (text for text in texts if text.startswith("<commonplace"))
    return found


async def asked(beside: Beside, model: str | None, **settings: str) -> Request:
    speaker = ScriptedModel(answer(say("Yes.")))
    async with beside.open(**settings) as book:
        await book.memory.run()
        (beside.root / "project").mkdir(exist_ok=True)
        thread = await book.start(cwd=beside.root / "project", speaker=speaker, model=model)
        await thread.turn("Hello?")
    return speaker.requests[0]


@pytest.fixture
def beside(tmp_path: Path) -> Beside:
    made = make_beside(tmp_path, background=False)
    made.home.mkdir(exist_ok=True)
    (made.home / "config.toml").write_text(CHAT)
    return made


@pytest.mark.parametrize(("model", "between"), [(None, "."), ("local:any", "__")])
async def test_with_tools_the_section_names_them_as_the_api_does(
    beside: Beside, model: str | None, between: str
) -> None:
    request = await asked(beside, model)
    told = section(request)

    assert {("memories", name) for name in TOOLS} <= offered(request)
    named = set(re.findall(r"memories(?:\.|__)\w+", told))
    assert named
    assert named <= {f"memories{between}{name}" for name in TOOLS}
    assert flat_name("search", "memories") == "memories__search"
    assert "rg " not in told


@pytest.mark.parametrize("model", [None, "local:any"])
async def test_without_tools_the_section_names_none(beside: Beside, model: str | None) -> None:
    request = await asked(beside, model, memory_tools="false")

    assert not [name for space, name in offered(request) if space == "memories"]
    assert not re.search(r"memories(?:\.|__)(?:list|read|search|find|add)", section(request))
    assert "commonplace memory note TEXT" in section(request), "the sandbox refuses a file, which nobody could sign"
    assert "write one small file" not in section(request)


async def test_where_memory_is_off_neither_is_there(beside: Beside) -> None:
    request = await asked(beside, None, memory_use="false")

    assert not [name for space, name in offered(request) if space == "memories"]
    assert PNPM not in str(request.input)

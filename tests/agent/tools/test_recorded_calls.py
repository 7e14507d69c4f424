"""The calls that a model made of the real Codex, as recorded, answered by our tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pictures
from commonplace.agent.tools.image import ViewImage
from commonplace.agent.tools.patch.tool import ApplyPatch
from commonplace.agent.tools.processes import Processes
from commonplace.agent.tools.registry import Registry, ToolContext, ToolInvocation, output_item
from commonplace.agent.tools.shell import Process, Shell

DATA = Path(__file__).parents[2] / "data"
OURS = ("exec_command", "apply_patch", "view_image", "no_such_tool")
Pair = tuple[dict[str, Any], dict[str, Any]]


def recorded() -> list[Pair]:
    """Calls that end by themselves, each once, with the answers that they got."""
    found: dict[str, Pair] = {}
    for path in sorted([*DATA.glob("codex_fixtures/*/*.jsonl"), *DATA.glob("codex_recorded/*/*.jsonl")]):
        payloads = [json.loads(line).get("payload", {}) for line in path.read_text("utf-8").splitlines()]
        answers = {each["call_id"]: each for each in payloads if str(each.get("type")).endswith("call_output")}
        for each in payloads:
            said = str(each.get("arguments", each.get("input")))
            if each.get("name") in OURS and each.get("call_id") in answers and "sleep" not in said:
                found.setdefault(f"{each['name']} {said}", (each, answers[each["call_id"]]))
    return list(found.values())


@pytest.mark.parametrize("pair", recorded(), ids=lambda pair: pair[0]["name"])
async def test_a_recorded_call_is_answered_in_kind(
    pair: Pair, processes: Processes, surrounded: Callable[..., ToolContext], folder: Path
) -> None:
    made, answered = pair
    (folder / "dot.png").write_bytes(pictures.png(1, 1))
    registry = Registry([Shell(processes), Process(processes), ApplyPatch(), ViewImage()])
    kind = "custom" if made["type"] == "custom_tool_call" else "function"
    said = str(made.get("arguments", made.get("input"))).replace("/repo/demo", str(folder))
    call = ToolInvocation(made["call_id"], made["name"], said, kind)

    ours = output_item(call, await registry.run(call, surrounded()))

    assert (answered["type"], answered["call_id"]) == (ours["type"], ours["call_id"])
    assert type(answered["output"]) is type(ours["output"])
    if made["name"] == "view_image":
        assert [part.keys() for part in answered["output"]] == [part.keys() for part in ours["output"]]
    elif made["name"] == "exec_command":
        assert answered["output"].splitlines()[-1] in ours["output"].splitlines()


def test_there_are_recorded_calls_of_each_tool() -> None:
    assert set(OURS) == {made["name"] for made, _ in recorded()}

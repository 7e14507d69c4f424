"""The plan and pictures."""

from __future__ import annotations

import base64
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pictures
from commonplace.agent.tools import image
from commonplace.agent.tools.image import ViewImage
from commonplace.agent.tools.plan import PlanStep, PlanUpdate, UpdatePlan
from commonplace.agent.tools.registry import Registry, ToolContext, ToolInvocation, ToolOutput

Surrounded = Callable[..., ToolContext]


async def _call(name: str, arguments: Any, context: ToolContext) -> ToolOutput:
    return await Registry([UpdatePlan(), ViewImage()]).run(ToolInvocation("1", name, json.dumps(arguments)), context)


def _steps(*statuses: str) -> list[dict[str, str]]:
    return [{"step": f"step {number}", "status": status} for number, status in enumerate(statuses)]


@pytest.mark.parametrize(
    "statuses", [[], ["pending"], ["completed", "in_progress", "pending"], ["completed", "completed"]]
)
async def test_a_plan_is_handed_on(statuses: list[str], surrounded: Surrounded) -> None:
    output = await _call("update_plan", {"plan": _steps(*statuses), "explanation": "why"}, surrounded())

    assert output.ok
    assert isinstance(output.detail, PlanUpdate)
    assert ("why", statuses) == (output.detail.explanation, [each.status for each in output.detail.plan])
    assert not statuses or isinstance(output.detail.plan[0], PlanStep)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (_steps("in_progress", "in_progress"), "2 steps are in progress; at most one may be"),
        (_steps("done"), "Invalid enum value"),
        ([{"step": " ", "status": "pending"}], "a step has no words"),
        ([{"step": "", "status": "pending"}], "length >= 1"),
        ([{"step": "x"}], "status"),
        (_steps(*["pending"] * 101), "length <= 100"),
    ],
)
async def test_a_plan_that_makes_no_sense_is_refused(plan: Any, said: str, surrounded: Surrounded) -> None:
    output = await _call("update_plan", {"plan": plan}, surrounded())

    assert not output.ok
    assert said in str(output.content)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (pictures.png(3, 2), "png"),
        (pictures.gif(3, 2), "gif"),
        (pictures.jpeg(3, 2), "jpeg"),
        (pictures.webp_lossy(3, 2), "webp"),
    ],
)
async def test_a_picture_is_shown_as_what_its_bytes_say(
    data: bytes, kind: str, surrounded: Surrounded, folder: Path
) -> None:
    (folder / "picture.txt").write_bytes(data)

    output = await _call("view_image", {"path": "picture.txt"}, surrounded())

    url = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    assert [{"type": "input_image", "image_url": url, "detail": "high"}] == output.content


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is no PNG"),
        (b"hello", "is no PNG"),
        (b"<svg/>", "is no PNG"),
        (b"\x89PNG\r\n\x1a\n", "its header tells no size"),
        (b"\xff\xd8\xff\xe0junk", "its header tells no size"),
        (
            b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 100_000, 100_000) + bytes(9),
            "more than can be shown",
        ),
    ],
)
async def test_what_is_no_picture_is_not_sent(data: bytes, said: str, surrounded: Surrounded, folder: Path) -> None:
    (folder / "a.png").write_bytes(data)

    output = await _call("view_image", {"path": str(folder / "a.png")}, surrounded())

    assert not output.ok
    assert said in str(output.content)


@pytest.mark.parametrize(
    ("path", "said"), [("none.png", "No such file"), (".", "is no file"), ("pipe", "is no file"), ("a\0b", "NUL")]
)
async def test_what_is_no_file_is_told(path: str, said: str, surrounded: Surrounded, folder: Path) -> None:
    os.mkfifo(folder / "pipe")

    output = await _call("view_image", {"path": path}, surrounded())

    assert said in str(output.content)


async def test_a_picture_that_is_too_large_is_not_read(
    surrounded: Surrounded, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "MOST_BYTES", 50)
    (folder / "a.png").write_bytes(pictures.png(3, 2))

    output = await _call("view_image", {"path": "a.png"}, surrounded())

    assert "at most 50 can be shown" in str(output.content)

"""`docs/models.md` is true."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from commonplace import errors
from commonplace.config import load
from commonplace.models import choose

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


async def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(block("python"), names)
    await names["main"]()

    assert "tools\nTwo files.\nend\n" == capsys.readouterr().out


def test_the_settings_are_understood(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text(block("toml"))
    choice = choose(load({"COMMONPLACE_HOME": str(home)}))

    assert ("local", "qwen3-coder", 65_536) == (choice.name, choice.slug, choice.info.window)
    assert set(choice.provider.__struct_fields__) == set(tomllib.loads(block("toml"))["providers"]["local"])


def test_every_error_of_a_model_is_listed_with_whether_it_may_pass() -> None:
    rows = {row[0]: row[1] for row in re.findall(r"^\| `([a-z_]+)` \|[^|]+\| (yes|no)", PAGE, re.MULTILINE)}

    kinds = errors.ModelError.__subclasses__()
    assert {kind.code: "yes" if kind.retryable else "no" for kind in kinds} == rows

"""The schema in `docs/` is the one that the types give. To renew it: UPDATE_DOCS=1."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from commonplace.surfaces.app_server.methods import METHODS
from commonplace.surfaces.app_server.schema import schema
from commonplace.surfaces.cli.root import run

FILE = Path(__file__).parents[3] / "docs" / "app_server_schema.json"
PAGE = FILE.with_name("app_server.md")


def test_the_schema_in_the_docs_is_that_of_the_types() -> None:
    text = msgspec.json.format(msgspec.json.encode(schema()), indent=1).decode() + "\n"
    if os.environ.get("UPDATE_DOCS"):
        FILE.write_text(text, "utf-8")

    assert FILE.read_text("utf-8") == text


def test_the_command_prints_the_schema(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["app-server", "schema"]) == 0

    assert json.loads(capfd.readouterr().out) == json.loads(msgspec.json.encode(schema()))


def test_every_definition_that_is_referred_to_is_there() -> None:
    text = json.dumps(schema())
    names = {each.partition('"')[0] for each in text.split("#/definitions/")[1:]}

    assert names <= schema()["definitions"].keys()


@pytest.mark.parametrize("method", [*METHODS])
def test_every_method_is_in_the_page(method: str) -> None:
    assert f"`{method}`" in PAGE.read_text("utf-8")

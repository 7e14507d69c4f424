"""The files for running workers: they are well-formed, and start the program with options that it has."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from commonplace.config import SETTINGS
from commonplace.surfaces.cli.root import root
from sources import ROOT

FOLDER = ROOT / "deploy"


def commands() -> dict[str, list[str]]:
    """Return the command lines that the files start, without the program."""
    unit = (FOLDER / "commonplace-worker.service").read_text("utf-8")
    image = (FOLDER / "Containerfile").read_text("utf-8")
    pods: Any = yaml.safe_load((FOLDER / "kubernetes.yaml").read_text("utf-8"))
    (started,) = re.findall(r"^ExecStart=\S+/commonplace (.*)$", unit, re.MULTILINE)
    (words,) = re.findall(r"^CMD (\[.*\])$", image, re.MULTILINE)
    return {
        "systemd": shlex.split(started),
        "container": json.loads(words),
        "kubernetes": pods["spec"]["template"]["spec"]["containers"][0]["args"],
    }


@pytest.mark.parametrize("name", ["systemd", "container", "kubernetes"])
def test_what_is_started_is_a_worker_with_options_that_it_has(name: str) -> None:
    found = commands()[name]
    command = root.get_command(click.Context(root), found[0])

    assert command is not None
    parsed = command.make_context(found[0], found[1:]).params
    assert str(parsed["listen"]).endswith(":9464")


def test_compose_starts_workers_after_the_database_and_variables_are_settings() -> None:
    compose: Any = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))
    variables = {f"COMMONPLACE_{each.key.upper().replace('.', '_')}" for each in SETTINGS} | {"COMMONPLACE_HOME"}
    named = {
        name for path in FOLDER.iterdir() for name in re.findall(r"\b(COMMONPLACE_(?!DB_)\w+)", path.read_text("utf-8"))
    }

    assert {"database", "worker"} == compose["services"].keys()
    assert compose["services"]["worker"]["depends_on"]["database"]["condition"] == "service_healthy"
    assert named <= variables


def test_every_file_is_told_of() -> None:
    told = (FOLDER / "README.md").read_text("utf-8")

    assert [] == [path.name for path in FOLDER.iterdir() if path.name != "README.md" and f"`{path.name}`" not in told]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.name)
def test_no_file_holds_a_secret_or_runs_as_root(path: Path) -> None:
    text = path.read_text("utf-8")

    assert not re.search(r"(?i)password: *['\"]?[a-z0-9]", text)
    if path.name == "kubernetes.yaml":
        assert "runAsNonRoot: true" in text

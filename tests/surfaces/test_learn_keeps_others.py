"""A memory that Codex or a model wrote stays as it is; what is new comes on top, what is gone goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import Command

import gold
from commonplace.learning.evaluate import files
from learning.learners import NOW

MODELS_OWN = """# Task Group: potluck, as the model tells it
scope: the potluck app
applies_to: cwd=/home/dev/potluck; reuse_rule=same checkout

## Task 1: landing page, success

### extension_resource_files
- extensions/notes/resources/landing.md (cwd=/home/dev/potluck, source=notes)

### keywords
- landing

## User preferences
- when a page is made, "no hero images" -> plain header [Task 1]
"""
SUMMARY = """v1

## User Profile
Bakes, codes, sings.

## User preferences
- plain headers

## General Tips
- read the README of each app first

## What's in Memory
### potluck
#### 2026-11-01
- landing: landing
  - desc: a page
### Older Memory Topics
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMMONPLACE_NOW", NOW.isoformat())
    case = next(case for case in gold.load("together") if case.id == "m1-017")
    files.write(case, tmp_path / "source", NOW)
    return tmp_path / "source" / "codex"


def test_a_models_memory_is_kept_and_added_to(commonplace: Command, source: Path, home: Path) -> None:
    root = home / "memories"
    resource = root / "extensions/notes/resources/landing.md"
    resource.parent.mkdir(parents=True)
    resource.write_text("The landing page has a plain header.\n", "utf-8")
    (root / "MEMORY.md").write_text(MODELS_OWN, "utf-8")
    (root / "memory_summary.md").write_text(SUMMARY, "utf-8")

    commonplace.ok("sessions", "import", "--path", source)
    report = commonplace.ok("memory", "run")

    assert report["consolidation"]["status"] == "succeeded", report["warnings"]
    memory, summary = ((root / name).read_text("utf-8") for name in ("MEMORY.md", "memory_summary.md"))
    assert memory.startswith(MODELS_OWN.rstrip("\n"))
    assert memory.count("# Task Group: ") > 1
    assert "Bakes, codes, sings." in summary
    assert "- read the README of each app first" in summary
    again = commonplace.ok("memory", "run")
    assert again["consolidation"]["status"] == "unchanged"
    assert (root / "MEMORY.md").read_text("utf-8") == memory

    resource.unlink()
    commonplace.ok("memory", "run")
    left = (root / "MEMORY.md").read_text("utf-8")
    assert "no hero images" not in left
    assert memory.removeprefix(MODELS_OWN.rstrip("\n")).strip() in left

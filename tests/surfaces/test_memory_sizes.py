"""The settings of the memory's size take effect with the next run, and only they make it anew."""

from __future__ import annotations

from pathlib import Path

import pytest
import taught_homes as taught
from command import Command


def summary(home: Path) -> str:
    return (home / "memories" / "memory_summary.md").read_text("utf-8")


def status(commonplace: Command) -> str:
    return str(commonplace.ok("memory", "run")["consolidation"]["status"])


@pytest.fixture
def learned(home: Path, commonplace: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMMONPLACE_NOW", taught.NOW)
    taught.write(home)
    assert status(commonplace) == "succeeded"
    assert status(commonplace) == "unchanged"
    return home


def test_a_smaller_summary_is_written_at_once(
    commonplace: Command, learned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = summary(learned)
    monkeypatch.setenv("COMMONPLACE_MEMORY_SUMMARY_BYTES", "420")
    first, small, second = status(commonplace), summary(learned), status(commonplace)
    monkeypatch.delenv("COMMONPLACE_MEMORY_SUMMARY_BYTES")
    third = status(commonplace)

    assert (first, second, third) == ("succeeded", "unchanged", "succeeded")
    assert len(before.encode()) > 420 >= len(small.encode())
    assert " more: read MEMORY.md" in small
    assert summary(learned) == before


def test_another_share_of_the_dialogue_makes_the_memory_anew(
    commonplace: Command, learned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (learned / "config.toml").write_text("[memory]\npercent_of_dialogue = 50\n", "utf-8")

    assert [status(commonplace), status(commonplace)] == ["succeeded", "unchanged"]

"""What the memory's files say, and how much of it fits."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from taught import taught

from commonplace.config import MemorySettings
from commonplace.learning.consolidate.consolidator import ConsolidatedMemory, MergeConsolidator
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.files import raw_memories, validation
from commonplace.memory.files.raw_memories import RawMemory
from commonplace.memory.workspace import layout

LOG = "the log stays in English"
SHOP, BLOG = "example.org/acme/shop", "example.org/acme/blog"


def consolidate(
    root: Path, *sessions: RawMemory, projects: dict[str, str] | None = None, settings: MemorySettings | None = None
) -> ConsolidatedMemory:
    """Make a memory of sessions."""
    raw_memories.sync(root, sessions)
    known = projects or {each.thread_id: SHOP for each in sessions}
    material = ConsolidationInput(root, list(sessions), known, [], Forgotten([]), set(), set())
    material.memory = settings or MemorySettings()
    return MergeConsolidator().consolidate(material)


def said(*texts: str) -> dict[str, list[str]]:
    return {"Preference signals:": [f'rule stated by the user: "{text}"' for text in texts]}


def test_each_project_has_a_block_with_its_scope(tmp_path: Path) -> None:
    one, two = taught(1, said("amounts are integer cents")), taught(2, said("posts are markdown"), cwd="/home/dev/blog")

    consolidate(tmp_path, one, two, projects={one.thread_id: SHOP, two.thread_id: BLOG})

    text = (tmp_path / layout.MEMORY).read_text()
    shop, blog = text[text.index(f"scope: project {SHOP}") :], text[text.index(f"scope: project {BLOG}") :]
    assert "integer cents" in shop
    assert "integer cents" not in blog.partition("# Task Group")[0]
    assert "applies_to: cwd=/home/dev/blog; reuse_rule=only in this project" in blog


def test_rules_of_a_project_are_not_among_the_wishes_for_all(tmp_path: Path) -> None:
    consolidate(tmp_path, taught(1, said("in this repo amounts are integer cents")))

    summary = (tmp_path / layout.SUMMARY).read_text()
    assert "integer cents" not in summary.partition("## What's in Memory")[0]
    assert f"### {SHOP}" in summary


def unlike(number: int, place: int, words: int = 6) -> str:
    """A sentence that shares no word with any other."""
    made = random.Random(f"{number}-{place}")
    return " ".join(
        "".join(made.choice("bcdfghklmnprstvz") + made.choice("aiou") for _ in range(4)) for _ in range(words)
    )


@pytest.mark.parametrize("sessions", [1, 40, 200])
def test_the_files_keep_their_budget(tmp_path: Path, sessions: int) -> None:
    known = [
        taught(number, said(*(unlike(number, place, 9) for place in range(8))), dialogue=6000)
        for number in range(sessions)
    ]

    found = consolidate(tmp_path, *known)

    size = sum((tmp_path / name).stat().st_size for name in (layout.MEMORY, layout.SUMMARY))
    assert size <= max(6_000, 0.12 * 6000 * sessions)
    assert (tmp_path / layout.SUMMARY).stat().st_size <= 10_000
    assert validation.problems(tmp_path) == []
    assert len(found.entries) == 8 * sessions
    assert bool(found.left_out) == (sessions > 1)


@pytest.mark.parametrize("percent", [2, 12, 40])
def test_the_files_take_the_share_of_the_dialogue_that_the_setting_says(tmp_path: Path, percent: int) -> None:
    known = [
        taught(number, said(*(unlike(number, place, 9) for place in range(40))), dialogue=20_000)
        for number in range(20)
    ]
    projects = {each.thread_id: f"example.org/acme/{number % 4}" for number, each in enumerate(known)}
    settings = MemorySettings(percent_of_dialogue=percent, lines_per_project=400)

    found = consolidate(tmp_path, *known, projects=projects, settings=settings)

    size = sum((tmp_path / name).stat().st_size for name in (layout.MEMORY, layout.SUMMARY))
    most = max(600 * 20, percent * 20_000 * 20 // 100)
    assert most // 2 < size <= most
    assert bool(found.left_out) == (percent < 40)
    assert validation.problems(tmp_path) == []


@pytest.mark.parametrize("most", [0, 256, 400, 1_000, 5_000, 15_000])
def test_the_summary_has_at_most_the_bytes_that_the_setting_says(tmp_path: Path, most: int) -> None:
    known = [
        taught(number, said(*(unlike(number, place, 9) for place in range(4))), dialogue=60_000)
        for number in range(160)
    ]
    projects = {each.thread_id: f"example.org/acme/{number:03}" for number, each in enumerate(known)}

    consolidate(tmp_path, *known, projects=projects, settings=MemorySettings(summary_bytes=most))

    size = (tmp_path / layout.SUMMARY).stat().st_size
    assert most // 2 < size <= max(most, validation.LEAST_SUMMARY_BYTES)
    assert validation.problems(tmp_path, summary_bytes=most) == []
    assert bool(validation.problems(tmp_path)) == (size > 10_000)


def test_what_does_not_fit_is_the_least_useful(tmp_path: Path) -> None:
    known = [taught(number, said(*(unlike(number, place, 14) for place in range(8)), LOG)) for number in range(60)]

    found = consolidate(tmp_path, *known)

    assert found.left_out
    assert LOG not in {entry.text for entry in found.left_out}
    assert LOG in (tmp_path / layout.MEMORY).read_text()


def test_the_same_sessions_give_the_same_bytes(tmp_path: Path) -> None:
    known = [taught(number, said(f"rule number{number} holds", LOG)) for number in range(20)]
    for name, order in (("one", known), ("two", list(reversed(known)))):
        (tmp_path / name).mkdir()
        consolidate(tmp_path / name, *order)

    for file in (layout.MEMORY, layout.SUMMARY, layout.RAW):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()

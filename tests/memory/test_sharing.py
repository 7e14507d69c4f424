"""Merging what people wrote on two hosts: nothing is lost, whoever was first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commonplace.memory.sharing import decision_lines
from commonplace.memory.sharing.inventory import FileContent, digest, is_input, is_place
from commonplace.memory.sharing.merge import EDITS, InputMerge, merge
from commonplace.rollout import decisions

NOTE = "memories/extensions/ad_hoc/notes/2026-11-20T08-00-00-a.md"
SKILL = "memories/skills/release/SKILL.md"
OLD, MINE, THEIRS = b"old", b"mine", b"theirs"
RENAMED = "memories/extensions/ad_hoc/notes/2026-11-20T08-00-00-a-beef.md"
CASES: dict[str, tuple[bytes | None, bytes | None, bytes | None, dict[str, bytes], list[str]]] = {
    # what both had, what is here, what is published → what is published, and what goes
    "nobody changed it": (OLD, OLD, OLD, {}, []),
    "it is new here": (None, MINE, None, {NOTE: MINE}, []),
    "it is new there": (None, None, THEIRS, {}, []),
    "it was changed here": (OLD, MINE, OLD, {NOTE: MINE}, []),
    "it was changed there": (OLD, OLD, THEIRS, {}, []),
    "it was removed here": (OLD, None, OLD, {}, [NOTE]),
    "it was removed there": (OLD, OLD, None, {}, []),
    "it was removed here and changed there": (OLD, None, THEIRS, {}, []),
    "it was changed here and removed there": (OLD, MINE, None, {NOTE: MINE}, []),
    "both wrote the same": (None, MINE, MINE, {}, []),
    "both wrote something": (None, MINE, THEIRS, {RENAMED: MINE}, []),
    "both changed it": (OLD, MINE, THEIRS, {RENAMED: MINE}, []),
}


def merged(path: str, was: bytes | None, here: bytes | None, there: bytes | None) -> InputMerge:
    base = {path: digest(was)} if was is not None else {}
    published = {path: digest(there)} if there is not None else {}
    contents = {digest(there): there} if there is not None else {}
    return merge(base, {path: FileContent(here)} if here is not None else {}, published, contents, "beef")


@pytest.mark.parametrize(("was", "here", "there", "changed", "removed"), CASES.values(), ids=CASES)
def test_what_is_published(
    was: bytes | None, here: bytes | None, there: bytes | None, changed: dict[str, bytes], removed: list[str]
) -> None:
    found = merged(NOTE, was, here, there)

    assert {path: each.data for path, each in found.changed.items()} == changed
    assert found.removed == removed


def test_a_skill_that_two_people_changed_is_two_skills_and_edits_are_one_file() -> None:
    assert list(merged(SKILL, OLD, MINE, THEIRS).changed) == ["memories/skills/release-beef/SKILL.md"]
    assert merged(EDITS, None, b"a\nb\n", b"b\nc\n").changed[EDITS].data == b"b\nc\na\n"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (NOTE, True),
        (EDITS, True),
        ("memories/skills/own/SKILL.md", True),
        (SKILL, False),
        ("memories/MEMORY.md", False),
        ("memories/rollout_summaries/a.md", False),
        ("memory_history.jsonl", False),
    ],
)
def test_what_people_wrote_is_told_from_what_is_made(path: str, expected: bool) -> None:
    assert is_input({"skills/own/SKILL.md"})(path) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("memories/MEMORY.md", True),
        (NOTE, True),
        ("memory_history.jsonl", True),
        ("memories/../config.toml", False),
        ("memories/.git/config", False),
        ("memories/skills/../../decisions.jsonl", False),
        ("memories//x", False),
        ("memories", False),
        ("config.toml", False),
        ("/etc/passwd", False),
    ],
)
def test_a_published_file_has_its_place_in_the_memory(path: str, expected: bool) -> None:
    assert is_place(path) is expected


def test_the_newest_decision_counts_wherever_it_was_made(tmp_path: Path) -> None:
    """Here an entry was unpinned last; elsewhere it was pinned before, which is heard of later."""
    for time, pinned in (("2026-11-20T08:00:00.000Z", True), ("2026-11-20T10:00:00.000Z", False)):
        decisions.append(tmp_path, "pin", time, entry_id="m1", is_pinned=pinned)
    decisions.append(tmp_path, "mode", "2026-11-20T10:30:00.000Z", thread_id="t", memory_mode="disabled")
    with (tmp_path / decisions.FILE).open("a", encoding="utf-8") as file:
        file.write("nobody understands this\n")
    earlier = {"time": "2026-11-20T09:00:00.000Z", "kind": "pin", "entry_id": "m1", "is_pinned": True}
    other = {"time": "2026-11-20T11:00:00.000Z", "kind": "pin", "entry_id": "m2", "is_pinned": True}
    lines = [json.dumps(each) for each in (other, earlier)]

    foreign = {"time": "2026-11-20T12:00:00.000Z", "kind": "allow", "path": "/", "words": [["rm"]]}
    lines.append(json.dumps(foreign))  # what may run here is decided here

    assert decision_lines.take(tmp_path, lines) == sorted(lines[:2])
    assert decision_lines.take(tmp_path, lines) == []

    assert decisions.pins(tmp_path) == {"m2"}
    assert [json.loads(line)["kind"] for line in decision_lines.shared_lines(tmp_path)] == ["pin"] * 4
    assert "nobody understands this" in (tmp_path / decisions.FILE).read_text("utf-8")

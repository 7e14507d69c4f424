"""A memory that another program wrote stays within its budget, and what has no room there is still known."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from curated import Memory, fact, session, wish

from commonplace.learning.consolidate import consolidator
from commonplace.memory.files import existing_handbook
from commonplace.memory.files.raw_memories import RawMemory, stems

FACTS = 20
NAMES = ("amber", "birch", "cedar", "delta", "ember", "flint", "grove", "heron", "iris", "jade", "kelp", "larch")


def named(number: int) -> str:
    """A name that no other number has, nor a part of it."""
    first, second = NAMES[number % len(NAMES)], NAMES[number // len(NAMES) % len(NAMES)]
    return f"{first}{second}{number}"


def small(number: int) -> RawMemory:
    """A session that teaches much and was short: more than there is room for."""
    words = [
        fact(f"{named(number * FACTS + place)} keeps its {named(place)} ledger in /srv/{named(number)}/{place}.db")
        for place in range(FACTS)
    ]
    found = session(number, wish(f"never restart {named(number)} by hand"), *words)
    text = found.rollout_summary.replace("90000 bytes", "900 bytes")
    return msgspec.structs.replace(found, rollout_summary=text)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path)


def size(memory: Memory) -> int:
    return len(memory.text().encode()) + len(memory.text("memory_summary.md").encode())


def test_a_kept_memory_stays_within_its_budget_and_knows_the_rest(memory: Memory) -> None:
    memory.add(*(small(number) for number in range(1, 9)))
    memory.merged()
    for number in range(9, 41):
        memory.add(small(number))
    found = memory.merged()
    told = memory.bullets()

    assert size(memory) <= consolidator.budget(memory.sessions).most
    assert found.left_out
    assert len(found.entries) == len({entry.id for entry in found.entries})
    assert {entry.text for entry in found.entries} >= {entry.text for entry in found.left_out}
    assert len(told) + len(found.left_out) == len(found.entries)


def test_what_a_person_pinned_is_not_left_out(memory: Memory) -> None:
    memory.add(*(small(number) for number in range(1, 9)))
    first = memory.merged()
    memory.pinned = {entry.id for entry in first.entries if f"/srv/{named(1)}/3.db" in entry.text}
    memory.add(*(small(number) for number in range(9, 41)))
    memory.merged()

    assert any(f"/srv/{named(1)}/3.db" in line for line in memory.bullets())


def test_what_has_no_room_is_known_in_later_runs_too(memory: Memory) -> None:
    memory.add(*(small(number) for number in range(1, 41)))
    memory.merged()
    memory.add(small(41))
    found = memory.merged()
    memory.hidden = {entry.id for entry in found.left_out}
    memory.settled = {each.thread_id for each in memory.sessions}
    memory.add(small(42))
    again = memory.merged()

    assert {entry.id for entry in again.left_out} >= memory.hidden - {
        entry.id for entry in again.entries if entry.text in memory.text()
    }
    assert size(memory) <= consolidator.budget(memory.sessions).most


def test_what_another_program_removed_stays_away_though_no_task_names_its_session(memory: Memory) -> None:
    memory.add(*(small(number) for number in range(1, 41)))
    first = memory.merged()
    memory.settled = {each.thread_id for each in memory.sessions}
    named_files, files = existing_handbook.files(memory.text()), stems(memory.sessions)
    untold = {key for key, file in files.items() if f"rollout_summaries/{file}.md" not in named_files}
    shown = {entry.text for entry in first.entries if {source.thread_id for source in entry.sources} <= untold}
    gone = next(line for line in memory.bullets() if existing_handbook.bullet_text(line) in shown)
    place = memory.root / "MEMORY.md"
    place.write_text(memory.text().replace(gone + "\n", ""), "utf-8")
    found = memory.merged()

    told = existing_handbook.bullet_text(gone)
    assert told not in memory.text()
    assert told not in {entry.text for entry in found.entries}

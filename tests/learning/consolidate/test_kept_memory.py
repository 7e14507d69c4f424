"""A memory that somebody else wrote: only what changed beneath it is touched."""

from __future__ import annotations

from taught import taught

from commonplace.memory.files import existing_handbook
from commonplace.memory.files.raw_memories import stems

ONE, TWO = taught(1, {}), taught(2, {})
FILES = {f"rollout_summaries/{stems([each])[each.thread_id]}.md": each for each in (ONE, TWO)}
FIRST, SECOND = FILES
MEMORY = f"""# Task Group: shop, in the model's own words
scope: the shop's backend
applies_to: cwd=/home/dev/shop; reuse_rule=same repo

## Task 1: login, success

### rollout_summary_files
- {FIRST} (cwd=/home/dev/shop, rollout_path=/s/1, updated_at=2026-01-01T00:00:00Z)

### keywords
- login

## Task 2: basket, partial

### rollout_summary_files
- {SECOND} (cwd=/home/dev/shop, rollout_path=/s/2, updated_at=2026-01-02T00:00:00Z)

### keywords
- basket

## User preferences
- when asked for a diff, "keep it small" -> one concern per change [Task 1]
- "answers in French" -> French [Task 1][Task 2]
- "never touch gen/" -> leave generated files [Task 2]
"""


def there(*files: str) -> existing_handbook.Gone:
    return lambda path: path in files


def nothing(_: str) -> bool:
    return False


def test_a_memory_that_nothing_changed_beneath_keeps_every_byte() -> None:
    assert existing_handbook.without_unsupported(MEMORY, there(FIRST, SECOND), nothing) == MEMORY


def test_what_rests_only_on_a_session_that_is_gone_goes() -> None:
    text = existing_handbook.without_unsupported(MEMORY, there(SECOND), nothing)

    assert "keep it small" not in text
    assert "## Task 1: basket, partial" in text
    assert '- "answers in French" -> French [Task 1]' in text
    assert '- "never touch gen/" -> leave generated files [Task 1]' in text
    assert FIRST not in text


def test_a_block_without_any_session_left_goes() -> None:
    assert existing_handbook.without_unsupported(MEMORY, there(), nothing).strip() == ""


def test_what_was_forgotten_goes_and_nothing_else() -> None:
    text = existing_handbook.without_unsupported(MEMORY, there(FIRST, SECOND), lambda said: "French" in said)

    assert set(MEMORY.split("\n")) - set(text.split("\n")) == {'- "answers in French" -> French [Task 1][Task 2]'}


def test_the_sources_of_a_memory_are_known() -> None:
    assert existing_handbook.files(MEMORY) == {FIRST: "2026-01-01T00:00:00Z", SECOND: "2026-01-02T00:00:00Z"}


def test_entries_are_read_with_the_sessions_they_name() -> None:
    found = existing_handbook.entries(MEMORY, FILES)

    assert [entry.support for entry in found] == [1, 2, 1]
    assert {source.thread_id for source in found[1].sources} == {ONE.thread_id, TWO.thread_id}
    assert found[0].text == 'when asked for a diff, "keep it small" -> one concern per change'

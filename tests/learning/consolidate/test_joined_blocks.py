"""New blocks join those that are there; bullets are found in what was learned."""

from __future__ import annotations

from taught import START, lesson

from commonplace.learning.consolidate import bullet_sources, handbook_join, merge
from commonplace.memory.entries import Entry, Source
from commonplace.memory.files import existing_handbook

OLD = """# Task Group: shop
scope: project example.org/acme/shop
applies_to: cwd=/home/dev/shop; reuse_rule=only in this project

## Task 1: login, success

### rollout_summary_files
- rollout_summaries/a.md (cwd=/c, rollout_path=/p, updated_at=2026-01-01T00:00:00Z)

### keywords
- login

## Reusable knowledge
- an old fact [Task 1]
"""
NEW = """# Task Group: shop
scope: project example.org/acme/shop
applies_to: cwd=/home/dev/shop; reuse_rule=only in this project

## Task 1: again, success

### rollout_summary_files
- rollout_summaries/a.md (cwd=/c, rollout_path=/p, updated_at=2026-02-01T00:00:00Z)

### keywords
- login

## Task 2: basket, partial

### rollout_summary_files
- rollout_summaries/b.md (cwd=/c, rollout_path=/q, updated_at=2026-02-02T00:00:00Z)

### keywords
- basket

## User preferences
- "a wish" [Task 2]

## Reusable knowledge
- a new fact [Task 1][Task 2]
"""


def test_a_block_joins_the_one_of_its_scope() -> None:
    text = handbook_join.join(OLD, NEW)

    assert 1 == text.count("# Task Group: shop")
    assert text.index("## Task 2: basket") < text.index("## User preferences") < text.index("## Reusable knowledge")
    assert '## User preferences\n- "a wish" [Task 2]\n' in text
    assert "- an old fact [Task 1]\n- a new fact [Task 1][Task 2]\n" in text


def test_a_session_that_taught_more_keeps_its_task_and_tells_when() -> None:
    text = handbook_join.join(OLD, NEW)

    assert 1 == text.count("rollout_summaries/a.md")
    assert "2026-02-01T00:00:00Z" == existing_handbook.files(text)["rollout_summaries/a.md"]


def test_a_block_of_another_scope_comes_last_and_nothing_changes_without_one() -> None:
    other = NEW.replace("example.org/acme/shop", "example.org/acme/other")

    assert handbook_join.join(OLD, other).endswith(other)
    assert OLD == handbook_join.join(OLD, "")


def bullet(text: str, section: str = "User preferences") -> bullet_sources.HandbookBullet:
    memory = f"# Task Group: shop\nscope: project example.org/acme/shop\n\n## {section}\n- {text}\n"
    return bullet_sources.bullets(memory)[0]


def test_other_words_for_the_same_rest_on_it_and_the_opposite_does_not() -> None:
    learned = bullet_sources.LearnedEntries(merge.merge([lesson("always squash the commits of a branch")]))

    assert 1 == len(learned.entries_behind(bullet('of a branch, "always squash the commits" -> one commit')))
    assert [] == learned.entries_behind(bullet("never squash the commits of a branch"))
    assert [] == learned.entries_behind(bullet("deploy on Fridays"))


def test_what_no_longer_holds_is_told() -> None:
    found = merge.merge([lesson("always use npm for this"), lesson("from now on use pnpm for this, not npm", day=3)])
    learned = bullet_sources.LearnedEntries(found)

    assert 1 == len(found.replaced)
    assert learned.is_over(bullet('"always use npm for this"'))
    assert not learned.is_over(bullet('"from now on use pnpm for this, not npm"'))


def test_two_bullets_of_one_lesson_have_ids_of_their_own() -> None:
    source = Source("run the linter and the tests before a commit", "said by the user", "t", 1, 0, 9, START)
    entry = Entry("m1", "example.org/acme/shop", "preference", source.quote, 1, [source], START, START)
    learned = bullet_sources.LearnedEntries(merge.MergedLessons([entry], []))
    found = bullet_sources.trace(
        [bullet("run the linter before a commit"), bullet("run the tests before a commit")], learned, {}
    )

    assert "m1" == found[0].entry.id
    assert found[1].entry.id not in ("m1", "")
    assert [source] == found[1].entry.sources

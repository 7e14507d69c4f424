"""What a model makes of the memory: reworded, merged and removed bullets, with what they rest on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from curated import SHOP, Memory, does, done, edit, fact, names, nothing, sent, session, texts, wish, words

from commonplace.learning.budget import Unlimited

UV = "always use uv instead of pip"
SMALL = "keep the diffs small"


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Two sessions were read, and nothing was made of them yet."""
    found = Memory(tmp_path)
    found.add(session(1, wish(UV), fact("the tests need redis on port 6390")), session(2, wish(SMALL)))
    return found


@pytest.mark.anyio
async def test_the_first_time_everything_is_gone_over_and_then_the_summary(memory: Memory) -> None:
    found = await memory.learn(nothing(), nothing())
    first, last = memory.model.requests

    assert "made for the first time" in words(first)
    assert all(each in words(first) for each in (UV, SMALL, "6390"))
    assert "This is memory_summary.md" in words(last)
    assert 3 == len(found.entries)


@pytest.mark.anyio
async def test_the_agent_is_told_its_instructions_and_the_message_and_nothing_else(memory: Memory) -> None:
    await memory.learn(nothing(), nothing())
    first = memory.model.requests[0]

    assert 1 == len(first.input)
    assert first.instructions.startswith("You look after the written memory")
    assert ["list", "read", "search", "edit", "write", "done"] == names(first)
    assert ("medium", None, 8_000) == (first.effort, first.summary, first.max_output_tokens)


@pytest.mark.anyio
async def test_a_reworded_bullet_keeps_its_id_and_its_sources_to_the_byte(memory: Memory) -> None:
    before = memory.without_model()
    (old,) = [entry for entry in before.entries if UV in entry.text]
    new = f'when installing something, "{UV}" -> uv'
    found = await memory.learn(does(edit({f'- "{UV}" [': f"- {new} ["}), done()), nothing())
    (entry,) = [each for each in found.entries if each.id == old.id]

    assert f"- {new} [" in memory.text()
    assert new == entry.text
    assert old.sources == entry.sources
    assert (1, 100, 150) == (entry.sources[0].turn, entry.sources[0].byte_start, entry.sources[0].byte_end)
    assert ("preference", SHOP) == (entry.kind, entry.scope)


@pytest.mark.anyio
async def test_edits_and_done_in_one_answer_are_one_request(memory: Memory) -> None:
    spending = Unlimited()
    await memory.learn(
        does(edit({"- the tests need redis": "- tests need redis"}), done()), nothing(), spending=spending
    )

    assert 2 == len(memory.model.requests)  # the bullets, and the summary
    assert (2, 2_000) == (spending.total.requests, spending.total.tokens)


@pytest.mark.anyio
async def test_two_bullets_become_one_with_the_sources_of_both(memory: Memory) -> None:
    memory.add(session(3, fact("redis must run on port 6390 for tests of orders")))
    before = memory.without_model()
    ids = {entry.id for entry in before.entries if "redis" in entry.text}
    lines = [line for line in memory.bullets() if "redis" in line]
    marks = "".join(f"[Task {number}]" for number in sorted(line.rpartition("[Task ")[2][0] for line in lines))
    merged = {lines[0]: f"- tests, those of orders too, need redis on port 6390 {marks}", lines[1] + "\n": ""}
    found = await memory.learn(does(edit(merged), done()), nothing())
    (entry,) = [each for each in found.entries if "redis" in each.text]

    assert 2 == len(ids)
    assert entry.id in ids
    assert {source.thread_id for source in entry.sources} == {
        memory.sessions[0].thread_id,
        memory.sessions[2].thread_id,
    }
    assert [(ids - {entry.id}, entry.id)] == [({old.id}, new.id) for old, new in found.replaced]


@pytest.mark.anyio
async def test_only_what_is_new_is_sent_after_the_first_time(memory: Memory) -> None:
    await memory.learn(nothing(), nothing())
    memory.add(session(4, wish("never commit generated files")))
    await memory.learn(nothing())
    asked = words(memory.model.requests[0])

    assert "Sessions taught something new" in asked
    assert "never commit generated files" in asked
    assert "6390" not in asked
    assert SMALL not in asked


@pytest.mark.anyio
async def test_what_is_near_is_shown_beside_what_is_new(memory: Memory) -> None:
    await memory.learn(nothing(), nothing())
    memory.add(session(4, fact("redis of the tests is on port 6391 on the build server")))
    await memory.learn(nothing())

    assert "the tests need redis on port 6390" in words(memory.model.requests[0])


@pytest.mark.anyio
async def test_where_nothing_is_new_nobody_is_asked(memory: Memory) -> None:
    await memory.learn(nothing(), nothing())
    text = memory.text()
    again = await memory.learn()

    assert text == memory.text()
    assert 3 == len(again.entries)


@pytest.mark.anyio
async def test_what_another_session_says_again_needs_no_model_and_counts(memory: Memory) -> None:
    await memory.learn(does(edit({f'- "{UV}"': f'- when installing, "{UV}" -> uv'}), done()), nothing())
    memory.add(session(5, wish(UV)))
    found = await memory.learn()
    (entry,) = [each for each in found.entries if UV in each.text]

    assert 2 == entry.support
    assert {memory.sessions[0].thread_id, memory.sessions[2].thread_id} == {each.thread_id for each in entry.sources}


@pytest.mark.anyio
async def test_a_model_s_words_and_ids_stay_when_more_is_learned(memory: Memory) -> None:
    new = f'when installing something, "{UV}" -> uv'
    first = await memory.learn(does(edit({f'- "{UV}"': f"- {new}"}), done()), nothing())
    memory.add(session(6, wish("write tests before code")))
    second = await memory.learn(nothing())
    ids = {entry.text: entry.id for entry in first.entries}

    assert new in texts(second)
    assert ids.items() <= {entry.text: entry.id for entry in second.entries}.items()


@pytest.mark.anyio
async def test_what_is_new_joins_the_block_of_its_project(memory: Memory) -> None:
    await memory.learn(nothing(), nothing())
    memory.add(session(7, wish("write tests before code")))
    await memory.learn(nothing())

    assert 1 == memory.text().count(f"scope: project {SHOP}")
    assert "## Task 2: " in memory.text()
    assert re.search(r'- "write tests before code" \[[0-9a-f-]+\]\[Task 2\]', memory.text())


@pytest.mark.anyio
async def test_what_the_model_removed_does_not_come_back_by_itself(memory: Memory) -> None:
    memory.without_model()
    line = next(line for line in memory.bullets() if "6390" in line)
    await memory.learn(does(edit({line + "\n": ""}), done()), nothing())
    memory.add(session(8, wish("write tests before code")))
    found = await memory.learn(nothing())

    assert "6390" not in memory.text()
    assert not any("6390" in text for text in texts(found))


@pytest.mark.anyio
async def test_a_change_of_mind_removes_the_older_bullet_without_a_model_s_help(memory: Memory) -> None:
    await memory.learn(nothing(), nothing())
    memory.add(session(9, wish("always use poetry instead of uv from now on")))
    found = await memory.learn(nothing())

    assert f'- "{UV}"' not in memory.text()
    assert "poetry" in memory.text()
    assert [UV in old.text for old, _ in found.replaced] == [True]


@pytest.mark.anyio
async def test_what_a_tool_s_answer_shows_of_the_workspace_is_sent_back(memory: Memory) -> None:
    from commonplace.models.scripted import call

    look = [call("search", {"words": "REDIS"}, "s1"), call("read", {"path": "MEMORY.md", "lines": 2}, "r1")]
    await memory.learn(does(*look, call("list", {}, "l1")), nothing(), nothing())
    answered = sent(memory.model.requests[1])

    assert "MEMORY.md:" in answered
    assert "1: # Task Group" in answered
    assert "rollout_summaries/" in answered

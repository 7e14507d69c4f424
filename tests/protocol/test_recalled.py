"""What came out of a memory is recognised, and what only looks a little like it is not."""

from __future__ import annotations

import json

import pytest

from commonplace.protocol import fragments, items, memory_traces
from ledgers import message, user


@pytest.mark.parametrize(
    ("name", "namespace"),
    [
        ("mcp__commonplace__search", None),
        ("mcp__commonplace__read", None),
        ("mcp__Commonplace__anything", None),
        ("mcp__mem__memory_search", None),
        ("mcp__memory__search_nodes", None),
        ("mcp__memories__list", None),
        ("mcp__my-memory__get", None),
        ("mcp__team_memory_server__get", None),
        ("mcp__mem0__search", None),
        ("mcp__memo__find", None),
        ("mcp__openmemory__query", None),
        ("mcp__supermemory-ai__recall", None),
        ("mcp__zep__x", None),
        ("mcp__other__search_memory", None),
        ("mcp__other__memory_search", None),
        ("mcp__other__recall", None),
        ("memory", None),
        ("memories", None),
        ("search_memories", None),
        ("get_all_memories", None),
        ("retrieve_memory", None),
        ("readMemory", None),
        ("read_graph", None),
        ("memories__search", None),
        ("commonplace__find", None),
        ("search", "memories"),
        ("read", "Memory"),
        ("add_ad_hoc_note", "memories"),
        ("find", "commonplace"),
    ],
)
def test_a_tool_that_answers_from_a_memory_is_known_by_its_name(name: str, namespace: str | None) -> None:
    assert memory_traces.is_memory_tool(name, namespace)


@pytest.mark.parametrize(
    ("name", "namespace"),
    [
        ("", None),
        ("Bash", None),
        ("Read", None),
        ("search", None),
        ("read", "files"),
        ("search", ""),
        ("exec_command", "shell"),
        ("mcp__github__search_code", None),
        ("mcp__memcached__get", None),
        ("mcp__members__list", None),
        ("mcp__remember__x", None),
        ("mcp__commonplaces__read", None),
        ("mcp____", None),
        ("mcp__", None),
        ("__", None),
        ("memory_profiler", None),
        ("allocate_memory", None),
        ("free_memory", None),
        ("write_memory_dump", None),
        ("recall_product", None),
        ("files__memory_map", None),
        ("precall", None),
    ],
)
def test_a_tool_that_only_sounds_like_one_is_not(name: str, namespace: str | None) -> None:
    assert not memory_traces.is_memory_tool(name, namespace)


@pytest.mark.parametrize(
    "arguments",
    [
        {"cmd": "cat ~/.codex/memories/MEMORY.md"},
        {"cmd": "sed -n 1,20p /home/dev/.commonplace/memories/memory_summary.md"},
        {"cmd": ["bash", "-lc", "rg port ~/.codex/memories"]},
        {"file_path": "/data/home/memories/MEMORY.md"},
        {"file_path": "/data/home/memories/rollout_summaries/x.md"},
        {"file_path": "memory_summary.md"},
        {"file_path": "/home/dev/.claude/projects/-repo-app/memory/MEMORY.md"},
        {"file_path": "C:\\Users\\dev\\.codex\\memories\\MEMORY.md"},
        {"cmd": "cd ~/.codex && ls memories//MEMORY.md"},
    ],
)
def test_a_call_that_names_the_files_of_a_memory_reads_it(arguments: object) -> None:
    assert memory_traces.reads_memory(json.dumps(arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"cmd": "ls"},
        {"cmd": "free -m # memory"},
        {"file_path": "src/memory/alloc.c"},
        {"file_path": "docs/memories.md"},
        {"file_path": "MEMORY.md"},
        {"file_path": "my_memory_summary.md"},
        {"file_path": "/home/dev/.codex/sessions/x.jsonl"},
        {"file_path": "/home/dev/.claude/projects/-repo-app/x.jsonl"},
        {"file_path": "/home/dev/.claude/memory.md"},
        {"file_path": ".codex/memoriesque/x"},
        {"pattern": "memor(y|ies)"},
    ],
)
def test_a_call_that_names_other_files_does_not(arguments: object) -> None:
    assert not memory_traces.reads_memory(json.dumps(arguments))


RECALLED = [
    "<commonplace_memory>\nx\n</commonplace_memory>",
    '<commonplace_memory project="github.com/acme/shop">x',
    " \n <Commonplace_Memory>",
    "<claude-mem-context>\nx",
    "<supermemory-context>x",
    "<relevant_memories>x",
    "<relevant-memories>x",
    "<recalled_memories>",
    "<mem0_context>",
    "<memory_context>",
    "<memory-context source='x'>",
    "## Memory\n\nYou have a memory.\n\n========= MEMORY_SUMMARY BEGINS =========\nx",
    "==MEMORY_SUMMARY BEGINS==",
]
FREE = [
    "",
    "hello",
    "what does <commonplace_memory> mean?",
    "see: <relevant_memories>",
    "commonplace_memory",
    "<memory>x</memory>",
    "<memory_leak>",
    "## Memory\n\nuse less of it",
    "What is MEMORY_SUMMARY BEGINS?",
    "MEMORY_SUMMARY BEGINS",
    "=== MEMORY_SUMMARY BEGINS === here",
    "=== MEMORY_SUMMARY ENDS ===",
]


@pytest.mark.parametrize("text", RECALLED)
def test_a_text_out_of_a_memory_is_known_by_how_it_begins(text: str) -> None:
    assert memory_traces.is_memory_text(text)


@pytest.mark.parametrize("text", FREE)
def test_any_other_text_is_not(text: str) -> None:
    assert not memory_traces.is_memory_text(text)


def seen(item: dict[str, object]) -> items.Message:
    found = items.view(json.dumps(item).encode())
    assert isinstance(found, items.Message)
    return found


@pytest.mark.parametrize("text", RECALLED)
def test_in_a_developer_message_it_came_out_of_a_memory_and_from_a_person_it_did_not(text: str) -> None:
    assert fragments.is_recalled(seen(message("developer", text)))
    assert not fragments.is_recalled(seen(user(text)))  # nobody noted that it was injected: then a person typed it
    noted = {items.PASSTHROUGH: {"content_item_kinds": ["memory.injected"]}}
    assert fragments.is_recalled(seen({**user("any words"), **noted}))


@pytest.mark.parametrize("part", ["a-", "mem-", "mem", "x_", "memory_", "memories/", ".claude/projects/", "<mem0", "="])
def test_a_name_or_text_without_end_is_told_in_no_time(part: str) -> None:
    text = part * (2**20 // len(part))

    assert not memory_traces.is_memory_tool(text)
    assert not memory_traces.is_memory_tool(f"mcp__{text}!")
    assert not memory_traces.reads_memory(text)
    assert memory_traces.is_memory_text(text) == (part == "<mem0")
    assert memory_traces.is_memory_tool(text, "memories")

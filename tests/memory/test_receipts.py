"""What stands at a place of the workspace: entries by lines, sessions by theirs, and places that are not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from commonplace.memory.entries import GLOBAL, Entry, Kind, Source
from commonplace.memory.recall.receipts import LineRange, ResolvedCitation, WorkspaceFiles, lesson_words, read

SHOP = "github.com/acme/shop"
ONE = "01a1a0ad-ff00-755f-b16f-66f43360266b"
TWO = "01a1c09d-a7c0-7dc9-af77-6c8423e57a27"
NOTE = "extensions/ad_hoc/notes/2026-11-15T09-00-00-use-tabs.md"
LONG = "the orders service is deployed from the release branch " * 4
MEMORY = f"""\
# Task Group: every project
scope: global
applies_to: cwd=any; reuse_rule=holds in every project of this person

## Task 1: notes on every project, by hand

### extension_resource_files
- {NOTE} (cwd=any, source=ad_hoc)

### keywords
- every project

## User preferences
- use tabs [ad-hoc note] [Task 1]

# Task Group: shop
scope: project {SHOP}
applies_to: cwd=/repo/shop; reuse_rule=only in this project

## Task 1: fix the checkout, success

### rollout_summary_files
- rollout_summaries/one.md (cwd=/repo/shop, rollout_path=/x/rollout-2026-{ONE}.jsonl, updated_at=2026, thread_id={ONE})
- rollout_summaries/two.md (cwd=/repo/shop, rollout_path=rollout-2026-{TWO}.jsonl, updated_at=2026)

### keywords
- checkout

## User preferences
- "Use `pnpm`, not npm." (2 sessions) [Task 1]
- Use tabs [Task 1]

## Reusable knowledge
- {LONG.strip()} [Task 1]
  and on Fridays by hand
- Related skill: skills/shop-release/SKILL.md
- nobody knows who said this
"""
SUMMARY = f"""\
v1

## User preferences
- use tabs

## What's in Memory
### {SHOP}
#### 2026-11-12
- shop: checkout
  - learnings: "Use `pnpm`, not npm."; {LONG[:139].rstrip()}…
"""
ONES = f"""\
thread_id: {ONE}
updated_at: 2026-11-12T00:00:00Z

# Checkout
The user said: use pnpm, not npm. in this repo
Then the tests passed.
"""
RAW = f"""\
# Raw Memories

## Thread `{ONE}`
cwd: /repo/shop

- said by the user: use pnpm, not npm.

## Thread `{TWO}`
cwd: /repo/shop

- nothing
"""
SKILL = "---\nname: release\n---\n\n## Efficiency plan\n- last run: `make tag` -> `make push`\n"


def entry(name: str, text: str, scope: str, kind: Kind, *sources: Source) -> Entry:
    return Entry(name, scope, kind, text, len(sources), list(sources), 0, 0)


ENTRIES = [
    entry("tabs", "use tabs", GLOBAL, "preference", Source("use tabs", "written by the user", note=NOTE)),
    entry("shoptabs", "Use tabs", SHOP, "rule", Source("Use tabs", "said", TWO)),
    entry("pnpm", '"Use `pnpm`, not npm."', SHOP, "rule", Source("use pnpm, not npm.", "said", ONE)),
    entry("long", LONG.strip(), SHOP, "environment", Source("deploy", "said", TWO)),
    entry("steps", "steps to release: `make tag` -> `make push`", SHOP, "procedure", Source("x", "ran", TWO)),
]


@pytest.fixture
def shelf(tmp_path: Path) -> WorkspaceFiles:
    root = tmp_path / "memories"
    for path, text in {
        "MEMORY.md": MEMORY,
        "memory_summary.md": SUMMARY,
        "raw_memories.md": RAW,
        "rollout_summaries/one.md": ONES,
        "skills/shop-release/SKILL.md": SKILL,
        "skills/shop-release/scripts/run.sh": "make tag\n",
        NOTE: "remember: use tabs\n",
        "empty.md": "",
        ".git/config": "hidden\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return WorkspaceFiles(root, ENTRIES)


def line_of(text: str, words: str) -> int:
    return next(number for number, line in enumerate(text.split("\n"), 1) if words in line)


def in_memory(words: str, *, more: int = 0) -> LineRange:
    number = line_of(MEMORY, words)
    return LineRange("MEMORY.md", number, number + more)


@pytest.mark.parametrize(
    ("place", "entries", "threads"),
    [
        pytest.param(in_memory("- use tabs"), ["tabs"], [], id="a lesson for everybody"),
        pytest.param(in_memory("- Use tabs"), ["shoptabs"], [], id="the same words in a project are another entry"),
        pytest.param(in_memory("(2 sessions)"), ["pnpm"], [], id="with marks behind it"),
        pytest.param(in_memory("(2 sessions)", more=1), ["pnpm", "shoptabs"], [], id="a range of two"),
        pytest.param(in_memory("and on Fridays"), ["long"], [], id="a line that goes on"),
        pytest.param(in_memory("nobody knows"), [], [], id="a line that is no entry"),
        pytest.param(in_memory("# Task Group: shop"), [], [], id="a heading"),
        pytest.param(in_memory("thread_id="), [], [ONE], id="a source by its id"),
        pytest.param(in_memory("two.md"), [], [TWO], id="a source by its ledger's name"),
        pytest.param(in_memory("## Task 1: fix"), [], [ONE, TWO], id="a task is all its sessions"),
        pytest.param(in_memory("- checkout"), [], [ONE, TWO], id="so are its keywords"),
        pytest.param(in_memory("- extensions/ad_hoc"), ["tabs"], [], id="a note among the sources"),
        pytest.param(LineRange("memory_summary.md", 4, 4), ["tabs"], [], id="a line of the summary"),
        pytest.param(
            LineRange("memory_summary.md", 10, 10), ["pnpm", "long"], [], id="learnings, one of them shortened"
        ),
        pytest.param(LineRange("memory_summary.md", 9, 9), [], [], id="keywords of the summary"),
        pytest.param(
            LineRange("rollout_summaries/one.md", 1, 6), ["pnpm"], [ONE], id="a session's summary and its words"
        ),
        pytest.param(LineRange("rollout_summaries/one.md", 6, 6), [], [ONE], id="other lines are the session alone"),
        pytest.param(LineRange("raw_memories.md", 6, 6), ["pnpm"], [ONE], id="a raw memory"),
        pytest.param(LineRange("raw_memories.md", 6, 8), ["pnpm"], [ONE, TWO], id="two raw memories"),
        pytest.param(LineRange("skills/shop-release/SKILL.md", 1, 2), ["steps"], [], id="a skill is its procedure"),
        pytest.param(LineRange("skills/shop-release/scripts/run.sh", 1, 1), ["steps"], [], id="and so are its scripts"),
        pytest.param(LineRange(NOTE, 1, 1), ["tabs"], [], id="a note"),
        pytest.param(LineRange("./MEMORY.md", 14, 14), ["tabs"], [], id="a path from here"),
    ],
)
def test_what_stands_at_a_place(
    shelf: WorkspaceFiles, place: LineRange, entries: list[str], threads: list[str]
) -> None:
    found = shelf.resolve(place)

    assert (sorted(found.entries), found.threads, found.problem) == (sorted(entries), threads, None)


def test_a_path_may_be_written_whole(shelf: WorkspaceFiles) -> None:
    assert shelf.resolve(LineRange(f"{shelf.root}/MEMORY.md", 14, 14)).entries == ["tabs"]


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        (LineRange("nowhere.md", 1, 1), "no_such_file"),
        (LineRange("", 1, 1), "no_such_file"),
        (LineRange("skills", 1, 1), "no_such_file"),
        (LineRange("../home/secret", 1, 1), "no_such_file"),
        (LineRange("/etc/passwd", 1, 1), "no_such_file"),
        (LineRange(".git/config", 1, 1), "no_such_file"),
        (LineRange("skills//x", 1, 1), "no_such_file"),
        (LineRange("a\0b", 1, 1), "no_such_file"),
        (LineRange("\ud800", 1, 1), "no_such_file"),
        (LineRange("x" * 5_000, 1, 1), "no_such_file"),
        (LineRange("MEMORY.md", 0, 1), "no_such_lines"),
        (LineRange("MEMORY.md", 9, 1), "no_such_lines"),
        (LineRange("MEMORY.md", 1, 4_000_000_000), "no_such_lines"),
        (LineRange("empty.md", 1, 1), "no_such_lines"),
        (LineRange("MEMORY.md", 4, 4), "blank_lines"),
    ],
)
def test_a_place_that_is_not_there_is_told_as_that(shelf: WorkspaceFiles, place: LineRange, problem: str) -> None:
    assert msgspec_fields(shelf.resolve(place)) == ([], [], problem)


def msgspec_fields(found: ResolvedCitation) -> tuple[list[str], list[str], str | None]:
    return found.entries, found.threads, found.problem


def test_links_pipes_and_bytes_that_are_no_text_are_not_read(tmp_path: Path) -> None:
    root = tmp_path / "memories"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "secret.md").write_text("secret\n")
    (root / "link.md").symlink_to(tmp_path / "secret.md")
    (root / "folder").symlink_to(tmp_path)
    (root / "bytes.md").write_bytes(b"\xff\xfe\n")
    os.mkfifo(root / "pipe.md")
    (root / "fine.md").write_text("fine\n")

    assert [read(root, path) for path in ("link.md", "folder/secret.md", "bytes.md", "pipe.md", "sub")] == [None] * 5
    assert read(root, "fine.md") == "fine\n"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("- use tabs [ad-hoc note] [Task 1][Task 2]", "use tabs"),
        ("- see [Task 1] of the board (3 sessions) [Task 2]", "see [Task 1] of the board"),
        ("- plain", "plain"),
        ("-  blanks  ", "blanks"),
    ],
)
def test_what_a_line_says_is_told_without_what_it_rests_on(line: str, text: str) -> None:
    assert lesson_words(line) == text

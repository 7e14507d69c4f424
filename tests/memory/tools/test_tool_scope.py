"""What of the memory a reader sees who works on one project (interfaces §5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import processes
from commonplace.memory.files.raw_memories import RawMemory, raw_memories, stems, summary_text
from commonplace.memory.recall.tools import Listing, MatchPage, MemoryFolder, Reading, call
from commonplace.memory.recall.visibility import OwnershipFiles, Visibility, is_identity, visible_lines, visible_text

SHOP, BLOG, TOOL = "example.org/acme/shop", "example.org/acme/blog", "/home/dev/my tool"
FOLDERS = {"/home/dev/shop": SHOP, "/home/dev/blog": BLOG, "/home/dev/my tool": TOOL, "/srv/blog": BLOG}

MEMORY = f"""\
a line before any block

# Task Group: every project
scope: global
applies_to: cwd=any; reuse_rule=everywhere

## User preferences
- secret-of-all

# Task Group: shop
scope: project {SHOP}
applies_to: cwd=/home/dev/shop; reuse_rule=only in this project

## User preferences
- secret-of-shop

# Task Group: blog
scope: project {BLOG}
applies_to: cwd=/home/dev/blog; reuse_rule=only in this project

## Task 1: secret-of-blog

### keywords
- secret-of-blog

## User preferences
- secret-of-blog

# Some other heading
secret-of-blog

# Task Group: tool
scope: project {TOOL}

## Reusable knowledge
- secret-of-tool

# Task Group: what Codex wrote
scope: project conventions for releases and how to follow them
applies_to: cwd=/home/dev/blog; reuse_rule=reuse with care

## User preferences
- secret-of-codex

# Task Group: nothing said

## User preferences
- secret-of-nobody
"""

SUMMARY = f"""\
v1

## User Profile
Works on shop, blog, tool.

## User preferences
- secret-of-all

## General Tips

## What's in Memory
### {BLOG}
#### 2026-11-15
- blog: secret-of-blog
  - desc: 1 entry, only in {BLOG}
### every project
#### 2026-11-14
- every project: secret-of-all
### {SHOP}
#### 2026-11-13
- shop: secret-of-shop
### tool
- secret-of-tool
### Older Memory Topics
#### /srv/blog
- secret-of-blog
#### {TOOL}
- secret-of-tool
#### some free words
- secret-of-nobody
"""


def session(number: int, cwd: str, group: str, words: str) -> RawMemory:
    raw = f"---\ndescription: {words}\ntask_group: {group}\ncwd: {cwd}\n---\n\n### Task 1: {words}\n"
    thread = f"01a1645c-3700-7000-8000-{number:012}"
    return RawMemory(thread, 1_760_000_000 + number, cwd, f"/s/{number}.jsonl", None, raw, f"# {words}\n", None)


SESSIONS = [
    session(1, "/home/dev/shop", SHOP, "secret-of-shop"),
    session(2, "/home/dev/blog", BLOG, "secret-of-blog"),
    session(3, "/srv/blog", "words of a model", "secret-of-blog"),
    session(4, "/home/dev/my tool", TOOL, "secret-of-tool"),
    session(5, "/gone/somewhere", "ci/cd", "secret-of-gone"),
    session(6, "/home/dev/shop", BLOG, "secret-of-blog"),
]


@pytest.fixture
def workspace(root: Path) -> Path:
    def put(path: str, text: str) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())

    put("MEMORY.md", MEMORY)
    put("memory_summary.md", SUMMARY)
    put("raw_memories.md", raw_memories(SESSIONS))
    names = stems(SESSIONS)
    for one in SESSIONS:
        put(f"rollout_summaries/{names[one.thread_id]}.md", summary_text(one))
    orphan = session(9, "/srv/blog", "", "secret-of-blog")  # a summary that no raw memory tells of
    put("rollout_summaries/orphan.md", summary_text(orphan))
    put("rollout_summaries/odd.md", "secret-of-nobody\n")
    put("skills/deploy-blog/SKILL.md", f"---\nname: d\ndescription: x\nscope: project {BLOG}\n---\nsecret-of-blog\n")
    put("skills/deploy-blog/scripts/run.sh", "echo secret-of-blog\n")
    put("skills/old/SKILL.md", f"---\nname: d\n---\n- only in {BLOG}; not for others\nsecret-of-blog\n")
    put("skills/shop/SKILL.md", f"---\nname: d\nscope: project {SHOP}\n---\nsecret-of-shop\n")
    put("skills/free/SKILL.md", "---\nname: d\n---\nsecret-of-nobody\n")
    put("extensions/ad_hoc/instructions.md", "secret-of-nobody\n")
    put("extensions/ad_hoc/notes/2026-11-15T10-20-30-a.md", f"remember: secret-of-blog\nscope: project {BLOG}\n")
    put("extensions/ad_hoc/notes/2026-11-15T10-20-31-b.md", f"remember: secret-of-shop\nscope: project {SHOP}\n")
    put("extensions/ad_hoc/notes/2026-11-15T10-20-32-c.md", "remember: secret-of-all\nscope: global\n")
    put("extensions/ad_hoc/notes/2026-11-15T10-20-33-d.md", "remember: secret-of-nobody\nscope: my whole team\n")
    put("phase2_workspace_diff.md", "+- secret-of-blog\n+- secret-of-shop\n")
    put("other.md", "secret-of-nobody\n")
    return root


def see(scope: str | None) -> Visibility:
    return Visibility(scope, FOLDERS.get)


def told(root: Path, view: Visibility) -> set[str]:
    """Return the secrets that any tool gives away."""
    folder = MemoryFolder(root)
    texts: list[str] = []
    for file in (path for path in root.rglob("*") if path.is_file()):
        path = file.relative_to(root).as_posix()
        read = call(folder, "read", {"path": path}, view)
        assert isinstance(read, Reading)
        texts.append(read.content)
    for more in ({}, {"case_sensitive": False}, {"normalized": True}, {"path": "MEMORY.md"}, {"path": "skills"}):
        for mode in ({"type": "any"}, {"type": "all_within_lines", "line_count": 5}):
            found = call(
                folder, "search", {"queries": ["secret-of"], "context_lines": 10**6, "match_mode": mode, **more}, view
            )
            texts.append(msgspec.json.encode(found).decode())
    return {word for text in texts for word in KNOWN if word in text}


KNOWN = {f"secret-of-{name}" for name in ("all", "shop", "blog", "tool", "codex", "nobody", "gone")}
OPEN = {"secret-of-all", "secret-of-codex", "secret-of-nobody"}


@pytest.mark.parametrize(
    ("scope", "own"),
    [
        (SHOP, {"secret-of-shop"}),
        (BLOG, {"secret-of-blog"}),
        (TOOL, {"secret-of-tool"}),
        ("/gone/somewhere", {"secret-of-gone"}),
        ("example.org/acme/unknown", set[str]()),
    ],
)
def test_a_project_sees_its_own_and_what_is_for_everybody(workspace: Path, scope: str, own: set[str]) -> None:
    assert told(workspace, see(scope)) == OPEN | own


def test_without_a_scope_everything_is_shown_byte_for_byte(workspace: Path) -> None:
    folder = MemoryFolder(workspace)
    assert told(workspace, see(None)) == KNOWN
    for file in (path for path in workspace.rglob("*") if path.is_file()):
        read = call(folder, "read", {"path": file.relative_to(workspace).as_posix()}, see(None))
        assert isinstance(read, Reading)
        assert read.content == file.read_text()


def test_numbers_of_lines_hold(workspace: Path) -> None:
    folder = MemoryFolder(workspace)
    whole = (workspace / "MEMORY.md").read_text().split("\n")
    scoped = call(folder, "read", {"path": "MEMORY.md"}, see(SHOP))
    assert isinstance(scoped, Reading)
    lines = scoped.content.split("\n")

    assert len(lines) == len(whole)
    assert all(line in ("", own) for line, own in zip(lines, whole, strict=True))
    assert lines[whole.index("- secret-of-shop")] == "- secret-of-shop"
    assert lines[whole.index("# Task Group: blog")] == ""


def test_a_match_has_its_number_in_the_whole_file_and_no_foreign_lines_around_it(workspace: Path) -> None:
    whole = (workspace / "MEMORY.md").read_text().split("\n")
    found = call(
        MemoryFolder(workspace),
        "search",
        {"queries": ["secret-of-codex"], "path": "MEMORY.md", "context_lines": 12},
        see(SHOP),
    )
    assert isinstance(found, MatchPage)
    match = found.matches[0]

    assert match.match_line_number == whole.index("- secret-of-codex") + 1
    lines = match.content.split("\n")
    assert lines[:7] == [""] * 7
    assert "secret-of-tool" not in match.content


def test_names_of_other_projects_stay_in_the_profile(workspace: Path) -> None:
    read = call(MemoryFolder(workspace), "read", {"path": "memory_summary.md"}, see(SHOP))
    assert isinstance(read, Reading)

    assert "Works on shop, blog, tool." in read.content
    assert f"### {SHOP}\n#### 2026-11-13\n- shop: secret-of-shop\n" in read.content
    assert BLOG not in read.content


def listed(root: Path, path: str | None, scope: str | None) -> list[str]:
    page = call(MemoryFolder(root), "list", {"path": path}, see(scope))
    assert isinstance(page, Listing)
    return [entry.path.rpartition("/")[2] for entry in page.entries]


def test_files_and_folders_that_are_wholly_for_another_project_are_not_listed(workspace: Path) -> None:
    names = stems(SESSIONS)
    own = [f"{names[one.thread_id]}.md" for one in SESSIONS]

    assert listed(workspace, "rollout_summaries", SHOP) == [own[0], "odd.md"]
    assert listed(workspace, "rollout_summaries", BLOG) == sorted([own[1], own[2], own[5], "odd.md", "orphan.md"])
    assert listed(workspace, "skills", SHOP) == ["free", "shop"]
    assert listed(workspace, "skills", BLOG) == ["deploy-blog", "free", "old"]
    assert listed(workspace, "skills/deploy-blog", SHOP) == []
    assert listed(workspace, "skills/deploy-blog/scripts", BLOG) == ["run.sh"]
    assert listed(workspace, "skills/deploy-blog/SKILL.md", SHOP) == []
    assert [name[-4] for name in listed(workspace, "extensions/ad_hoc/notes", SHOP)] == ["b", "c", "d"]
    assert "phase2_workspace_diff.md" not in listed(workspace, None, SHOP)
    assert "phase2_workspace_diff.md" in listed(workspace, None, None)
    assert len(listed(workspace, "rollout_summaries", None)) == 8


def test_a_cursor_counts_what_is_shown(workspace: Path) -> None:
    folder = MemoryFolder(workspace)
    page = call(folder, "list", {"path": "skills", "max_results": 1}, see(SHOP))
    assert isinstance(page, Listing)

    assert page.next_cursor == "1"
    following = call(folder, "list", {"path": "skills", "cursor": "1"}, see(SHOP))
    assert isinstance(following, Listing)
    assert [entry.path for entry in following.entries] == ["skills/shop"]
    assert following.next_cursor is None


def test_what_changes_in_raw_memories_changes_whose_a_session_is(workspace: Path) -> None:
    folder = MemoryFolder(workspace)
    own = stems(SESSIONS)[SESSIONS[0].thread_id]
    path = f"rollout_summaries/{own}.md"
    for _ in range(2):
        read = call(folder, "read", {"path": path}, see(BLOG))
        assert isinstance(read, Reading)
        assert "secret-of-shop" not in read.content
    moved = [session(1, "/home/dev/shop", BLOG, "secret-of-shop"), *SESSIONS[1:]]
    (workspace / "raw_memories.md").write_text(raw_memories(moved))

    read = call(folder, "read", {"path": path}, see(BLOG))
    assert isinstance(read, Reading)
    assert "secret-of-shop" in read.content


@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize("mark", ["\ufeff", ""], ids=["marked", "unmarked"])
def test_line_ends_and_marks_of_other_systems_hide_nothing_less(end: str, mark: str) -> None:
    text = mark + MEMORY.partition("block\n\n")[2].replace("\n", end)
    first = mark + f"# Task Group: blog{end}scope: project {BLOG}{end}{end}- secret-of-blog{end}"
    beside = OwnershipFiles(lambda _: None)

    assert "secret-of-blog" not in visible_text(see(SHOP), "MEMORY.md", text, beside)
    assert "secret-of-shop" in visible_text(see(SHOP), "MEMORY.md", text, beside)
    assert visible_text(see(SHOP), "memory.MD", first, beside).strip() == ""


def test_a_session_whose_values_are_written_as_json_has_an_owner_too() -> None:
    one = session(1, '/home/dev/"a\nb', "", "secret")
    view = Visibility(SHOP, {'/home/dev/"a\nb': BLOG}.get)
    beside = OwnershipFiles(lambda _: None)

    assert visible_text(view, "rollout_summaries/x.md", summary_text(one), beside).strip() == ""
    assert "secret" not in visible_text(view, "raw_memories.md", raw_memories([one]), beside)


def test_a_file_without_foreign_lines_needs_no_list_of_lines() -> None:
    beside = OwnershipFiles(lambda _: None)

    assert visible_lines(see(SHOP), "MEMORY.md", "# Task Group: x\nscope: global\n", beside) is None
    assert visible_lines(see(None), "MEMORY.md", MEMORY, beside) is None
    assert visible_lines(see(SHOP), "sub/MEMORY.md", MEMORY, beside) is None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("MEMORY.md", "# Task Group: x\nscope: project " + " " * 100_000 + "x y\n## Task " + "9" * 6000 + ": x\n"),
        ("MEMORY.md", "# Task Group: x\n" * 15_000 + "skills/" * 30_000),
        ("memory_summary.md", "### a" + " " * 100_000 + "b\n" + "#" * 100_000 + " x"),
        ("raw_memories.md", "## Thread `x`\ncwd: \0\ntask_group: " + " " * 100_000 + "x\n" + "## Thread `" * 15_000),
        ("rollout_summaries/x.md", "thread_id: x\ncwd: \0\n\nx"),
        ("rollout_summaries/y.md", "cwd: " + '"' * 100_000),
        ("skills/x/SKILL.md", "---\n" + "scope: " * 15_000 + "\n---\n" + "- only in " * 15_000),
        ("extensions/ad_hoc/notes/x.md", "scope:" + " " * 100_000 + "\nremember" + " " * 100_000 + "x"),
    ],
    ids=lambda value: value[:24],
)
def test_odd_files_are_understood_in_little_time_or_not_at_all(root: Path, path: str, text: str) -> None:
    def failing(cwd: str) -> str | None:
        raise ValueError(cwd)

    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    (root / "skills" / "y").mkdir(parents=True)
    (root / "skills" / "y" / "SKILL.md").write_text("x")
    for name, arguments in (
        ("read", {"path": path}),
        ("search", {"queries": ["x"]}),
        ("list", {"path": path.rpartition("/")[0]}),
        ("list", {"path": "skills"}),
    ):
        assert call(MemoryFolder(root), name, arguments, Visibility(SHOP, failing))


def test_a_skill_that_a_block_points_to_is_for_the_project_of_that_block(workspace: Path) -> None:
    with (workspace / "MEMORY.md").open("a") as file:
        file.write(f"\n# Task Group: b\nscope: project {BLOG}\n\n## Reusable knowledge\n- skills/free/SKILL.md\n")

    assert listed(workspace, "skills", SHOP) == ["shop"]
    assert "free" in listed(workspace, "skills", BLOG)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        (SHOP, True),
        ("host/name", True),
        (TOOL, True),
        ("C:\\work\\x", True),
        ("a" * 40, True),
        ("dev.azure.com/org/my project/repo", True),
        ("conventions for a/b", False),
        ("shop", False),
        ("", False),
        ("  ", False),
    ],
)
def test_a_project_has_a_name_of_a_kind(name: str, is_one: bool) -> None:
    assert is_identity(name) is is_one


def test_the_memory_of_the_demo_shows_each_project_its_own(tmp_path: Path) -> None:
    processes.run(["demo", "--keep", tmp_path / "demo"]).check_returncode()
    root = tmp_path / "demo" / "home" / "memories"
    names = ["ines/crumb", "teapot/teapot-api", "teapot/teapot-infra", "teapot/teapot-web"]
    words = {
        "ines/crumb": "commit straight to main",
        "teapot/teapot-api": "alembic migration",
        "teapot/teapot-infra": "ansible-playbook deploy.yml",
        "teapot/teapot-web": "Intl.DateTimeFormat",
    }
    for name in names:
        view = Visibility(f"git.example.org/{name}")
        for other, word in words.items():
            found = call(MemoryFolder(root), "search", {"queries": [word], "context_lines": 2}, view)
            assert isinstance(found, MatchPage)
            assert bool(found.matches) == (name == other), (name, other)
        everything = call(MemoryFolder(root), "search", {"queries": ["e"], "context_lines": 10**6}, view)
        text: Any = msgspec.json.encode(everything).decode()
        assert not any(word in text for other, word in words.items() if other != name)


MIXED = """\
# Task Group: every project
scope: global
applies_to: cwd=any; reuse_rule=everywhere

## Task 1: work in the blog-only thing, success

### rollout_summary_files
- rollout_summaries/blog-only.md (cwd=/home/dev/blog, rollout_path=b.jsonl, updated_at=2026-01-01T00:00:00Z)
- rollout_summaries/shop-own.md (cwd=/home/dev/shop, rollout_path=s.jsonl, updated_at=2026-01-01T00:00:00Z)

### keywords
- blog-only, wordpress

## Task 2: work in the shop, success

### rollout_summary_files
- rollout_summaries/shop-own.md (cwd=/home/dev/shop, rollout_path=s.jsonl, updated_at=2026-01-01T00:00:00Z)

### keywords
- checkout

## User preferences
- short answers please [Task 1][Task 2]
"""


def test_what_holds_everywhere_does_not_tell_of_the_sessions_of_others() -> None:
    seen = visible_text(Visibility(SHOP, FOLDERS.get), "MEMORY.md", MIXED, OwnershipFiles(lambda _: None))

    assert "blog-only" not in seen
    assert "wordpress" not in seen
    assert "short answers please" in seen
    assert "shop-own.md" in seen
    assert "checkout" in seen
    assert seen.count("\n") == MIXED.count("\n")
    assert visible_text(Visibility(None), "MEMORY.md", MIXED, OwnershipFiles(lambda _: None)) == MIXED

"""The file that tells what changed is whole where it can be and bounded where it must be."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from commonplace.memory.workspace import baseline, difference, layout
from commonplace.memory.workspace.baseline import BaselineChange

NOW = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)
CHANGES = [BaselineChange("A", "a.md"), BaselineChange("D", "b/c.md")]


def test_changes_are_listed_and_shown() -> None:
    text = difference.render(CHANGES, "diff --git a/a.md b/a.md\n")
    title, _, notice, rest = text.split("\n", 3)

    assert "# Memory Workspace Diff" == title
    assert "read it first" in notice
    assert rest == "\n## Status\n- A a.md\n- D b/c.md\n\n## Diff\n```diff\ndiff --git a/a.md b/a.md\n```\n"


def test_no_changes_end_the_file() -> None:
    assert difference.render([], "").endswith("\n\n## Status\n- none\n")


def test_a_diff_without_a_last_newline_gets_one() -> None:
    assert difference.render(CHANGES, "+x").endswith("```diff\n+x\n```\n")


def test_a_fence_in_the_diff_does_not_end_it() -> None:
    assert difference.render(CHANGES, "+x\n ````\n").endswith("\n`````diff\n+x\n ````\n`````\n")


def test_a_large_diff_is_cut_and_says_so() -> None:
    text = difference.render(CHANGES, "x" * (difference.MAX_BYTES + 1))

    assert text.endswith(f"\n```diff\n{'x' * 4194304}\n\n[workspace diff truncated at 4194304 bytes]\n```\n")


def test_a_diff_of_just_the_bound_is_whole() -> None:
    text = difference.render(CHANGES, "x" * (difference.MAX_BYTES - 1) + "\n")

    assert "truncated" not in text


def test_a_character_that_the_bound_cuts_goes_as_a_whole() -> None:
    text = difference.render(CHANGES, "x" * (difference.MAX_BYTES - 1) + "é" * 10)

    assert f"\n{'x' * 4194303}\n\n[workspace diff truncated" in text


def test_a_cut_right_after_a_line_adds_no_second_newline() -> None:
    text = difference.render(CHANGES, "x" * (difference.MAX_BYTES - 1) + "\n" + "y")

    assert "x\n\n[workspace diff truncated" in text


def test_the_file_is_written_and_removed_and_never_seen(home: Path) -> None:
    root = home / layout.FOLDER
    layout.ensure(root)
    baseline.ensure(root, NOW)
    (root / layout.MEMORY).write_text("```\nnew\n```\n", "utf-8")

    first = difference.write(root)
    again = difference.write(root)
    text = (root / layout.DIFF).read_text("utf-8")

    assert [BaselineChange("A", "MEMORY.md")] == first == again == baseline.status(root)
    assert text.endswith("@@ -0,0 +1,3 @@\n+```\n+new\n+```\n```\n")
    assert 0o600 == (root / layout.DIFF).stat().st_mode & 0o777
    difference.remove(root)
    difference.remove(root)
    assert not (root / layout.DIFF).exists()


def test_an_unchanged_workspace_gives_a_file_that_says_none(home: Path) -> None:
    root = home / layout.FOLDER
    layout.ensure(root)
    baseline.ensure(root, NOW)

    assert [] == difference.write(root)

    assert (root / layout.DIFF).read_text("utf-8").endswith("- none\n")

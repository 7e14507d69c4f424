"""Edits by hand in the memory's files: whatever a person changed there is kept and counts at the next run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import taught_homes as taught
from command import Command


@pytest.fixture(params=["sqlite", "postgres"])
def root(request: pytest.FixtureRequest, home: Path, commonplace: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace of a home that was learned from."""
    address = "sqlite" if request.param == "sqlite" else str(request.getfixturevalue("postgres"))
    monkeypatch.setenv("COMMONPLACE_DATABASE", address)
    monkeypatch.setenv("COMMONPLACE_NOW", taught.NOW)
    taught.write(home)
    commonplace.ok("memory", "run")
    return home / "memories"


def change(path: Path, old: str, new: str) -> None:
    """Put one text in another's place, as an editor does."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def line_of(path: Path, text: str) -> str:
    return next(line for line in path.read_text("utf-8").split("\n") if text in line)


def run(commonplace: Command) -> dict[str, dict[str, Any]]:
    """Run twice; the second run must find nothing to do. Return the entries by their text."""
    report = commonplace.ok("memory", "run")
    first = report["consolidation"]["status"]
    second = commonplace.ok("memory", "run")["consolidation"]["status"]
    assert (first, second) == ("succeeded", "unchanged"), report["warnings"]
    return {each["text"]: each for each in commonplace.ok("memory", "list")["entries"]}


def found(entries: dict[str, dict[str, Any]], text: str) -> list[str | None]:
    return [each["project"] for told, each in entries.items() if text in told]


def test_a_bullet_that_was_added_is_remembered_where_it_stands(commonplace: Command, root: Path) -> None:
    memory = root / "MEMORY.md"
    change(memory, line_of(memory, taught.PNPM), line_of(memory, taught.PNPM) + "\n- keep the changelog in German")
    change(memory, line_of(memory, taught.SHORT), line_of(memory, taught.SHORT) + "\n- greet me as Ada")
    entries = run(commonplace)

    assert found(entries, "changelog in German") == ["github.com/acme/shop"]
    assert found(entries, "greet me as Ada") == [None]
    assert found(entries, taught.PNPM) == ["github.com/acme/shop"]
    assert "keep the changelog in German" in memory.read_text("utf-8")


def test_a_bullet_that_was_changed_stays_changed(commonplace: Command, root: Path) -> None:
    change(root / "MEMORY.md", "Always use pnpm instead of npm", "Always use bun instead of npm")
    entries = run(commonplace)

    assert found(entries, "Always use bun instead of npm in this repo.") == ["github.com/acme/shop"]
    assert found(entries, "use pnpm instead") == []


def test_a_bullet_that_was_deleted_stays_away(commonplace: Command, root: Path) -> None:
    memory = root / "MEMORY.md"
    change(memory, line_of(memory, taught.PUSH) + "\n", "")
    change(memory, line_of(memory, "`make check`") + "\n", "")
    entries = run(commonplace)

    assert found(entries, "push to main") == []
    assert found(entries, "make check") == []
    assert found(entries, taught.PNPM) == ["github.com/acme/shop"]
    assert "push to main" not in memory.read_text("utf-8")


def test_a_bullet_that_was_moved_to_everywhere_is_for_every_project(commonplace: Command, root: Path) -> None:
    memory = root / "MEMORY.md"
    moved = line_of(memory, taught.PUSH)
    change(memory, moved + "\n", "")
    change(memory, line_of(memory, taught.SHORT), line_of(memory, taught.SHORT) + "\n" + moved)
    entries = run(commonplace)

    assert found(entries, taught.PUSH) == [None]


def test_order_and_layout_are_no_edits(commonplace: Command, root: Path) -> None:
    memory = root / "MEMORY.md"
    before = memory.read_bytes()
    change(memory, "\n## Reusable knowledge\n", "\n\n## Reusable knowledge\n")
    run(commonplace)

    assert before == memory.read_bytes()
    assert not (root / "extensions/ad_hoc/notes").exists()


def test_a_block_of_ones_own_is_remembered(commonplace: Command, root: Path) -> None:
    block = "\n# Task Group: tool\nscope: project github.com/acme/tool\n\n## My rules\n- ship on Mondays only\n"
    (root / "MEMORY.md").write_text((root / "MEMORY.md").read_text("utf-8") + block, "utf-8")
    entries = run(commonplace)

    assert found(entries, "ship on Mondays only") == ["github.com/acme/tool"]


def test_edits_of_the_summary_count(commonplace: Command, root: Path) -> None:
    summary = root / "memory_summary.md"
    change(summary, "## User preferences\n", "## User preferences\n- write British English\n")
    change(summary, line_of(summary, taught.SHORT) + "\n", "")
    change(summary, '; "Always use pnpm instead of npm in this repo."', "")
    change(summary, "Works on blog, shop.", "Works on blog, shop. Lives in Lisbon.")
    entries = run(commonplace)

    assert found(entries, "write British English") == [None]
    assert found(entries, taught.SHORT) == []
    assert found(entries, "use pnpm instead") == []
    assert found(entries, "Lives in Lisbon") == [None]


def test_edits_of_the_inputs_count(commonplace: Command, root: Path) -> None:
    raw = root / "raw_memories.md"
    change(raw, line_of(raw, f'- said by the user: "{taught.PNPM}"') + "\n", "")
    change(raw, line_of(raw, "- All checks: `make check`"), "- All checks: `make check`\n- the page lives in docs/")
    (summary,) = [path for path in (root / "rollout_summaries").iterdir() if "zanzibar" in path.name]
    change(summary, line_of(summary, "- All checks"), "- All checks: `make check`\n- the blog is built by hand")
    entries = run(commonplace)

    assert found(entries, "use pnpm instead") == []
    assert found(entries, "the page lives in docs/") == ["github.com/acme/blog"]
    assert found(entries, "the blog is built by hand") == ["github.com/acme/blog"]


def test_a_file_that_was_deleted_or_emptied_comes_back(commonplace: Command, root: Path) -> None:
    before = {name: (root / name).read_bytes() for name in ("MEMORY.md", "memory_summary.md", "raw_memories.md")}
    (root / "MEMORY.md").unlink()
    (root / "memory_summary.md").write_text("\n", "utf-8")
    (root / "raw_memories.md").unlink()
    run(commonplace)

    assert before == {name: (root / name).read_bytes() for name in before}
    assert not (root / "extensions/ad_hoc/notes").exists()


def test_a_skill_of_ones_own_stays_as_it_is(commonplace: Command, root: Path) -> None:
    skill = root / "skills" / "release" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("My way of releasing: see <https://example.com>. No front matter.\n", "utf-8")
    (root / "skills" / "README.md").write_text("mine\n", "utf-8")
    (root / "ideas.txt").write_text("mine too\n", "utf-8")
    run(commonplace)
    skill.write_text("Changed.\n", "utf-8")
    run(commonplace)

    assert skill.read_text("utf-8") == "Changed.\n"
    assert (root / "skills" / "README.md").read_text("utf-8") == "mine\n"
    assert (root / "ideas.txt").read_text("utf-8") == "mine too\n"


def learned_skill(commonplace: Command, home: Path) -> Path:
    """Let two sessions do the same, so that it becomes a skill."""
    for number in (1, 2):
        script = taught.session(f"0198c0de-0000-7000-8000-00000000d00{number}", "shop")
        steps = [f"make build-{number}", "docker build .", "docker push registry/app", "kubectl rollout restart app"]
        ran = [item for place, step in enumerate(steps) for item in taught.ran(f"s{place}", step)]
        script.turn(taught.user("deploy the shop to staging"), *ran, taught.assistant("Deployed."))
        script.turn(taught.user("great, that works"), taught.assistant("Good.")).write_home(home)
    commonplace.ok("memory", "run")
    (found,) = (home / "memories" / "skills").glob("*/SKILL.md")
    return found


def test_a_learned_skill_that_was_edited_or_removed_stays_so(commonplace: Command, home: Path, root: Path) -> None:
    skill = learned_skill(commonplace, home)
    skill.write_text(skill.read_text("utf-8") + "- mind the gap\n", "utf-8")
    edited = skill.read_bytes()
    run(commonplace)
    kept = skill.read_bytes()
    skill.unlink()
    run(commonplace)

    assert edited == kept
    assert not skill.exists()


def test_an_edit_of_what_was_forgotten_brings_it_back(commonplace: Command, root: Path) -> None:
    commonplace.ok("memory", "forget", taught.PNPM)
    memory = root / "MEMORY.md"
    change(memory, line_of(memory, taught.PUSH), line_of(memory, taught.PUSH) + f"\n- {taught.PNPM}")
    entries = run(commonplace)

    assert found(entries, taught.PNPM) == ["github.com/acme/shop"]


def test_forgetting_takes_edits_along_that_no_run_has_seen(commonplace: Command, home: Path, root: Path) -> None:
    memory = root / "MEMORY.md"
    change(memory, line_of(memory, taught.PUSH), line_of(memory, taught.PUSH) + f"\n- indeed: {taught.PNPM}")
    (root / "ideas.md").write_text(f"one\n{taught.PNPM}\ntwo\n", "utf-8")
    commonplace.ok("memory", "forget", taught.PNPM)

    assert [] == taught.traces(home, "pnpm instead of npm")
    assert (root / "ideas.md").read_text("utf-8") == "one\ntwo\n"


def test_a_failed_run_notes_an_edit_once(commonplace: Command, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from commonplace.errors import MemoryInvalid
    from commonplace.learning.consolidate.consolidator import MergeConsolidator

    memory = root / "MEMORY.md"
    change(memory, line_of(memory, taught.PUSH), line_of(memory, taught.PUSH) + "\n- keep the changelog in German")

    def broken(*_: object) -> None:
        raise MemoryInvalid("It broke.")

    with monkeypatch.context() as patch:
        patch.setattr(MergeConsolidator, "consolidate", broken)
        assert [commonplace.ok("memory", "run")["consolidation"]["status"] for _ in range(2)] == ["failed", "failed"]
    run(commonplace)

    assert len(list((root / "extensions/ad_hoc/notes").iterdir())) == 1

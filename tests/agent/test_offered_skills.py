"""Skills of the person and of the project: found, told by name, bounded."""

from __future__ import annotations

import os
from pathlib import Path

from commonplace.agent import skills
from commonplace.context.world_state import Absent, KnownSnapshot


def _skill(folder: Path, name: str, description: str = "does it", title: str | None = None) -> None:
    place = folder / name
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(f"---\nname: {title or name}\ndescription: {description}\n---\nSteps.\n")


def test_skills_of_person_and_project_are_found_and_the_nearer_wins(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "project"
    cwd = root / "sub"
    (root / ".git").mkdir(parents=True)
    cwd.mkdir()
    _skill(home / "skills", "deploy", "the person's")
    _skill(home / "skills", "review")
    _skill(root / ".agents/skills", "deploy", "the project's")
    _skill(cwd / ".claude/skills", "near")
    _skill(tmp_path / ".agents/skills", "environment")
    found = {skill.name: skill for skill in skills.find(home, cwd)}
    assert list(found) == ["deploy", "near", "review"]
    assert found["deploy"].description == "the project's"
    assert found["deploy"].path == str(root / ".agents/skills/deploy/SKILL.md")


def test_what_is_no_skill_is_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "skills"
    (folder / "empty").mkdir(parents=True)
    (folder / "pipe").mkdir()
    os.mkfifo(folder / "pipe" / "SKILL.md")
    (folder / "file").write_text("x")
    (folder / "folder" / "SKILL.md").mkdir(parents=True)
    assert skills.find(tmp_path, tmp_path / "gone") == []


def test_a_skill_without_front_matter_is_told_by_its_folder_and_first_line(tmp_path: Path) -> None:
    place = tmp_path / "skills" / "plain"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text("# Title\n\nFirst sentence.\n")
    (skill,) = skills.find(tmp_path, tmp_path)
    assert (skill.name, skill.description) == ("plain", "First sentence.")


def test_the_section_tells_skills_once_and_again_when_they_change(tmp_path: Path) -> None:
    _skill(tmp_path / "skills", "one")
    section = skills.section(skills.find(tmp_path, tmp_path))
    (told,) = section.tell(Absent())
    assert told.text.startswith("<skills_instructions>")
    assert "- one: does it" in told.text
    assert section.tell(KnownSnapshot(section.snapshot())) == []
    _skill(tmp_path / "skills", "two")
    assert len(skills.section(skills.find(tmp_path, tmp_path)).tell(KnownSnapshot(section.snapshot()))) == 1


def test_no_skills_are_not_told() -> None:
    assert skills.section([]).tell(Absent()) == []


def test_a_long_list_says_how_many_are_missing() -> None:
    many = [skills.OfferedSkill(f"s{number:03}", "d", "p") for number in range(skills.MOST + 7)]
    (told,) = skills.section(many).tell(Absent())
    assert "and 7 more" in told.text

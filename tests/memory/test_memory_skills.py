"""Skills that a memory offers: by the first lines of their files, whoever wrote them, and for whom they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.memory.files import skills
from commonplace.memory.files.skills import Skill

PATH = "skills/release/SKILL.md"
SHOP = "github.com/acme/shop"


@pytest.mark.parametrize(
    ("text", "name", "description", "scope"),
    [
        ("---\nname: cut-release\ndescription: cut a release\n---\n# X\n", "cut-release", "cut a release", None),
        ("---\nname: 'a b'\ndescription: \"quoted: yes\"\n---\n", "a b", "quoted: yes", None),
        ("---\r\nname: x\r\ndescription: y\r\n---\r\n", "x", "y", None),
        ("---\nname: x\ndescription: >-\n  first line\n  second line\n---\n", "x", "first line second line", None),
        ("---\nname: x\ndescription: first\n  goes on\n---\n", "x", "first goes on", None),
        (f"---\nname: x\ndescription: y\nscope: project {SHOP}\n---\n", "x", "y", SHOP),
        ("---\nname: x\ndescription: y\nscope: global\n---\n", "x", "y", "global"),
        (f"---\nname: x\ndescription: y\n---\n## When\n- only in {SHOP}; not for anything else\n", "x", "y", SHOP),
        ("# Release\n\nDo this and that.\n", "release", "Do this and that.", None),
        ("---\nname: never closed\n", "release", "name: never closed", None),
        ("---\n---\n- one\n", "release", "one", None),
        ("", "release", "", None),
        ("\ufeff---\nname: marked\n---\n", "marked", "", None),
    ],
)
def test_what_a_file_says_of_itself(text: str, name: str, description: str, scope: str | None) -> None:
    found = skills.of_text(PATH, text)

    assert (found.name, found.scope, found.path) == (name, scope, PATH)
    assert found.description == description


@pytest.mark.parametrize(
    ("scope", "where", "offered"),
    [(None, SHOP, True), ("global", SHOP, True), (SHOP, SHOP, True), (SHOP, "other", False), (None, None, True)],
)
def test_a_skill_is_offered_where_it_is_for(scope: str | None, where: str | None, offered: bool) -> None:
    assert Skill("x", "y", PATH, scope).is_for(where) == offered


def test_folders_are_read_in_order_and_links_and_strays_are_not(tmp_path: Path) -> None:
    memory = f"# Task Group: shop\nscope: project {SHOP}\n\n## Reusable knowledge\n- Related skill: skills/b/SKILL.md\n"
    memory += "\n# Task Group: prose\nscope: checkout of the shop\n\n## Reusable knowledge\n- see skills/a/SKILL.md\n"
    for name in ("b", "a", ".hidden", "none"):
        (tmp_path / "skills" / name).mkdir(parents=True)
    for name in ("b", "a", ".hidden"):
        (tmp_path / "skills" / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: d\n---\n")
    (tmp_path / "skills" / "file").write_text("x")
    (tmp_path / "skills" / "link").symlink_to(tmp_path / "skills" / "a")
    (tmp_path / "MEMORY.md").write_text(memory)

    assert [(each.name, each.scope) for each in skills.read(tmp_path)] == [("a", None), ("b", SHOP)]
    assert [each.scope for each in skills.read(tmp_path, lambda block: block.title)] == ["prose", "shop"]
    assert skills.read(tmp_path / "nowhere") == []

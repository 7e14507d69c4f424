"""Arguments of tools may hold secrets, since nobody quotes them; the names of files that come out of them hold none."""

from __future__ import annotations

from made_sessions import edit, session, user

from commonplace.learning.reading import patches, tasks

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


def test_the_name_of_a_changed_file_comes_without_a_secret() -> None:
    named = patches.files(edit(f"src/{TOKEN}.py"))

    assert len(named) == 1
    assert TOKEN[:12] not in named[0]


def test_a_task_that_is_named_by_its_files_gives_no_part_of_a_secret_away() -> None:
    name = tasks.cut(session(user("👍"), edit(f"src/{TOKEN}_and_more_of_a_name.py")))[0].name

    assert name.startswith("work on ")
    assert TOKEN[:12] not in name

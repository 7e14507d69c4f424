"""Whole turns taken back: the tree is as it was, byte for byte, and the user's git does not notice."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pygit2
import pytest
from manifests import NOW, commit, git_state, manifest, put, repository

from commonplace.agent import undo


def _add(root: Path) -> None:
    put(root, "new.txt", "new")
    put(root, "deep/er/new.bin", b"\0\xff", 0o755)
    (root / "fresh").mkdir()


def _change(root: Path) -> None:
    put(root, "readme.md", "changed\n")
    put(root, "notes.txt", "changed too\n")
    put(root, "data.bin", b"\0" * 7)


def _delete(root: Path) -> None:
    for name in ("readme.md", "notes.txt", "data.bin"):
        (root / name).unlink(missing_ok=True)
    shutil.rmtree(root / "src")


def _rename(root: Path) -> None:
    (root / "readme.md").rename(root / "README")
    (root / "src").rename(root / "lib")
    put(root, "lib/main.py", "print(9)\n")


def _chmod(root: Path) -> None:
    (root / "run.sh").chmod(0o644)
    (root / "readme.md").chmod(0o755)
    (root / "data.bin").chmod(0o600)
    (root / "src").chmod(0o700)


def _everything(root: Path) -> None:
    _change(root)
    _chmod(root)
    _rename(root)
    _add(root)
    (root / "data.bin").unlink()


TURNS = [_add, _change, _delete, _rename, _chmod, _everything]


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.__name__.strip("_"))
def test_a_turn_in_a_repository_is_taken_back_whole(home: Path, project: Path, turn: Callable[[Path], None]) -> None:
    before, git = manifest(project), git_state(project)
    snapshot = undo.take(home, project, NOW)
    turn(project)
    changed = manifest(project)

    preview = undo.diff(home, snapshot.id)

    assert manifest(project) == changed
    restored = undo.restore(home, snapshot.id, NOW)
    assert manifest(project) == before
    assert git_state(project) == git
    assert restored.left_alone == ()
    assert (preview.changed, preview.removed, preview.recreated) == (
        restored.changed,
        restored.removed,
        restored.recreated,
    )
    undo.restore(home, restored.redo, NOW)
    assert manifest(project) == changed


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.__name__.strip("_"))
def test_a_turn_in_a_plain_folder_is_taken_back_whole(home: Path, plain: Path, turn: Callable[[Path], None]) -> None:
    before = manifest(plain)
    snapshot = undo.take(home, plain, NOW)
    turn(plain)

    undo.restore(home, snapshot.id, NOW)

    assert manifest(plain) == before


def test_a_restore_says_what_it_did(home: Path, project: Path) -> None:
    snapshot = undo.take(home, project, NOW)
    put(project, "new/file.txt", "new")
    put(project, "readme.md", "changed")
    (project / "run.sh").chmod(0o600)
    (project / "src/old.py").unlink()

    restored = undo.restore(home, snapshot.id, NOW)

    assert restored.changed == ("readme.md", "run.sh")
    assert restored.removed == ("new/", "new/file.txt")
    assert restored.recreated == ("src/old.py",)


def test_several_turns_are_taken_back_one_by_one(home: Path, project: Path) -> None:
    states, ids = list[object](), list[str]()
    for number, turn in enumerate((_add, _change, _chmod, _rename, _delete)):
        states.append(manifest(project))
        ids.append(undo.take(home, project, NOW + timedelta(minutes=number)).id)
        if turn is not _delete:
            turn(project)

    for identity, state in zip(reversed(ids), reversed(states), strict=True):
        undo.restore(home, identity, NOW + timedelta(hours=1))
        assert manifest(project) == state


def test_restoring_what_is_there_already_changes_nothing(home: Path, project: Path) -> None:
    snapshot = undo.take(home, project, NOW)
    times = {path: path.lstat().st_mtime_ns for path in project.rglob("*")}

    restored = undo.restore(home, snapshot.id, NOW)

    assert (restored.changed, restored.removed, restored.recreated) == ((), (), ())
    assert times == {path: path.lstat().st_mtime_ns for path in project.rglob("*")}


def test_what_is_ignored_is_listed_and_stays_whatever_the_rules_become(home: Path, project: Path) -> None:
    snapshot = undo.take(home, project, NOW)
    put(project, ".gitignore", "")
    put(project, "secret.env", "KEY=2\n")

    restored = undo.restore(home, snapshot.id, NOW)

    assert {one.path: one.reason for one in snapshot.left_out} == {
        "build/": "ignored",
        "secret.env": "ignored",
        "trace.log": "ignored",
    }
    assert (project / "secret.env").read_text() == "KEY=2\n"
    assert (project / "build/out.o").exists()
    assert restored.changed == (".gitignore",), "the rules of the snapshot count"


def test_what_was_ignored_stays_when_it_was_moved_where_it_no_longer_is(home: Path, project: Path) -> None:
    snapshot = undo.take(home, project, NOW)
    (project / "secret.env").rename(project / "moved.txt")
    (project / "build").rename(project / "made")

    restored = undo.restore(home, snapshot.id, NOW)

    assert (project / "moved.txt").read_text() == "KEY=1\n"
    assert (project / "made/out.o").read_bytes() == b"\0\1"
    assert {"moved.txt", "made"} <= {one.path for one in restored.left_alone}


def test_a_file_that_rules_ignore_since_is_restored_and_can_be_had_back(home: Path, project: Path) -> None:
    before = manifest(project)
    snapshot = undo.take(home, project, NOW)
    put(project, ".gitignore", "*\n")
    put(project, "notes.txt", "important\n")

    restored = undo.restore(home, snapshot.id, NOW)
    assert manifest(project) == before

    undo.restore(home, restored.redo, NOW)
    assert (project / "notes.txt").read_text() == "important\n"


def test_files_that_a_turn_makes_and_rules_ignore_stay_and_are_listed(home: Path, project: Path) -> None:
    snapshot = undo.take(home, project, NOW)
    put(project, "made/a.log", "x")
    put(project, "made/b.txt", "x")

    restored = undo.restore(home, snapshot.id, NOW)

    assert sorted(path.name for path in (project / "made").iterdir()) == ["a.log"]
    assert {one.path: one.reason for one in restored.left_alone} == {
        "made": "it holds something that was left out",
        "made/a.log": "ignored",
    }


@pytest.mark.parametrize(
    ("file", "rules"),
    [
        (".gitignore", "*"),
        (".gitignore", "*\n!.gitignore\n"),
        (".gitignore", "/hidden/"),
        (".gitignore", "**/*.txt\n"),
        (".gitignore", "hidden"),
        ("hidden/.gitignore", "*"),
        ("hidden/deep/.gitignore", "*\n"),
        ("src/.gitignore", "*"),
    ],
)
def test_rules_that_a_turn_wrote_do_not_hide_what_it_made(home: Path, project: Path, file: str, rules: str) -> None:
    before = manifest(project)
    snapshot = undo.take(home, project, NOW)
    put(project, "hidden/deep/new.txt", "x")
    put(project, "src/new.txt", "x")
    put(project, file, rules)
    after = manifest(project)

    previewed = undo.diff(home, snapshot.id)
    restored = undo.restore(home, snapshot.id, NOW)

    assert "hidden/deep/new.txt" in restored.removed
    assert restored.removed == previewed.removed
    assert manifest(project) == before
    undo.restore(home, restored.redo, NOW)
    assert manifest(project) == after


def test_a_tracked_file_belongs_to_the_state_although_a_rule_ignores_it(home: Path, repo: pygit2.Repository) -> None:
    root = Path(repo.workdir)
    put(root, "build/kept.txt", "tracked\n")
    repo.index.add("build/kept.txt")
    repo.index.write()
    snapshot = undo.take(home, root, NOW)
    put(root, "build/kept.txt", "changed\n")
    put(root, "build/new.txt", "ignored\n")

    undo.restore(home, snapshot.id, NOW)

    assert (root / "build/kept.txt").read_text() == "tracked\n"
    assert (root / "build/new.txt").exists()
    assert (root / "build/out.o").exists()


def test_contents_are_raw_whatever_git_would_convert(home: Path, tmp_path: Path) -> None:
    root = tmp_path / "windows"
    found = repository(root)
    found.config["core.autocrlf"] = "true"
    found.config["filter.shout.clean"] = "tr a-z A-Z"
    found.config["filter.shout.smudge"] = "tr A-Z a-z"
    put(root, ".gitattributes", "*.txt text eol=crlf ident\n*.up filter=shout\n*.u16 working-tree-encoding=UTF-16\n")
    put(root, "a.txt", b"one\r\ntwo\n$Id$\r\n")
    put(root, "b.up", b"MiXed\n")
    put(root, "c.u16", "text".encode("utf-16"))
    commit(found)
    before, git = manifest(root), git_state(root)
    snapshot = undo.take(home, root, NOW)
    for name in ("a.txt", "b.up", "c.u16"):
        (root / name).unlink()

    undo.restore(home, snapshot.id, NOW)

    assert manifest(root) == before
    assert git_state(root) == git


def test_what_the_repository_has_is_not_stored_again(home: Path, tmp_path: Path) -> None:
    root = tmp_path / "large"
    found = repository(root)
    put(root, "noise.bin", os.urandom(2**20))
    commit(found)

    undo.take(home, root, NOW)

    assert sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) < 2**16


def test_a_folder_inside_a_repository_follows_the_rules_above_it(home: Path, project: Path) -> None:
    put(project, "src/trace.log", "x")
    put(project, ".gitignore", "*.log\n/src/local\n")
    put(project, "src/local/x", "x")

    snapshot = undo.take(home, project / "src", NOW)

    assert {one.path for one in snapshot.left_out} == {"trace.log", "local/"}
    assert undo.root_of(project / "src") == project.resolve()


@pytest.mark.parametrize("rules", ["*\n", "/ours/\n", "ours/*\n"])
def test_a_folder_that_a_repository_above_ignores_stands_for_itself(home: Path, tmp_path: Path, rules: str) -> None:
    top = tmp_path / "top"
    repository(top)
    put(top, ".gitignore", rules)
    tree = top / "ours/project"
    put(tree, "main.py", "x")
    put(tree, "node_modules/x.js", "x")

    snapshot = undo.take(home, tree, NOW)

    assert undo.root_of(tree) == tree.resolve()
    assert (snapshot.files, [one.path for one in snapshot.left_out]) == (1, ["node_modules/"])


def test_a_linked_working_tree_is_a_repository_too(home: Path, repo: pygit2.Repository, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    repo.add_worktree("linked", str(linked))
    put(linked, "x.log", "x")
    before, git = manifest(linked), git_state(Path(repo.workdir))
    snapshot = undo.take(home, linked, NOW)
    (linked / "readme.md").unlink()

    undo.restore(home, snapshot.id, NOW)

    assert [one.path for one in snapshot.left_out] == ["x.log"]
    assert manifest(linked) == before
    assert git_state(Path(repo.workdir)) == git


def test_a_snapshot_has_a_small_json_form_for_the_ledger(home: Path, project: Path) -> None:
    for number in range(500):
        put(project, f"{number}.log", "x")

    payload = undo.take(home, project, NOW).payload()

    assert len(json.dumps(payload)) < 4096
    assert payload["kind"] == "snapshot"
    assert payload["time"] == "2026-05-04T03:02:01Z"
    assert payload["left_out"]["reasons"] == {"ignored": 503}


def test_the_store_is_private(home: Path, project: Path) -> None:
    undo.take(home, project, NOW)

    for path in (home, *home.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_snapshots_are_listed_newest_first(home: Path, project: Path, plain: Path) -> None:
    first = undo.take(home, project, NOW)
    second = undo.take(home, plain, NOW + timedelta(minutes=1))

    assert [one.id for one in undo.listed(home)] == [second.id, first.id]
    assert [one.id for one in undo.listed(home, project)] == [first.id]
    assert undo.listed(home / "none") == []

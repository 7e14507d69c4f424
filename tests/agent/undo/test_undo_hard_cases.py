"""Trees as they should not be: swapped kinds, odd names, closed folders, foreign repositories, links that lead away."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from manifests import NOW, commit, git_state, manifest, put, repository

from commonplace.agent import undo

KINDS = ["nothing", "file", "program", "folder", "full", "link", "dangling", "loop"]


def _make(path: Path, kind: str, tag: str) -> None:
    if kind in ("file", "program"):
        put(path.parent, path.name, f"{tag}\n", 0o755 if kind == "program" else 0o640)
    elif kind == "folder":
        path.mkdir()
    elif kind == "full":
        put(path, "inner/file.txt", tag)
    elif kind != "nothing":
        path.symlink_to({"link": "beside", "dangling": "nowhere", "loop": path.name}[kind])


@pytest.mark.parametrize("after", KINDS)
@pytest.mark.parametrize("before", KINDS)
def test_anything_that_became_anything_else_is_put_back(home: Path, tmp_path: Path, before: str, after: str) -> None:
    root = tmp_path / "tree"
    put(root, "beside/keep.txt", "keep")
    _make(root / "it", before, "before")
    expected = manifest(root)
    snapshot = undo.take(home, root, NOW)
    if (root / "it").is_symlink() or (root / "it").is_file():
        (root / "it").unlink()
    elif (root / "it").is_dir():
        shutil.rmtree(root / "it")
    _make(root / "it", after, "after")
    changed = manifest(root)

    restored = undo.restore(home, snapshot.id, NOW)

    assert manifest(root) == expected
    assert restored.left_alone == ()
    undo.restore(home, restored.redo, NOW)
    assert manifest(root) == changed


def test_names_that_are_not_text_come_back(home: Path, tmp_path: Path) -> None:
    root = os.fsencode(tmp_path / "tree")
    os.makedirs(root + b"/caf\xe9/\xff\xfe")  # noqa: PTH103
    for name in (b"caf\xe9/\xff\xfe/x", b"new\nline", b" space ", b"-dash", b"\xf0\x9f\x99\x82", b"quote\"'\\"):
        Path(os.fsdecode(root + b"/" + name)).write_bytes(name)
    place = Path(os.fsdecode(root))
    before = manifest(place)
    snapshot = undo.take(home, place, NOW)
    shutil.rmtree(root + b"/caf\xe9")
    Path(os.fsdecode(root + b"/new\nline")).write_bytes(b"changed")
    Path(os.fsdecode(root + b"/\x80added")).write_bytes(b"")

    restored = undo.restore(home, snapshot.id, NOW)

    assert manifest(place) == before
    json.dumps([restored.changed, restored.removed, restored.recreated]).encode("utf-8")


def test_nothing_is_written_through_a_link_that_was_swapped_in(home: Path, tmp_path: Path) -> None:
    root, outside = tmp_path / "tree", tmp_path / "environment"
    put(root, "folder/file.txt", "mine")
    put(root, "folder/deep/file.txt", "mine")
    put(outside, "file.txt", "theirs")
    put(outside, "other.txt", "theirs")
    before, theirs = manifest(root), manifest(outside)
    snapshot = undo.take(home, root, NOW)
    shutil.rmtree(root / "folder")
    (root / "folder").symlink_to(outside)

    undo.restore(home, snapshot.id, NOW)

    assert manifest(root) == before
    assert manifest(outside) == theirs


def test_a_link_out_of_the_tree_is_kept_as_a_link(home: Path, tmp_path: Path) -> None:
    root, outside = tmp_path / "tree", tmp_path / "environment"
    put(outside, "file.txt", "theirs")
    root.mkdir()
    (root / "away").symlink_to(outside)
    before = manifest(root)
    snapshot = undo.take(home, root, NOW)
    (root / "away").unlink()
    put(outside, "file.txt", "changed")

    undo.restore(home, snapshot.id, NOW)

    assert manifest(root) == before
    assert (outside / "file.txt").read_text() == "changed"
    assert snapshot.files == 1


def test_other_repositories_are_left_alone_and_listed(home: Path, project: Path) -> None:
    inner = repository(project / "vendor/lib")
    put(project, "vendor/lib/code.c", "int x;")
    commit(inner)
    put(project, "module/.git", "gitdir: ../.git/modules/module\n")
    put(project, "module/code.c", "int y;")
    snapshot = undo.take(home, project, NOW)
    put(project, "vendor/lib/code.c", "changed")
    put(project, "module/new.c", "new")
    shutil.copytree(project / "vendor/lib", project / "cloned", symlinks=True)
    git = git_state(project / "vendor/lib")

    restored = undo.restore(home, snapshot.id, NOW)

    left = {one.path: one.reason for one in snapshot.left_out}
    assert (left["vendor/lib/"], left["module/"]) == ("repository", "repository")
    assert (project / "vendor/lib/code.c").read_text() == "changed"
    assert (project / "module/new.c").exists()
    assert (project / "cloned/code.c").exists()
    assert "cloned/" in {one.path for one in restored.left_alone}
    assert git_state(project / "vendor/lib") == git


def test_a_folder_that_became_a_repository_is_restored_around_it(home: Path, plain: Path) -> None:
    before = manifest(plain)
    snapshot = undo.take(home, plain, NOW)
    repository(plain)
    repository(plain / "src")
    put(plain, "src/main.py", "changed")
    put(plain, "src/new.py", "new")
    put(plain, ".gitignore", "src/main.py\n/readme.md\n")

    restored = undo.restore(home, snapshot.id, NOW)

    assert manifest(plain) == before
    assert (plain / "src/.git/HEAD").exists()
    assert {".git/", "src/.git/"} <= {one.path for one in restored.left_alone}


def test_huge_files_are_listed_and_never_touched(home: Path, plain: Path) -> None:
    limits = undo.SnapshotLimits(file_bytes=6000)
    put(plain, "big.bin", bytes(6001))
    snapshot = undo.take(home, plain, NOW, limits=limits)
    put(plain, "big.bin", b"small now")
    put(plain, "later.bin", bytes(6002))

    restored = undo.restore(home, snapshot.id, NOW, limits=limits)

    assert [(one.path, one.reason, one.bytes) for one in snapshot.left_out] == [("big.bin", "too large", 6001)]
    assert (plain / "big.bin").read_bytes() == b"small now"
    assert (plain / "later.bin").exists()
    assert {one.path for one in restored.left_alone} == {"big.bin", "later.bin"}


def test_a_small_file_that_became_huge_is_put_back_and_can_be_had_again(home: Path, plain: Path) -> None:
    limits = undo.SnapshotLimits(file_bytes=6000, total_bytes=20_000)
    before = manifest(plain)
    snapshot = undo.take(home, plain, NOW, limits=limits)
    put(plain, "readme.md", b"x" * 50_000)

    restored = undo.restore(home, snapshot.id, NOW, limits=limits)
    assert manifest(plain) == before

    undo.restore(home, restored.redo, NOW, limits=limits)
    assert (plain / "readme.md").stat().st_size == 50_000


def test_what_is_too_large_to_be_kept_at_all_is_not_overwritten(home: Path, plain: Path) -> None:
    snapshot = undo.take(home, plain, NOW)
    os.truncate(plain / "readme.md", 2**29 + 1)

    restored = undo.restore(home, snapshot.id, NOW)

    assert (plain / "readme.md").stat().st_size == 2**29 + 1
    assert [(one.path, one.reason) for one in restored.left_alone] == [("readme.md", "in the way: too large")]


def test_beyond_the_total_the_largest_files_are_left_out(home: Path, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    for name, size in (("a", 10), ("b", 500), ("c", 400), ("d", 20)):
        put(root, name, bytes(size))

    snapshot = undo.take(home, root, NOW, limits=undo.SnapshotLimits(total_bytes=100))

    assert [(one.path, one.reason) for one in snapshot.left_out] == [("b", "no room"), ("c", "no room")]
    assert (snapshot.files, snapshot.bytes) == (2, 30)


def test_sparse_files_come_back_with_their_bytes(home: Path, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    with (root / "sparse").open("wb") as file:
        file.seek(3_000_000)
        file.write(b"end")
        file.truncate(5_000_000)
    before = manifest(root)
    snapshot = undo.take(home, root, NOW)
    (root / "sparse").unlink()

    undo.restore(home, snapshot.id, NOW)

    assert manifest(root) == before
    assert (root / "sparse").stat().st_blocks * 512 < 2_000_000


def test_hard_links_come_back_with_their_bytes(home: Path, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    put(root, "one", "same")
    os.link(root / "one", root / "two")
    before = manifest(root)
    snapshot = undo.take(home, root, NOW)
    (root / "one").write_text("both changed")

    restored = undo.restore(home, snapshot.id, NOW)

    assert manifest(root) == before
    assert restored.changed == ("one", "two")


def test_special_files_are_listed_and_give_way_only_to_what_was_there(home: Path, plain: Path) -> None:
    os.mkfifo(plain / "pipe")
    before = manifest(plain)
    snapshot = undo.take(home, plain, NOW)
    (plain / "readme.md").unlink()
    os.mkfifo(plain / "readme.md")
    shutil.rmtree(plain / "src")
    os.mkfifo(plain / "src")
    os.mkfifo(plain / "another")

    undo.restore(home, snapshot.id, NOW)

    assert [(one.path, one.reason) for one in snapshot.left_out] == [("pipe", "special file")]
    after = manifest(plain)
    del after[b"another"]
    assert after == before


def test_what_tools_can_make_again_is_left_out_of_a_plain_folder(home: Path, plain: Path) -> None:
    put(plain, "node_modules/x/index.js", "x")
    put(plain, "src/__pycache__/main.pyc", "x")
    put(plain, "my-env/pyvenv.cfg", "x")
    put(plain, "cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55")
    snapshot = undo.take(home, plain, NOW)
    shutil.rmtree(plain / "node_modules")
    put(plain, "cache/more", "x")

    undo.restore(home, snapshot.id, NOW)

    assert {one.path for one in snapshot.left_out} == {"cache/", "my-env/", "node_modules/", "src/__pycache__/"}
    assert (plain / "cache/more").exists()


def test_our_own_home_inside_the_tree_is_no_part_of_it(plain: Path) -> None:
    home = plain / ".commonplace"
    snapshot = undo.take(home, plain, NOW)
    put(plain, "new.txt", "new")

    undo.restore(home, snapshot.id, NOW)

    assert not (plain / "new.txt").exists()
    assert [(one.path, one.reason) for one in snapshot.left_out] == [(".commonplace/", "home of commonplace")]
    assert undo.listed(home, plain)


def test_a_tree_deeper_than_any_has_reason_to_be_is_cut_off_and_listed(home: Path, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    place = os.open(root, os.O_RDONLY)
    for _ in range(250):
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)

    snapshot = undo.take(home, root, NOW)

    assert [one.reason for one in snapshot.left_out] == ["too deep"]
    undo.restore(home, snapshot.id, NOW)


SCRIPT = """
import os, sys
from pathlib import Path
from datetime import datetime, UTC
from commonplace.agent import undo
from manifests import NOW, manifest
os.umask(0o022)
root, home = Path(sys.argv[1]) / "tree", Path(sys.argv[1]) / "home"
if os.geteuid() == 0:  # for whom nothing is closed
    warm = Path(sys.argv[1]) / "warm"; warm.mkdir()
    once = undo.take(warm / "home", warm, NOW)  # another user may not be able to import what is left
    undo.restore(warm / "home", once.id, NOW)
    os.setgid(65534); os.setuid(65534)
root.mkdir(); (root / "d/e").mkdir(parents=True)
for name in ("open", "closed", "d/x", "d/e/y"):
    (root / name).write_text(name)
(root / "closed").chmod(0)
(root / "shut").mkdir(); (root / "shut/inner").write_text("x"); (root / "shut").chmod(0)
before = undo.take(home, root, NOW)
assert {one.path: one.reason for one in before.left_out} == {"closed": "unreadable", "shut/": "unreadable"}, before
(root / "open").write_text("changed"); (root / "open").chmod(0)
(root / "d/e/y").write_text("changed"); (root / "d/e").chmod(0o444); (root / "d").chmod(0o555)
(root / "added").write_text("x"); (root / "added").chmod(0)
restored = undo.restore(home, before.id, NOW)
assert (root / "open").read_text() == "open" and (root / "open").stat().st_mode & 0o777 == 0o644
assert (root / "d").stat().st_mode & 0o777 == 0o755 and (root / "d/e/y").read_text() == "d/e/y"
assert {one.path for one in restored.left_alone} == {"added"}, restored
assert (root / "closed").stat().st_mode & 0o777 == 0 and (root / "shut").stat().st_mode & 0o777 == 0
undo.restore(home, restored.redo, NOW)
assert (root / "open").stat().st_mode & 0o777 == 0o400 and (root / "open").read_text() == "changed"
"""


def test_what_may_not_be_read_is_listed_and_never_fatal() -> None:
    # Not below pytest's own folder: another user has to get there.
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        result = subprocess.run(
            [sys.executable, "-c", SCRIPT, place],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if os.geteuid() != 0:
            for name in ("d", "d/e", "shut"):
                (Path(place) / "tree" / name).chmod(0o700)

    assert (result.returncode, result.stderr) == (0, "")

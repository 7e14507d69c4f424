"""The baseline is one commit; what differs from it is told exactly, and it can be gone back to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pygit2
import pytest

from commonplace.errors import WorkspaceError
from commonplace.memory.workspace import baseline, layout
from commonplace.memory.workspace.baseline import BaselineChange

NOW = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)
GIT = shutil.which("git")


def write(root: Path, path: str, text: str | bytes) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(text.encode() if isinstance(text, str) else text)


def objects(root: Path) -> set[str]:
    return {path.parent.name + path.name for path in (root / ".git" / "objects").glob("??/*")}


@pytest.fixture
def root(home: Path) -> Path:
    place = home / layout.FOLDER
    layout.ensure(place)
    write(place, "MEMORY.md", "one\ntwo\nthree\n")
    write(place, "skills/deploy/SKILL.md", "# Deploy\n")
    write(place, "skills.md", "sorts between a folder and its name\n")
    baseline.reset(place, "first", NOW)
    return place


class TestCommit:
    def test_it_is_one_commit_without_a_parent_by_a_fixed_identity(self, root: Path) -> None:
        repository = pygit2.Repository(str(root))
        commit = repository.head.peel(pygit2.Commit)

        assert [] == commit.parents
        assert ("Commonplace", "no-reply@commonplace.invalid") == (commit.author.name, commit.author.email)
        assert (int(NOW.timestamp()), 0) == (commit.commit_time, commit.commit_time_offset)
        assert "first\n" == commit.message
        assert {} == repository.status()

    def test_the_index_has_what_the_commit_has(self, root: Path) -> None:
        repository = pygit2.Repository(str(root))
        repository.index.read()

        names = ["MEMORY.md", "skills.md", "skills/deploy/SKILL.md"]
        assert 3 == len(repository.index)
        assert all(name in repository.index for name in names)
        assert repository.head.peel(pygit2.Tree).id == repository.index.write_tree()

    @pytest.mark.skipif(GIT is None, reason="git is not installed")
    def test_git_itself_finds_nothing_wrong(self, root: Path) -> None:
        write(root, "a/long/" + "x" * 200 + ".md", "long")
        baseline.reset(root, "second", NOW)

        for command in (["fsck", "--strict"], ["status", "--porcelain"]):
            done = subprocess.run([str(GIT), *command], cwd=root, capture_output=True, text=True, check=True)
            assert "" == done.stdout

    def test_its_message_can_be_read(self, root: Path) -> None:
        baseline.reset(root, "second\n\nwith lines ✓", NOW)

        assert "second\n\nwith lines ✓" == baseline.message(root)

    def test_where_there_is_none_there_is_no_message(self, home: Path) -> None:
        assert None is baseline.message(home)

    def test_a_new_one_drops_the_old_one_and_all_its_objects(self, root: Path) -> None:
        forgotten = objects(root)
        write(root, "MEMORY.md", "new\n")

        baseline.reset(root, "second", NOW)

        kept = {str(pygit2.hash(data)) for data in (b"# Deploy\n", b"sorts between a folder and its name\n")}
        skills = forgotten & objects(root) - kept
        assert kept <= objects(root)
        assert str(pygit2.hash(b"one\ntwo\nthree\n")) in forgotten - objects(root)
        assert 2 == len(skills)  # the two folders that did not change
        assert [] == baseline.status(root)
        assert 1 == len(list(pygit2.Repository(str(root)).walk(pygit2.Repository(str(root)).head.target)))

    def test_the_diff_is_removed_and_never_part_of_it(self, root: Path) -> None:
        write(root, layout.DIFF, "old news")

        assert [] == baseline.status(root)
        baseline.reset(root, "second", NOW)

        assert not (root / layout.DIFF).exists()

    @pytest.mark.parametrize("kind", ["file", "link"])
    def test_a_git_that_is_no_folder_is_replaced(self, root: Path, tmp_path: Path, kind: str) -> None:
        shutil.rmtree(root / ".git")
        (tmp_path / "elsewhere").mkdir()
        if kind == "file":
            write(root, ".git", f"gitdir: {tmp_path}/elsewhere")
        else:
            (root / ".git").symlink_to(tmp_path / "elsewhere")

        assert baseline.ensure(root, NOW)

        assert [] == list((tmp_path / "elsewhere").iterdir())
        assert [] == baseline.status(root)

    def test_no_setting_hook_or_template_matters(self, root: Path, tmp_path: Path) -> None:
        hooks, user = tmp_path / "hooks", tmp_path / "someone"
        hooks.mkdir()
        user.mkdir()
        for name in ("post-index-change", "post-commit", "pre-commit", "reference-transaction"):
            write(hooks, name, f"#!/bin/sh\ntouch {tmp_path}/ran\n")
            (hooks / name).chmod(0o755)
        write(user, ".gitattributes", "* text eol=crlf filter=evil\n")
        write(
            user,
            ".gitconfig",
            f"[core]\n\thooksPath = {hooks}\n\tautocrlf = true\n\tattributesFile = {user}/.gitattributes\n"
            f'[init]\n\tdefaultBranch = other\n\ttemplateDir = {hooks}\n[user]\n\tname = Eve\n[filter "evil"]\n'
            f"\tclean = touch {tmp_path}/ran\n[broken\n",
        )
        write(root, "crlf.md", b"a\r\nb\r\n")
        program = (
            "import sys, pathlib, datetime; from commonplace.memory.workspace import baseline\n"
            "root = pathlib.Path(sys.argv[1]); now = datetime.datetime.fromtimestamp(0, datetime.UTC)\n"
            "baseline.reset(root, 'by settings', now); assert baseline.status(root) == []\n"
            "assert not baseline.ensure(root, now)"
        )
        environment = {**os.environ, "HOME": str(user), "GIT_CONFIG_GLOBAL": str(user / ".gitconfig")}
        subprocess.run([sys.executable, "-c", program, str(root)], env=environment, check=True)

        assert not (tmp_path / "ran").exists()
        assert "ref: refs/heads/main\n" == (root / ".git" / "HEAD").read_text("utf-8")
        assert str(pygit2.hash(b"a\r\nb\r\n")) in objects(root)
        assert not (root / ".git" / "hooks").exists()


class TestEnsure:
    def test_one_that_can_be_used_is_kept(self, root: Path) -> None:
        write(root, "MEMORY.md", "changed\n")

        assert not baseline.ensure(root, NOW)

        assert "first" == baseline.message(root)
        assert [BaselineChange("M", "MEMORY.md")] == baseline.status(root)

    def test_one_that_git_packed_is_kept(self, root: Path) -> None:
        repository = pygit2.Repository(str(root))
        head = str(repository.head.target)
        repository.pack()
        for folder in (root / ".git" / "objects").glob("??"):
            shutil.rmtree(folder)
        (root / ".git" / "refs" / "heads" / "main").unlink()
        packed = f"# pack-refs with: peeled fully-peeled sorted \n{head} refs/heads/main\n"
        write(root, ".git/packed-refs", packed)

        assert not baseline.ensure(root, NOW)

        assert [] == baseline.status(root)

    @pytest.mark.parametrize(
        "damage",
        ["missing", "unborn", "no objects", "blob", "torn blob", "tree", "commit", "head", "outside", "sha256"],
    )
    def test_one_that_cannot_be_used_is_made_again(self, root: Path, damage: str) -> None:
        git = root / ".git"
        repository = pygit2.Repository(str(root))
        head = repository.head.peel(pygit2.Commit)
        loose = {
            "blob": str(pygit2.hash(b"# Deploy\n")),
            "torn blob": str(pygit2.hash(b"# Deploy\n")),
            "tree": str(head.tree.id),
            "commit": str(head.id),
        }
        if damage in loose:
            path = git / "objects" / loose[damage][:2] / loose[damage][2:]
            path.chmod(0o600)
            path.write_bytes(b"") if damage == "torn blob" else path.unlink()
        elif damage == "missing":
            shutil.rmtree(git)
        elif damage == "unborn":
            (git / "refs" / "heads" / "main").unlink()
        elif damage == "no objects":
            shutil.rmtree(git / "objects")
        else:
            text = {"head": b"\xff", "outside": b"ref: ../../x", "sha256": b"0" * 64}[damage]
            (git / "HEAD").write_bytes(text)

        assert baseline.ensure(root, NOW, message="again")

        assert "again" == baseline.message(root)
        assert [] == baseline.status(root)

    def test_a_name_that_leads_out_is_no_baseline(self, root: Path) -> None:
        odb = pygit2.Odb(str(root / ".git" / "objects"))
        blob = odb.write(pygit2.enums.ObjectType.BLOB, b"evil")
        tree = odb.write(pygit2.enums.ObjectType.TREE, b"100644 ..\0" + blob.raw)
        commit = odb.write(pygit2.enums.ObjectType.COMMIT, f"tree {tree}\n\nx\n")
        write(root, ".git/refs/heads/main", f"{commit}\n")

        with pytest.raises(WorkspaceError):
            baseline.status(root)
        assert baseline.ensure(root, NOW)


class TestStatus:
    def test_added_modified_and_deleted_files_are_told_by_path(self, root: Path) -> None:
        write(root, "z.md", "new")
        write(root, "extensions/a/resources/é.md", "new")
        write(root, "MEMORY.md", "one\n")
        (root / "skills" / "deploy" / "SKILL.md").unlink()

        assert [
            BaselineChange("M", "MEMORY.md"),
            BaselineChange("A", "extensions/a/resources/é.md"),
            BaselineChange("D", "skills/deploy/SKILL.md"),
            BaselineChange("A", "z.md"),
        ] == baseline.status(root)

    def test_comparing_writes_nothing(self, root: Path) -> None:
        before = {path: path.stat().st_mtime_ns for path in (root / ".git").rglob("*")}
        write(root, "new.md", "new")

        baseline.status(root)
        baseline.diff(root)

        assert before == {path: path.stat().st_mtime_ns for path in (root / ".git").rglob("*")}
        assert str(pygit2.hash(b"new")) not in objects(root)

    def test_a_changed_execute_bit_is_a_modification(self, root: Path) -> None:
        (root / "MEMORY.md").chmod(0o610)

        assert [BaselineChange("M", "MEMORY.md")] == baseline.status(root)

    def test_what_belongs_to_no_state_is_not_seen(self, root: Path) -> None:
        (root / "empty" / "folder").mkdir(parents=True)
        write(root, "skills/deploy/.git/config", "theirs")
        write(root, "extensions/x/.git", "theirs")
        write(root, layout.DIFF, "ours")
        write(root, f"skills/.1{layout.PART}", "half")
        os.mkfifo(root / "pipe")

        assert [] == baseline.status(root)

    def test_nothing_is_ignored_that_git_would_ignore(self, root: Path) -> None:
        write(root, ".gitignore", "*.md\n")
        write(root, "ignored.md", "")

        assert [BaselineChange("A", ".gitignore"), BaselineChange("A", "ignored.md")] == baseline.status(root)

    def test_a_link_is_a_file_of_its_own_kind(self, root: Path) -> None:
        (root / "MEMORY.md").unlink()
        (root / "MEMORY.md").symlink_to("skills.md")

        assert [BaselineChange("M", "MEMORY.md")] == baseline.status(root)
        assert "old mode 100644\nnew mode 120000\n" in baseline.diff(root)

    def test_a_name_that_is_not_text_stops_nothing(self, root: Path) -> None:
        write(root, os.fsdecode(b"\xff.md"), "odd")
        told = baseline.status(root)
        baseline.reset(root, "odd", NOW)
        unchanged = baseline.status(root)

        assert [BaselineChange("A", "\ufffd.md")] == told
        assert [] == unchanged

    def test_another_folder_can_be_compared_with_it(self, root: Path, tmp_path: Path) -> None:
        copy = tmp_path / "copy"
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".git"))
        write(copy, "MEMORY.md", "one\n")

        assert [BaselineChange("M", "MEMORY.md")] == baseline.status(copy, against=root)
        assert "-two\n" in baseline.diff(copy, against=root)
        assert [] == baseline.status(root)

    @pytest.mark.parametrize("ask", [baseline.status, baseline.diff])
    def test_without_a_baseline_nothing_can_be_told(self, root: Path, ask: object) -> None:
        shutil.rmtree(root / ".git")

        with pytest.raises(WorkspaceError) as caught:
            ask(root)  # pyright: ignore[reportCallIssue]

        assert caught.value.hint


class TestDiff:
    def test_every_kind_of_change_has_its_section(self, root: Path) -> None:
        write(root, "MEMORY.md", "one\n2\nthree\n")
        write(root, "a.sh", "#!/bin/sh\n")
        (root / "a.sh").chmod(0o700)
        (root / "skills.md").chmod(0o700)
        (root / "skills" / "deploy" / "SKILL.md").unlink()

        assert baseline.diff(root) == (
            "diff --git a/MEMORY.md b/MEMORY.md\n"
            "--- a/MEMORY.md\n+++ b/MEMORY.md\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
            "diff --git a/a.sh b/a.sh\nnew file mode 100755\n"
            "--- /dev/null\n+++ b/a.sh\n@@ -0,0 +1 @@\n+#!/bin/sh\n"
            "diff --git a/skills.md b/skills.md\nold mode 100644\nnew mode 100755\n"
            "diff --git a/skills/deploy/SKILL.md b/skills/deploy/SKILL.md\ndeleted file mode 100644\n"
            "--- a/skills/deploy/SKILL.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-# Deploy\n"
        )

    def test_three_lines_of_context_are_shown_and_nothing_after_the_place(self, root: Path) -> None:
        before = [f"line {number}" for number in range(40)]
        write(root, "long.md", "\n".join(before))
        baseline.reset(root, "long", NOW)
        write(root, "long.md", "\n".join([*before[:10], "new", *before[10:39], "last"]))

        assert baseline.diff(root).splitlines()[3:] == [
            "@@ -8,6 +8,7 @@",
            *[f" line {number}" for number in (7, 8, 9)],
            "+new",
            *[f" line {number}" for number in (10, 11, 12)],
            "@@ -37,4 +38,4 @@",
            *[f" line {number}" for number in (36, 37, 38)],
            "-line 39",
            "\\ No newline at end of file",
            "+last",
            "\\ No newline at end of file",
        ]

    def test_bytes_that_are_no_text_are_replaced(self, root: Path) -> None:
        write(root, "odd.bin", b"\xff\0\n")

        assert baseline.diff(root).endswith("+\ufffd\0\n")

    def test_an_empty_file_has_no_hunks(self, root: Path) -> None:
        write(root, "empty.md", "")

        assert "diff --git a/empty.md b/empty.md\nnew file mode 100644\n" == baseline.diff(root)

    def test_nothing_changed_is_an_empty_diff(self, root: Path) -> None:
        assert "" == baseline.diff(root)

    def test_content_that_was_lost_is_an_error_that_says_what_to_do(self, root: Path) -> None:
        lost = str(pygit2.hash(b"one\ntwo\nthree\n"))
        (root / ".git" / "objects" / lost[:2] / lost[2:]).unlink()
        (root / "MEMORY.md").unlink()

        with pytest.raises(WorkspaceError) as caught:
            baseline.diff(root)

        assert "Remove .git" in caught.value.hint

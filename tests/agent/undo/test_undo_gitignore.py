"""Rules of `.gitignore` files: the same decisions as git's own, rule by rule and for random sets of rules."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manifests import NOW, commit, manifest, put, repository

from commonplace.agent import undo
from commonplace.agent.undo import worktree
from commonplace.agent.undo.gitignore import IgnoreRules

TABLE = [
    ("*.log", "a.log", True),
    ("*.log", "d/a.log", True),
    ("/a.log", "d/a.log", False),
    ("d/*.log", "d/a.log", True),
    ("d/*.log", "d/e/a.log", False),
    ("d/**", "d/e/a.log", True),
    ("**/a.log", "a.log", True),
    ("**/e/a.log", "d/e/a.log", True),
    ("d/**/a.log", "d/a.log", True),
    ("d/**/a.log", "d/e/f/a.log", True),
    ("build/", "build", False),
    ("a?c", "abc", True),
    ("a[!b]c", "abc", False),
    ("a[^b]c", "axc", True),
    ("[[:digit:]].txt", "1.txt", True),
    ("[a-c].txt", "d.txt", False),
    ("\\#x", "#x", True),
    ("#x", "#x", False),
    ("\\!x", "!x", True),
    ("x  ", "x", True),
    ("x\\ ", "x ", True),
    ("x\r", "x", True),
    ("a\n!a", "a", False),
    ("!a\na", "a", True),
    ("[", "[", False),
    ("[]]", "]", True),
    ("[z-a]", "m", False),
    ("[z-a]", "z", True),
    ("[a-]", "-", True),
    ("[+--]", ",", True),
    ("a\\", "a\\", False),
    ("", "a", False),
    ("***/x", "d/x", True),
    ("a**/b", "ab", True),
    ("?a**/b", "xab", False),
]


@pytest.mark.parametrize(("rules", "path", "ignored"), TABLE)
def test_a_rule_decides_as_git_says(rules: str, path: str, ignored: bool) -> None:
    name = path.rpartition("/")[2]
    decision = IgnoreRules(rules.encode()).decide(path.encode(), name.encode(), is_folder=False)

    assert bool(decision) == ignored


def test_a_rule_for_folders_speaks_of_folders() -> None:
    rules = IgnoreRules(b"build/\n!keep/\n")

    assert rules.decide(b"build", b"build", is_folder=True) is True
    assert rules.decide(b"keep", b"keep", is_folder=True) is False
    assert rules.decide(b"other", b"other", is_folder=True) is None


def test_case_counts_unless_the_repository_says_otherwise() -> None:
    assert IgnoreRules(b"*.LOG").decide(b"a.log", b"a.log", is_folder=False) is None
    assert IgnoreRules(b"*.LOG", fold_case=True).decide(b"a.log", b"a.log", is_folder=False) is True


_PARTS = st.sampled_from(["a", "b", "ab", "*", "**", "?", "a*", "*b", "[ab]", "[!a]", "\\a", "***", "a**"])


def _join(negated: str, rooted: str, parts: list[str], folder: str) -> str:
    return negated + rooted + "/".join(parts) + folder


_RULE = st.builds(
    _join,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(_PARTS, min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)
_FILES = [
    f"{one}{two}{three}" for one in ("", "a/", "b/", "ab/") for two in ("", "a/", "b/") for three in ("a.x", "ab", "b")
]


def _tree(root: Path) -> list[str]:
    made = [name for name in dict.fromkeys(_FILES) if not any(other.startswith(f"{name}/") for other in _FILES)]
    for name in made:
        put(root, name, name)
    return made


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed; it is what the rules are compared with")
@given(top=st.lists(_RULE, max_size=5), inner=st.lists(_RULE, max_size=3))
def test_a_snapshot_leaves_out_what_git_ignores(
    tmp_path_factory: pytest.TempPathFactory, top: list[str], inner: list[str]
) -> None:
    place = tmp_path_factory.mktemp("ignore")
    root, home = place / "tree", place / "home"
    repository(root)
    made = _tree(root)
    put(root, ".gitignore", "\n".join(top))
    put(root, "a/.gitignore", "\n".join(inner))
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--others", "--exclude-standard"], capture_output=True, check=True
    ).stdout
    expected = {name for name in listed.decode().split("\0") if name}

    snapshot = undo.take(home, root, NOW)
    for name in (*made, ".gitignore", "a/.gitignore"):
        (root / name).unlink()
    undo.restore(home, snapshot.id, NOW)

    found = {path.decode() for path, (mode, _) in manifest(root).items() if not mode & 0o040000}
    shutil.rmtree(place)
    assert found == expected


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed; it writes the kinds of index")
@pytest.mark.parametrize("how", ["2", "3", "4", "split"])
def test_every_kind_of_index_tells_what_is_tracked(tmp_path: Path, how: str) -> None:
    root = tmp_path / "tree"
    found = repository(root)
    names = {f"d{number}/file-{number:03}.txt" for number in range(50)} | {"x" * 250}
    for name in names:
        put(root, name, name)
    commit(found)
    git = ["git", "-C", str(root)]
    if how == "split":
        subprocess.run([*git, "update-index", "--split-index"], check=True)
        put(root, "one-more", "x")
        subprocess.run([*git, "add", "one-more"], check=True)
        names |= {"one-more"}
    else:
        subprocess.run([*git, "update-index", "--index-version", how], check=True)
        if how == "3":
            put(root, "later", "x")
            subprocess.run([*git, "add", "-N", "later"], check=True)
            names |= {"later"}

    tracked = {path.decode() for path in worktree.find_working_tree(root.resolve()).tracked() if path}

    assert tracked == names


@pytest.mark.parametrize("data", [b"", b"DIRC", b"DIRC\0\0\0\2\0\0\0\5", b"DIRC\0\0\0\x09\0\0\0\1", b"\xff" * 200])
def test_a_damaged_index_tells_nothing(tmp_path: Path, data: bytes) -> None:
    root = tmp_path / "tree"
    repository(root)
    (root / ".git/index").write_bytes(data)

    assert worktree.find_working_tree(root.resolve()).tracked() == set()


def test_the_users_own_rules_count_and_those_of_the_repository_are_stronger(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = tmp_path / "someone"
    put(user, ".gitconfig", "[core]\n\texcludesFile = ~/mine\n")
    put(user, "mine", "*.swp\n*.tmp\n")
    monkeypatch.setenv("HOME", str(user))
    root = tmp_path / "tree"
    repository(root)
    put(root, ".git/info/exclude", "!*.tmp\nprivate\n")
    for name in ("a.swp", "a.tmp", "private"):
        put(root, name, "x")

    snapshot = undo.take(home, root, NOW)

    assert {one.path for one in snapshot.left_out} == {"a.swp", "private"}

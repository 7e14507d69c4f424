"""One project has one identity, wherever it is checked out, whatever it was called, in whatever order that is known."""

from __future__ import annotations

import shutil
from itertools import permutations
from pathlib import Path

import pygit2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.projects import identity
from commonplace.projects.identity import DirectoryIdentity, Repositories, identify, look
from commonplace.projects.repository_files import origin_url
from commonplace.projects.scope import FolderIdentity, ProjectMap, excluded, settle

GITHUB = "github.com/owner/name"


def make(path: Path, url: str | None = None, *, commits: int = 0, bare: bool = False) -> pygit2.Repository:
    made = pygit2.init_repository(str(path), bare=bare)
    if url is not None:
        made.remotes.create("origin", url)
    for number in range(commits):
        commit(made, f"commit {number}")
    return made


def commit(made: pygit2.Repository, text: str) -> str:
    who = pygit2.Signature("Ann", "ann@example.org", 1_700_000_000, 0)
    parents = [] if made.head_is_unborn else [made.head.target]
    return str(made.create_commit("HEAD", who, who, text, made.TreeBuilder().write(), parents))


def root_of(made: pygit2.Repository) -> str:
    return [str(found.id) for found in made.walk(made.head.target)][-1]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return tmp_path / "repo"


class TestOnDisk:
    def test_the_remote_origin_is_the_identity(self, repo: Path) -> None:
        make(repo, "git@github.com:Owner/Name.git")

        assert GITHUB == identify(repo)

    def test_a_folder_inside_belongs_to_the_repository(self, repo: Path) -> None:
        make(repo, "https://github.com/owner/name")
        (repo / "src" / "deep").mkdir(parents=True)

        assert GITHUB == identify(repo / "src" / "deep")

    def test_no_other_remote_counts(self, repo: Path) -> None:
        made = make(repo, commits=1)
        made.remotes.create("upstream", "git@github.com:owner/name.git")

        assert root_of(made) == identify(repo)

    @pytest.mark.parametrize("url", ["/srv/git/name.git", "file:///srv/git/name.git", "../name"])
    def test_a_remote_on_this_machine_is_none_and_the_first_commit_counts(self, repo: Path, url: str) -> None:
        made = make(repo, url, commits=3)

        assert root_of(made) == identify(repo)

    def test_clones_without_a_remote_share_their_first_commit(self, repo: Path, tmp_path: Path) -> None:
        made = make(repo, commits=2)
        shutil.copytree(repo, tmp_path / "copy")
        commit(made, "one more")

        assert identify(repo) == identify(tmp_path / "copy") == root_of(made)

    def test_a_merge_is_followed_to_its_first_parent(self, repo: Path) -> None:
        made = make(repo, commits=1)
        who = pygit2.Signature("Ann", "ann@example.org", 1_700_000_000, 0)
        tree = made.TreeBuilder().write()
        other = made.create_commit(None, who, who, "another root", tree, [])
        root = root_of(made)
        made.create_commit("HEAD", who, who, "merge", tree, [made.head.target, other])

        assert root == identify(repo)

    def test_an_unborn_or_shallow_history_tells_nothing(self, repo: Path, tmp_path: Path) -> None:
        make(repo)
        assert identify(repo) is None

        made = make(tmp_path / "shallow", commits=2)
        (tmp_path / "shallow" / ".git" / "shallow").write_text(f"{made.head.target}\n")
        assert identify(tmp_path / "shallow") is None

    def test_a_shallow_clone_is_known_by_its_remote(self, repo: Path) -> None:
        make(repo, "https://github.com/owner/name", commits=1)
        (repo / ".git" / "shallow").write_text("0" * 40 + "\n")

        assert GITHUB == identify(repo)

    def test_a_linked_working_tree_belongs_to_its_repository(self, repo: Path, tmp_path: Path) -> None:
        made = make(repo, "https://github.com/owner/name", commits=1)
        made.add_worktree("side", str(tmp_path / "side"))

        assert GITHUB == identify(tmp_path / "side")
        made.remotes.delete("origin")
        assert root_of(made) == identify(tmp_path / "side")

    def test_a_working_tree_whose_repository_is_gone_tells_nothing(self, repo: Path, tmp_path: Path) -> None:
        make(repo, "https://github.com/owner/name", commits=1).add_worktree("side", str(tmp_path / "side"))
        shutil.rmtree(repo)

        assert identify(tmp_path / "side") is None

    def test_a_submodule_is_a_repository_of_its_own(self, repo: Path) -> None:
        make(repo, "https://github.com/owner/outer")
        inner = make(repo / "lib", "https://github.com/owner/inner")
        modules = repo / ".git" / "modules" / "lib"
        shutil.move(inner.path, modules)
        (repo / "lib" / ".git").write_text("gitdir: ../.git/modules/lib\n")

        assert "github.com/owner/inner" == identify(repo / "lib")

    def test_a_repository_without_a_working_tree_is_its_own_folder(self, repo: Path) -> None:
        make(repo, "https://github.com/owner/name", bare=True)

        assert GITHUB == identify(repo)
        assert GITHUB == identify(repo / "objects")

    def test_links_are_followed(self, repo: Path, tmp_path: Path) -> None:
        make(repo, "https://github.com/owner/name")
        (tmp_path / "link").symlink_to(repo, target_is_directory=True)

        assert GITHUB == identify(tmp_path / "link")

    def test_a_home_that_is_a_repository_is_one(self, tmp_path: Path) -> None:
        make(tmp_path, "git@host:me/dotfiles.git")
        (tmp_path / "notes").mkdir()

        assert "host/me/dotfiles" == identify(tmp_path / "notes")

    @pytest.mark.parametrize("damage", ["HEAD", "objects", "empty", "nowhere", "nonsense"])
    def test_a_damaged_repository_tells_nothing(self, repo: Path, tmp_path: Path, damage: str) -> None:
        make(tmp_path, "https://github.com/owner/outer")
        make(repo, "https://github.com/owner/name")
        git = repo / ".git"
        if damage == "HEAD":
            (git / "HEAD").unlink()
        elif damage == "objects":
            shutil.rmtree(git / "objects")
        else:
            shutil.rmtree(git)
            git.write_text({"empty": "", "nowhere": "gitdir: /nowhere/at/all", "nonsense": "\0\0"}[damage])

        assert identify(repo) is None

    def test_objects_that_are_gone_are_no_error(self, repo: Path) -> None:
        make(repo, commits=2)
        for path in (repo / ".git" / "objects").iterdir():
            shutil.rmtree(path)

        assert identify(repo) is None

    def test_nothing_is_written(self, repo: Path) -> None:
        make(repo, commits=2)
        before = {path: path.stat().st_mtime_ns for path in repo.rglob("*")}

        assert identify(repo)

        assert before == {path: path.stat().st_mtime_ns for path in repo.rglob("*")}

    @pytest.mark.parametrize("cwd", ["", "relative", "/nowhere/at/all", "C:\\code", "/a\0b", "/etc/passwd"])
    def test_a_folder_that_is_not_there_is_gone(self, cwd: str) -> None:
        assert DirectoryIdentity(exists=False) == look(cwd)

    def test_each_folder_is_looked_at_once(self, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        make(repo, "https://github.com/owner/name")
        looked: list[str] = []

        def noted(cwd: str) -> DirectoryIdentity:
            looked.append(cwd)
            return look(cwd)

        monkeypatch.setattr(identity, "look", noted)
        repositories = Repositories()

        assert [DirectoryIdentity(exists=True, identity=GITHUB)] * 3 == [repositories(str(repo)) for _ in range(3)]
        assert [str(repo)] == looked


@pytest.mark.parametrize(
    ("config", "url"),
    [
        ('[remote "origin"]\n\turl = u\n\tfetch = x\n', "u"),
        ('[REMOTE "origin"]\nURL=u', "u"),
        ('[remote "Origin"]\nurl = u\n', None),
        ("[remote.origin]\nurl = u\n", "u"),
        ("[Remote.ORIGIN]\nurl = u\n", "u"),
        ('[remote "origin"] url = u\n', "u"),
        ('[remote "origin"]\nurl = u ; a comment\n', "u"),
        ('[remote "origin"]\nurl = u # a comment\n', "u"),
        ('[remote "origin"]\n# url = x\n; url = y\nurl = u\n', "u"),
        ('[remote "origin"]\nurl = "u ; v"\n', "u ; v"),
        ('[remote "origin"]\nurl = a"b c"d\n', "ab cd"),
        ('[remote "origin"]\nurl = "a\\"b\\\\c"\n', 'a"b\\c'),
        ('[remote "origin"]\nurl = git@\\\nhost:a/b\n', "git@host:a/b"),
        ('[remote "origin"]\r\nurl = u\r\n', "u"),
        ('\ufeff[remote "origin"]\nurl = u\n', "u"),
        ('[remote "origin"]\nurl = u\nurl = v\n', "u"),
        ('[remote "origin"]\nurl = u\nurl =\nurl = v\n', "v"),
        ('[remote "origin"]\nurl = u\n[core]\nbare = false\n[remote "origin"]\npushurl = v\n', "u"),
        ('[remote "upstream"]\nurl = u\n', None),
        ('[branch "origin"]\nurl = u\n', None),
        ('[url "x"]\ninsteadOf = y\n[remote "origin"]\nfetch = +refs/*\n', None),
        ('[remote "origin"\nurl = u\n', None),
        ("url = u\n", None),
        ("", None),
        ("\0\0\0", None),
        ('[remote "o\\rigin"]\nurl = u\n', "u"),
    ],
)
def test_a_configuration_is_read_as_git_reads_it(config: str, url: str | None) -> None:
    assert url == origin_url(config)


@given(st.text(st.sampled_from('[]"\\\n\t =#;remotoriginul'), max_size=60))
def test_no_configuration_is_an_error(config: str) -> None:
    origin_url(config)


def disk(**places: DirectoryIdentity) -> dict[str, DirectoryIdentity]:
    return places


def settled(
    rows: list[FolderIdentity], places: dict[str, DirectoryIdentity] | None = None, *, broad: tuple[str, ...] = ("/",)
) -> ProjectMap:
    def resolve(cwd: str) -> DirectoryIdentity:
        return (places or {}).get(cwd, DirectoryIdentity(exists=False))

    results = [settle(order, resolve, broad=broad) for order in (list(permutations(rows)) if len(rows) < 6 else [rows])]
    assert all(result == results[0] for result in results), "the order of what is known must not matter"
    return results[0]


HERE = DirectoryIdentity(exists=True, identity="h/a/here")
PLAIN = DirectoryIdentity(exists=True)


@pytest.mark.parametrize(
    ("rows", "places", "projects"),
    [
        pytest.param([FolderIdentity("/r")], {"/r": HERE}, {"/r": "h/a/here"}, id="the disk says it"),
        pytest.param([FolderIdentity("/r", "h/a/here", 9)], {"/r": HERE}, {"/r": "h/a/here"}, id="both say it"),
        pytest.param([FolderIdentity("/r", "h/a/noted", 9)], {}, {"/r": "h/a/noted"}, id="gone, but a thread noted it"),
        pytest.param(
            [FolderIdentity("/r"), FolderIdentity("/r", "h/a/noted", 1)],
            {},
            {"/r": "h/a/noted"},
            id="gone, another thread noted it",
        ),
        pytest.param([FolderIdentity("/r")], {}, {"/r": "/r"}, id="gone, and nobody noted it"),
        pytest.param([FolderIdentity("/r")], {"/r": PLAIN}, {"/r": "/r"}, id="a folder that is no repository"),
        pytest.param(
            [FolderIdentity("/r", "h/a/noted", 1)], {"/r": PLAIN}, {"/r": "h/a/noted"}, id="it was a repository"
        ),
        pytest.param(
            [FolderIdentity("/r", "h/a/old", 1), FolderIdentity("/r", "h/b/new", 2)],
            {},
            {"/r": "h/b/new"},
            id="the newest note counts",
        ),
        pytest.param(
            [FolderIdentity("/r", "h/b/x", 1), FolderIdentity("/r", "h/a/y", 1)],
            {},
            {"/r": "h/b/x"},
            id="at one time, any but always the same",
        ),
        pytest.param(
            [FolderIdentity("/r/s"), FolderIdentity("/r", "h/a/n", 1)],
            {},
            {"/r/s": "h/a/n", "/r": "h/a/n"},
            id="gone inside of gone",
        ),
        pytest.param(
            [FolderIdentity("/r/s/t"), FolderIdentity("/r", "h/a/n", 1), FolderIdentity("/r/s", "h/a/m", 1)],
            {},
            {"/r/s/t": "h/a/m", "/r": "h/a/n", "/r/s": "h/a/m"},
            id="the nearest folder above counts",
        ),
        pytest.param(
            [FolderIdentity("/r/s"), FolderIdentity("/r")],
            {"/r": HERE},
            {"/r/s": "h/a/here", "/r": "h/a/here"},
            id="gone inside of what is there",
        ),
        pytest.param(
            [FolderIdentity("/r/s"), FolderIdentity("/r", "h/a/n", 1)],
            {"/r/s": PLAIN},
            {"/r/s": "/r/s", "/r": "h/a/n"},
            id="what is there is not taken for a part of what is gone",
        ),
        pytest.param(
            [FolderIdentity("/rest"), FolderIdentity("/r", "h/a/n", 1)],
            {},
            {"/rest": "/rest", "/r": "h/a/n"},
            id="a name that begins alike is not inside",
        ),
        pytest.param(
            [FolderIdentity("/r/s"), FolderIdentity("/", "h/a/n", 1)],
            {},
            {"/r/s": "/r/s", "/": "h/a/n"},
            id="the root is above everything",
        ),
        pytest.param(
            [FolderIdentity("/home/me/p"), FolderIdentity("/home/me", "h/me/dot", 1)],
            {},
            {"/home/me/p": "/home/me/p", "/home/me": "h/me/dot"},
            id="a home is above everything",
        ),
        pytest.param([FolderIdentity("")], {}, {"": ""}, id="a thread without a folder"),
        pytest.param(
            [FolderIdentity("rel/x"), FolderIdentity("rel", "h/a/n", 1)],
            {},
            {"rel/x": "rel/x", "rel": "h/a/n"},
            id="a folder that is no path",
        ),
        pytest.param([], {}, {}, id="nothing"),
    ],
)
def test_a_working_directory_belongs_to_what_is_known_of_it(
    rows: list[FolderIdentity], places: dict[str, DirectoryIdentity], projects: dict[str, str]
) -> None:
    assert projects == settled(rows, places, broad=("/", "/home/me/")).projects


COMMIT = "ab" * 20


@pytest.mark.parametrize(
    ("rows", "places", "aliases"),
    [
        pytest.param(
            [FolderIdentity("/r", "h/old/n", 1), FolderIdentity("/r", "h/new/n", 2)],
            {},
            {"h/old/n": "h/new/n"},
            id="moved to another owner",
        ),
        pytest.param(
            [FolderIdentity("/r", "h/o/old", 1), FolderIdentity("/r", "h/o/new", 2)],
            {},
            {"h/o/old": "h/o/new"},
            id="renamed",
        ),
        pytest.param(
            [FolderIdentity("/r", "g/o/n", 1), FolderIdentity("/r", "h/o/n", 2)],
            {},
            {"g/o/n": "h/o/n"},
            id="moved to another host",
        ),
        pytest.param(
            [FolderIdentity("/r", "h/old/n", 1)],
            {"/r": DirectoryIdentity(exists=True, identity="h/new/n")},
            {"h/old/n": "h/new/n"},
            id="the disk knows the new name",
        ),
        pytest.param(
            [FolderIdentity("/r", COMMIT, 1), FolderIdentity("/r", "h/o/n", 2)],
            {},
            {COMMIT: "h/o/n"},
            id="got a remote",
        ),
        pytest.param([FolderIdentity("/r", COMMIT, 1), FolderIdentity("/r", "cd" * 20, 2)], {}, {}, id="began anew"),
        pytest.param(
            [FolderIdentity("/w", "h/django/django", 1), FolderIdentity("/w", "h/astropy/astropy", 2)],
            {},
            {},
            id="unrelated ones took turns",
        ),
        pytest.param(
            [FolderIdentity("/w", "h/a/n", 1), FolderIdentity("/w", "h/b/n", 2), FolderIdentity("/w", "h/a/n", 3)],
            {},
            {},
            id="the old one came back",
        ),
        pytest.param(
            [
                FolderIdentity("/w", "h/o/one", 1),
                FolderIdentity("/w", "h/o/two", 2),
                FolderIdentity("/z", "h/o/one", 3),
            ],
            {},
            {},
            id="an owner's two, both in use",
        ),
        pytest.param(
            [
                FolderIdentity("/w", "h/old/n", 1),
                FolderIdentity("/w", "h/new/n", 2),
                FolderIdentity("/z", "h/old/n", 3),
            ],
            {},
            {"h/old/n": "h/new/n"},
            id="a clone that kept the old address",
        ),
        pytest.param(
            [
                FolderIdentity("/r", "h/a/n", 1),
                FolderIdentity("/r", "h/b/n", 2),
                FolderIdentity("/s", "h/b/n", 3),
                FolderIdentity("/s", "h/c/n", 4),
            ],
            {},
            {"h/a/n": "h/c/n", "h/b/n": "h/c/n"},
            id="moved twice",
        ),
        pytest.param(
            [
                FolderIdentity("/r", "h/a/n", 1),
                FolderIdentity("/r", "h/b/n", 2),
                FolderIdentity("/s", "h/b/n", 1),
                FolderIdentity("/s", "h/a/n", 2),
            ],
            {},
            {"h/a/n": "h/b/n"},
            id="a circle",
        ),
        pytest.param([FolderIdentity("/r", "h/a/n", 1), FolderIdentity("/r", "h/b/n", 1)], {}, {}, id="at one time"),
        pytest.param(
            [FolderIdentity("/r", "h/a/n", 1), FolderIdentity("/s", "h/b/n", 2)], {}, {}, id="never in one folder"
        ),
    ],
)
def test_an_older_identity_is_an_alias_of_the_newer_in_the_same_folder(
    rows: list[FolderIdentity], places: dict[str, DirectoryIdentity], aliases: dict[str, str]
) -> None:
    found = settled(rows, places)

    assert aliases == found.aliases
    assert not set(found.projects.values()) & set(found.aliases)


def test_a_thread_elsewhere_follows_the_alias_of_what_it_noted() -> None:
    found = settled(
        [FolderIdentity("/r", "h/old/n", 1), FolderIdentity("/r", "h/new/n", 2), FolderIdentity("/z", "h/old/n", 1)]
    )

    assert {"/r": "h/new/n", "/z": "h/new/n"} == found.projects
    assert ("h/new/n", "h/new/n", "/q") == (found.project("/q", "h/old/n"), found.project("/z"), found.project("/q"))


IDENTITIES = st.sampled_from([None, "h/a/n", "h/b/n", "h/a/m", "g/a/n", COMMIT])
FOLDERS = st.sampled_from(["/", "/r", "/r/s", "/r/s/t", "/q", ""])


@given(
    rows=st.lists(st.builds(FolderIdentity, FOLDERS, IDENTITIES, st.integers(0, 5)), max_size=12),
    places=st.dictionaries(
        FOLDERS,
        st.builds(DirectoryIdentity, st.booleans(), st.none())
        | st.builds(DirectoryIdentity, st.just(True), IDENTITIES),
    ),
    shuffle=st.randoms(use_true_random=False),
)
def test_what_is_settled_does_not_depend_on_the_order_of_arrival(
    rows: list[FolderIdentity], places: dict[str, DirectoryIdentity], shuffle: object
) -> None:
    def resolve(cwd: str) -> DirectoryIdentity:
        return places.get(cwd, DirectoryIdentity(exists=False))

    first = settle(rows, resolve)
    other = list(rows) + rows[:2]
    shuffle.shuffle(other)  # type: ignore[attr-defined]

    assert first == settle(other, resolve)
    assert {row.cwd for row in rows} == set(first.projects)
    assert not set(first.aliases.values()) & set(first.aliases)


@pytest.mark.parametrize(
    ("pattern", "out"),
    [
        ("gemini", True),
        ("gem", False),
        ("codex", False),
        ("github.com/acme/secret", True),
        ("GitHub.com/Acme/Secret", True),
        ("github.com/acme/secret/", True),
        ("github.com/acme/*", True),
        ("*/secret", True),
        ("github.com/acme/sec", False),
        ("github.com/acme/secre?", False),
        ("git@github.com:acme/secret.git", True),
        ("https://github.com/acme/secret", True),
        ("/srv/acme", True),
        ("/srv/acme/", True),
        ("/srv/acme/secret", True),
        ("/srv/ac", False),
        ("/srv/*/secret", True),
        ("/srv/*", True),
        ("/other/*", False),
        ("~/.gemini", True),
        ("~/.gemini/tmp/x", True),
        ("~", True),
        ("~/.codex", False),
        ("/", True),
        ("", False),
        ("  ", False),
        (" gemini ", True),
    ],
)
def test_what_is_excluded_is_named_by_source_project_or_path(
    pattern: str, out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")

    assert out == excluded(
        [pattern],
        source="gemini",
        project="github.com/acme/secret",
        cwd="/srv/acme/secret",
        path="/home/me/.gemini/tmp/x/chats/session-1.jsonl",
    )


def test_a_project_that_is_only_a_path_is_excluded_by_it() -> None:
    assert excluded(["/srv/plain"], source="codex", project="/srv/plain", cwd="", path="")
    assert not excluded(["/srv/plain"], source="codex", project="/srv/plainer", cwd="", path="")
    assert not excluded([], source="codex", project="x", cwd="/", path="/")

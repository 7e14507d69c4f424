"""Which folders are one project: little worlds, a person's decisions, and the same result in every order."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.projects.evidence import FolderEvidence
from commonplace.projects.paths import file_key
from commonplace.projects.union import ProjectDecisions, ProjectGroup, SessionFolder, unite

TEA, MILK = "github.com/ann/tea", "github.com/ann/milk"
COMMITS = ["1a2b3c4", "2b3c4d5", "3c4d5e6", "4d5e6f7"]
Groups = set[frozenset[str]]


def files(*names: str) -> list[str]:
    found = [file_key(name) for name in names]
    return sorted(key for key in found if key is not None)


KETTLE = files(*(f"internal/kettle/{name}_valve.go" for name in "abcdefghij"))


def ev(
    folder: str,
    *,
    own: dict[str, int] | None = None,
    said: dict[str, int] | None = None,
    git: bool = True,
    modules: tuple[str, ...] = (),
    commits: list[str] | None = None,
    branches: tuple[str, ...] = (),
    paths: list[str] | None = None,
    moved: tuple[FolderEvidence, ...] = (),
) -> FolderEvidence:
    return FolderEvidence(
        folder, git, own or {}, said or {}, list(modules), commits or [], list(branches), paths or [], list(moved)
    )


def sessions(*evidence: FolderEvidence) -> list[SessionFolder]:
    return [SessionFolder(f"s{place}", each) for place, each in enumerate(evidence)]


def folders(groups: list[ProjectGroup]) -> Groups:
    return {frozenset(folder for folder, _ in group.folders) for group in groups}


def expected(*groups: str) -> Groups:
    return {frozenset(group.split()) for group in groups}


WORLDS = {
    "a monorepo: folders inside a checkout belong to it": (
        [ev("/c/mono", own={TEA: 5}), ev("/c/mono/packages/ui"), ev("/c/mono/packages/api", git=False)],
        expected("/c/mono /c/mono/packages/ui /c/mono/packages/api"),
    ),
    "a folder of repositories that is not in git joins nothing": (
        [ev("/c/all", git=False), ev("/c/all/tea"), ev("/c/all/milk")],
        expected("/c/all", "/c/all/tea", "/c/all/milk"),
    ),
    "a repository of repositories: those with an address of their own stay apart": (
        [ev("/c/env", own={"github.com/ann/env": 5}), ev("/c/env/tea", own={TEA: 3}), ev("/c/env/milk", own={MILK: 3})],
        expected("/c/env", "/c/env/tea", "/c/env/milk"),
    ),
    "a clone inside of another checkout belongs to its own repository": (
        [ev("/c/tea", own={TEA: 5}), ev("/c/tea/vendor-src/milk", own={MILK: 5}), ev("/d/milk", own={MILK: 3})],
        expected("/c/tea", "/c/tea/vendor-src/milk /d/milk"),
    ),
    "a fork with its upstream in one folder meets a checkout of the upstream": (
        [ev("/c/tea", own={"github.com/bob/tea": 5, TEA: 2}), ev("/d/leaves", own={TEA: 5})],
        expected("/c/tea /d/leaves"),
    ),
    "a fork of the same name with the same commits is the same project": (
        [
            ev("/c/tea", own={"github.com/bob/tea": 5}, commits=COMMITS),
            ev("/d/leaves", own={TEA: 5}, commits=COMMITS[:3]),
        ],
        expected("/c/tea /d/leaves"),
    ),
    "a hard fork under another name is another project, whatever it shares": (
        [
            ev("/c/tea", own={TEA: 5}, commits=COMMITS, paths=KETTLE),
            ev("/c/coffee", own={"github.com/bob/coffee": 5}, commits=COMMITS, paths=KETTLE),
        ],
        expected("/c/tea", "/c/coffee"),
    ),
    "a repository that is only mentioned is not the folder's own": (
        [ev("/c/tea", own={TEA: 5}), ev("/c/notes", said={TEA: 9})],
        expected("/c/tea", "/c/notes"),
    ),
    "a folder that knows its own address stays what it is, however much it mentions another": (
        [
            ev("/c/tea", own={TEA: 5}, modules=("go:github.com/ann/tea",)),
            ev("/c/milk", own={MILK: 1}, said={TEA: 40}, modules=("go:github.com/ann/tea",)),
        ],
        expected("/c/tea", "/c/milk"),
    ),
    "two projects that began with the same starter stay apart": (
        [
            ev(
                f"/c/{name}/my-app",
                modules=("npm:vite-react-starter",),
                paths=files("src/components/button.tsx", "src/app/layout.tsx", ".github/workflows/deploy.yml"),
            )
            for name in ("one", "two")
        ],
        expected("/c/one/my-app", "/c/two/my-app"),
    ),
    "everyday branch names join nothing": (
        [ev("/c/tea", branches=("update-readme",)), ev("/c/milk", branches=("update-readme",))],
        expected("/c/tea", "/c/milk"),
    ),
    "workspaces of a program belong to the checkout of that name": (
        [
            ev("/home/ann/code/teapot", paths=KETTLE),
            ev("/home/ann/conductor/workspaces/teapot/lisbon", paths=KETTLE[:1]),
            ev("/home/ann/conductor/workspaces/teapot/oslo", paths=KETTLE[1:2]),
            ev("/home/ann/conductor/workspaces/kettle/oslo"),
        ],
        expected(
            "/home/ann/code/teapot /home/ann/conductor/workspaces/teapot/lisbon"
            " /home/ann/conductor/workspaces/teapot/oslo",
            "/home/ann/conductor/workspaces/kettle/oslo",
        ),
    ),
    "worktrees beside their checkout belong to it, and to each other where it is unknown": (
        [
            ev("/c/tea"),
            ev("/c/tea-wt-steam"),
            ev("/c/tea.worktrees/lid"),
            ev("/c/milk__worktrees/a"),
            ev("/c/milk__worktrees/b"),
            ev("/c/sugar/.claude/worktrees/x"),
        ],
        expected(
            "/c/tea /c/tea-wt-steam /c/tea.worktrees/lid",
            "/c/milk__worktrees/a /c/milk__worktrees/b",
            "/c/sugar/.claude/worktrees/x",
        ),
    ),
    "one name and two owners are two projects": (
        [
            ev("/c/ann/tea", own={TEA: 3}, branches=("new-kettle-lid",)),
            ev("/c/bob/tea", own={"github.com/bob/tea": 3}, branches=("new-kettle-lid",)),
        ],
        expected("/c/ann/tea", "/c/bob/tea"),
    ),
}


@pytest.mark.parametrize(("evidence", "wanted"), WORLDS.values(), ids=WORLDS)
def test_a_little_world(evidence: list[FolderEvidence], wanted: Groups) -> None:
    assert wanted == folders(unite(sessions(*evidence)))


PAIRS = {
    "three commits": ({"commits": COMMITS[:3]}, True),
    "two commits": ({"commits": COMMITS[:2]}, False),
    "eight files": ({"paths": KETTLE[:8]}, True),
    "seven files": ({"paths": KETTLE[:7]}, False),
    "a module of go alone": ({"modules": ("go:github.com/ann/tea",)}, False),
    "a module of go and a commit": ({"modules": ("go:github.com/ann/tea",), "commits": COMMITS[:1]}, True),
    "two branches": ({"branches": ("lid-on-kettle", "steam-valve-two")}, True),
    "one long branch and a file": ({"branches": ("ann/put-a-lid-on-it",), "paths": KETTLE[:1]}, True),
    "one long branch": ({"branches": ("ann/put-a-lid-on-it",)}, False),
    "a name of one word": ({"modules": ("npm:teapot",), "paths": KETTLE[:7]}, False),
    "a name of two words": ({"modules": ("npm:tea-pot",), "paths": KETTLE[:7]}, True),
}


@pytest.mark.parametrize(("shared", "joined"), PAIRS.values(), ids=PAIRS)
def test_two_nameless_folders_are_one_if_they_share_enough(shared: dict[str, object], joined: bool) -> None:
    given = [ev("/x/1/1", **shared), ev("/x/2/2", **shared)]  # pyright: ignore[reportArgumentType]

    assert (1 if joined else 2) == len(unite(sessions(*given)))


def test_a_mention_and_the_end_of_the_path_are_enough_for_a_folder_without_an_address() -> None:
    groups = unite(sessions(ev("/c/x", own={TEA: 5}), ev("/src/ann/tea", said={TEA: 3})))

    assert expected("/c/x /src/ann/tea") == folders(groups)


def test_evidence_is_pooled_and_compared_again() -> None:
    """The third folder shares too little with each of the others, and enough with both together."""
    one = ev("/x/1/1", commits=COMMITS[:3], branches=("lid-on-kettle",))
    two = ev("/x/2/2", commits=COMMITS[:3], paths=KETTLE[:3])
    third = ev("/x/3/3", branches=("lid-on-kettle",), paths=KETTLE[:3])

    assert 2 == len(unite(sessions(one, third)))
    assert 2 == len(unite(sessions(two, third)))
    assert 1 == len(unite(sessions(one, two, third)))


def test_a_session_that_moves_counts_for_both_folders() -> None:
    there = ev("/d/copy", paths=KETTLE[:3])
    groups = unite(sessions(ev("/c/tea", paths=KETTLE[:5], moved=(there,)), ev("/d/copy")))

    assert expected("/c/tea /d/copy") == folders(groups)


def test_unrelated_repositories_that_take_turns_in_a_folder_stay_apart() -> None:
    given = [
        SessionFolder("a", ev("/workspace", own={TEA: 3}), TEA),
        SessionFolder("b", ev("/workspace", own={MILK: 3}), MILK),
        SessionFolder("c", ev("/d/milk"), MILK),
    ]

    assert {TEA: ("a",), MILK: ("b", "c")} == {group.project: group.sessions for group in unite(given)}


def test_repositories_with_different_first_commits_stay_apart() -> None:
    given = [
        SessionFolder("a", ev("/c/a", paths=KETTLE), "a" * 39 + "1"),
        SessionFolder("b", ev("/c/b", paths=KETTLE), "b" * 39 + "2"),
        SessionFolder("c", ev("/d/c"), "b" * 39 + "2"),
    ]

    assert expected("/c/a", "/c/b /d/c") == folders(unite(given))


TITLES = [
    ([ev("/c/x", own={TEA: 3}), ev("/d/y", own={TEA: 5, MILK: 2})], TEA, "tea"),
    ([ev("/c/tea/.worktrees/1"), ev("/c/tea/.worktrees/2")], "/c/tea", "tea"),
    ([ev("/c/tea/.worktrees/1")], "/c/tea/.worktrees/1", "tea"),
    ([ev("/c/tea/2")], "/c/tea/2", "tea"),
    ([ev("/c/3", commits=COMMITS), ev("/long/way/to/tea", commits=COMMITS)], "/long/way/to/tea", "tea"),
]


@pytest.mark.parametrize(("evidence", "project", "title"), TITLES)
def test_a_project_has_its_strongest_address_or_its_shortest_checkout_as_identity(
    evidence: list[FolderEvidence], project: str, title: str
) -> None:
    assert [(project, title)] == [(group.project, group.title) for group in unite(sessions(*evidence))]


class TestDecisions:
    def test_a_merge_joins_what_evidence_keeps_apart_under_the_first_name(self) -> None:
        given = sessions(ev("/c/tea", own={TEA: 3}), ev("/c/milk", own={MILK: 50}), ev("/d/milk", own={MILK: 3}))
        groups = unite(given, ProjectDecisions(merges=((TEA, MILK),)))

        assert [(TEA, ("s0", "s1", "s2"))] == [(group.project, group.sessions) for group in groups]
        assert f"You merged {MILK} into {TEA}." in groups[0].why

    def test_folders_can_be_merged_by_their_paths(self) -> None:
        groups = unite(sessions(ev("/c/tea"), ev("/c/milk")), ProjectDecisions(merges=(("/c/milk", "/c/tea"),)))

        assert ["/c/milk"] == [group.project for group in groups]

    def test_a_split_takes_a_folder_out_with_everything_below_it(self) -> None:
        given = sessions(ev("/c/mono", own={TEA: 5}), ev("/c/mono/ui"), ev("/c/mono/ui/icons"), ev("/c/mono/api"))
        groups = unite(given, ProjectDecisions(splits=("/c/mono/ui",)))

        assert {TEA: ("s0", "s3"), "/c/mono/ui": ("s1", "s2")} == {group.project: group.sessions for group in groups}

    def test_a_clone_that_is_split_off_is_known_by_its_path(self) -> None:
        given = sessions(ev("/c/tea", own={TEA: 5}), ev("/d/tea", own={TEA: 5}))
        groups = unite(given, ProjectDecisions(splits=("/d/tea",)))

        assert {TEA: (TEA,), "/d/tea": ()} == {group.project: group.addresses for group in groups}

    def test_names_that_nothing_has_change_nothing(self) -> None:
        given = sessions(ev("/c/tea"), ev("/c/milk"))
        decided = ProjectDecisions(merges=(("/gone", "/c/tea"), ("/c/tea", "x")), splits=("/nowhere",))

        assert folders(unite(given)) == folders(unite(given, decided))


ALL = [
    SessionFolder(f"s{place:03}", msgspec.structs.replace(each, folder=each.folder.replace("/c/", f"/{world}/")))
    for place, (world, each) in enumerate(
        (world, each) for world, (evidence, _) in enumerate(WORLDS.values()) for each in evidence
    )
]


@given(st.permutations(ALL))
def test_the_result_does_not_depend_on_the_order(shuffled: list[SessionFolder]) -> None:
    assert unite(ALL) == unite(shuffled)


NAMES = st.sampled_from(["/a", "/a/b", "/a/.worktrees/1", "/c/tea", "/d/tea", "/e/2", "/src/ann/tea"])
EVIDENCE = st.builds(
    ev,
    NAMES,
    own=st.dictionaries(st.sampled_from([TEA, MILK, "github.com/bob/tea"]), st.integers(1, 9), max_size=2),
    said=st.dictionaries(st.sampled_from([TEA, MILK]), st.integers(1, 4), max_size=2),
    git=st.booleans(),
    modules=st.sampled_from([(), ("go:x.io/tea",), ("npm:tea",)]),
    commits=st.lists(st.sampled_from(COMMITS), unique=True),
    branches=st.sampled_from([(), ("lid-on-kettle",)]),
    paths=st.lists(st.sampled_from(KETTLE), unique=True),
)


@given(st.lists(EVIDENCE, max_size=12), st.randoms())
def test_any_sessions_are_divided_in_the_same_way_in_every_order(
    evidence: list[FolderEvidence], random: object
) -> None:
    given = sessions(*evidence)
    shuffled = list(given)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    groups = unite(given)

    assert groups == unite(shuffled)
    assert sorted(each.session for each in given) == sorted(name for group in groups for name in group.sessions)

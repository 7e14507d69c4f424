"""What a session tells about the project of its folder: addresses, modules, commits, branches, files."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.projects import addresses, evidence, paths
from commonplace.projects.evidence import MAX_COMMITS, MAX_FILES, CallTrace, FolderEvidence, SessionTrace, evidence_of

HERE = "/c/tea"
TEA, MILK = "github.com/ann/tea", "github.com/ann/milk"
REMOTES = (
    "origin\tgit@github.com:Ann/Tea.git (fetch)\norigin\tgit@github.com:Ann/Tea.git (push)\n"
    "upstream\thttps://github.com/tea-house/tea (fetch)\nupstream\thttps://github.com/tea-house/tea (push)\n"
)
PUSHED = "To github.com:ann/tea.git\n   1a2b3c4..2b3c4d5  lid -> lid\n"


def told(*calls: CallTrace, **start: str) -> FolderEvidence:
    return evidence_of(SessionTrace(HERE, calls=calls, **start))


def ran(command: str, output: str = "", folder: str = HERE) -> FolderEvidence:
    return told(CallTrace(folder, command, (), output))


OWN = {
    "the remote origin": ("git remote -v", REMOTES, {TEA: 5, "github.com/tea-house/tea": 2}),
    "the address of origin": ("git remote get-url origin", "https://github.com/ann/tea.git\n", {TEA: 5}),
    "the address in the settings": ("git config --get remote.origin.url", "ssh://git@github.com/ann/tea\n", {TEA: 5}),
    "a push": ("git push -u origin lid", PUSHED, {TEA: 3}),
    "a fetch": ("git --no-pager fetch", "From https://github.com/ann/tea\n * branch main -> FETCH_HEAD\n", {TEA: 3}),
    "a new pull request": ("gh pr create --fill", "https://github.com/ann/tea/pull/12\n", {TEA: 1}),
    "after cd to the folder itself": (f"cd {HERE} && git remote -v", REMOTES.splitlines()[0], {TEA: 5}),
}


@pytest.mark.parametrize(("command", "output", "own"), OWN.values(), ids=OWN)
def test_an_address_is_the_folders_own(command: str, output: str, own: dict[str, int]) -> None:
    found = ran(command, output)

    assert (own, True) == (found.own, found.in_git)


SAID = {
    "in a folder below": ("cd lid && git remote -v", REMOTES.splitlines()[0]),
    "by git in a folder below": ("git -C lid remote -v", REMOTES.splitlines()[0]),
    "of a clone": ("git clone https://github.com/ann/tea", "https://github.com/ann/tea cloned"),
    "of a named repository": ("gh pr list -R ann/tea", "https://github.com/ann/tea/pull/12"),
    "of a page that the command names": (
        "gh pr view https://github.com/ann/tea/pull/1",
        "https://github.com/ann/tea/pull/1",
    ),
    "of the programming interface": ("gh api repos/ann/tea/pulls", "[]"),
    "of a page in any output": ("cat notes.md", "see https://github.com/Ann/tea/blob/main/README.md#lid."),
}


@pytest.mark.parametrize(("command", "output"), SAID.values(), ids=SAID)
def test_an_address_is_only_mentioned(command: str, output: str) -> None:
    found = ran(command, output)

    assert ({}, {TEA: 1}) == (found.own, found.said)


@pytest.mark.parametrize(
    "output", ["https://github.com/ann/tea/pull/1 https://github.com/ann/milk/pull/2", "https://github.com/ann/tea"]
)
def test_an_output_of_gh_with_several_repositories_or_without_a_page_tells_none(output: str) -> None:
    assert {} == ran("gh pr list", output).own


def test_the_repository_that_a_session_noted_is_its_own() -> None:
    found = told(repository_url="https://github.com/ann/tea.git", branch="put-a-lid-on", commit_hash="1a2b3c4d" * 5)

    assert ({TEA: 3}, ["put-a-lid-on"], ["1a2b3c4"]) == (found.own, found.branches, found.commits)


@pytest.mark.parametrize("name", ["main", "develop", "release/1.2", "v10.20.30", "fix-it", "production", "2026-11-16"])
def test_a_branch_of_every_project_tells_nothing(name: str) -> None:
    assert [] == told(branch=name).branches


def test_git_shows_commits_branches_and_files() -> None:
    output = (
        "On branch put-a-lid-on\ncommit 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567\nindex 1111aaa..2222bbb 100644\n"
        "diff --git a/internal/kettle/lid_valve.go b/internal/kettle/lid_valve.go\n 1234567 abcdefa\n"
    )
    found = ran("git log -p", output)

    assert (["0a1b2c3"], ["put-a-lid-on"]) == (found.commits, found.branches)
    assert [paths.file_key("internal/kettle/lid_valve.go")] == found.files
    assert FolderEvidence(HERE, said={}) == ran("cat log.txt", output)


MODULES = {
    "go test": (
        "go test ./...",
        (),
        "ok  \tgithub.com/ann/tea/lid\t0.2s\nFAIL\tgithub.com/ann/tea [build failed]",
        "go:github.com/ann/tea",
    ),
    "a host without owners": ("go test ./...", (), "?   \ttea.dev/pot/lid\t[no test files]", "go:tea.dev/pot"),
    "go.mod": ("cat go.mod", (), "module github.com/ann/tea/v2\n\ngo 1.24\n", "go:github.com/ann/tea"),
    "package.json": ("", ("/c/tea/package.json",), '     1\t{\n     2\t  "name": "@ann/Tea",', "npm:@ann/tea"),
    "pyproject.toml": ("", ("pyproject.toml",), '[project]\nname = "tea-pot"\n', "python:tea-pot"),
    "Cargo.toml": ("head Cargo.toml", (), '[package]\nname = "teapot"\n', "rust:teapot"),
}


@pytest.mark.parametrize(("command", "files", "output", "module"), MODULES.values(), ids=MODULES)
def test_a_module_is_shown_by(command: str, files: tuple[str, ...], output: str, module: str) -> None:
    assert [module] == told(CallTrace(HERE, command, files, output)).modules


def test_a_manifest_in_a_folder_below_does_not_name_the_project() -> None:
    shown = '{"name": "tea-lid"}'

    assert [] == told(CallTrace(HERE, "", ("/c/tea/lid/package.json",), shown)).modules
    assert [] == ran("cd lid && cat package.json", shown).modules


FILES = {
    "/c/tea/internal/kettle/lid_valve.go": "internal/kettle/lid_valve.go",
    "internal/kettle/lid_valve.go": "internal/kettle/lid_valve.go",
    "/c/tea/.worktrees/x/internal/kettle/lid_valve.go": "internal/kettle/lid_valve.go",
    "/c/milk/internal/kettle/lid_valve.go": None,
    "kettle/lid.go": None,
    "src/components/ui/button.tsx": None,
    "web/node_modules/kettle/lid_valve.js": None,
    ".github/workflows/kettle_valve.yml": None,
}


@pytest.mark.parametrize(("given", "seen"), FILES.items())
def test_a_file_tells_a_project_by_its_path(given: str, seen: str | None) -> None:
    assert ([paths.file_key(seen)] if seen else []) == told(CallTrace(HERE, "", (given,))).files


def test_a_session_that_moves_tells_about_both_folders() -> None:
    found = told(
        CallTrace(HERE), CallTrace("/d/milk", "git remote -v", (), "origin\thttps://github.com/ann/milk (fetch)")
    )

    assert ({}, [("/d/milk", {MILK: 5})]) == (found.own, [(each.folder, each.own) for each in found.moved])


@pytest.mark.parametrize("folder", ["/tmp", "/home/ann", "/"])
def test_a_folder_above_everything_is_no_place_to_move_to(folder: str) -> None:
    assert [] == told(CallTrace(folder, "git remote -v", (), REMOTES)).moved


def test_evidence_is_small_whatever_the_session() -> None:
    calls = [
        CallTrace(
            HERE,
            "git log",
            (f"internal/kettle/valve{number}_lid.go",),
            f"a{number:06}b1c2d3 https://github.com/o/n{number}",
        )
        for number in range(2_000)
    ]
    found = told(*calls)
    text = msgspec.json.encode(found)

    assert (MAX_FILES, MAX_COMMITS, evidence.MAX_NAMES) == (len(found.files), len(found.commits), len(found.said))
    assert len(text) < 8_000
    assert found == msgspec.json.decode(text, type=FolderEvidence)


WORKTREES = {
    "/c/tea/.worktrees/ann/lid": "/c/tea",
    "/c/tea/.claude/worktrees/lid": "/c/tea",
    "/c/tea__worktrees/lid": "/c/tea",
    "/c/tea-worktrees/lid": "/c/tea",
    "/c/tea.worktree/lid": "/c/tea",
    "/c/worktrees/lid": "/c",
    "/c/tea/.trees/lid": "/c/tea",
    "/c/tea.wt/lid": "/c/tea",
    "/c/tea-wt-lid": "/c/tea",
    "/c/tea-worktree-lid.2": "/c/tea",
    "/home/ann/worktrees/lid": None,
    "/home/ann/.codex/worktrees/ab12/tea": None,
    "/c/tea": None,
    "/c/.worktrees": None,
}


@pytest.mark.parametrize(("folder", "main"), WORKTREES.items())
def test_the_path_of_a_worktree_names_its_main_checkout(folder: str, main: str | None) -> None:
    assert main == paths.main_checkout(folder)


WORKSPACES = {
    "/home/ann/conductor/workspaces/teapot/oslo": "teapot",
    "/home/ann/.conductor/teapot/oslo": "teapot",
    "/home/ann/.codex/worktrees/ab12/teapot": "teapot",
    "/home/ann/.cursor/worktrees/teapot/x1": "teapot",
    "/var/tmp/vibe-kanban/worktrees/1-lid/teapot": "teapot",
    "/home/ann/.superset/worktrees/teapot/lid": "teapot",
    "/home/ann/.codex/worktrees/ab12/app": None,
    "/c/teapot": None,
}


@pytest.mark.parametrize(("folder", "name"), WORKSPACES.items())
def test_the_path_of_a_workspace_names_its_project(folder: str, name: str | None) -> None:
    assert name == paths.workspace_name(folder)


def test_addresses_of_pages_are_those_of_their_repositories() -> None:
    text = (
        "https://gitlab.com/a/b/c/-/merge_requests/1 https://github.com/orgs/ann https://docs.github.com/en/rest "
        "https://api.github.com/repos/ann/tea/pulls git@bitbucket.org:ann/milk.git https://example.com/a/b"
    )

    assert {"gitlab.com/a/b/c", TEA, "bitbucket.org/ann/milk"} == addresses.mentioned(text)


CALLS = st.builds(
    CallTrace, st.text(max_size=20), st.text(max_size=60), st.tuples(st.text(max_size=30)), st.text(max_size=80)
)


@given(st.text(max_size=30), st.lists(CALLS, max_size=4))
def test_any_session_gives_evidence(folder: str, calls: list[CallTrace]) -> None:
    found = evidence_of(SessionTrace(folder, folder, folder, folder, calls))

    assert found == msgspec.json.decode(msgspec.json.encode(found), type=FolderEvidence)

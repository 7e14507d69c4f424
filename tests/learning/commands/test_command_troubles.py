"""Troubles are told with what cured them, and without a cure only where that is worth a line."""

from __future__ import annotations

import pytest
from command_views import known_project, project, stored, used

from commonplace.learning.commands.choose import choose
from commonplace.learning.commands.lines import CommandLine
from commonplace.learning.commands.runs import SessionRuns
from commonplace.learning.reading.session_view import EventSpan, ToolUse

UNTRUSTED = "mise ERROR Config files in ~/shop/mise.toml are not trusted."
NO_SUM = "cart.go:4:2: missing go.sum entry for module providing package x"
NO_MODULE = "ModuleNotFoundError: No module named 'shop'"
NOT_FOUND = "bash: line 1: golangci-lint: command not found"
CHECKED_OUT = "fatal: 'main' is already used by worktree at '/home/ada/shop'"
LOCKED = "fatal: Unable to create '/home/ada/shop/.git/index.lock': File exists."
EDIT = ToolUse(EventSpan(0, 0, 0), "apply_patch", "*** Begin Patch\n*** Update File: a.go\n+x\n*** End Patch", ok=True)
IN_USE = "Error: listen EADDRINUSE: address already in use :::3000"

Calls = tuple[ToolUse | str, ...]


def lines_of(*sessions: tuple[ToolUse | str, ...]) -> list[CommandLine]:
    return [line for line in choose(project(*sessions), []) if line.kind in ("fix", "failure")]


@pytest.mark.parametrize(
    ("calls", "text"),
    [
        (
            [used("mise run test", 1, UNTRUSTED), "mise trust", "mise run test"],
            "`mise run test` fails with `not trusted`: run `mise trust`",
        ),
        (
            [used("mise run test", 1, UNTRUSTED), "mise trust && mise run test"],
            "`mise run test` fails with `not trusted`: run `mise trust`",
        ),
        (
            [used("go test ./...", 1, NO_SUM), "ls", "go mod tidy", "go test ./cart"],
            "`go test` fails with `missing go.sum entry`: run `go mod tidy`",
        ),
        (
            [used("golangci-lint run", 127, NOT_FOUND), "mise exec -- golangci-lint run"],
            "`golangci-lint` is not found: use `mise exec -- golangci-lint run`",
        ),
        (
            [used("pytest", 1, NO_MODULE), "uv run pytest"],
            "`pytest` fails with `a module is not installed`: use `uv run pytest`",
        ),
        (
            [used("git checkout main", 128, CHECKED_OUT), "git checkout -b fix/total origin/main"],
            "`git checkout main` fails with `already used by worktree`: use `git checkout -b <branch> origin/main`",
        ),
        (
            [used("go test ./it/...", 1, "build constraints exclude all Go files"), "go test -tags=it ./it/..."],
            "`go test` fails with `build constraints exclude all Go files`: use `go test -tags=it ./it/...`",
        ),
        (
            [used("git status", 128, "fatal: unable to read 1f2e3d4c5b"), "git -C . read-tree HEAD", "git status"],
            "`git status` fails with `unable to read`: run `git read-tree HEAD`",
        ),
        (
            [
                used("git push", 1, "remote: error: GH006: Protected branch update failed"),
                "gh pr create --fill",
                "git push",
            ],
            "`git push` fails with `protected branch`: run `gh pr create --fill`",
        ),
        (
            [used("make up", 1, "Cannot connect to the Docker daemon at unix:///x"), "colima start", "make up"],
            "`make up` fails with `Cannot connect to the Docker daemon`: run `colima start`",
        ),
        (
            [used("docker ps", 1, "Cannot connect to the Docker daemon at unix:///x"), "open -a Docker", "docker ps"],
            "`docker ps` fails with `Cannot connect to the Docker daemon`: run `open -a Docker`",
        ),
    ],
)
def test_a_trouble_is_told_with_its_cure(calls: list[ToolUse | str], text: str) -> None:
    (line,) = lines_of(tuple(calls))

    assert ("fix", text, True, 1) == (line.kind, line.text, line.is_told, line.sessions)


@pytest.mark.parametrize(
    "calls",
    [
        ["go test ./...", "go mod tidy", "go test ./..."],  # no trouble
        [used("go test ./...", 1, NO_SUM), "go mod tidy", used("go test ./...", 1, NO_SUM)],  # not cured
        [used("go test ./...", 1, NO_SUM), "go test ./..."],  # nothing that cures
        [used("go test ./...", 1, "--- FAIL: TestCart"), EDIT, "go mod tidy", "go test ./..."],  # of the code
        [used("cat go.log", 1, NO_SUM), "go mod tidy", "cat go.log"],  # a reader
        [used("go test ./...", 1, NO_SUM), *["make dup"] * 15, "go mod tidy", "go test ./..."],  # too late
        [used("staticcheck --version", 127, "bash: staticcheck: command not found")] * 2,  # asks whether it is there
    ],
)
def test_other_failures_are_not_told(calls: list[ToolUse | str]) -> None:
    assert [] == lines_of(tuple(calls))


def told_in(sessions: list[SessionRuns]) -> list[tuple[str, bool]]:
    return [(line.text, line.is_told) for line in choose(sessions, []) if line.kind == "fix"]


def test_a_cure_that_needs_two_sessions_is_a_candidate_after_one() -> None:
    calls = (used("npm run dev", 1, IN_USE), "PORT=3001 npm run dev")
    text = "`npm run dev` fails with `address already in use`: use `PORT=3001 npm run dev`"

    assert [(text, False)] == told_in(known_project(calls))
    assert [(text, True)] == told_in(known_project(calls, calls))


def test_in_a_new_project_a_cure_is_told_at_once() -> None:
    calls = (used("npm run dev", 1, IN_USE), "PORT=3001 npm run dev")

    assert [True] == [line.is_told for line in lines_of(calls)]


@pytest.mark.parametrize(
    ("calls", "cure"),
    [
        ((used("npm run dev", 1, IN_USE), "kill 4711", "npm run dev"), "kill <pid>"),
        ((used("npm run dev", 1, IN_USE), "kill -9 4711 4712", "npm run dev"), "kill -9 <pid>"),
        ((used("git add -A", 128, LOCKED), "rm -f .git/index.lock", "git add -A"), "rm -f .git/index.lock"),
        (
            (used("npm run storbook", 1, 'npm error Missing script: "storbook"'), "npm run storybook"),
            "npm run storybook",
        ),
    ],
)
def test_what_may_have_helped_by_chance_needs_two_sessions_even_in_a_new_project(calls: Calls, cure: str) -> None:
    once, twice = told_in(project(calls)), told_in(project(calls, calls))

    assert [False] == [is_told for _, is_told in once]
    assert [True] == [is_told for _, is_told in twice]
    assert once[0][0].endswith(f"`{cure}`")


def test_a_failure_that_printed_no_error_has_no_empty_words() -> None:
    calls = (used("make up", 1, "boom"), "make seed", "make up")

    assert ["`make up` fails: run `make seed`"] == [line.text for line in lines_of(calls)]


@pytest.mark.parametrize(
    ("variable", "shown"),
    [("API_TOKEN=abc", "API_TOKEN=…"), ("DB_PASSWORD=hunter2", "DB_PASSWORD=…"), ("TZ=Europe/Rome", "TZ=Europe/Rome")],
)
@pytest.mark.parametrize("output", ["Error: not allowed", "KeyError: 'API_TOKEN'"])
def test_a_cure_shows_no_value_that_is_secret_by_name(variable: str, shown: str, output: str) -> None:
    calls = (used("make migrate", 1, output), f"{variable} make migrate")

    assert [f"use `{shown} make migrate`"] == [line.text.rpartition(": ")[2] for line in lines_of(calls)]


def test_a_failure_without_a_cure_is_told_from_two_sessions_on() -> None:
    calls = (used("git checkout main", 128, CHECKED_OUT),)

    assert [("failure", False)] == [(line.kind, line.is_told) for line in lines_of(calls)]
    assert [("failure", True)] == [(line.kind, line.is_told) for line in lines_of(calls, calls)]


def test_a_trouble_names_where_it_stands() -> None:
    session = stored(used("mise run test", 1, UNTRUSTED), "mise trust", "mise run test", thread="t7")

    (line,) = [line for line in choose([session], []) if line.kind == "fix"]

    assert [("t7", 1, 0, 50, "mise run test"), ("t7", 1, 100, 150, "mise trust")] == [
        (source.thread_id, source.turn, source.start, source.end, source.quote) for source in line.sources
    ]


def test_a_missing_program_in_a_task_is_told() -> None:
    calls = (used("make lint", 2, "make: shfmt: command not found"), "brew install shfmt", "shfmt -l .", "make lint")

    assert ["`shfmt` is not found: run `brew install shfmt`"] == [line.text for line in lines_of(calls)]

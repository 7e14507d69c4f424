"""Of all commands that sessions ran, a project has one line per role and place."""

from __future__ import annotations

import pytest
from command_views import OLD, ROOT, known_project, project, stored, used

from commonplace.learning.commands.choose import choose
from commonplace.learning.commands.lines import MAX_TEXT
from commonplace.learning.commands.runs import SessionRuns
from commonplace.learning.reading.session_view import ToolUse

Calls = tuple[ToolUse | str, ...]
BUILD = "Build the program: `go build -o <out> ./cmd/shop`"


def told(sessions: list[SessionRuns], roots: tuple[str, ...] = (ROOT,)) -> list[str]:
    return [line.text for line in choose(sessions, roots) if line.is_told]


def candidates(sessions: list[SessionRuns]) -> list[str]:
    return [line.text for line in choose(sessions, [ROOT]) if not line.is_told]


@pytest.mark.parametrize(
    ("sessions", "expected"),
    [
        ([("make test",)] * 2, ["Tests: `make test`"]),
        ([("make test",)], ["Tests: `make test`"]),  # the only check of its role
        ([("go test ./cart",)], []),
        ([("go test ./...", "go test ./...")], ["Tests: `go test ./...`"]),
        ([(used("make test", 1),)] * 3, []),  # it never succeeded
        ([(used("make deploy", 1),)] * 2, ["Deploy: `make deploy`"]),
        ([("make test | tail -5",), ("make test 2>&1",)], ["Tests: `make test`"]),
        ([("make seed | sh",)] * 2, []),
        ([("npm install",)] * 3, []),
        ([("git push",)] * 3, []),
        ([("cd api && make test",)] * 2, ["Tests: `make test` in api"]),
        ([("make -C api test",)] * 2, ["Tests: `make test` in api"]),
        ([("CI=1 make test",)] * 2, ["Tests: `CI=1 make test`"]),
        ([("API_TOKEN=abc make test",)] * 2, ["Tests: `API_TOKEN=… make test`"]),
        ([("ID=1 make test",), ("ID=2 make test",)], ["Tests: `ID=… make test`"]),
        ([("CI=1 make test", "make test", "make test")] * 2, ["Tests: `make test`"]),
        ([("make dup",)] * 2, ["Task: `make dup`"]),
        ([("make bench",)] * 2, []),
        ([("make bench",)] * 3, ["Benchmarks: `make bench`"]),
        ([("go build -o shop ./cmd/shop",)] * 2, ["Build the program: `go build -o shop ./cmd/shop`"]),
        ([("go build -o a ./cmd/shop",), ("go build -o b ./cmd/shop",), ("go build -o c ./cmd/shop",)], [BUILD]),
    ],
)
def test_a_command_is_worth_a_line(sessions: list[Calls], expected: list[str]) -> None:
    assert expected == told(known_project(*sessions))


@pytest.mark.parametrize(
    ("sessions", "expected"),
    [
        ([("make test",)], ["Tests: `make test`"]),
        ([("pytest tests/cart",)], ["Tests: `pytest tests/cart`"]),
        ([("go test ./cart",)], ["Tests: `go test ./cart`"]),
        ([("ruff check .",)], ["Lint: `ruff check .`"]),
        ([("tsc --noEmit",)], ["Types: `tsc --noEmit`"]),
        ([("make ci",)], ["All checks: `make ci`"]),
        ([(used("make test", 1),)], []),  # it never succeeded
        ([("make deploy",)] * 2, []),  # no check: twice may be chance
        ([("make deploy",)] * 3, ["Deploy: `make deploy`"]),
        ([("make dup",)] * 2, []),
        ([("make dup",)] * 3, ["Task: `make dup`"]),
    ],
)
def test_a_new_project_tells_a_check_at_once_and_all_else_later(sessions: list[Calls], expected: list[str]) -> None:
    assert expected == told(project(*sessions))


def test_a_project_is_new_up_to_its_sixth_session() -> None:
    once: Calls = ("go test ./cart",)

    assert ["Tests: `go test ./cart`"] == told(project(once, *[()] * (OLD - 2)))
    assert [] == told(project(once, *[()] * (OLD - 1)))


def test_a_task_speaks_for_the_tools_that_it_runs() -> None:
    sessions = project(("make lint", "golangci-lint run"), ("make lint",), ("golangci-lint run",))

    assert ["Lint: `make lint`"] == told(sessions)
    assert "Lint: `golangci-lint run`" in candidates(sessions)


def test_a_task_that_is_hardly_run_does_not_speak_for_a_tool() -> None:
    sessions = project(*[("go build ./...",)] * 30, *[("make build",)] * 2)

    assert ["Build: `go build ./...`"] == told(sessions)


def test_tools_of_two_languages_both_have_a_line() -> None:
    sessions = project(*[("pytest", "npx vitest run")] * 2)

    assert ["Tests: `npx vitest run`", "Tests: `pytest`"] == sorted(told(sessions))


def test_parts_of_a_project_each_have_a_line() -> None:
    sessions = project(*[("pnpm --filter @shop/web test", "pnpm --filter @shop/api test")] * 2)

    assert ["Tests: `pnpm --filter @shop/api test`", "Tests: `pnpm --filter @shop/web test`"] == sorted(told(sessions))


def test_a_part_is_one_whether_it_is_named_or_gone_to() -> None:
    both = ("pnpm --filter @shop/web test", "pnpm --filter @shop/web test", "cd apps/web && pnpm test")

    assert ["Tests: `pnpm --filter @shop/web test`"] == told(project(both, both, both[:2]))


def test_a_rare_part_has_no_line() -> None:
    sessions = project(*[("pnpm --filter web test",)] * 9, *[("pnpm --filter api test",)] * 2)

    assert ["Tests: `pnpm --filter web test`"] == told(sessions)


def test_a_command_that_is_rare_in_a_folder_belongs_to_the_root() -> None:
    sessions = project(*[("npm test",)] * 9, *[("cd web && npm test",)] * 2)

    (line,) = [line for line in choose(sessions, [ROOT]) if line.is_told]

    assert ("Tests: `npm test`", 11) == (line.text, line.sessions)


def test_a_runner_that_looks_above_runs_the_same_task_in_every_folder() -> None:
    assert ["Tests: `just test`"] == told(project(*[("just test",)] * 2, *[("cd web && just test",)] * 2))


def test_a_command_that_was_replaced_gives_way() -> None:
    old = [stored("npm test", thread=f"o{number}", day=0) for number in range(4)]
    new = [stored("pnpm test", thread=f"n{number}", day=60) for number in range(3)]

    assert "Tests: `pnpm test`" == told([*old, *new])[0]


@pytest.mark.parametrize(
    ("scopes", "expected"),
    [
        (["./...", "./cart"], "go vet ./..."),
        (["./cart", "./cart"], "go vet ./cart"),
        (["./shop/cart", "./shop/user", "./shop/tax"], "go vet ./shop/..."),
    ],
)
def test_the_widest_scope_is_shown(scopes: list[str], expected: str) -> None:
    sessions = project(*[(f"go vet {scope}", f"go vet {scope}") for scope in scopes])

    assert [f"Lint: `{expected}`"] == told(sessions)


def test_checks_that_are_run_together_are_shown_together() -> None:
    sessions = project(*[("make fmt && make lint && make ci",)] * 2, ("make ci",))

    assert "All checks: `make fmt && make lint && make ci`" in told(sessions)


def test_a_chain_without_the_full_check_is_not_shown() -> None:
    sessions = project(*[("make fmt && make lint", "make ci")] * 2)

    assert "All checks: `make ci`" in told(sessions)


def test_uses_of_one_script_are_one_line() -> None:
    sessions = known_project(*[("./scripts/db.sh reset", "./scripts/db.sh copy", "./scripts/db.sh dump")] * 2)

    assert ["Task: `./scripts/db.sh`"] == told(sessions)


def test_at_most_three_tasks_have_a_line() -> None:
    sessions = known_project(*[tuple(f"make {name}" for name in ("dup", "graph", "stats", "todo"))] * 2)

    assert 3 == len(told(sessions))
    assert 1 == len(candidates(sessions))


def test_folders_are_relative_to_the_root_that_holds_them() -> None:
    sessions = [
        stored("make test", thread="a", cwd=f"{ROOT}/api"),
        stored("cd api && make test", thread="b", cwd=ROOT),
        stored("cd api && make test", thread="c", cwd=f"{ROOT}/.worktrees/two"),
        stored("cd api && make test", thread="d", cwd="/home/bob/clone"),
    ]

    (line,) = [line for line in choose(sessions, [ROOT, "/home/bob/clone"]) if line.is_told]

    assert ("Tests: `make test` in api", 4) == (line.text, line.sessions)


def test_commands_of_another_project_do_not_count() -> None:
    assert [] == told(project(*[("cd /srv/other && make test",)] * 3))


def test_a_line_names_the_newest_session_first() -> None:
    sessions = [stored("ls", "make test", thread="old", day=1), stored("make test", thread="new", day=2)]

    (line,) = [line for line in choose(sessions, [ROOT]) if line.is_told]

    assert ["new", "old"] == [source.thread_id for source in line.sources]
    assert (100, 150, "make test") == (line.sources[1].start, line.sources[1].end, line.sources[1].quote)


def test_the_order_of_sessions_does_not_change_the_lines() -> None:
    sessions = project(("make test", "pytest"), ("pytest", "ruff check ."), ("make test", "ruff check ."))

    assert choose(sessions, [ROOT]) == choose(sessions[::-1], [ROOT])


def test_no_line_is_too_long() -> None:
    long = "make test-" + "x" * 90
    sessions = project(*[(f"cd {'folder/' * 9} && A_LONG_NAME=1234567890 {long}", f"make ci && {long}")] * 2)

    assert all(len(line.text) <= MAX_TEXT for line in choose(sessions, [ROOT]))

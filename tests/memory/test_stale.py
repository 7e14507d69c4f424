"""Stale entries: paths and commands that a project no longer has, and everything that cannot be told and is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commonplace.memory.entries import Entry, Kind, Source
from commonplace.memory.stale_names import ProjectFolders

PROGRAMS = {"make", "just", "npm", "pnpm", "yarn", "pytest", "git", "env"}
MAKEFILE = "all: build\n\n.PHONY: test check\ntest check: deps ## run\n\tpytest\nlint::\n\truff\nX := 1\n"
JUSTFILE = "check:\n  cargo test\n@fmt arg='x':\n  cargo fmt\nalias c := check\n"
PACKAGE = {"scripts": {"test": "vitest", "docs:check": "x"}, "devDependencies": {"vitest": "1"}}


def which(program: str) -> str | None:
    return f"/usr/bin/{program}" if program in PROGRAMS else None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "shop"
    for name in ("src/orders/api.ts", "bin/deploy", "node_modules/.bin/eslint", "deep/er/lib/util.py"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("x")
    (place / "Makefile").write_text(MAKEFILE)
    (place / "justfile").write_text(JUSTFILE)
    (place / "package.json").write_text(json.dumps(PACKAGE))
    return place


def gone(folder: Path, text: str, kind: Kind = "rule") -> list[tuple[str, str]]:
    entry = Entry("m1", "shop", kind, text, 1, [Source(text, "said", "t")], 0, 0)
    return [(each.what, each.name) for each in ProjectFolders([folder], which).stale_names(entry)]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("amounts live in `src/orders/money.ts`", "src/orders/money.ts"),
        ("see src/orders/money.ts:12 for that", "src/orders/money.ts"),
        ("everything in src/legacy is generated", "src/legacy"),
        ("start from (lib/old.py).", "lib/old.py"),
        ("run ./setup/first", "./setup/first"),
    ],
)
def test_a_path_that_is_gone_is_told(folder: Path, text: str, path: str) -> None:
    assert gone(folder, text) == [("path", path)]


@pytest.mark.parametrize(
    "text",
    [
        "amounts live in `src/orders/api.ts`",
        "see orders/api.ts:12-14, lib/util.py::test and src/orders/",
        "pass and/or fail, TCP/IP, I/O, 2026/11/15, application/json, origin/main",
        "github.com/acme/shop.git and https://example.com/a/b.html and @acme/ui.x",
        "never ../up/there.py nor src/*/x.ts nor /etc/nowhere.conf",
        "plain words",
    ],
)
def test_what_is_there_or_no_path_is_not_told(folder: Path, text: str) -> None:
    assert gone(folder, text) == []


def test_an_absolute_path_is_told_only_inside_of_the_project(folder: Path) -> None:
    assert gone(folder, f"see {folder}/src/none.ts and {folder}/src/orders/api.ts") == [
        ("path", f"{folder}/src/none.ts")
    ]


@pytest.mark.parametrize(
    ("command", "is_gone"),
    [
        ("make test", False),
        ("make check", False),
        ("make lint", False),
        ("make all", False),
        ("make release", True),
        ("make X", True),
        ("make -C sub release", False),
        ("make Makefile", False),
        ("just check", False),
        ("just fmt", False),
        ("just c", False),
        ("just deploy", True),
        ("npm test", False),
        ("npm run docs:check", False),
        ("npm run build", True),
        ("npm ci", False),
        ("npm start", False),
        ("pnpm docs:check", False),
        ("pnpm vitest run src/orders", False),
        ("pnpm eslint .", False),
        ("pnpm db:migrate", True),
        ("pnpm install", False),
        ("pnpm --filter web build", False),
        ("yarn run build", True),
        ("pytest -q", False),
        ("cargo test", True),
        ("deploy now", False),
        ("./bin/deploy", False),
        ("./bin/gone", True),
        ("FOO=1 sudo make test", False),
        ("cd src && pytest", False),
        ("cd nowhere && pytest", False),
        ("export A=1 && make release", True),
        ("git status | cat", True),
        ("$TOOL run", False),
        ("make 'unfinished", False),
    ],
)
def test_a_command_resolves_or_not(folder: Path, command: str, is_gone: bool) -> None:
    found = [name for what, name in gone(folder, f"verify with `{command}`", "verify") if what == "command"]

    assert bool(found) == is_gone


def test_what_stands_in_backquotes_is_a_command_only_if_it_is_known_as_one(folder: Path) -> None:
    assert gone(folder, "the branch is `main`, the column `refunds total`, and use `cargo`") == []
    assert gone(folder, "use `cargo test` here") == [("command", "cargo test")]


def test_of_a_fix_only_what_worked_is_looked_at_and_of_a_failure_nothing(folder: Path) -> None:
    fix = "`cargo test` failed (no such file src/none.ts); `make release` worked"

    assert gone(folder, fix, "fix") == [("command", "make release")]
    assert gone(folder, fix, "failure") == []


def test_without_a_folder_nothing_can_be_told() -> None:
    entry = Entry("m1", "shop", "verify", "verify with `nothing at/all.py`", 1, [], 0, 0)

    assert ProjectFolders([], which).stale_names(entry) == []


def test_what_a_makefile_includes_is_not_accused(folder: Path) -> None:
    (folder / "Makefile").write_text("include other.mk\n")

    assert gone(folder, "verify with `make release`", "verify") == []


def test_a_missing_makefile_or_package_is_told(tmp_path: Path) -> None:
    assert gone(tmp_path, "verify with `make test`", "verify") == [("command", "make test")]
    assert gone(tmp_path, "verify with `npm test`", "verify") == [("command", "npm test")]
    (tmp_path / "package.json").write_text("not json")
    assert gone(tmp_path, "verify with `npm test`", "verify") == [("command", "npm test")]

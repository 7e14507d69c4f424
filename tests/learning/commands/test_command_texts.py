"""A line shows a command as it is mostly typed; where it is typed in many ways, its canonical form."""

from __future__ import annotations

import pytest
from command_views import ROOT, project, stored

from commonplace.learning.commands.tallies import CommandTally, tallies_of
from commonplace.learning.commands.texts import command_of, text_of


def tally_of(*lines: str) -> CommandTally:
    """Return the only command of a project that some lines ran, one session each."""
    (found,) = tallies_of(project(*((line,) for line in lines)), [ROOT])
    return found


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (["pytest -q"], "pytest -q"),
        (["pytest -q", "pytest -q", "pytest -x"], "pytest -q"),
        (["pytest -q", "pytest"], "pytest"),  # of equally common ones the shortest
        (["pytest -q", "pytest -x", "pytest -v"], "pytest"),
        (["pytest -q", "pytest tests/test_cart.py", "pytest tests/test_tax.py"], "pytest"),
        (["npm run test"] * 2, "npm run test"),
        (["npm run test", "npm t", "npm test"], "npm test"),
        (["go test -race ./..."] * 2, "go test -race ./..."),
        (["make test | tail -5", "make test 2>&1"], "make test"),
        (["make -C api test"] * 2, "make test"),  # the line says where
        ([f"{ROOT}/run-tests.sh --all"] * 2, "./run-tests.sh"),
        (["./scripts/test.sh --fast"] * 2, "./scripts/test.sh"),
        # what differs from run to run has a mark
        (
            [f"helm upgrade shop charts/shop --set image.tag={tag}" for tag in "789"],
            "helm upgrade shop charts/shop --set image.tag=…",
        ),
        ([f"docker build -t shop:{tag} ." for tag in "789"], "docker build -t … ."),
        ([f"alembic revision -m 'add {table}'" for table in ("carts", "taxes", "users")], "alembic revision -m …"),
        (["bazel test //cart:all", "bazel test //tax:all", "bazel test //..."], "bazel test //..."),
        ([f"ruff check {ROOT}/src"] * 2, "ruff check src"),  # paths of one machine are not shown
    ],
)
def test_a_command_is_shown_as_it_is_mostly_typed(lines: list[str], shown: str) -> None:
    assert shown == command_of(tally_of(*lines))


def test_a_command_that_is_long_as_it_was_typed_is_shown_in_its_form() -> None:
    assert "pytest" == command_of(
        tally_of("pytest -q -x -v --tb=short --color=no --durations=10 --maxfail=1 -n auto --lf -rA --ff")
    )


def test_a_folder_is_told_once() -> None:
    (found,) = tallies_of([stored("make -C api test"), stored("cd api && make test", thread="b")], [ROOT])

    assert "Tests: `make test` in api" == text_of(found)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('export NVM_DIR="$HOME/.nvm"; . "$NVM_DIR/nvm.sh"; pnpm test', "pnpm test"),
        ("GOCACHE=$PWD/.cache go test ./...", "go test ./..."),
        ("PATH=$PWD/node_modules/.bin:$PATH jest", "jest"),
        ("JAVA_HOME=/opt/jdk ./gradlew test", "./gradlew test"),
        ("PLAN=$NAME pytest", "PLAN=… pytest"),
    ],
)
def test_a_variable_that_names_a_place_on_one_machine_is_left_out(line: str, shown: str) -> None:
    assert f"Tests: `{shown}`" == text_of(tally_of(line, line))


def test_variables_stand_before_the_command_as_it_is_typed() -> None:
    assert "Tests: `CI=1 pytest -q`" == text_of(tally_of("CI=1 pytest -q", "CI=1 pytest -q"))

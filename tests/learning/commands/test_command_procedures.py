"""Steps that two sessions take in the same order are a procedure."""

from __future__ import annotations

import pytest
from command_views import ROOT, project, used

from commonplace.learning.commands.choose import choose
from commonplace.learning.commands.procedures import procedure_lines
from commonplace.learning.reading.session_view import ToolUse

Calls = tuple[ToolUse | str, ...]


@pytest.mark.parametrize(
    ("sessions", "expected"),
    [
        (
            [
                ("make build", "git tag v1.2.0", "git push --tags"),
                ("make build", "git tag -a v1.3.0 -m x", "git push origin --tags"),
            ],
            ["Release: `make build`, then `git tag v<version>`, then `git push --tags`"],
        ),
        ([("make generate", "make migrate")] * 2, ["Migrate: `make generate`, then `make migrate`"]),
        ([("make migrate", "ls", "git status", "make deploy")] * 2, ["Deploy: `make migrate`, then `make deploy`"]),
        ([("make migrate", "make deploy")], []),
        ([("make build", "npm install")] * 2, []),
        ([("make migrate", used("make deploy", 1))] * 2, []),
        ([("make migrate", "make deploy"), ("make deploy", "make migrate")], []),
        ([("gh workflow run release.yml",)] * 2, ["Release: `gh workflow run release.yml`"]),
        ([("gh release create v2",), ("gh release create v3",)], ["Release: `gh release create`"]),
        ([("git tag",)] * 2, []),
    ],
)
def test_steps_in_the_same_order_are_a_procedure(sessions: list[Calls], expected: list[str]) -> None:
    assert expected == [line.text for line in procedure_lines(project(*sessions))]


def test_too_many_steps_between_two_make_no_procedure() -> None:
    between = [f"make build-{name}" for name in "abc"]

    assert [] == procedure_lines(project(*[("make migrate", *between, "npm publish")] * 2))[1:]


def test_a_procedure_is_told_with_its_steps() -> None:
    sessions = project(*[("make migrate", "make deploy")] * 2)

    (line,) = [line for line in choose(sessions, [ROOT]) if len(line.commands) > 1]

    assert ("procedure", "deploy", ("make migrate", "make deploy"), 2, 4) == (
        line.kind,
        line.role,
        line.commands,
        line.sessions,
        len(line.sources),
    )

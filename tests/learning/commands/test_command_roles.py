"""Names of tasks and scripts tell what they are for."""

from __future__ import annotations

import pytest

from commonplace.learning.commands import roles


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("test", "test"),
        ("unit-tests", "test"),
        ("testUnit", "test"),
        ("test:e2e", "e2e"),
        ("testE2e", "e2e"),
        ("smoke", "e2e"),
        ("test:integration", "integration"),
        ("test-it", "integration"),
        ("items", "task"),
        ("test:ci", "check"),
        ("check", "check"),
        ("check-types", "typecheck"),
        ("type-check", "typecheck"),
        ("lint:fix", "lint"),
        ("fmt", "format"),
        ("format-check", "format"),
        ("build:prod", "build"),
        ("generate", "codegen"),
        ("gen.proto", "codegen"),
        ("db:migrate", "migrate"),
        ("db:push", "migrate"),
        ("deploy_staging", "deploy"),
        ("release", "release"),
        ("benchmark", "bench"),
        ("dev", "run"),
        ("bootstrap", "setup"),
        ("contest", "task"),
        ("scripts/test-harness", "e2e"),
        ("", "task"),
    ],
)
def test_a_name_tells_its_role(name: str, role: str) -> None:
    assert role == roles.role_of_name(name)


@pytest.mark.parametrize(
    ("program", "language"), [("go", "go"), ("pnpm", "js"), ("uv", "py"), ("make", "any"), ("script", "any")]
)
def test_a_program_belongs_to_an_ecosystem(program: str, language: str) -> None:
    assert language == roles.language_of(program)


@pytest.mark.parametrize(
    ("role", "sessions", "needed"),
    [("test", 500, 2), ("run", 99, 2), ("run", 100, 3), ("task", 100, 3), ("bench", 5, 3), ("setup", 5, None)],
)
def test_a_role_needs_sessions(role: roles.Role, sessions: int, needed: int | None) -> None:
    assert needed == roles.sessions_needed(role, sessions)

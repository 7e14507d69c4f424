"""What a command is for: the role of a tool, of its subcommand, of a task's or a script's name, and its ecosystem."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any, Final, Literal, cast

from commonplace.learning.commands import tables
from commonplace.patterns import regex

Role = Literal[
    "check", "test", "integration", "e2e", "lint", "typecheck", "format", "build", "codegen", "migrate", "deploy",
    "release", "run", "task", "bench", "setup",
]  # fmt: skip

CHECKS: Final[tuple[Role, ...]] = ("check", "test", "integration", "e2e", "lint", "typecheck", "format", "build")
"""The roles of commands that only tell how the work stands, in the order in which they are told."""
_NONE: Final = "∅"
_CASE_CHANGE: Final = regex(r"(?<=[a-z0-9])(?=[A-Z])")
_TABLE: Final = tables.table("roles")


def _subcommand_roles() -> dict[str, dict[str, Role]]:
    found: dict[str, dict[str, Role]] = {}
    for role, lines in cast("dict[Role, list[str]]", _TABLE["subcommands"]).items():
        for line in lines:
            tool, _, subcommands = line.partition(" ")
            for subcommand in subcommands.split("|"):
                found.setdefault(tool, {})["" if subcommand == _NONE else subcommand] = role
    return found


def _names() -> list[tuple[Role, re.Pattern[str]]]:
    rows = cast("list[dict[str, Any]]", _TABLE["names"])
    return [(row["role"], regex(rf"(?<![^:/_.-])(?:{row['pattern']})(?![^:/_.-])")) for row in rows]


_TOOLS: Final[dict[str, Role]] = {
    tool: role for role, line in cast("dict[Role, str]", _TABLE["tools"]).items() for tool in line.split()
}
_SUBCOMMANDS: Final = _subcommand_roles()
_NAMES: Final = _names()
_LANGUAGES: Final = {program: name for name, line in _TABLE["languages"].items() for program in line.split()}
_SESSIONS: Final[dict[str, int]] = _TABLE["sessions"]
_BUSY_PROJECT: Final = 100
"""From so many sessions with commands on, running and own tasks need one session more."""


def role_of_tool(tool: str) -> Role | None:
    """Return the role of a tool that has the same role whatever its arguments are."""
    return _TOOLS.get(tool)


def subcommands(tool: str) -> dict[str, Role]:
    """Return the subcommands of a tool that have a role; the empty one stands for the tool alone."""
    return _SUBCOMMANDS.get(tool, {})


@lru_cache(maxsize=4096)
def role_of_name(name: str) -> Role:
    """Return the role that the name of a task or a script tells; `task` if it tells none."""
    cut = _CASE_CHANGE.sub("-", name).lower()
    for role, expression in _NAMES:
        if expression.search(cut):
            return role
    return "task"


@cache
def is_development_tool(program: str) -> bool:
    """Return whether a program is a known tool of development."""
    return program in _TOOLS or program in _SUBCOMMANDS or program in _LANGUAGES


def language_of(program: str) -> str:
    """Return the ecosystem of a program; `any` if it serves all."""
    return _LANGUAGES.get(program, "any")


def sessions_needed(role: Role, project_sessions: int) -> int | None:
    """Return in how many sessions a command of a role must have run; None if it is never worth a line."""
    needed = _SESSIONS.get(role)
    is_busy = project_sessions >= _BUSY_PROJECT and role in ("run", "task")
    return None if needed is None else needed + is_busy

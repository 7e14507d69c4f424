"""Roles: kinds of sub-agents that a person describes in `[agents.NAME]`, besides three that are built in.

A role has a description for the model, names for its agents, and a file with a few settings. The file can make an agent
smaller (another model, other instructions, fewer tools) and never lets it do more: a key outside of `_RoleFile` makes
the role unusable, since what its writer meant by that key would not hold.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace import package_files
from commonplace.config import Tone
from commonplace.errors import ToolError

DEFAULT: Final = "default"
_OFF: Final = frozenset({"shell_tool", "memories", "personality", "apps", "plugins", "request_permissions"})
"""Features that a role may switch off. The last three are Codex's; there is nothing here to switch off."""


class RoleSettings(msgspec.Struct, frozen=True):
    """What a role changes in the settings of its agents; None and False change nothing."""

    developer_instructions: str | None = None
    model: str | None = None
    effort: str | None = None
    summary: str | None = None
    verbosity: str | None = None
    personality: Tone | None = None
    no_shell: bool = False
    no_memory: bool = False


class Role(msgspec.Struct, frozen=True):
    """One role."""

    name: str
    description: str = ""
    nicknames: tuple[str, ...] = ()
    file: Path | None = None
    """Where its settings are; they are read when an agent is started."""
    settings: RoleSettings = RoleSettings()


class _RoleTable(msgspec.Struct, forbid_unknown_fields=True):
    """A table `[agents.NAME]`."""

    description: str = ""
    config_file: str | None = None
    nickname_candidates: tuple[str, ...] = ()


class _RoleFile(msgspec.Struct, forbid_unknown_fields=True):
    """What may stand in a role's file, by Codex's names and ours."""

    developer_instructions: str | None = None
    model: str | None = None
    model_reasoning_effort: str | None = None
    effort: str | None = None
    model_reasoning_summary: str | None = None
    model_verbosity: str | None = None
    personality: Tone | None = None
    features: dict[str, bool] = {}


class Roles:
    """The roles of one home."""

    def __init__(self, tables: Mapping[str, Any], folder: Path, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self.own: dict[str, Role | None] = {name: self._role(name, row, folder) for name, row in tables.items()}
        """The person's roles; None for one whose table cannot be used."""

    def _role(self, name: str, row: Any, folder: Path) -> Role | None:
        try:
            table = msgspec.convert(row, _RoleTable)
        except msgspec.ValidationError as error:
            self._warn(f"[agents.{name}] cannot be used: {error}.")
            return None
        names = tuple(each.strip() for each in table.nickname_candidates if each.strip())
        file = None if table.config_file is None else folder / Path(table.config_file).expanduser()
        return Role(name, table.description, names, file)

    def find(self, name: str | None) -> Role:
        """Return a role with its settings; a blank name means the default one.

        Raises:
            ToolError: there is no such role, or it cannot be used.
        """
        wanted = (name or "").strip() or DEFAULT
        if wanted in self.own:
            role = self.own[wanted]
            if role is not None and role.file is None:
                return role
            settings = None if role is None or role.file is None else self._read(wanted, role.file)
            if role is None or settings is None:
                raise ToolError("role", f"agent type {wanted!r} is currently not available")
            return msgspec.structs.replace(role, settings=settings)
        if wanted in built_in():
            return built_in()[wanted]
        raise ToolError("role", f"unknown agent_type {wanted!r}", hint=f"Use {', '.join(self.offered())}.")

    def offered(self) -> dict[str, str]:
        """Return the names of all usable roles, each with its description; the person's come first."""
        own = {name: role.description for name, role in self.own.items() if role is not None}
        built = {name: role.description for name, role in built_in().items() if name not in self.own}
        return own | built

    def _read(self, name: str, file: Path) -> RoleSettings | None:
        """Return the settings of a role's file; None with a warning if it cannot be used."""
        try:
            return read_settings(tomllib.loads(file.read_text("utf-8")))
        except OSError as error:
            problem = f"{file} cannot be read: {error.strerror}"
        except (ValueError, msgspec.ValidationError) as error:
            problem = f"{file}: {error}"
        self._warn(f"The role {name!r} cannot be used. {problem}.")
        return None


def read_settings(table: Mapping[str, Any]) -> RoleSettings:
    """Return what a role's file says (raises msgspec.ValidationError: it says something that no role may)."""
    found = msgspec.convert(table, _RoleFile)
    for feature, is_on in found.features.items():
        if feature not in _OFF or is_on:
            raise msgspec.ValidationError(f"a role cannot set `features.{feature}` to {str(is_on).lower()}")
    return RoleSettings(
        developer_instructions=found.developer_instructions,
        model=found.model,
        effort=found.effort or found.model_reasoning_effort,
        summary=found.model_reasoning_summary,
        verbosity=found.model_verbosity,
        personality="none" if found.features.get("personality") is False else found.personality,
        no_shell=found.features.get("shell_tool") is False,
        no_memory=found.features.get("memories") is False,
    )


@cache
def built_in() -> Mapping[str, Role]:
    """Return the roles that need no settings."""
    tables: dict[str, dict[str, Any]] = tomllib.loads(package_files.text("agent/subagents/roles.toml"))
    return {
        name: Role(
            name, row["description"], settings=RoleSettings((row.get("developer_instructions") or "").strip() or None)
        )
        for name, row in tables.items()
    }

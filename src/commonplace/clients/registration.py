"""Registering the memory server and our hooks with other agents: which of their files name them, and how these change.

    Codex           config.toml (server), hooks.json (hooks; they run once the person has trusted them)
    Claude Code     .claude.json (server), settings.json (hooks, permissions)
    OpenCode        opencode.json or opencode.jsonc (server)
    Gemini CLI      settings.json (server)
    Copilot CLI     mcp-config.json (server)

Each function here plans; `apply` changes what was planned and keeps a copy beside each file. Where our part is
taken out, `earlier` says what a file meant before a setup: what it had of ours then comes back, and empty tables stay.
"""

from __future__ import annotations

import copy
import json
import os
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from commonplace.clients import foreign_files, hook_groups, json_text, toml_text
from commonplace.clients.foreign_files import PlannedChange, checked, inner_table, json_file, object_text, set_inside
from commonplace.config import HOME_VARIABLE

Client = Literal["codex", "claude-code"]
SERVER: Final = "commonplace"
READ_TOOLS: Final = ("list", "read", "search", "find")
_MATCHER: Final = "startup|clear|compact"
"""The starts of a session that need a section; a resumed session has it already."""
_SECONDS: Final = {"SessionStart": 10, "UserPromptSubmit": 10, "SessionEnd": 30}
_TABLE: Final = ("mcp_servers", SERVER)
_HOOKS_NAME: Final = "the hooks of Commonplace"

Earlier: TypeAlias = Mapping[Path, dict[str, Any]]
_NOTHING: Final[Earlier] = {}


class AppliedChange(msgspec.Struct):
    """The applied change of one file (a row of the JSON of `mcp install`)."""

    path: str
    changed: bool
    backup: str | None


class RegistrationReport(msgspec.Struct):
    """The changes to a client's files (the JSON of `mcp install`)."""

    client: str
    files: list[AppliedChange]


class RegisteredServer(msgspec.Struct, frozen=True):
    """How other programs start ours: the words of the command, and the variables that it needs."""

    words: tuple[str, ...]
    variables: dict[str, str]
    notes: bool = False

    @property
    def server(self) -> list[str]:
        """The command that starts the memory server."""
        return [*self.words, "mcp", *(["--allow-notes"] if self.notes else [])]

    def hook(self, event: str) -> str:
        """Return the shell command that answers a hook."""
        prefix = ["env", *(f"{name}={value}" for name, value in self.variables.items())] if self.variables else []
        return shlex.join(
            [*prefix, *self.words, "mcp", "hook", hook_groups.EVENTS[event], *(["--allow-notes"] * self.notes)]
        )

    def group(self, event: str) -> dict[str, Any]:
        """Return the group of hooks that answers an event, as Codex and Claude Code both write it."""
        group = {"hooks": [{"type": "command", "command": self.hook(event), "timeout": _SECONDS[event]}]}
        return {"matcher": _MATCHER, **group} if event == "SessionStart" else group


def command() -> list[str]:
    """Return how another program starts ours: the installed command, else this Python with our module."""
    beside = Path(sys.executable).with_name("commonplace")
    return [str(beside)] if os.access(beside, os.X_OK) else [sys.executable, "-m", "commonplace"]


def server_command(environment: Mapping[str, str], *, notes: bool = False) -> RegisteredServer:
    """Return how other programs start ours with the home that is in use."""
    # An agent may start servers with little of its own environment: where the home is must be said.
    home = environment.get(HOME_VARIABLE)
    variables = {HOME_VARIABLE: str(Path(home).expanduser().absolute())} if home else {}
    return RegisteredServer(tuple(command()), variables, notes)


def install(client: Client, environment: Mapping[str, str], *, notes: bool = False) -> list[PlannedChange]:
    """Plan the changes of `mcp install` (raises BadInput: a file is not what it should be, or not changed safely)."""
    ours = server_command(environment, notes=notes)
    if client == "codex":
        return [codex_server(environment, ours)]
    return [claude_server(environment, ours), claude_settings(environment, ours, events=("SessionStart", "SessionEnd"))]


def uninstall(client: Client, environment: Mapping[str, str]) -> list[PlannedChange]:
    """Plan the changes of `mcp uninstall` (raises BadInput: a file is not what it should be, or not changed safely)."""
    if client == "codex":
        return [codex_server(environment, None)]
    return [claude_server(environment, None), claude_settings(environment, None)]


def apply(client: Client, changes: list[PlannedChange], now: datetime) -> RegistrationReport:
    """Apply the planned changes; a copy of each existing file is kept beside it first.

    Raises:
        BadInput: a file changed after the plan was made, or is write-protected.
    """
    for change in changes:
        foreign_files.check_unchanged(change)
    files: list[AppliedChange] = []
    for change in changes:
        backup = None
        if change.is_one:
            backup = foreign_files.keep_copy(change.path, change.before, now) if change.before is not None else None
            foreign_files.replace(change.path, change.after.encode())
        files.append(AppliedChange(str(change.path), change.is_one, str(backup) if backup else None))
    return RegistrationReport(client, files)


# Codex


def codex_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of Codex."""
    return Path(environment.get("CODEX_HOME") or user_folder(environment) / ".codex").expanduser().absolute()


def codex_server(
    environment: Mapping[str, str], ours: RegisteredServer | None, earlier: Earlier = _NOTHING
) -> PlannedChange:
    """Plan the table of the memory server in Codex's settings (raises BadInput)."""
    path = codex_folder(environment) / "config.toml"
    before = foreign_files.text_of(path)
    now = foreign_files.parsed(tomllib.loads, before or "", path, "TOML")
    table: dict[str, Any] | None = None
    if ours is not None:
        table = {"command": ours.server[0], "args": ours.server[1:]}
        table |= {"env": ours.variables} if ours.variables else {}
    elif toml_text.is_plain(was := inner_table(earlier.get(path, {}), "mcp_servers", path).get(SERVER)):
        table = was
    if inner_table(now, "mcp_servers", path).get(SERVER) == table:
        return PlannedChange(path, before, before or "")
    after = toml_text.put(before or "", _TABLE, table) if table else toml_text.drop(before or "", _TABLE)
    wanted = copy.deepcopy(now)
    set_inside(wanted, "mcp_servers", SERVER, table, keep=toml_text.has_header(after, _TABLE[:1]))
    return checked(PlannedChange(path, before, after), tomllib.loads, wanted, f"[{'.'.join(_TABLE)}]")


def codex_hooks(
    environment: Mapping[str, str],
    ours: RegisteredServer | None,
    events: Sequence[str] = (),
    earlier: Earlier = _NOTHING,
) -> PlannedChange:
    """Plan our hooks in Codex's file of hooks (raises BadInput)."""
    path = codex_folder(environment) / "hooks.json"
    before, now = json_file(path)
    wanted = copy.deepcopy(now)
    text = hook_groups.put(object_text(before), wanted, path, _groups(ours, events), earlier.get(path, {}))
    after = text if before is not None or ours is not None else ""
    return checked(PlannedChange(path, before, after), json.loads, wanted, _HOOKS_NAME)


# Claude Code


def claude_files(environment: Mapping[str, str]) -> tuple[Path, Path]:
    """Return the file of Claude Code's servers, and that of its settings."""
    chosen = environment.get("CLAUDE_CONFIG_DIR")
    if chosen:
        folder = Path(chosen).expanduser().absolute()
        return folder / ".claude.json", folder / "settings.json"
    user = user_folder(environment)
    return user / ".claude.json", user / ".claude" / "settings.json"


def claude_server(
    environment: Mapping[str, str], ours: RegisteredServer | None, earlier: Earlier = _NOTHING
) -> PlannedChange:
    """Plan the memory server in Claude Code's file of servers (raises BadInput)."""
    server: dict[str, Any] | None = None
    if ours is not None:
        server = {"type": "stdio", "command": ours.server[0], "args": ours.server[1:], "env": ours.variables}
    return json_server(claude_files(environment)[0], "mcpServers", server, earlier)


def claude_settings(
    environment: Mapping[str, str],
    ours: RegisteredServer | None,
    events: Sequence[str] = (),
    earlier: Earlier = _NOTHING,
    *,
    is_allowed: bool = False,
) -> PlannedChange:
    """Plan our hooks in Claude Code's settings, and leave to call the reading tools if it is given (raises BadInput).

    Leave that was given before stays unless everything of ours is taken out.
    """
    path = claude_files(environment)[1]
    before, now = json_file(path)
    wanted, was = copy.deepcopy(now), earlier.get(path, {})
    text = hook_groups.put(object_text(before), wanted, path, _groups(ours, events), was)
    if is_allowed:
        text = _with_leave(text, wanted, path)
    elif ours is None:
        text = _without_leave(text, wanted, path, was)
    after = text if before is not None or ours is not None else ""
    return checked(PlannedChange(path, before, after), json.loads, wanted, _HOOKS_NAME)


def _groups(ours: RegisteredServer | None, events: Sequence[str]) -> dict[str, dict[str, Any]] | None:
    return {event: ours.group(event) for event in events} if ours is not None else None


def claude_rules() -> list[str]:
    """Return the rules by which Claude Code calls the reading tools without asking."""
    return [f"mcp__{SERVER}__{name}" for name in READ_TOOLS]


def _with_leave(text: str, wanted: dict[str, Any], path: Path) -> str:
    """Return the settings with our rules; `wanted` is changed to mean the same."""
    allowed = _allowed(wanted, path)
    missing = [rule for rule in claude_rules() if rule not in allowed]
    for rule in missing:
        text = json_text.put(text, ("permissions", "allow", len(allowed)), rule)
        allowed.append(rule)
    if missing:
        set_inside(wanted, "permissions", "allow", allowed)
    return text


def _without_leave(text: str, wanted: dict[str, Any], path: Path, was: dict[str, Any]) -> str:
    """Return the settings without our rules but those that were there before; `wanted` is changed to mean the same."""
    allowed, kept = _allowed(wanted, path), _allowed(was, path)
    places = [place for place, rule in enumerate(allowed) if rule in claude_rules() and rule not in kept]
    depth = json_text.containers_in(was, ("permissions", "allow"))
    for place in reversed(places):
        text = json_text.drop(text, ("permissions", "allow", place), depth)
        del allowed[place]
    if places:
        set_inside(wanted, "permissions", "allow", allowed if allowed or depth > 1 else None, keep=depth > 0)
    return text


def _allowed(settings: dict[str, Any], path: Path) -> list[Any]:
    rules = inner_table(settings, "permissions", path).get("allow", [])
    if not isinstance(rules, list):
        raise foreign_files.misunderstood(path)
    return cast("list[Any]", rules)


# Agents that only have servers


def json_server(
    path: Path,
    table: str,
    server: dict[str, Any] | None,
    earlier: Earlier = _NOTHING,
    parse: Callable[[str], Any] = json.loads,
) -> PlannedChange:
    """Plan the memory server in a JSON file that lists servers in a table (raises BadInput)."""
    before, now = json_file(path, parse)
    was = earlier.get(path, {})
    if server is None:
        server = inner_table(was, table, path).get(SERVER)
    if inner_table(now, table, path).get(SERVER) == server:
        return PlannedChange(path, before, before or "")
    place = (table, SERVER)
    text = object_text(before)
    depth = json_text.containers_in(was, (table,))
    after = json_text.put(text, place, server) if server else json_text.drop(text, place, depth)
    wanted = copy.deepcopy(now)
    set_inside(wanted, table, SERVER, server, keep=depth > 0)
    return checked(PlannedChange(path, before, after), parse, wanted, f"{table}.{SERVER}")


def opencode_server(
    environment: Mapping[str, str], ours: RegisteredServer | None, earlier: Earlier = _NOTHING
) -> PlannedChange:
    """Plan the memory server in OpenCode's settings, which may have comments (raises BadInput)."""
    folder = opencode_folder(environment)
    server: dict[str, Any] | None = None
    if ours is not None:
        server = {"type": "local", "command": ours.server, "enabled": True}
        server |= {"environment": ours.variables} if ours.variables else {}
    commented = folder / "opencode.jsonc"
    path = commented if commented.exists() else folder / "opencode.json"
    return json_server(path, "mcp", server, earlier, json_text.loads)


def opencode_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of OpenCode's settings."""
    base = environment.get("XDG_CONFIG_HOME") or user_folder(environment) / ".config"
    return Path(base).expanduser().absolute() / "opencode"


def gemini_server(
    environment: Mapping[str, str], ours: RegisteredServer | None, earlier: Earlier = _NOTHING
) -> PlannedChange:
    """Plan the memory server in Gemini CLI's settings, which may have comments (raises BadInput)."""
    server: dict[str, Any] | None = None
    if ours is not None:
        server = {"command": ours.server[0], "args": ours.server[1:]}
        server |= {"env": ours.variables} if ours.variables else {}
    path = user_folder(environment) / ".gemini" / "settings.json"
    return json_server(path, "mcpServers", server, earlier, json_text.loads)


def copilot_server(
    environment: Mapping[str, str], ours: RegisteredServer | None, earlier: Earlier = _NOTHING
) -> PlannedChange:
    """Plan the memory server in Copilot CLI's file of servers (raises BadInput)."""
    server: dict[str, Any] | None = None
    if ours is not None:
        server = {"type": "local", "command": ours.server[0], "args": ours.server[1:], "tools": ["*"]}
        server |= {"env": ours.variables} if ours.variables else {}
    return json_server(copilot_folder(environment) / "mcp-config.json", "mcpServers", server, earlier)


def copilot_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of Copilot CLI."""
    base = environment.get("XDG_CONFIG_HOME")
    return (Path(base).expanduser().absolute() if base else user_folder(environment)) / ".copilot"


def user_folder(environment: Mapping[str, str]) -> Path:
    """Return the person's home folder."""
    home = environment.get("HOME")
    return Path(home) if home else Path.home()

"""Registering the memory server and our hooks with other agents: which of their files name them, and how these change.

    Codex           config.toml (server), hooks.json (hooks; they run once the person has trusted them)
    Claude Code     .claude.json (server), settings.json (hooks, permissions)
    OpenCode        opencode.json or opencode.jsonc (server)
    Gemini CLI      settings.json (server)
    Copilot CLI     mcp-config.json (server)

Each function here plans; `apply` changes what was planned and keeps a copy beside each file.
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
from typing import Any, Final, Literal, cast

import msgspec

from commonplace.clients import foreign_files, json_text, toml_text
from commonplace.clients.foreign_files import PlannedChange, checked, inner_table, json_file, object_text, set_inside
from commonplace.config import HOME_VARIABLE
from commonplace.patterns import regex

Client = Literal["codex", "claude-code"]
SERVER: Final = "commonplace"
READ_TOOLS: Final = ("list", "read", "search", "find")
HOOKS: Final = {"SessionStart": "session-start", "UserPromptSubmit": "user-prompt", "SessionEnd": "session-end"}
"""The events of agents that we answer, and the names that our command gives them."""
_MATCHER: Final = "startup|clear|compact"
"""The starts of a session that need a section; a resumed session has it already."""
_SECONDS: Final = {"SessionStart": 10, "UserPromptSubmit": 10, "SessionEnd": 30}
_TABLE: Final = ("mcp_servers", SERVER)
_OURS: Final = regex(r"commonplace\S{0,400} mcp hook (session-start|session-end|user-prompt)")
_HOOKS_NAME: Final = "the hooks of Commonplace"


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
        return shlex.join([*prefix, *self.words, "mcp", "hook", HOOKS[event], *(["--allow-notes"] * self.notes)])

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


def codex_server(environment: Mapping[str, str], ours: RegisteredServer | None) -> PlannedChange:
    """Plan the table of the memory server in Codex's settings (raises BadInput)."""
    path = codex_folder(environment) / "config.toml"
    before = foreign_files.text_of(path)
    now = foreign_files.parsed(tomllib.loads, before or "", path, "TOML")
    table: dict[str, Any] | None = None
    if ours is not None:
        table = {"command": ours.server[0], "args": ours.server[1:]}
        table |= {"env": ours.variables} if ours.variables else {}
    if inner_table(now, "mcp_servers", path).get(SERVER) == table:
        return PlannedChange(path, before, before or "")
    after = toml_text.put(before or "", _TABLE, table) if table else toml_text.drop(before or "", _TABLE)
    wanted = copy.deepcopy(now)
    set_inside(wanted, "mcp_servers", SERVER, table)
    return checked(PlannedChange(path, before, after), tomllib.loads, wanted, f"[{'.'.join(_TABLE)}]")


def codex_hooks(
    environment: Mapping[str, str], ours: RegisteredServer | None, events: Sequence[str] = ()
) -> PlannedChange:
    """Plan our hooks in Codex's file of hooks (raises BadInput)."""
    path = codex_folder(environment) / "hooks.json"
    before, now = json_file(path)
    text, wanted = _with_hooks(object_text(before), copy.deepcopy(now), path, ours, events)
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


def claude_server(environment: Mapping[str, str], ours: RegisteredServer | None) -> PlannedChange:
    """Plan the memory server in Claude Code's file of servers (raises BadInput)."""
    server: dict[str, Any] | None = None
    if ours is not None:
        server = {"type": "stdio", "command": ours.server[0], "args": ours.server[1:], "env": ours.variables}
    return json_server(claude_files(environment)[0], "mcpServers", server)


def claude_settings(
    environment: Mapping[str, str],
    ours: RegisteredServer | None,
    events: Sequence[str] = (),
    *,
    is_allowed: bool = False,
) -> PlannedChange:
    """Plan our hooks in Claude Code's settings, and leave to call the reading tools if it is given (raises BadInput).

    Leave that was given before stays unless everything of ours is taken out.
    """
    path = claude_files(environment)[1]
    before, now = json_file(path)
    text, wanted = _with_hooks(object_text(before), copy.deepcopy(now), path, ours, events)
    if is_allowed or ours is None:
        text = _with_leave(text, wanted, path, is_allowed=is_allowed)
    after = text if before is not None or ours is not None else ""
    return checked(PlannedChange(path, before, after), json.loads, wanted, _HOOKS_NAME)


def claude_rules() -> list[str]:
    """Return the rules by which Claude Code calls the reading tools without asking."""
    return [f"mcp__{SERVER}__{name}" for name in READ_TOOLS]


def _with_leave(text: str, wanted: dict[str, Any], path: Path, *, is_allowed: bool) -> str:
    """Return the settings with or without our rules; `wanted` is changed to mean the same."""
    rules = inner_table(wanted, "permissions", path).get("allow", [])
    if not isinstance(rules, list):
        raise foreign_files.misunderstood(path)
    allowed = cast("list[Any]", rules)
    if is_allowed:
        missing = [rule for rule in claude_rules() if rule not in allowed]
        for rule in missing:
            text = json_text.put(text, ("permissions", "allow", len(allowed)), rule)
            allowed.append(rule)
        if missing:
            set_inside(wanted, "permissions", "allow", allowed)
        return text
    places = [place for place, rule in enumerate(allowed) if rule in claude_rules()]
    for place in reversed(places):
        text = json_text.drop(text, ("permissions", "allow", place))
        del allowed[place]
    if places:
        set_inside(wanted, "permissions", "allow", allowed or None)
    return text


# Agents that only have servers


def json_server(
    path: Path, table: str, server: dict[str, Any] | None, parse: Callable[[str], Any] = json.loads
) -> PlannedChange:
    """Plan the memory server in a JSON file that lists servers in a table (raises BadInput)."""
    before, now = json_file(path, parse)
    if inner_table(now, table, path).get(SERVER) == server:
        return PlannedChange(path, before, before or "")
    place = (table, SERVER)
    text = object_text(before)
    after = json_text.put(text, place, server) if server else json_text.drop(text, place)
    wanted = copy.deepcopy(now)
    set_inside(wanted, table, SERVER, server)
    return checked(PlannedChange(path, before, after), parse, wanted, f"{table}.{SERVER}")


def opencode_server(environment: Mapping[str, str], ours: RegisteredServer | None) -> PlannedChange:
    """Plan the memory server in OpenCode's settings, which may have comments (raises BadInput)."""
    folder = opencode_folder(environment)
    server: dict[str, Any] | None = None
    if ours is not None:
        server = {"type": "local", "command": ours.server, "enabled": True}
        server |= {"environment": ours.variables} if ours.variables else {}
    commented = folder / "opencode.jsonc"
    path = commented if commented.exists() else folder / "opencode.json"
    return json_server(path, "mcp", server, json_text.loads)


def opencode_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of OpenCode's settings."""
    base = environment.get("XDG_CONFIG_HOME") or user_folder(environment) / ".config"
    return Path(base).expanduser().absolute() / "opencode"


def gemini_server(environment: Mapping[str, str], ours: RegisteredServer | None) -> PlannedChange:
    """Plan the memory server in Gemini CLI's settings, which may have comments (raises BadInput)."""
    server: dict[str, Any] | None = None
    if ours is not None:
        server = {"command": ours.server[0], "args": ours.server[1:]}
        server |= {"env": ours.variables} if ours.variables else {}
    path = user_folder(environment) / ".gemini" / "settings.json"
    return json_server(path, "mcpServers", server, json_text.loads)


def copilot_server(environment: Mapping[str, str], ours: RegisteredServer | None) -> PlannedChange:
    """Plan the memory server in Copilot CLI's file of servers (raises BadInput)."""
    server: dict[str, Any] | None = None
    if ours is not None:
        server = {"type": "local", "command": ours.server[0], "args": ours.server[1:], "tools": ["*"]}
        server |= {"env": ours.variables} if ours.variables else {}
    return json_server(copilot_folder(environment) / "mcp-config.json", "mcpServers", server)


def copilot_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of Copilot CLI."""
    base = environment.get("XDG_CONFIG_HOME")
    return (Path(base).expanduser().absolute() if base else user_folder(environment)) / ".copilot"


def user_folder(environment: Mapping[str, str]) -> Path:
    """Return the person's home folder."""
    home = environment.get("HOME")
    return Path(home) if home else Path.home()


# Hooks


def has_hook(settings: dict[str, Any], event: str) -> bool:
    """Say whether settings have our hook for an event."""
    groups = cast("dict[str, Any]", settings.get("hooks") or {}).get(event, [])
    return any(_our_hooks(group) for group in cast("list[Any]", groups if isinstance(groups, list) else []))


def _with_hooks(
    text: str, wanted: dict[str, Any], path: Path, ours: RegisteredServer | None, events: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """Return a text with our hooks for some events and for no others, and what it means then."""
    for event in HOOKS:
        group = ours.group(event) if ours is not None and event in events else None
        groups = inner_table(wanted, "hooks", path).get(event, [])
        if not isinstance(groups, list):
            raise foreign_files.misunderstood(path)
        text = _with_group(text, wanted, event, cast("list[Any]", groups), group)
    return text, wanted


def _with_group(text: str, wanted: dict[str, Any], event: str, groups: list[Any], group: dict[str, Any] | None) -> str:
    """Return the settings with our hook for an event and without older ones; `wanted` is changed to mean the same."""
    ours = [(place, _our_hooks(each)) for place, each in enumerate(groups)]
    ours = [(place, positions) for place, positions in ours if positions]
    if group is not None and [groups[place] for place, _ in ours] == [group]:
        return text
    for place, positions in reversed(ours):
        if len(positions) == len(groups[place]["hooks"]):
            text = json_text.drop(text, ("hooks", event, place))
            del groups[place]
            continue
        for position in reversed(positions):
            text = json_text.drop(text, ("hooks", event, place, "hooks", position))
            del groups[place]["hooks"][position]
    if group is not None:
        text = json_text.put(text, ("hooks", event, len(groups)), group)
        groups.append(group)
    if groups or ours:
        set_inside(wanted, "hooks", event, groups or None)
    return text


def _our_hooks(group: Any) -> list[int]:
    """Return where in a group of hooks ours stand."""
    hooks = cast("dict[str, Any]", group).get("hooks") if isinstance(group, dict) else None
    return [
        position
        for position, each in enumerate(cast("list[Any]", hooks) if isinstance(hooks, list) else [])
        if isinstance(each, dict) and _OURS.search(str(cast("dict[str, Any]", each).get("command")))
    ]

"""Registering the memory server with other agents: which of their files name it, and how those files are changed.

The files belong to somebody else. They are changed as text, so that comments, order and spacing stay. Their meaning
outside our own part is compared before and after the change, and nothing is written unless it is the same. A change is
planned and shown first; then a copy is kept beside the file, and the file is replaced in one step. A symbolic link is
followed: people keep these files elsewhere and link to them.
"""

from __future__ import annotations

import contextlib
import copy
import difflib
import json
import os
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec

from commonplace.clients import json_text, toml_text
from commonplace.config import HOME_VARIABLE
from commonplace.errors import BadInput

Client = Literal["codex", "claude-code"]
SERVER: Final = "commonplace"
HOOKS: Final = {"SessionStart": "session-start", "SessionEnd": "session-end"}
"""The events of Claude Code that we answer, and the names that our command gives them."""
_MATCHER: Final = "startup|clear|compact"
"""The starts of a session that need a section; a resumed session has it already."""
_SECONDS: Final = {"SessionStart": 10, "SessionEnd": 30}
_TABLE: Final = ("mcp_servers", SERVER)
_OURS: Final = re.compile(r"commonplace\S{0,400} mcp hook (session-start|session-end)")


class PlannedChange(msgspec.Struct, frozen=True):
    """The planned change of one file; `before` is None if the file does not exist yet."""

    path: Path
    before: str | None
    after: str

    @property
    def is_one(self) -> bool:
        """Whether anything would change."""
        return (self.before or "") != self.after

    def diff(self) -> str:
        """Return the change as people read it."""
        before, after = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        lines = difflib.unified_diff(before, after, str(self.path), str(self.path))
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


class AppliedChange(msgspec.Struct):
    """The applied change of one file (a row of the JSON of `mcp install`)."""

    path: str
    changed: bool
    backup: str | None


class RegistrationReport(msgspec.Struct):
    """The changes to a client's files (the JSON of `mcp install`)."""

    client: str
    files: list[AppliedChange]


def command() -> list[str]:
    """Return how another program starts ours: the installed command, else this Python with our module."""
    beside = Path(sys.executable).with_name("commonplace")
    return [str(beside)] if os.access(beside, os.X_OK) else [sys.executable, "-m", "commonplace"]


def install(client: Client, environment: Mapping[str, str], *, notes: bool = False) -> list[PlannedChange]:
    """Plan the changes that make a client know the memory server.

    Raises:
        BadInput: a file is not what it should be, or cannot be changed safely.
    """
    ours = command()
    arguments = [*ours[1:], "mcp", *(["--allow-notes"] if notes else [])]
    # A client may start servers with little of its own environment: where the home is must be said.
    home = environment.get(HOME_VARIABLE)
    variables = {HOME_VARIABLE: str(Path(home).expanduser().absolute())} if home else {}
    if client == "codex":
        table: dict[str, Any] = {"command": ours[0], "args": arguments}
        return [_codex(environment, table | ({"env": variables} if variables else {}))]
    server = {"type": "stdio", "command": ours[0], "args": arguments, "env": variables}
    prefix = ["env", *(f"{name}={value}" for name, value in variables.items())] if variables else []
    return [
        _claude_server(environment, server),
        _claude_hooks(environment, shlex.join([*prefix, *ours, "mcp", "hook"]), " --allow-notes" if notes else ""),
    ]


def uninstall(client: Client, environment: Mapping[str, str]) -> list[PlannedChange]:
    """Plan the changes that remove the memory server from a client's files.

    Raises:
        BadInput: a file is not what it should be, or cannot be changed safely.
    """
    if client == "codex":
        return [_codex(environment, None)]
    return [_claude_server(environment, None), _claude_hooks(environment, None)]


def _codex(environment: Mapping[str, str], table: dict[str, Any] | None) -> PlannedChange:
    home = environment.get("CODEX_HOME") or str(_user(environment) / ".codex")
    path = Path(home).expanduser().absolute() / "config.toml"
    before = _text(path)
    now = _parsed(tomllib.loads, before or "", path, "TOML")
    if _inside(now, "mcp_servers", path).get(SERVER) == table:
        return PlannedChange(path, before, before or "")
    after = toml_text.put(before or "", _TABLE, table) if table else toml_text.drop(before or "", _TABLE)
    wanted = copy.deepcopy(now)
    _set(wanted, "mcp_servers", SERVER, table)
    return _checked(PlannedChange(path, before, after), tomllib.loads, wanted, f"[{'.'.join(_TABLE)}]")


def _claude_folder(environment: Mapping[str, str]) -> Path | None:
    chosen = environment.get("CLAUDE_CONFIG_DIR")
    return Path(chosen).expanduser().absolute() if chosen else None


def _claude_server(environment: Mapping[str, str], server: dict[str, Any] | None) -> PlannedChange:
    path = (_claude_folder(environment) or _user(environment)) / ".claude.json"
    before, now = _json(path)
    if _inside(now, "mcpServers", path).get(SERVER) == server:
        return PlannedChange(path, before, before or "")
    place = ("mcpServers", SERVER)
    after = json_text.put(_object(before), place, server) if server else json_text.drop(_object(before), place)
    wanted = copy.deepcopy(now)
    _set(wanted, "mcpServers", SERVER, server)
    return _checked(PlannedChange(path, before, after), json.loads, wanted, f"mcpServers.{SERVER}")


def _claude_hooks(environment: Mapping[str, str], prefix: str | None, ending: str = "") -> PlannedChange:
    path = (_claude_folder(environment) or _user(environment) / ".claude") / "settings.json"
    before, now = _json(path)
    text, wanted = _object(before), copy.deepcopy(now)
    for event, word in HOOKS.items():
        group: dict[str, Any] | None = None
        if prefix is not None:
            group = {"hooks": [{"type": "command", "command": f"{prefix} {word}{ending}", "timeout": _SECONDS[event]}]}
            group = {"matcher": _MATCHER, **group} if event == "SessionStart" else group
        groups = _inside(wanted, "hooks", path).get(event, [])
        if not isinstance(groups, list):
            raise _not_understood(path)
        text = _with_group(text, wanted, event, cast("list[Any]", groups), group)
    if before is None and prefix is None:
        text = ""
    return _checked(PlannedChange(path, before, text), json.loads, wanted, "the hooks of Commonplace")


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
        _set(wanted, "hooks", event, groups or None)
    return text


def _our_hooks(group: Any) -> list[int]:
    """Return where in a group of hooks ours stand."""
    hooks = cast("dict[str, Any]", group).get("hooks") if isinstance(group, dict) else None
    return [
        position
        for position, each in enumerate(cast("list[Any]", hooks) if isinstance(hooks, list) else [])
        if isinstance(each, dict) and _OURS.search(str(cast("dict[str, Any]", each).get("command")))
    ]


def _inside(table: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    """Return a table in a table, an empty one if there is none.

    Raises:
        BadInput: it is something else.
    """
    found = table.get(name, {})
    if not isinstance(found, dict):
        raise _not_understood(path)
    return cast("dict[str, Any]", found)


def _not_understood(path: Path) -> BadInput:
    return BadInput(f"{path} does not say what it should say.", hint="Correct it first; nothing was changed.")


def _set(table: dict[str, Any], outer: str, inner: str, value: Any) -> None:
    """Put a value into a table of tables, or take it out together with a table that held only it."""
    inside = table.setdefault(outer, {})
    if value is not None:
        inside[inner] = value
        return
    inside.pop(inner, None)
    if not inside:
        del table[outer]


def _checked(change: PlannedChange, parse: Callable[[str], Any], wanted: dict[str, Any], what: str) -> PlannedChange:
    """Return a change whose result means what it should.

    Raises:
        BadInput: it does not.
    """
    try:
        meant: Any = parse(change.after) if change.after else {}
    except ValueError:
        meant = None
    if meant != wanted:
        hint = f"Change {what} there by hand."
        raise BadInput(f"{change.path} is written in a way that is not changed safely.", hint=hint)
    return change


def _user(environment: Mapping[str, str]) -> Path:
    home = environment.get("HOME")
    return Path(home) if home else Path.home()


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not text in UTF-8.", hint="Correct it first; nothing was changed.") from None


def _json(path: Path) -> tuple[str | None, dict[str, Any]]:
    text = _text(path)
    return text, _parsed(json.loads, text if text and text.strip() else "{}", path, "JSON")


def _object(text: str | None) -> str:
    """Return a text that holds a JSON object: an empty file counts as an empty object."""
    return text if text and text.strip() else "{}\n"


def _parsed(parse: Callable[[str], Any], text: str, path: Path, kind: str) -> dict[str, Any]:
    try:
        value = parse(text)
    except (ValueError, RecursionError) as wrong:
        hint = "Correct it first; nothing was changed."
        raise BadInput(f"{path} is not valid {kind}: {wrong}.", hint=hint) from None
    if not isinstance(value, dict):
        raise BadInput(f"{path} holds no {kind} object.", hint="Correct it first; nothing was changed.")
    return cast("dict[str, Any]", value)


def apply(client: Client, changes: list[PlannedChange], now: datetime) -> RegistrationReport:
    """Apply the planned changes; a copy of each existing file is kept beside it first.

    Raises:
        BadInput: a file changed after the plan was made.
    """
    for change in changes:
        if _text(change.path) != change.before and change.is_one:
            raise BadInput(f"{change.path} was changed meanwhile.", hint="Run the command again.")
    files: list[AppliedChange] = []
    for change in changes:
        backup = _replace(change, now) if change.is_one else None
        files.append(AppliedChange(str(change.path), change.is_one, str(backup) if backup else None))
    return RegistrationReport(client, files)


def _replace(change: PlannedChange, now: datetime) -> Path | None:
    target = change.path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    kept = _keep(target, change.before, now) if change.before is not None else None
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(change.after.encode("utf-8"))
            if kept is not None:
                state = target.stat()
                os.fchmod(file.fileno(), state.st_mode & 0o7777)
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), state.st_uid, state.st_gid)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return kept


def _keep(target: Path, text: str, now: datetime) -> Path:
    """Write a copy beside a file, under a name that is free; only its owner can read it."""
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    for number in range(1, 1000):
        name = f"{target.name}.backup-{stamp}" + (f"-{number}" if number > 1 else "")
        try:
            descriptor = os.open(target.with_name(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))
        return target.with_name(name)
    raise BadInput(f"There are too many copies of {target}.", hint="Remove some of them.")

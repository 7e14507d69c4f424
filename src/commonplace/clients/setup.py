"""Setting up the agents of this machine, and undoing it: which agents there are, what changes, what is set up already.

Everything that a setup changed is recorded in the home (`setup.json`): each file's bytes from before and after. An undo
puts a file back byte for byte if it is as the setup left it. If somebody changed it since, that change stays and only
ours is taken back, to the byte where the two changed different lines; what the file had of ours before the setup comes
back. One agent's file that cannot be changed leaves that agent alone and none of the others.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import stat
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, cast

import msgspec

from commonplace.clients import foreign_files, hook_groups, json_text, registration
from commonplace.clients.foreign_files import PlannedChange
from commonplace.clients.registration import Earlier, RegisteredServer
from commonplace.errors import BadInput, CommonplaceError

Agent = Literal["codex", "claude-code", "opencode", "gemini", "copilot"]
AGENTS: Final[tuple[Agent, ...]] = ("codex", "claude-code", "opencode", "gemini", "copilot")
NAMES: Final = {
    "codex": "Codex", "claude-code": "Claude Code", "opencode": "OpenCode", "gemini": "Gemini CLI",
    "copilot": "Copilot CLI",
}  # fmt: skip
PROGRAMS: Final = {
    "codex": "codex", "claude-code": "claude", "opencode": "opencode", "gemini": "gemini", "copilot": "copilot",
}  # fmt: skip
RECORD: Final = "setup.json"
PLUGIN: Final = "commonplace@commonplace"
"""How agents call our plugin once it is installed."""


class ShownChange(msgspec.Struct):
    """A change of one file, as people read it."""

    path: str
    diff: str


class AgentSetup(msgspec.Struct, omit_defaults=True):
    """What a setup does, or did, for one agent (a row of the JSON of `setup`).

    `state` is `absent`, `planned`, `done`, `unchanged`, `plugin` (our plugin is installed there and does it),
    `undone` or `failed`.
    """

    agent: str
    found: bool
    changes: list[ShownChange]
    state: str
    problem: str | None = None


class SetupOptions(msgspec.Struct, frozen=True):
    """What a person wants to be set up."""

    prompt_hits: bool = False
    """Lessons are added to prompts, too."""
    is_allowed: bool = True
    """Claude Code may call the reading tools without asking."""


_PLAIN: Final = SetupOptions()


class AgentPlan(msgspec.Struct):
    """The planned changes for one agent."""

    agent: Agent
    found: bool
    changes: list[PlannedChange] = []
    state: str = "absent"
    problem: str | None = None

    @property
    def row(self) -> AgentSetup:
        """The plan as it is shown."""
        shown = [ShownChange(str(change.path), change.diff()) for change in self.changes if change.is_one]
        return AgentSetup(self.agent, self.found, shown, self.state, self.problem)


class _Recorded(msgspec.Struct):
    """A file that was changed: its bytes before (None: there was none) and after.

    Older records have a digest (`after`) of what was written.
    """

    agent: Agent
    path: str
    before: bytes | None
    mode: int
    folders: list[str] = []
    """Folders that were made for it, outermost first."""
    written: bytes | None = None
    after: str = ""


def is_found(agent: Agent, environment: Mapping[str, str]) -> bool:
    """Say whether an agent is on this machine: it has a folder of settings, or its program can be started."""
    folder = {
        "codex": registration.codex_folder(environment),
        "claude-code": registration.claude_files(environment)[1].parent,
        "opencode": registration.opencode_folder(environment),
        "gemini": registration.user_folder(environment) / ".gemini",
        "copilot": registration.copilot_folder(environment),
    }[agent]
    servers = registration.claude_files(environment)[0]
    is_claude = agent == "claude-code" and servers.is_file()
    return folder.is_dir() or is_claude or shutil.which(PROGRAMS[agent], path=environment.get("PATH", "")) is not None


def plan(environment: Mapping[str, str], options: SetupOptions) -> list[AgentPlan]:
    """Plan the setup of every agent; what cannot be planned for one of them is part of its plan."""
    ours = registration.server_command(environment)
    plans: list[AgentPlan] = []
    for agent in AGENTS:
        planned = AgentPlan(agent, is_found(agent, environment))
        plans.append(planned)
        if not planned.found:
            continue
        try:
            if has_plugin(agent, environment):
                planned.state = "plugin"
                continue
            planned.changes = _changes(agent, environment, ours, options)
            planned.state = "planned" if any(change.is_one for change in planned.changes) else "unchanged"
        except CommonplaceError as error:
            planned.state, planned.problem = "failed", error.sentence()
    return plans


def _changes(
    agent: Agent,
    environment: Mapping[str, str],
    ours: RegisteredServer | None,
    options: SetupOptions = _PLAIN,
    was: Earlier = MappingProxyType({}),
) -> list[PlannedChange]:
    prompts = ("UserPromptSubmit",) if options.prompt_hits else ()
    match agent:
        case "codex":
            hooks = registration.codex_hooks(environment, ours, ("SessionStart", *prompts), was)
            return [registration.codex_server(environment, ours, was), hooks]
        case "claude-code":
            events = ("SessionStart", *prompts, "SessionEnd")
            is_allowed = options.is_allowed and ours is not None
            settings = registration.claude_settings(environment, ours, events, was, is_allowed=is_allowed)
            return [registration.claude_server(environment, ours, was), settings]
        case "opencode":
            return [registration.opencode_server(environment, ours, was)]
        case "gemini":
            return [registration.gemini_server(environment, ours, was)]
        case "copilot":
            return [registration.copilot_server(environment, ours, was)]


def apply(plans: list[AgentPlan], environment: Mapping[str, str], home: Path) -> None:
    """Make the planned changes and record them; the state of each plan says what became of it."""

    def act(planned: AgentPlan, change: PlannedChange) -> None:
        if change.is_one:
            _change(planned.agent, change, environment, home)

    _carry_out(plans, "done", act, " Nothing was changed there.")


def _carry_out(
    plans: list[AgentPlan], state: str, act: Callable[[AgentPlan, PlannedChange], None], of_failure: str = ""
) -> None:
    """Make the changes of each plan, unless a file is not as it was when they were planned; note what became of it."""
    for planned in plans:
        if planned.state != "planned":
            continue
        try:
            for change in planned.changes:
                foreign_files.check_unchanged(change)
            for change in planned.changes:
                act(planned, change)
            planned.state = state
        except CommonplaceError as error:
            planned.state, planned.problem = "failed", error.sentence()
        except OSError as error:
            planned.state = "failed"
            planned.problem = f"{error.filename or planned.agent}: {error.strerror or error}.{of_failure}"


def _change(agent: Agent, change: PlannedChange, environment: Mapping[str, str], home: Path) -> None:
    """Make one change; it is recorded first, so that whatever happens can be undone."""
    target = change.path.resolve()
    missing = [place for place in reversed(target.parents) if not place.exists()]
    mode = stat.S_IMODE(target.stat().st_mode) if change.before is not None else 0o600
    before = change.before.encode() if change.before is not None else None
    noted = _Recorded(agent, str(change.path), before, mode, list(map(str, missing)), change.after.encode())
    records = _read(home)
    older = next((each for each in records if each.path == noted.path), None)
    if older is not None and before is not None:
        noted.mode, noted.folders = older.mode, older.folders
        noted.before = _without_ours(agent, change.path, environment, older)
    _write(home, [*(each for each in records if each.path != noted.path), noted])
    foreign_files.check_unchanged(change)
    foreign_files.replace(change.path, change.after.encode())


def _without_ours(agent: Agent, path: Path, environment: Mapping[str, str], record: _Recorded) -> bytes | None:
    """Return what a file would be without the setup that changed it; None if it would not exist."""
    changes = _changes(agent, environment, None, was=_meant([record]))
    (text,) = (_undone(change, record).after for change in changes if change.path == path)
    return None if record.before is None and _is_empty(text) else text.encode()


def _meant(records: Iterable[_Recorded]) -> Earlier:
    """Return what files meant before the setup that changed them."""
    return {Path(record.path): _meaning(Path(record.path), (record.before or b"").decode()) for record in records}


def _meaning(path: Path, text: str) -> dict[str, Any]:
    """Return what the text of a file of settings means; nothing if it is empty or not understood."""
    with contextlib.suppress(BadInput):
        return foreign_files.parsed(tomllib.loads if path.suffix == ".toml" else json_text.loads, text, path, "text")
    return {}


def plan_undo(environment: Mapping[str, str], home: Path) -> list[AgentPlan]:
    """Plan the undoing of a setup: each file as it was, or without our part if somebody changed it since.

    Without a record of what was changed, our part is taken out of every file.
    """
    records = {each.path: each for each in _read(home)}
    plans: list[AgentPlan] = []
    for agent in AGENTS:
        planned = AgentPlan(agent, is_found(agent, environment))
        plans.append(planned)
        try:
            changes = _changes(agent, environment, None, was=_meant(records.values()))
            if records:  # what `mcp install` put into other files stays
                changes = [change for change in changes if str(change.path) in records]
            planned.changes = [_undone(change, records.get(str(change.path))) for change in changes]
            is_any = any(change.is_one for change in planned.changes)
            planned.state = "planned" if is_any else "unchanged" if planned.found else "absent"
        except CommonplaceError as error:
            planned.state, planned.problem = "failed", error.sentence()
    return plans


def _undone(change: PlannedChange, record: _Recorded | None) -> PlannedChange:
    """Return the change that undoes what was recorded of a file.

    `change` takes out our part of the file as it is now; it stands where lines of ours were changed since.
    """
    if record is None or change.before is None:
        return change
    before = (record.before or b"").decode()
    if record.written is None:
        is_as_written = hashlib.sha256(change.before.encode()).hexdigest() == record.after
        return PlannedChange(change.path, change.before, before) if is_as_written else change
    text = foreign_files.taken_back(before, record.written.decode(), change.before)
    if text is None or (text != before and _meaning(change.path, text) != _meaning(change.path, change.after)):
        return change
    return PlannedChange(change.path, change.before, text)


def undo(plans: list[AgentPlan], home: Path) -> None:
    """Carry out a planned undoing; files and folders that the setup made are removed again."""
    records = {each.path: each for each in _read(home)}
    _carry_out(plans, "undone", lambda _, change: _restore(change, records.pop(str(change.path), None)))
    gone = {str(change.path) for planned in plans if planned.state != "failed" for change in planned.changes}
    _write(home, [each for each in _read(home) if each.path not in gone])


def _restore(change: PlannedChange, record: _Recorded | None) -> None:
    if not change.is_one:
        return
    is_ours = record is not None and record.before is None and _is_empty(change.after)
    if not is_ours:
        mode = record.mode if record is not None and record.before is not None else None
        foreign_files.replace(change.path, change.after.encode(), mode=mode)
        return
    change.path.resolve().unlink()
    for folder in reversed(record.folders if record is not None else []):
        with contextlib.suppress(OSError):  # somebody else put something there
            Path(folder).rmdir()


def _is_empty(text: str) -> bool:
    """Say whether the text of a file of settings says nothing."""
    return not text.strip("{} \r\n\t")


def _read(home: Path) -> list[_Recorded]:
    try:
        return msgspec.json.decode((home / RECORD).read_bytes(), type=list[_Recorded])
    except FileNotFoundError:
        return []
    except (msgspec.DecodeError, msgspec.ValidationError):
        path = home / RECORD
        raise BadInput(f"{path} is damaged.", hint="Move it away; then `setup --undo` takes out our part.") from None


def _write(home: Path, records: list[_Recorded]) -> None:
    path = home / RECORD
    if not records:
        path.unlink(missing_ok=True)
        return
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    foreign_files.replace(path, msgspec.json.encode(records), mode=0o600)


# What is set up


class AgentReport(msgspec.Struct, frozen=True):
    """What is set up for one agent (for `doctor`)."""

    agent: str
    found: bool
    parts: tuple[str, ...] = ()
    is_wrong: bool = False


def status(agent: Agent, environment: Mapping[str, str]) -> AgentReport:
    """Return what an agent's files say about us; a file that cannot be read is wrong."""
    if not is_found(agent, environment):
        return AgentReport(agent, found=False)
    try:
        if has_plugin(agent, environment):
            return AgentReport(agent, found=True, parts=("plugin", *_trust(agent, environment)))
        parts = _parts(agent, environment)
    except CommonplaceError as error:
        return AgentReport(agent, found=True, parts=(error.sentence(),), is_wrong=True)
    return AgentReport(agent, found=True, parts=tuple(parts))


def _parts(agent: Agent, environment: Mapping[str, str]) -> list[str]:
    changes = _changes(agent, environment, None)
    parts = ["server" if changes[0].is_one else "no server"]
    if agent == "codex":
        settings = foreign_files.json_file(registration.codex_folder(environment) / "hooks.json")[1]
        has_hook = hook_groups.has_hook(settings, "SessionStart")
        return [*parts, "hook" if has_hook else "no hook", *(_trust(agent, environment) if has_hook else ())]
    if agent == "claude-code":
        settings = foreign_files.json_file(registration.claude_files(environment)[1])[1]
        allowed: Any = cast("dict[str, Any]", settings.get("permissions") or {}).get("allow") or []
        is_allowed = set(registration.claude_rules()) <= {str(rule) for rule in cast("list[Any]", allowed)}
        hook = "hook" if hook_groups.has_hook(settings, "SessionStart") else "no hook"
        return [*parts, hook, "tools allowed" if is_allowed else "tools ask for permission"]
    return parts


def has_plugin(agent: Agent, environment: Mapping[str, str]) -> bool:
    """Say whether our plugin is installed in an agent (raises BadInput)."""
    if agent == "codex":
        row = _codex_settings(environment).get("plugins", {})
        return bool(isinstance(row, dict) and cast("dict[str, Any]", row).get(PLUGIN, {}).get("enabled"))
    if agent == "claude-code":
        row = foreign_files.json_file(registration.claude_files(environment)[1])[1].get("enabledPlugins", {})
        return isinstance(row, dict) and cast("dict[str, Any]", row).get(PLUGIN) is True
    return False


def _codex_settings(environment: Mapping[str, str]) -> dict[str, Any]:
    path = registration.codex_folder(environment) / "config.toml"
    return foreign_files.parsed(tomllib.loads, foreign_files.text_of(path) or "", path, "TOML")


def _trust(agent: Agent, environment: Mapping[str, str]) -> list[str]:
    """Say whether the person trusted our hook in Codex, as Codex notes it; it is only ever read."""
    if agent != "codex":
        return []
    hooks: Any = _codex_settings(environment).get("hooks", {})
    noted: Any = cast("dict[str, Any]", hooks).get("state", {}) if isinstance(hooks, dict) else {}
    places = (str(registration.codex_folder(environment) / "hooks.json"), f"{PLUGIN}:")
    is_trusted = any(
        key.startswith(places) and ":session_start:" in key and cast("dict[str, Any]", row).get("trusted_hash")
        for key, row in cast("dict[str, Any]", noted).items()
        if isinstance(row, dict)
    )
    return ["trusted" if is_trusted else "not trusted yet: start codex in a terminal and accept the hook once"]

"""Settings: defaults, then `config.toml`, then the environment, then flags; read in one place, passed down as values.

Each setting is a row of the table below, with its range and what it is for; `config show` prints the effective value of
every row and where it came from. A value outside its range is an error that names the place; nothing is clamped in
silence. Time is a setting too: `COMMONPLACE_NOW` fixes it for tests and demos.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from commonplace.errors import BadSetting

HOME_VARIABLE: Final = "COMMONPLACE_HOME"
NOW_VARIABLE: Final = "COMMONPLACE_NOW"
FILE: Final = "config.toml"


class Setting(msgspec.Struct, frozen=True):
    """One row of the table: name, default, limits, purpose."""

    key: str
    default: Any
    doc: str
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()

    @property
    def kind(self) -> type[Any]:
        """The type that a value must have."""
        return str if self.default is None else type(self.default)  # pyright: ignore[reportUnknownVariableType]

    @property
    def variable(self) -> str:
        """The environment variable that overrides it."""
        return "COMMONPLACE_" + self.key.upper().replace(".", "_")


def _limits(name: str, most: tuple[int, int, int], work: str) -> tuple[Setting, ...]:
    """Return the rows that limit what models may cost."""
    requests, tokens, seconds = most
    return (
        Setting(f"memory.{name}_requests", requests, f"requests to a model for {work}; 0: no limit", low=0),
        Setting(f"memory.{name}_tokens", tokens, f"tokens for {work}; 0: no limit", low=0),
        Setting(f"memory.{name}_seconds", seconds, f"time for {work}, by a model; 0: no limit", low=0),
    )


SETTINGS: Final = (
    Setting("database", "sqlite", "`sqlite` in the home, or a `postgresql://` address"),
    Setting("model", None, "the agent's model, as `provider:model`"),
    Setting("effort", None, "how hard the model thinks: none, minimal, low, medium, high, xhigh, …"),
    Setting(
        "personality", None, "the tone of answers: friendly or pragmatic", choices=("none", "friendly", "pragmatic")
    ),
    Setting(
        "sandbox",
        "read-only",
        "what the agent's commands may do",
        choices=("read-only", "workspace-write", "danger-full-access"),
    ),
    Setting("sandbox_network", False, "let commands in the sandbox use the network"),
    Setting("web_search", "disabled", "let the model's server search the web", choices=("disabled", "cached", "live")),
    Setting("undo", True, "keep the working tree before a turn changes it, for `sessions undo`"),
    Setting(
        "approval",
        "on-request",
        "when a person is asked before a command runs",
        choices=("untrusted", "on-request", "never"),
    ),
    Setting("fsync", "turn", "when lines are made to survive a loss of power", choices=("turn", "line", "never")),
    Setting("blob_bytes", 65536, "strings above this size leave their line", low=1024, high=2**30),
    Setting("memory.extract_model", "embedded", "who extracts: `embedded` or `provider:model`"),
    Setting("memory.consolidate_model", "embedded", "who consolidates: `embedded` or `provider:model`"),
    Setting("memory.use", True, "tell the agent what is remembered"),
    Setting("memory.generate", True, "learn from sessions"),
    Setting("memory.tools", True, "give the agent memory tools"),
    Setting("memory.background", True, "learn in the background of a session"),
    Setting("memory.disable_on_external_context", False, "do not learn from sessions that read the web or MCP"),
    Setting("memory.max_rollout_age_days", 30, "older sessions are not learned from", low=0, high=90),
    Setting("memory.min_rollout_idle_hours", 6, "sessions must have been quiet this long", low=1, high=48),
    Setting("memory.max_rollouts_per_start", 16, "sessions per background start", low=1, high=128),
    Setting("memory.extract_concurrency", 8, "extractions at once", low=1, high=64),
    Setting("memory.max_running", 64, "extractions at once over all processes", low=1, high=1024),
    Setting("memory.max_raw_memories", 1024, "extractions that are consolidated", low=1, high=4096),
    Setting("memory.max_unused_days", 30, "unused entries age out", low=0, high=365),
    Setting("memory.extract_lease_seconds", 300, "lease of one extraction", low=1),
    Setting("memory.extract_heartbeat_seconds", 60, "its heartbeat", low=1),
    Setting("memory.consolidate_lease_seconds", 3600, "lease of a consolidation", low=1),
    Setting("memory.consolidate_heartbeat_seconds", 90, "its heartbeat", low=1),
    Setting("memory.summary_bytes", 10_000, "size of memory_summary.md", low=0),
    Setting("memory.prompt_tokens", 5_000, "size of the prompt section", low=0),
    Setting(
        "memory.percent_of_dialogue",
        12,
        "size of the memory, as a share of what was learned from",
        low=0,
        high=100,
    ),
    Setting("memory.min_rate_limit_remaining_percent", 25, "leave the rest of a rate limit alone", low=0, high=100),
    *_limits("extract_run", (400, 4_000_000, 3_600), "reading sessions in one run"),
    *_limits("extract_day", (1_000, 10_000_000, 14_400), "reading sessions on one day (UTC)"),
    *_limits("consolidate_run", (60, 600_000, 1_800), "putting the memory together in one run"),
    *_limits("consolidate_day", (300, 3_000_000, 7_200), "putting the memory together on one day (UTC)"),
    Setting("memory.ask_tokens", 200_000, "`learn` asks before a model reads more than this; 0: always", low=0),
    Setting("memory.exclude", [], "projects, paths and sources that are never learned from"),
    Setting("compaction.target_percent", 30, "size of a compacted history, as a share of the window", low=1, high=90),
    Setting("compaction.at_tokens", 0, "compact at so many tokens; 0: at nine tenths of the model's window", low=0),
    Setting("compaction.remote", False, "let the model's server sum up, where its API can"),
    Setting("compaction.digest_tokens", 2_000, "room for the digest beside a model's summary", low=0, high=64_000),
)
_TABLES: Final = ("providers.", "hooks.", "mcp_servers.")
"""Tables whose rows are judged by whoever uses them."""
_BY_KEY: Final = {setting.key: setting for setting in SETTINGS}
_ALIASES: Final = {
    "memory.use_memories": "memory.use",
    "memory.generate_memories": "memory.generate",
    "memory.dedicated_tools": "memory.tools",
    "memory.max_rollouts_per_startup": "memory.max_rollouts_per_start",
    "model_reasoning_effort": "effort",
    "approval_policy": "approval",
    "sandbox_mode": "sandbox",
    "sandbox_workspace_write.network_access": "sandbox_network",
    "model_auto_compact_token_limit": "compaction.at_tokens",
}
"""Codex's names for the same things."""


class Value(msgspec.Struct, frozen=True):
    """An effective setting and where it came from."""

    value: Any
    source: str


class Settings(msgspec.Struct, frozen=True):
    """Everything that was decided before the program starts to work."""

    home: Path
    home_source: str
    values: Mapping[str, Value]
    providers: Mapping[str, Any]
    hooks: Mapping[str, Any]
    """Commands of the person's own, by the moment at which they are asked."""
    mcp_servers: Mapping[str, Any]
    """Servers whose tools the agent may call."""
    unknown: tuple[str, ...]
    """Keys of `config.toml` that mean nothing to this version."""
    now: Callable[[], datetime]

    def __getitem__(self, key: str) -> Any:
        """Return the effective value of a setting."""
        return self.values[key].value


def load(
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    providers: Mapping[str, Mapping[str, Any]] | None = None,
) -> Settings:
    """Read the settings of this process; nothing is written, a missing file is fine.

    `flags` and the fields in `providers` come before everything else.

    Raises:
        BadSetting: a value is out of its range, or the file is not TOML.
    """
    environment = os.environ if environment is None else environment
    home, home_source = _home(environment)
    file = home / FILE
    table = _read(file)
    values = {setting.key: Value(setting.default, "default") for setting in SETTINGS}
    unknown: list[str] = []
    for key, value in _flatten(table):
        name = _ALIASES.get(key, key)
        if name in _BY_KEY:
            values[name] = Value(_checked(_BY_KEY[name], value, str(file)), FILE)
        elif not name.startswith(_TABLES):
            unknown.append(key)
    for setting in SETTINGS:
        if (text := environment.get(setting.variable)) is not None:
            values[setting.key] = Value(_from_text(setting, text, setting.variable), setting.variable)
    for key, value in (flags or {}).items():
        values[key] = Value(_checked(_BY_KEY[key], value, "the command line"), "flag")
    described = _with(table.get("providers", {}), providers or {})
    hooks, servers = table.get("hooks", {}), table.get("mcp_servers", {})
    return Settings(home, home_source, values, described, hooks, servers, tuple(unknown), _clock(environment))


def name_of(key: str) -> str | None:
    """Return the setting that a key means, by our name or Codex's; None if there is none."""
    name = _ALIASES.get(key, key)
    return name if name in _BY_KEY else None


def _with(table: Any, providers: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return providers with some of their fields replaced."""
    own = cast("dict[str, Any]", table)
    if not providers or not isinstance(table, dict):
        return own
    merged = {name: {**cast("dict[str, Any]", own.get(name) or {}), **fields} for name, fields in providers.items()}
    return own | merged


def _home(environment: Mapping[str, str]) -> tuple[Path, str]:
    if chosen := environment.get(HOME_VARIABLE):
        return Path(chosen).expanduser().absolute(), HOME_VARIABLE
    return Path("~/.commonplace").expanduser(), "default"


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSetting(f"{file} is not valid TOML: {error}.", hint="Correct that line.") from None
    except OSError as error:
        raise BadSetting(f"{file} cannot be read: {error.strerror}.", hint="Check its permissions.") from None


def _flatten(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return dotted keys; `[memories]`, Codex's name of the table, is ours too."""
    flat: list[tuple[str, Any]] = []
    for key, value in table.items():
        name = prefix + ("memory" if not prefix and key == "memories" else key)
        if isinstance(value, dict):
            flat.extend(_flatten(value, f"{name}."))  # pyright: ignore[reportUnknownArgumentType]
        else:
            flat.append((name, value))
    return flat


def _checked(setting: Setting, value: Any, place: str) -> Any:
    if type(value) is not setting.kind:
        wanted = {"str": "a text", "int": "a number", "bool": "true or false", "list": "a list"}[setting.kind.__name__]
        raise BadSetting(f"{setting.key} in {place} must be {wanted}, not {value!r}.", hint="Correct that line.")
    if setting.key == "database" and value != "sqlite" and not value.startswith(("postgresql://", "postgres://")):
        raise BadSetting(f"database in {place} is {value!r}.", hint="Use sqlite or a postgresql:// address.")
    if setting.choices and value not in setting.choices:
        raise BadSetting(f"{setting.key} in {place} is {value!r}.", hint=f"Use one of {', '.join(setting.choices)}.")
    low, high = setting.low, setting.high
    if isinstance(value, int) and ((low is not None and value < low) or (high is not None and value > high)):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise BadSetting(f"{setting.key} in {place} is {value}.", hint=f"Use a number {limits}.")
    return value


def _from_text(setting: Setting, text: str, place: str) -> Any:
    if setting.kind is bool and text.lower() in ("true", "false", "1", "0"):
        return text.lower() in ("true", "1")
    if setting.kind is int and text.strip().lstrip("-").isdecimal():
        return _checked(setting, int(text), place)
    if setting.kind is list:
        return [part.strip() for part in text.split(",") if part.strip()]
    return _checked(setting, text, place)


def _clock(environment: Mapping[str, str]) -> Callable[[], datetime]:
    text = environment.get(NOW_VARIABLE)
    if not text:
        return lambda: datetime.now(UTC)
    try:
        fixed = datetime.fromisoformat(text)
    except ValueError:
        raise BadSetting(f"{NOW_VARIABLE} is {text!r}.", hint="Use an ISO time such as 2026-11-15T10:00:00Z.") from None
    fixed = fixed if fixed.tzinfo else fixed.replace(tzinfo=UTC)
    return lambda: fixed

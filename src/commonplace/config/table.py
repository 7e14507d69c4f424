"""The settings as a table: one row per field of the types in `settings`, derived from their annotations.

A row knows its dotted name, its environment variable, what values it takes and how text becomes one. Older names and
Codex's names lead to rows too.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import msgspec

from commonplace.config.settings import Settings
from commonplace.errors import BadSetting

CODEX_NAMES: Final = {
    "memory.use_memories": "memory.use",
    "memory.generate_memories": "memory.generate",
    "memory.dedicated_tools": "memory.tools",
    "memory.max_rollouts_per_startup": "memory.max_rollouts_per_start",
    "model_reasoning_effort": "effort",
    "approval_policy": "approval",
    "sandbox_mode": "sandbox",
    "sandbox_workspace_write.network_access": "sandbox_network",
    "features.child_agents_md": "child_agents_md",
    "model_auto_compact_token_limit": "compaction.at_tokens",
    "agents.max_threads": "agents.max_concurrent_threads_per_session",
}
"""Codex's names for the same things."""
OLDER_NAMES: Final = {
    "memory.phase_1_model": "memory.extract_model",
    "memory.phase_2_model": "memory.consolidate_model",
    "memory.consolidation_model": "memory.consolidate_model",
    "memory.max_raw_memories_for_global": "memory.max_raw_memories",
    "memory.max_raw_memories_for_consolidation": "memory.max_raw_memories",
    "memory.no_memories_if_mcp_or_web_search": "memory.disable_on_external_context",
}
"""Names that were given up, in Codex or here; they still work, and the person is told the new one."""
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_MAX_NAME: Final = 64
_KINDS: Final = {str: "a text", int: "a number", bool: "true or false", tuple: "a list of texts"}


class Setting(msgspec.Struct, frozen=True):
    """One row of the table: name, type, default, limits, purpose."""

    key: str
    kind: type[Any]
    default: Any
    doc: str
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    beginnings: tuple[str, ...] = ()
    """How a text must begin that is not the default."""
    is_name: bool = False
    """Whether a text must be a name of small letters, digits, dots, dashes and underscores."""
    hint: str = ""
    """What to do about a text that begins otherwise, or is no such name."""

    @property
    def variable(self) -> str:
        """The environment variable that overrides it."""
        return "COMMONPLACE_" + self.key.upper().replace(".", "_")

    def of(self, settings: Settings) -> Any:
        """Return its effective value."""
        value: Any = settings
        for name in self.key.split("."):
            value = getattr(value, name)
        return value

    def checked(self, value: Any, place: str) -> Any:
        """Return a value as the settings hold it (raises BadSetting, with the place that it came from)."""
        if self.kind is tuple and type(value) is list:
            value = tuple(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        if type(value) is not self.kind or (self.kind is tuple and not all(type(each) is str for each in value)):
            wanted = _KINDS[self.kind]
            raise BadSetting(f"{self.key} in {place} must be {wanted}, not {value!r}.", hint="Correct that line.")
        if self.beginnings and value != self.default and not value.startswith(self.beginnings):
            raise BadSetting(f"{self.key} in {place} is {value!r}.", hint=self.hint)
        if self.is_name and not _is_name(value):
            raise BadSetting(f"{self.key} in {place} is {value!r}.", hint=self.hint)
        if self.choices and value not in self.choices:
            raise BadSetting(f"{self.key} in {place} is {value!r}.", hint=f"Use one of {', '.join(self.choices)}.")
        if (self.low is not None and value < self.low) or (self.high is not None and value > self.high):
            limits = f"at least {self.low}" if self.high is None else f"from {self.low} to {self.high}"
            raise BadSetting(f"{self.key} in {place} is {value}.", hint=f"Use a number {limits}.")
        return value

    def parsed(self, text: str, place: str) -> Any:
        """Return the value that an environment variable's text stands for (raises BadSetting)."""
        if self.kind is bool and text.lower() in ("true", "false", "1", "0"):
            return text.lower() in ("true", "1")
        if self.kind is int and text.strip().lstrip("-").isdecimal():
            return self.checked(int(text), place)
        if self.kind is tuple:
            return tuple(part.strip() for part in text.split(",") if part.strip())
        return self.checked(text, place)

    def text(self, value: Any) -> str:
        """Return the text that stands for a value in an environment variable."""
        if self.kind is bool:
            return str(value).lower()
        return ",".join(value) if self.kind is tuple else str(value)


def _is_name(value: str) -> bool:
    return 0 < len(value) <= _MAX_NAME and value[0] in _LETTERS and set(value) <= _LETTERS | set("._-")


def _rows(values: msgspec.Struct, prefix: str = "") -> list[Setting]:
    """Return the rows of a struct's annotated fields, and of the structs in it; its values are the defaults."""
    rows: list[Setting] = []
    for name, annotation in type(values).__annotations__.items():
        value = getattr(values, name)
        if isinstance(value, msgspec.Struct):
            rows += _rows(value, f"{prefix}{name}.")
        elif get_origin(annotation) is Annotated:
            rows.append(_row(prefix + name, annotation, value))
    return rows


def _row(key: str, annotation: Any, default: Any) -> Setting:
    wanted: Any
    meta: msgspec.Meta
    wanted, meta = get_args(annotation)
    if NoneType in get_args(wanted):
        wanted = next(each for each in get_args(wanted) if each is not NoneType)
    choices: tuple[str, ...] = get_args(wanted) if get_origin(wanted) is Literal else ()
    kind = str if choices else get_origin(wanted) or wanted
    low, high = (None if limit is None else int(limit) for limit in (meta.ge, meta.le))
    return Setting(key, kind, default, meta.description or "", low, high, choices, **(meta.extra or {}))


SETTINGS: Final = tuple(_rows(Settings(home=Path(), home_source="default", now=lambda: datetime.now(UTC))))
BY_KEY: Final = {setting.key: setting for setting in SETTINGS}


def name_of(key: str) -> str | None:
    """Return the setting that a key means, by our name, Codex's or an older one; None if there is none."""
    name = CODEX_NAMES.get(key) or OLDER_NAMES.get(key) or key
    return name if name in BY_KEY else None

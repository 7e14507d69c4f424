"""Settings from a command line, as `--config key=value`: our names, and the names that Codex's clients pass.

A value is a TOML literal; anything else is taken as text, so that `model=gpt-5.4` works without quotes. Keys that only
Codex knows are ignored, so that a client written for Codex runs unchanged; they are returned, and a person is told.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from commonplace import config
from commonplace.config.table import BY_KEY
from commonplace.errors import BadInput

_FIELDS: Final = {
    "base_url": "base_url",
    "env_key": "api_key_env",
    "wire_api": "api",
    "http_headers": "headers",
    "request_max_retries": "retries",
}
"""Fields of a provider, by Codex's names."""
_TABLES: Final = ("providers", "model_providers", "memory", "memories", "compaction", "sandbox_workspace_write")
_SAME: Final = {("approval_policy", "on-failure"): "on-request"}
"""Values that Codex's clients still pass, and their meaning here."""


class Overrides(msgspec.Struct):
    """What a command line sets."""

    flags: dict[str, Any] = {}
    providers: dict[str, dict[str, Any]] = {}
    provider: str | None = None
    """The provider of models that are named without one."""
    profile: str | None = None
    """The table of `[profiles]` that is named as a setting."""
    ignored: list[str] = []
    renamed: list[str] = []
    """Keys that have another name now."""

    def notes(self) -> list[str]:
        """Return a sentence for each key that means nothing here, or that has another name now."""
        renamed = (f"--config {key} is called {config.name_of(_key(key))} now; it still works." for key in self.renamed)
        return [*(f"--config {key} means nothing here and is let be." for key in self.ignored), *renamed]

    def checked_flags(self, place: str) -> dict[str, Any]:
        """Return the settings (raises BadSetting: one has a value that it cannot have; `place` says where)."""
        return {name: BY_KEY[name].checked(value, place) for name, value in self.flags.items()}

    def model(self, named: str | None) -> str | None:
        """Return the model that is meant: as named, else as set here, with the provider that is set here."""
        wanted = named or self.flags.get("model")
        if not isinstance(wanted, str) or ":" in wanted or self.provider is None:
            return named
        return f"{self.provider}:{wanted}"


def parse(pairs: Iterable[str]) -> Overrides:
    """Return what `key=value` pairs set.

    Raises:
        BadInput: one of them is no pair.
    """
    found = Overrides()
    for pair in pairs:
        key, equals, text = pair.partition("=")
        key = key.strip()
        if not equals or not key:
            raise BadInput(f"{pair!r} is no key=value.", hint="Write --config model=openai:gpt-5.4.")
        _set(found, key, _value(text.strip()))
    return found


def of(values: Mapping[str, Any]) -> Overrides:
    """Return what a table of settings by their dotted names sets."""
    found = Overrides()
    for key, value in values.items():
        _set(found, key, value)
    return found


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # no TOML, a number of thousands of digits, brackets without end
        return text


def _set(overrides: Overrides, key: str, value: Any) -> None:
    parts = key.split(".")
    if parts[0] in _TABLES and len(parts) < _depth(parts[0]) and isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            _set(overrides, f"{key}.{name}", inner)
    elif key == "openai_base_url":
        overrides.providers.setdefault("openai", {})["base_url"] = value
        overrides.provider = overrides.provider or "openai"
    elif key == "model_provider":
        overrides.provider = str(value)
    elif parts[0] in ("model_providers", "providers") and len(parts) > 2:
        _set_provider(overrides, key, parts, value)
    elif key == "profile":
        overrides.profile = str(value)
    elif (name := config.name_of(_key(key))) is not None:
        overrides.flags[name] = _SAME.get((key, value), value) if isinstance(value, str) else value
        if _key(key) in config.OLDER_NAMES:
            overrides.renamed.append(key)
    else:
        overrides.ignored.append(key)


def _key(key: str) -> str:
    """Return a key in our table `memory` instead of Codex's `memories`."""
    return key.replace("memories.", "memory.", 1) if key.startswith("memories.") else key


def _depth(table: str) -> int:
    """Return how many names lead to a value."""
    return 3 if table.endswith("providers") else 2


def _set_provider(overrides: Overrides, key: str, parts: list[str], value: Any) -> None:
    field = _FIELDS.get(parts[2]) if parts[0] == "model_providers" else parts[2]
    if field is None:
        overrides.ignored.append(key)
        return
    row = overrides.providers.setdefault(parts[1], {})
    for name in [field, *parts[3:]][:-1]:
        inner = row.get(name)
        row[name] = dict(cast("dict[str, Any]", inner)) if isinstance(inner, dict) else {}
        row = row[name]
    row[[field, *parts[3:]][-1]] = value

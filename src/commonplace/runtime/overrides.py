"""Settings from a command line, as `--config key=value`: our names and those that Codex's clients pass.

A value is a TOML literal; what is none is taken as text, so that `model=gpt-5.4` works without quotes. Keys that mean
something to Codex and nothing here are let be, so that a client written for it runs unchanged; they are returned, and
a person is told.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from commonplace import config
from commonplace.errors import BadInput

_FIELDS: Final = {"base_url": "base_url", "env_key": "api_key_env", "wire_api": "api", "http_headers": "headers"}
"""Fields of a provider, by Codex's names."""


class Overrides(msgspec.Struct):
    """What a command line sets."""

    flags: dict[str, Any] = {}
    providers: dict[str, dict[str, Any]] = {}
    provider: str | None = None
    """Who serves models that are named without a provider."""
    ignored: list[str] = []


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


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _set(found: Overrides, key: str, value: Any) -> None:
    parts = key.split(".")
    if key == "openai_base_url":
        found.providers.setdefault("openai", {})["base_url"] = value
        found.provider = found.provider or "openai"
    elif key == "model_provider":
        found.provider = str(value)
    elif parts[0] in ("model_providers", "providers") and len(parts) > 2:
        field = _FIELDS.get(parts[2]) if parts[0] == "model_providers" else parts[2]
        if field is None:
            found.ignored.append(key)
        else:
            found.providers.setdefault(parts[1], {})[field] = value
    elif (name := config.name_of(key.replace("memories.", "memory.", 1))) is not None:
        found.flags[name] = value
    else:
        found.ignored.append(key)

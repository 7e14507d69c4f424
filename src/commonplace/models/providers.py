"""From settings to a model: who serves it, where, by which API and with which key.

A model is named `provider:model`. Three providers are known without settings; `[providers.NAME]` adds one or changes
fields of one. Nothing here connects to anything, and a key is read from the environment only for the provider that was
named, so nothing is sent anywhere before a person names a model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, Literal, cast
from urllib.parse import urlsplit

import msgspec

from commonplace.config import Settings
from commonplace.errors import BadSetting
from commonplace.models import agents, catalog
from commonplace.models.agents import AgentName
from commonplace.models.base import Model
from commonplace.models.catalog import ModelInfo
from commonplace.models.retries import RetryPolicy

OPENAI_KEY: Final = "OPENAI_API_KEY"
HANDED_KEY: Final = "CODEX_API_KEY"
"""Where Codex's SDKs hand a key over; commands of agents never see it."""
EXAMPLE: Final = "openai:gpt-5.4"
HOW: Final = (
    f'Set one, for example `model = "{EXAMPLE}"` in config.toml, COMMONPLACE_MODEL={EXAMPLE} or -m {EXAMPLE}; '
    "providers of your own go under [providers.NAME]."
)


class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of `[providers]`."""

    api: Literal["responses", "chat", "anthropic", "agent"]
    base_url: str = ""
    """Up to and with the version, as in `http://127.0.0.1:8000/v1`; an agent has none."""
    api_key_env: str | None = None
    """The environment variable that holds the key; none is sent without it."""
    headers: dict[str, str] = {}
    trust_env: bool = False
    """Whether the proxies of the environment are used."""
    idle_seconds: float = 300.0
    retries: int = 4
    parallel: int = 0
    """Requests at once while sessions are read; 0: as many as `memory.extract_concurrency` allows."""
    models: dict[str, Any] = {}
    """Rows that add to the catalogue or correct it."""


BUILT_IN: Final[Mapping[str, Mapping[str, Any]]] = {
    "openai": {"api": "responses", "base_url": "https://api.openai.com/v1", "api_key_env": OPENAI_KEY},
    "anthropic": {"api": "anthropic", "base_url": "https://api.anthropic.com/v1", "api_key_env": "ANTHROPIC_API_KEY"},
    "ollama": {"api": "chat", "base_url": "http://127.0.0.1:11434/v1", "parallel": 1},
    "claude-code": {"api": "agent", "parallel": 3},
    "codex": {"api": "agent", "parallel": 3},
}
AGENTS: Final[tuple[AgentName, ...]] = ("claude-code", "codex")
"""Providers that are a person's own agents: they read sessions, and no agent of ours runs on them."""
_AGENT_INFO: Final = ModelInfo(window=200_000, max_output=16_000, efforts=("low", "medium", "high"))


class Choice(msgspec.Struct, frozen=True):
    """A model that was named, and everything needed to reach it, except the key."""

    name: str
    """The provider's name."""
    provider: Provider
    slug: str
    """The model's name as the provider spells it."""
    info: ModelInfo

    def other_model(self, slug: str) -> Choice:
        """Return another model of the same provider."""
        return Choice(self.name, self.provider, slug, catalog.model_info(slug, self.provider.models))


def choose(settings: Settings, name: str | None = None, *, for_reading: bool = False) -> Choice:
    """Return the model that a name (or the setting `model`) means; for reading sessions, it may be an agent.

    Raises:
        BadSetting: no model is set, its provider is unknown, or the provider's settings cannot be used.
    """
    wanted = (name or settings.model or "").strip()
    if not wanted:
        raise BadSetting("No model is set.", hint=HOW)
    if wanted == "embedded":
        raise BadSetting("`embedded` learns from sessions; it is not a model that an agent can run on.", hint=HOW)
    head, colon, rest = wanted.partition(":")
    if head in AGENTS and for_reading:
        return Choice(head, provider(settings, head), rest or agents.DEFAULT, _AGENT_INFO)
    if head in AGENTS:
        raise BadSetting(f"`{head}` reads sessions; it is not a model that an agent can run on.", hint=HOW)
    if colon and rest and is_provider(settings, head):
        who, slug = head, rest
    else:
        who, slug = _provider_of(settings, wanted), wanted
    row = provider(settings, who)
    return Choice(who, row, slug, catalog.model_info(slug, row.models))


def is_provider(settings: Settings, name: str) -> bool:
    """Say whether a provider has this name."""
    return name in BUILT_IN or name in settings.providers


def _provider_of(settings: Settings, slug: str) -> str:
    """Return who serves a model that was named without its provider.

    That is the provider of the person's own model if they set it up themselves, as a gateway serves many models; else
    the catalogue's, else the only one that is set up.
    """
    own = list(settings.providers)
    if ":" not in slug and (usual := settings.usual_provider) in own and usual not in BUILT_IN:
        return usual
    if (listed := catalog.model_info(slug).provider) is not None:
        return listed
    if len(own) == 1 and ":" not in slug:
        return own[0]
    known = ", ".join(sorted({*BUILT_IN, *own}))
    raise BadSetting(f"It is not clear who serves the model {slug!r}.", hint=f"Write provider:model; known: {known}.")


def provider(settings: Settings, name: str) -> Provider:
    """Return a provider's row: the built-in one, changed by the settings.

    Raises:
        BadSetting: there is none, or it cannot be used.
    """
    own = settings.providers.get(name, {})
    if not is_provider(settings, name):
        raise BadSetting(
            f"There is no provider {name!r}.", hint=f"Describe it in config.toml under [providers.{name}]."
        )
    if not isinstance(own, Mapping):
        raise BadSetting(f"providers.{name} must be a table.", hint="Give it `api` and `base_url`.")
    try:
        row = msgspec.convert({**BUILT_IN.get(name, {}), **own}, Provider)
    except msgspec.ValidationError as error:
        raise BadSetting(f"[providers.{name}] cannot be used: {error}.", hint="Correct config.toml.") from None
    if (row.api == "agent") is not (name in AGENTS):
        raise BadSetting(
            f"`api` of [providers.{name}] cannot be {row.api!r}.", hint="Agents have no table of their own."
        )
    try:
        parts = urlsplit(row.base_url if row.api != "agent" else "http://agent.invalid")
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise BadSetting(f"base_url of [providers.{name}] is no http address.", hint="Use http://HOST:PORT/v1.")
    if row.idle_seconds <= 0 or not 0 <= row.retries <= 100 or not 0 <= row.parallel <= 64:
        raise BadSetting(
            f"idle_seconds, retries or parallel of [providers.{name}] is out of range.", hint="Use 300, 4 and 0."
        )
    return row


def connect(choice: Choice, environment: Mapping[str, str] | None = None, pace: RetryPolicy | None = None) -> Model:
    """Return a model that can be asked; nothing is sent before it is.

    Raises:
        BadSetting: the key is not in the environment.
    """
    if choice.provider.api == "agent":
        return agents.AgentModel(cast("AgentName", choice.name), os.environ if environment is None else environment)
    from commonplace.models.http import Endpoint, HttpModel

    row, variable = choice.provider, choice.provider.api_key_env
    key = (os.environ if environment is None else environment).get(variable, "").strip() if variable else ""
    if variable and not key:
        raise BadSetting(f"{choice.name} needs a key, and {variable} is not set.", hint=f"Set {variable} to the key.")
    if not key.isascii() or any(character.isspace() for character in key):
        raise BadSetting(f"{variable} holds something that is no key.", hint="Copy the key again, on one line.")
    endpoint = Endpoint(
        provider=choice.name,
        base_url=row.base_url,
        key=key or None,
        key_variable=variable,
        headers=row.headers,
        trust_env=row.trust_env,
    )
    return HttpModel(endpoint, _api(row), pace or RetryPolicy(idle=row.idle_seconds, retries=row.retries))


def _api(row: Provider) -> Any:
    if row.api == "responses":
        from commonplace.models.responses import Responses

        return Responses()
    if row.api == "chat":
        from commonplace.models.chat import Chat

        return Chat()
    from commonplace.models.anthropic import Messages

    return Messages(lambda slug: catalog.model_info(slug, row.models))


def key_environment(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables with the key that Codex's SDKs hand over, where ours is not set."""
    key = environment.get(HANDED_KEY)
    return {**environment, OPENAI_KEY: key} if key and not environment.get(OPENAI_KEY) else environment


def key_variables(settings: Settings, choice: Choice) -> tuple[str, ...]:
    """Return the variables that hold keys, of all providers."""
    rows = [cast("dict[str, Any]", row) for row in settings.providers.values() if isinstance(row, dict)]
    named = [row.get("api_key_env") for row in rows]
    found = [name for name in (*named, choice.provider.api_key_env, HANDED_KEY) if isinstance(name, str)]
    return tuple(dict.fromkeys(found))

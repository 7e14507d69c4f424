"""The settings of MCP servers, in the format of Codex, and the variables and headers that each server gets. Pure.

    [mcp_servers.NAME]
    command = "npx"                    # or url = "https://…"
    args = ["-y", "some-server"]
    env = { LEVEL = "debug" }

A server gets the few variables that any program needs and those that the person names. It does not get the rest of our
environment, above all not the keys of model providers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

import msgspec

from commonplace.errors import BadSetting
from commonplace.patterns import regex

TABLE: Final = "mcp_servers"
START_SECONDS: Final = 10.0
"""How long a server has to get ready, unless the settings say otherwise; the default of Codex."""
CALL_SECONDS: Final = 60.0
"""How long a call may take, unless the settings say otherwise; the default of Codex."""
MOST_SECONDS: Final = 86_400.0
"""The longest time that the settings can give."""
MOST_NAME: Final = 64
"""Characters of a server's name; it becomes part of the names of its tools."""
_NAME: Final = regex(r"[A-Za-z0-9_-]+")
_HEADER: Final = regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VARIABLE: Final = regex(r"[^=\0]+")
INHERITED: Final = frozenset(
    {
        "HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TEMP", "TMP", "TZ",
        "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "SYSTEMROOT",
        "__CF_USER_TEXT_ENCODING",
    }
)  # fmt: skip
"""The variables that every server gets, beside those of the locale."""


class ServerCommand(msgspec.Struct, frozen=True):
    """A server that is started as a process."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    env_vars: tuple[str, ...] = ()
    """Names of variables that it inherits."""
    cwd: str | None = None


class ServerAddress(msgspec.Struct, frozen=True):
    """A server behind a URL."""

    url: str
    bearer_token_env_var: str | None = None
    http_headers: Mapping[str, str] = {}
    env_http_headers: Mapping[str, str] = {}
    """Headers whose values are in variables, by the variables' names."""


class ServerConfig(msgspec.Struct, frozen=True):
    """One configured server."""

    name: str
    place: ServerCommand | ServerAddress
    enabled: bool = True
    required: bool = False
    """A turn fails if this server is not ready."""
    start_seconds: float = START_SECONDS
    call_seconds: float = CALL_SECONDS
    enabled_tools: frozenset[str] | None = None
    """Only these are offered; None means all."""
    disabled_tools: frozenset[str] = frozenset()

    def offers(self, tool: str) -> bool:
        """Return whether the settings allow a tool, by the server's own name for it."""
        return tool not in self.disabled_tools and (self.enabled_tools is None or tool in self.enabled_tools)


class Configured(msgspec.Struct, frozen=True):
    """The servers of the settings."""

    servers: tuple[ServerConfig, ...] = ()
    notes: tuple[str, ...] = ()
    """Keys of the settings that are not known and not used."""


class _Named(msgspec.Struct):
    name: str


class _ServerTable(msgspec.Struct):
    command: str | None = None
    args: list[str] | None = None
    env: dict[str, str] | None = None
    env_vars: list[str | _Named] | None = None
    cwd: str | None = None
    url: str | None = None
    bearer_token: str | None = None
    bearer_token_env_var: str | None = None
    http_headers: dict[str, str] | None = None
    env_http_headers: dict[str, str] | None = None
    enabled: bool = True
    required: bool = False
    startup_timeout_sec: float | None = None
    startup_timeout_ms: float | None = None
    tool_timeout_sec: float | None = None
    enabled_tools: list[str] | None = None
    disabled_tools: list[str] | None = None


_OF_COMMAND: Final = ("args", "env", "env_vars", "cwd")
_OF_ADDRESS: Final = ("bearer_token_env_var", "http_headers", "env_http_headers")


def configured(table: object) -> Configured:
    """Return the servers of the settings' table `mcp_servers`, in its order.

    Raises:
        BadSetting: a server cannot be used as it is written.
    """
    if table is None:
        return Configured()
    if not isinstance(table, Mapping):
        raise BadSetting(f"{TABLE} is no table.", hint=f"Write [{TABLE}.NAME].")
    servers: list[ServerConfig] = []
    notes: list[str] = []
    for name, fields in cast("Mapping[object, object]", table).items():
        config, unknown = _config(name, fields)
        servers.append(config)
        notes += [f"{TABLE}.{name}.{key} is not known here and is ignored." for key in unknown]
    return Configured(tuple(servers), tuple(notes))


def _config(name: object, fields: object) -> tuple[ServerConfig, list[str]]:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > MOST_NAME:
        hint = f"Use up to {MOST_NAME} letters, digits, - and _."
        raise BadSetting(f"{TABLE} has a server named {str(name)[:100]!r}.", hint=hint)
    place = f"{TABLE}.{name}"
    if not isinstance(fields, Mapping):
        raise BadSetting(f"{place} is no table.", hint=f"Write [{place}] with command or url.")
    given = cast("Mapping[str, Any]", fields)
    try:
        table = msgspec.convert(dict(given), _ServerTable)
    except msgspec.ValidationError as error:
        raise _bad(place, str(error)) from None
    start = table.startup_timeout_sec
    if start is None and table.startup_timeout_ms is not None:
        start = table.startup_timeout_ms / 1000
    config = ServerConfig(
        name=name,
        place=_place(place, table),
        enabled=table.enabled,
        required=table.required,
        start_seconds=_seconds(f"{place}.startup_timeout_sec", start, START_SECONDS),
        call_seconds=_seconds(f"{place}.tool_timeout_sec", table.tool_timeout_sec, CALL_SECONDS),
        enabled_tools=None if table.enabled_tools is None else frozenset(table.enabled_tools),
        disabled_tools=frozenset(table.disabled_tools or ()),
    )
    return config, [str(key)[:100] for key in given if key not in _ServerTable.__struct_fields__]


def _place(place: str, table: _ServerTable) -> ServerCommand | ServerAddress:
    """Return where a server is, from the half of the table that says so."""
    if (table.command is None) == (table.url is None):
        raise _bad(place, "it needs command or url, and not both")
    if table.bearer_token is not None:
        hint = "Put it into a variable and name that in bearer_token_env_var."
        raise BadSetting(f"{place}.bearer_token is not supported.", hint=hint)
    strange = _OF_ADDRESS if table.url is None else _OF_COMMAND
    for key in strange:
        if getattr(table, key) is not None:
            raise _bad(f"{place}.{key}", f"it does not go with {'command' if table.url is None else 'url'}")
    return _address(place, table) if table.url is not None else _command(place, table)


def _command(place: str, table: _ServerTable) -> ServerCommand:
    words = (table.command or "", *(table.args or ()), table.cwd or "")
    if not words[0].strip() or any("\0" in word for word in words):
        raise _bad(f"{place}.command", "it is empty, or there is a NUL character in it")
    names = [each if isinstance(each, str) else each.name for each in table.env_vars or ()]
    for variable in [*names, *(table.env or {})]:
        if not _VARIABLE.fullmatch(variable) or "\0" in (table.env or {}).get(variable, ""):
            raise _bad(f"{place}.env", f"{variable[:100]!r} cannot be a variable")
    return ServerCommand(words[0], tuple(table.args or ()), table.env or {}, tuple(names), table.cwd)


def _address(place: str, table: _ServerTable) -> ServerAddress:
    url = table.url or ""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url:
        raise _bad(f"{place}.url", f"{url[:100]!r} is no http or https address")
    headers, variables = table.http_headers or {}, table.env_http_headers or {}
    for header in [*headers, *variables]:
        if not _HEADER.fullmatch(header) or not _is_value(headers.get(header, "")):
            raise _bad(f"{place}.http_headers", f"{header[:100]!r} cannot be a header, or not with that value")
    return ServerAddress(url, table.bearer_token_env_var, headers, variables)


def _is_value(text: str) -> bool:
    return text.isascii() and all(character == "\t" or character.isprintable() for character in text)


def _seconds(place: str, value: float | None, otherwise: float) -> float:
    if value is None:
        return otherwise
    if not 0 < value <= MOST_SECONDS:
        raise BadSetting(f"{place} is {value:g}.", hint=f"Use seconds above 0, up to {MOST_SECONDS:g}.")
    return value


def _bad(place: str, reason: str) -> BadSetting:
    return BadSetting(f"{place} cannot be used: {reason}.", hint="Correct that table in the settings.")


def environment_of(place: ServerCommand, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a server that we start."""
    kept = {name: value for name, value in environment.items() if name in INHERITED or name.startswith("LC_")}
    named = {name: environment[name] for name in place.env_vars if name in environment}
    return kept | named | dict(place.env)


def headers_of(place: ServerAddress, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the headers for a server behind an address; a header whose variable is empty is left out.

    Raises:
        BadSetting: the variable of its token is not set, or what is in one cannot be sent.
    """
    found = dict(place.http_headers)
    for header, variable in place.env_http_headers.items():
        if value := environment.get(variable, "").strip():
            found[header] = value
    if place.bearer_token_env_var is not None:
        token = environment.get(place.bearer_token_env_var, "").strip()
        if not token:
            raise BadSetting(f"the variable {place.bearer_token_env_var} is not set.", hint="Set it to the token.")
        found["Authorization"] = f"Bearer {token}"
    for header, value in found.items():
        if not _is_value(value):
            raise BadSetting(f"the value of the header {header} cannot be sent.", hint="Correct the variable.")
    return found


def folder_of(place: ServerCommand, cwd: Path) -> Path:
    """Return the folder that a server is started in."""
    return cwd if place.cwd is None else cwd / Path(place.cwd).expanduser()

"""Where settings come from: defaults, then `config.toml`, then a profile of it, then the environment, then flags.

A profile is a table `[profiles.NAME]` of `config.toml`; its keys are those of the file's top level and override them.
It is chosen by `--profile`, else by `COMMONPLACE_PROFILE`, else by the file's own key `profile`.

Nothing is written, and a missing file is fine. Keys that mean nothing are kept in `Settings.unknown`: they are never an
error, because an older program may read a newer file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from commonplace.config.settings import AgentSettings, CompactionSettings, MemorySettings, Settings
from commonplace.config.table import BY_KEY, OLDER_NAMES, SETTINGS, name_of
from commonplace.errors import BadSetting

HOME_VARIABLE: Final = "COMMONPLACE_HOME"
NOW_VARIABLE: Final = "COMMONPLACE_NOW"
PROFILE_VARIABLE: Final = "COMMONPLACE_PROFILE"
_NEAR: Final = 0.88
"""How alike a variable must be to one of ours to be taken for it: two letters that change places in a short one."""
FILE: Final = "config.toml"
_PROFILE: Final = "profile"
_PROFILES: Final = "profiles"
_TABLES: Final = ("providers.", "hooks.", "mcp_servers.", "projects.", f"{_PROFILES}.")
"""Tables whose rows are judged by whoever uses them."""
_told: set[tuple[Path, str]] = set()
"""What this process has warned about, by home."""


class _CollectedSettings(msgspec.Struct):
    """What the sources say so far; later ones override."""

    values: dict[str, Any]
    sources: dict[str, str]
    unknown: list[str]
    older: list[tuple[str, str]]

    def put(self, key: str, value: Any, source: str) -> None:
        """Set the value of a setting."""
        self.values[key], self.sources[key] = value, source

    def take(self, table: Mapping[str, Any], place: str, source: str, prefix: str = "", *, use: bool = True) -> None:
        """Take the values of a table of the file, if they are to be used; unknown and older names are noted anyway."""
        own: list[tuple[str, Any]] = []
        for key, value in _flatten(table):
            name = name_of(key)
            if name is None:
                if prefix or not (key.startswith(_TABLES) or _is_of_role(key)):
                    self.unknown.append(prefix + key)
                continue
            if key in OLDER_NAMES:
                self.older.append((prefix + key, prefix + name))
            if not use:
                continue
            checked = BY_KEY[name].checked(value, place)
            if key == name:
                own.append((name, checked))
            else:
                self.put(name, checked, source)
        for name, checked in own:  # whatever another name says, a setting's own name says it last
            self.put(name, checked, source)


def load(
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    providers: Mapping[str, Mapping[str, Any]] | None = None,
    profile: str | None = None,
) -> Settings:
    """Read the settings of this process.

    `flags` and the fields in `providers` override everything else; `profile` names a table of `[profiles]`.

    Raises:
        BadSetting: a value is out of its range, there is no such profile, or the file is not TOML.
    """
    environment = os.environ if environment is None else environment
    home, home_source = _home(environment)
    file = home / FILE
    table = _read(file)
    found = _CollectedSettings({}, {setting.key: "default" for setting in SETTINGS}, [], [])
    profiles = _profiles(table.pop(_PROFILES, {}), file)
    named, named_by = _chosen_profile(profile, environment, table.pop(_PROFILE, None), file)
    found.take(table, str(file), FILE)
    for name, inner in profiles.items():
        label = f"[{_PROFILES}.{name}]"
        found.take(inner, f"{file} {label}", f"{FILE} {label}", f"{_PROFILES}.{name}.", use=name == named)
    if named is not None:
        if named not in profiles:
            raise _no_profile(named, named_by, profiles)
        found.sources[_PROFILE] = named_by
    for setting in SETTINGS:
        if (text := environment.get(setting.variable)) is not None:
            found.put(setting.key, setting.parsed(text, setting.variable), setting.variable)
    usual = str(found.values.get("model") or "")
    for key, value in (flags or {}).items():
        if (name := name_of(key)) is None:
            raise BadSetting(f"There is no setting {key!r}.", hint=hint_for(key))
        found.put(name, BY_KEY[name].checked(value, "the command line"), "flag")
    return _settings(
        found,
        home=home,
        home_source=home_source,
        now=_clock(environment),
        profile=named,
        usual_provider=usual.partition(":")[0] if ":" in usual else None,
        sources=found.sources,
        providers=_with(table.get("providers", {}), providers or {}),
        hooks=table.get("hooks", {}),
        projects=table.get("projects", {}),
        mcp_servers=table.get("mcp_servers", {}),
        roles=_roles(table.get("agents", {}), file),
        unknown=tuple(found.unknown),
        misspelt=tuple(_misspelt(environment)),
        older=tuple(found.older),
    )


def home_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return the home's folder, whatever its settings say."""
    return _home(os.environ if environment is None else environment)[0]


def notes(settings: Settings) -> list[str]:
    """Return a sentence for each key of the file that has another name now, or that means nothing; also for variables
    that mean nothing and are nearly one of ours.
    """
    renamed = [
        f"{FILE} sets {key}, which is called {name} now; the old name still works." for key, name in settings.older
    ]
    variables = [f"{name} is no variable of Commonplace; did you mean {near}?" for name, near in settings.misspelt]
    return renamed + [_unknown(key) for key in settings.unknown] + variables


def tell(settings: Settings, warn: Callable[[str], None]) -> None:
    """Pass on `notes`, each once per process."""
    if settings.older or settings.unknown or settings.misspelt:
        for note in notes(settings):
            if (settings.home, note) not in _told:
                _told.add((settings.home, note))
                warn(note)


def _unknown(key: str) -> str:
    prefix = ".".join([*key.split(".")[:2], ""]) if key.startswith(f"{_PROFILES}.") else ""
    near = _nearest(key.removeprefix(prefix))
    guess = f"; did you mean {prefix}{near}?" if near else "."
    return f"{FILE} sets {key}, which this version does not know{guess}"


def hint_for(key: str) -> str:
    """Return what to do about a setting that does not exist: the nearest one, if there is one."""
    near = _nearest(key)
    return f"Did you mean {near}?" if near else "`config show` lists all."


def _misspelt(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the variables that are nearly one of ours, with that name; others may be somebody else's."""
    known = {HOME_VARIABLE, NOW_VARIABLE, PROFILE_VARIABLE, *(setting.variable for setting in SETTINGS)}
    for name in sorted(environment):
        if name.startswith("COMMONPLACE_") and name not in known:
            from difflib import get_close_matches  # as below

            for near in get_close_matches(name, sorted(known), n=1, cutoff=_NEAR):
                yield name, near


def _nearest(key: str) -> str | None:
    from difflib import get_close_matches  # slow to import, and most people make no such mistake

    return next(iter(get_close_matches(key, list(BY_KEY), n=1)), None)


def _settings(collected: _CollectedSettings, **read: Any) -> Settings:
    """Return the settings with the values that were found; the others have their defaults."""
    parts: dict[str, dict[str, Any]] = {"": {}, "memory": {}, "compaction": {}, "agents": {}}
    for key, value in collected.values.items():
        section, _, name = key.rpartition(".")
        parts[section][name] = value
    memory, compaction = MemorySettings(**parts["memory"]), CompactionSettings(**parts["compaction"])
    agents = AgentSettings(**parts["agents"])
    if parts[""].get("memory_root") is not None and parts[""].get("database", "sqlite") == "sqlite":
        root = parts[""]["memory_root"]
        raise BadSetting(
            f"memory_root is {root!r}, and the database is SQLite, which no other host can use.",
            hint="Set database to a postgresql:// address, or leave memory_root out.",
        )
    return Settings(**parts[""], memory=memory, compaction=compaction, agents=agents, **read)


def _is_of_role(key: str) -> bool:
    """Return whether a dotted key stands in a table of `[agents]`, which is a role."""
    return key.startswith("agents.") and key.count(".") > 1


def _roles(table: Any, file: Path) -> dict[str, Any]:
    """Return the tables in `[agents]` (raises BadSetting: it is no table)."""
    if not isinstance(table, dict):
        raise BadSetting(f"agents in {file} must be a table.", hint="Write [agents].")
    return {name: row for name, row in cast("dict[str, Any]", table).items() if isinstance(row, dict)}


def _profiles(table: Any, file: Path) -> dict[str, dict[str, Any]]:
    """Return the profiles of a file by name (raises BadSetting: one is no table)."""
    if not isinstance(table, dict):
        raise BadSetting(f"{_PROFILES} in {file} must be a table.", hint=f"Write [{_PROFILES}.NAME].")
    found = cast("dict[str, Any]", table)
    for name, inner in found.items():
        if not isinstance(inner, dict):
            raise BadSetting(f"{_PROFILES}.{name} in {file} must be a table.", hint=f"Write [{_PROFILES}.{name}].")
    return found


def _chosen_profile(
    given: str | None, environment: Mapping[str, str], in_file: Any, file: Path
) -> tuple[str | None, str]:
    """Return the name of the profile that is to be used, if any, and what names it."""
    if given is not None:
        return given, "flag"
    if text := environment.get(PROFILE_VARIABLE):
        return text, PROFILE_VARIABLE
    if in_file is not None and not isinstance(in_file, str):
        raise BadSetting(f"{_PROFILE} in {file} must be a text, not {in_file!r}.", hint="Correct that line.")
    return in_file, FILE


def _no_profile(name: str, named_by: str, profiles: Mapping[str, Any]) -> BadSetting:
    by = {"flag": "The command line"}.get(named_by, named_by)
    known = f"Use one of {', '.join(sorted(profiles))}." if profiles else f"{FILE} has no [{_PROFILES}.NAME] table."
    return BadSetting(f"{by} names the profile {name!r}, which {FILE} does not have.", hint=known)


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
        data = file.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadSetting(f"{file} cannot be read: {error.strerror}.", hint="Check its permissions.") from None
    import tomllib  # a home may have no file

    try:
        return tomllib.loads(data.decode())
    except ValueError as error:  # no TOML, or no UTF-8
        raise BadSetting(f"{file} is not valid TOML: {error}.", hint="Correct that line.") from None


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

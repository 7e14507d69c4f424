"""Settings: frozen typed values, read in one place and passed down.

    settings    the types: each field with its type, range, default and purpose
    table       one row per setting, derived from those types: names, variables, checks
    sources     defaults, then `config.toml`, then a profile of it, then the environment, then flags

`config show` prints the effective value of every row and where it came from. A value outside its range is an error that
names the place; no value is clamped in silence. Time is a setting too: `COMMONPLACE_NOW` fixes it for tests and demos.
"""

from __future__ import annotations

from commonplace.config.settings import (
    AgentSettings,
    Approval,
    CompactionSettings,
    Fsync,
    MemorySettings,
    Mode,
    Sandbox,
    Settings,
    Tone,
    WebSearchMode,
)
from commonplace.config.sources import (
    FILE,
    HOME_VARIABLE,
    NOW_VARIABLE,
    PROFILE_VARIABLE,
    home_folder,
    load,
    notes,
    tell,
)
from commonplace.config.table import OLDER_NAMES, SETTINGS, Setting, name_of

__all__ = [
    "FILE",
    "HOME_VARIABLE",
    "NOW_VARIABLE",
    "OLDER_NAMES",
    "PROFILE_VARIABLE",
    "SETTINGS",
    "AgentSettings",
    "Approval",
    "CompactionSettings",
    "Fsync",
    "MemorySettings",
    "Mode",
    "Sandbox",
    "Setting",
    "Settings",
    "Tone",
    "WebSearchMode",
    "home_folder",
    "load",
    "name_of",
    "notes",
    "tell",
]

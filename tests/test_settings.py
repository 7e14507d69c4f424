"""Settings are typed, documented and read: what is promised exists, what exists is documented, all has an effect."""

from __future__ import annotations

import ast
import re
from typing import Any

import msgspec
import pytest

import sources
from commonplace import config
from commonplace.config import CompactionSettings, MemorySettings, Settings, table
from sources import PACKAGE, ROOT

PROMISED: dict[str, tuple[Any, int | None, int | None]] = {
    "database": ("sqlite", None, None),
    "model": (None, None, None),
    "fsync": ("turn", None, None),
    "blob_bytes": (65536, 1024, 2**30),
    "memory.extract_model": ("embedded", None, None),
    "memory.consolidate_model": ("embedded", None, None),
    "memory.use": (True, None, None),
    "memory.generate": (True, None, None),
    "memory.tools": (True, None, None),
    "memory.background": (True, None, None),
    "memory.disable_on_external_context": (False, None, None),
    "memory.max_rollout_age_days": (30, 0, 90),
    "memory.min_rollout_idle_hours": (6, 1, 48),
    "memory.max_rollouts_per_start": (16, 1, 128),
    "memory.extract_concurrency": (8, 1, 64),
    "memory.max_running": (64, 1, 1024),
    "memory.max_raw_memories": (1024, 1, 4096),
    "memory.max_unused_days": (30, 0, 365),
    "memory.extract_lease_seconds": (300, 1, 14_400),
    "memory.extract_heartbeat_seconds": (60, 1, None),
    "memory.consolidate_lease_seconds": (3600, 1, 14_400),
    "memory.consolidate_heartbeat_seconds": (90, 1, None),
    "memory.summary_bytes": (10_000, 0, None),
    "memory.prompt_tokens": (5_000, 0, None),
    "memory.percent_of_dialogue": (12, 0, 100),
    "memory.min_rate_limit_remaining_percent": (25, 0, 100),
    "memory.exclude": ((), None, None),
}
"""The settings that people may rely on, each with its default and its range."""


def documented() -> list[str]:
    """The settings of the page's table."""
    text = (ROOT / "docs" / "settings.md").read_text("utf-8").partition("| setting |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `([\w.]+)` \|", text, re.MULTILINE)


def read_fields() -> set[str]:
    """The settings that the program reads outside `config`: `settings.model`, `….memory.use`, `….compaction.remote`."""
    found: set[str] = set()
    for path in sources.MODULES:
        if "config" in path.relative_to(PACKAGE).parts[:1]:
            continue
        for node in sources.nodes(path):
            if isinstance(node, ast.Attribute):
                inner = node.value
                owner = (
                    inner.attr if isinstance(inner, ast.Attribute) else inner.id if isinstance(inner, ast.Name) else ""
                )
                section = "" if owner.endswith("settings") else f"{owner}."
                found.add(section + node.attr)
    return found


@pytest.mark.parametrize("name", PROMISED)
def test_a_promised_setting_has_its_default_and_its_range(name: str) -> None:
    (setting,) = [each for each in config.SETTINGS if each.key == name]

    assert PROMISED[name] == (setting.default, setting.low, setting.high)


def test_every_setting_in_code_is_documented_and_every_documented_one_is_in_code() -> None:
    assert [setting.key for setting in config.SETTINGS] == documented()
    assert all(setting.doc for setting in config.SETTINGS)


def test_every_setting_is_read_by_the_program() -> None:
    assert sorted({*documented(), *PROMISED} - read_fields()) == []


def test_every_other_name_is_documented() -> None:
    text = (ROOT / "docs" / "settings.md").read_text("utf-8")
    names = [name.removeprefix("memory.") for name in (*config.OLDER_NAMES, *table.CODEX_NAMES)]

    assert [name for name in names if f"`{name}`" not in text] == []


def test_no_code_asks_for_a_setting_by_a_string() -> None:
    subscripts = re.compile(r"\bsettings\[")

    assert [path for path in PACKAGE.rglob("*.py") if subscripts.search(path.read_text("utf-8"))] == []


def test_the_types_themselves_accept_the_defaults_and_refuse_what_is_out_of_range() -> None:
    for kind in (MemorySettings, CompactionSettings):
        assert msgspec.convert({}, kind) == kind()
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"max_running": 0}, MemorySettings)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"target_percent": 91}, CompactionSettings)


def test_settings_cannot_be_changed() -> None:
    settings = config.load()

    assert isinstance(settings, Settings)
    for target, name in ((settings, "model"), (settings.memory, "use"), (settings.compaction, "remote")):
        with pytest.raises(AttributeError):
            setattr(target, name, "x")


def test_a_variable_of_every_setting_is_read_back_as_it_was_written() -> None:
    texts = {str: "x", bool: "true", int: "7", tuple: "a,b"}
    for setting in config.SETTINGS:
        value = setting.choices[-1] if setting.choices else texts[setting.kind]
        value = str(setting.high or value) if setting.kind is int else value
        value = {"database": "postgresql://x", "ledger": "s3://x"}.get(setting.key, value)
        shared = {"COMMONPLACE_DATABASE": "postgresql://x"} if setting.key == "memory_root" else {}
        settings = config.load({**shared, setting.variable: value})
        assert setting.text(setting.of(settings)) == value
        assert settings.sources[setting.key] == setting.variable

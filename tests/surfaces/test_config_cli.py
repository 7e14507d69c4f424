"""`commonplace config …` and the rules of settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import Command

from commonplace import config
from commonplace.errors import BadSetting


def write(home: Path, text: str) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(text, "utf-8")


def test_show_tells_every_setting_and_where_it_came_from(
    commonplace: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, 'fsync = "line"\n[memory]\nuse = false\n')
    monkeypatch.setenv("COMMONPLACE_BLOB_BYTES", "4096")

    document = commonplace.ok("config", "show")

    assert document["home"] == {"value": str(home), "source": "COMMONPLACE_HOME"}
    assert set(document["settings"]) == {setting.key for setting in config.SETTINGS}
    assert document["settings"]["fsync"] == {"value": "line", "source": "config.toml"}
    assert document["settings"]["memory.use"] == {"value": False, "source": "config.toml"}
    assert document["settings"]["blob_bytes"] == {"value": 4096, "source": "COMMONPLACE_BLOB_BYTES"}
    assert document["settings"]["memory.generate"] == {"value": True, "source": "default"}


def test_path_is_told_whether_or_not_the_file_exists(commonplace: Command, home: Path) -> None:
    assert commonplace.ok("config", "path") == {"path": str(home / "config.toml")}
    assert not home.exists()


def test_codex_names_are_accepted(home: Path) -> None:
    write(home, "[memories]\nuse_memories = false\ngenerate_memories = false\ndedicated_tools = false\n")

    settings = config.load()

    assert [settings[key] for key in ("memory.use", "memory.generate", "memory.tools")] == [False, False, False]


def test_the_environment_wins_over_the_file_and_flags_win_over_both(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, 'fsync = "line"\n')
    monkeypatch.setenv("COMMONPLACE_FSYNC", "never")

    assert config.load()["fsync"] == "never"
    assert config.load(flags={"fsync": "turn"})["fsync"] == "turn"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('fsync = "sometimes"', "turn, line, never"),
        ("fsync = 3", "a text"),
        ("blob_bytes = 10", "from 1024"),
        ('blob_bytes = "many"', "a number"),
        ("[memory]\nuse = 1", "true or false"),
        ("[memory]\nmax_rollout_age_days = 91", "from 0 to 90"),
        ("[memory]\nmin_rollout_idle_hours = 0", "from 1 to 48"),
        ("[memory]\nexclude = 'x'", "a list"),
        ("not toml", "TOML"),
    ],
)
def test_a_bad_setting_is_refused_with_what_would_be_right(home: Path, text: str, words: str) -> None:
    write(home, text)

    with pytest.raises(BadSetting) as caught:
        config.load()

    assert words in caught.value.sentence()
    assert "config.toml" in caught.value.sentence()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("COMMONPLACE_FSYNC", "x"),
        ("COMMONPLACE_BLOB_BYTES", "x"),
        ("COMMONPLACE_MEMORY_USE", "maybe"),
        ("COMMONPLACE_NOW", "soon"),
    ],
)
def test_a_bad_variable_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(BadSetting, match=variable):
        config.load()


def test_keys_that_mean_nothing_are_told_not_refused(commonplace: Command, home: Path) -> None:
    write(home, 'colour = "red"\n[providers.local]\napi = "responses"\n')

    ran = commonplace("config", "show")

    assert ran.code == 0
    assert "'colour'" in ran.err
    assert config.load().unknown == ("colour",)
    assert config.load().providers == {"local": {"api": "responses"}}


def test_the_clock_can_be_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_NOW", "2026-11-15T10:00:00Z")

    assert config.load().now().isoformat() == "2026-11-15T10:00:00+00:00"


def test_demo_runs_and_leaves_nothing_behind(commonplace: Command, home: Path, tmp_path: Path) -> None:
    ran = commonplace("demo")

    assert ran.code == 0, ran.err
    assert "14 sessions read" in ran.out
    assert "commonplace memory why" in ran.out
    assert "in the memory: 0" in ran.out
    assert "in the sessions: 0" not in ran.out
    assert not home.exists()


def test_demo_does_not_write_into_a_folder_with_something_in_it(commonplace: Command, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine", "utf-8")

    assert commonplace("demo", "--keep", tmp_path).code == 2

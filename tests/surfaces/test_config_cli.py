"""`commonplace config …` and the rules of settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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

    assert [settings.memory.use, settings.memory.generate, settings.memory.tools] == [False, False, False]


def test_the_environment_wins_over_the_file_and_flags_win_over_both(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, 'fsync = "line"\n')
    monkeypatch.setenv("COMMONPLACE_FSYNC", "never")

    assert config.load().fsync == "never"
    assert config.load(flags={"fsync": "turn"}).fsync == "turn"


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
        ("[memory]\nexclude = [1]", "a list of texts"),
        ("database = 'mysql://x'", "Use sqlite or a postgresql:// address."),
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
    assert ran.err == "commonplace: config.toml sets colour, which this version does not know.\n"
    assert config.load().unknown == ("colour",)
    assert config.load().providers == {"local": {"api": "responses"}}


def test_a_key_that_is_misspelt_is_told_once_with_the_nearest_name(commonplace: Command, home: Path) -> None:
    write(home, '[memory]\nextract_modle = "x:y"\n[profiles.fast]\nefort = "low"\n')

    first, second, doctor = commonplace("sessions", "list"), commonplace("sessions", "list"), commonplace("doctor")

    assert (first.code, second.code) == (0, 0)
    assert first.err.splitlines() == [
        f"commonplace: config.toml sets {key}, which this version does not know; did you mean {meant}?"
        for key, meant in (
            ("memory.extract_modle", "memory.extract_model"),
            ("profiles.fast.efort", "profiles.fast.effort"),
        )
    ]
    assert second.err == ""
    assert doctor.code == 1
    assert "memory.extract_modle, profiles.fast.efort" in doctor.out


def test_a_variable_that_is_misspelt_is_told_with_the_nearest_name(
    commonplace: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_MEMROY_USE", "false")
    monkeypatch.setenv("COMMONPLACE_FSYCN", "line")
    monkeypatch.setenv("COMMONPLACE_HELPER", "somebody else's")

    assert commonplace("sessions", "list").err.splitlines() == [
        "commonplace: COMMONPLACE_FSYCN is no variable of Commonplace; did you mean COMMONPLACE_FSYNC?",
        "commonplace: COMMONPLACE_MEMROY_USE is no variable of Commonplace; did you mean COMMONPLACE_MEMORY_USE?",
    ]


OLDER: dict[str, tuple[str, str, Any]] = {
    "phase_1_model": ('"a:b"', "memory.extract_model", "a:b"),
    "phase_2_model": ('"a:b"', "memory.consolidate_model", "a:b"),
    "consolidation_model": ('"a:b"', "memory.consolidate_model", "a:b"),
    "max_raw_memories_for_global": ("7", "memory.max_raw_memories", 7),
    "max_raw_memories_for_consolidation": ("7", "memory.max_raw_memories", 7),
    "no_memories_if_mcp_or_web_search": ("true", "memory.disable_on_external_context", True),
}


@pytest.mark.parametrize("table", ["memory", "memories"])
@pytest.mark.parametrize("name", OLDER)
def test_an_older_name_works_and_is_told_once(commonplace: Command, home: Path, name: str, table: str) -> None:
    text, key, value = OLDER[name]
    write(home, f"[{table}]\n{name} = {text}\n")

    document = commonplace.ok("config", "show")
    first, second = commonplace("sessions", "list"), commonplace("sessions", "list")

    assert document["settings"][key] == {"value": value, "source": "config.toml"}
    assert document["unknown"] == []
    assert first.err == (
        f"commonplace: config.toml sets memory.{name}, which is called {key} now; the old name still works.\n"
    )
    assert second.err == ""


def test_codex_names_are_told_to_nobody(commonplace: Command, home: Path) -> None:
    write(home, 'approval_policy = "never"\n[memories]\nuse_memories = false\nmax_rollouts_per_startup = 3\n')

    assert commonplace("sessions", "list").err == ""


def test_a_name_of_today_says_it_whatever_an_older_one_says(home: Path) -> None:
    write(home, '[memory]\nextract_model = "new:one"\nphase_1_model = "old:one"\nuse = true\nuse_memories = false\n')

    assert (config.load().memory.extract_model, config.load().memory.use) == ("new:one", True)


PROFILES = """
model = "a:slow"
effort = "high"
[memory]
use = true
max_unused_days = 9
[profiles.fast]
model = "a:quick"
model_reasoning_effort = "low"
sandbox_mode = "workspace-write"
[profiles.fast.memories]
use_memories = false
[profiles.empty]
"""


def test_a_profile_overrides_the_rest_of_the_file_and_nothing_else(home: Path) -> None:
    write(home, PROFILES)
    environment = {"COMMONPLACE_HOME": str(home), "COMMONPLACE_EFFORT": "medium"}

    plain, fast = config.load(), config.load(profile="fast")
    above = config.load(environment, {"sandbox": "read-only"}, profile="fast")

    assert (plain.model, plain.effort, plain.memory.use, plain.profile) == ("a:slow", "high", True, None)
    assert (fast.model, fast.effort, fast.sandbox) == ("a:quick", "low", "workspace-write")
    assert (fast.memory.use, fast.memory.max_unused_days, fast.profile) == (False, 9, "fast")
    assert fast.sources["memory.use"] == "config.toml [profiles.fast]"
    assert (above.model, above.effort, above.sandbox) == ("a:quick", "medium", "read-only")
    assert config.load(profile="empty").model == "a:slow"


def test_a_profile_is_named_by_a_flag_else_a_variable_else_the_file(
    commonplace: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, f'profile = "fast"\n{PROFILES}')

    by_file = commonplace.ok("config", "show")
    monkeypatch.setenv("COMMONPLACE_PROFILE", "empty")
    by_variable = commonplace.ok("config", "show")

    assert by_file["profile"] == {"value": "fast", "source": "config.toml"}
    assert by_file["settings"]["model"] == {"value": "a:quick", "source": "config.toml [profiles.fast]"}
    assert by_variable["profile"] == {"value": "empty", "source": "COMMONPLACE_PROFILE"}
    assert by_variable["settings"]["model"] == {"value": "a:slow", "source": "config.toml"}
    assert config.load(profile="fast").model == "a:quick"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PROFILES, "names the profile 'quick', which config.toml does not have. Use one of empty, fast."),
        ("", "names the profile 'quick', which config.toml does not have. config.toml has no [profiles.NAME] table."),
        ("profiles = 3", "profiles in "),
        ("[profiles]\nquick = 3", "profiles.quick in "),
        ("[profiles.quick]\nsandbox = 'no'", "[profiles.quick] is 'no'"),
    ],
)
def test_a_profile_that_cannot_be_used_is_refused(home: Path, text: str, words: str) -> None:
    write(home, text)

    with pytest.raises(BadSetting) as caught:
        config.load(profile="quick")

    assert words in caught.value.sentence()


def test_the_file_must_name_a_profile_by_a_text(home: Path) -> None:
    write(home, f"profile = 3\n{PROFILES}")

    with pytest.raises(BadSetting, match="must be a text"):
        config.load()


def test_a_flag_that_is_no_setting_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(BadSetting) as caught:
        config.load(flags={"memory.usee": True})

    assert caught.value.sentence() == "There is no setting 'memory.usee'. Did you mean memory.use?"


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

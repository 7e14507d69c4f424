"""Names of models: the catalogue, providers, keys, and what every model is told."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from commonplace import config
from commonplace.errors import BadSetting
from commonplace.models import choose, connect, instructions, model_info
from commonplace.models.catalog import ModelInfo
from commonplace.models.http import HttpModel
from commonplace.models.instructions import PLACEHOLDER
from commonplace.models.providers import BUILT_IN

Load = Callable[..., config.Settings]
NAMES = list(tomllib.loads(resources.files("commonplace.models").joinpath("catalog.toml").read_text("utf-8"))["models"])


@pytest.fixture
def load(home: Path) -> Load:
    def loaded(text: str = "", **environment: str) -> config.Settings:
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(text)
        return config.load({"COMMONPLACE_HOME": str(home), **environment})

    return loaded


def test_every_row_of_the_catalogue_is_whole() -> None:
    assert NAMES
    for name in NAMES:
        info = model_info(name)

        assert info.known, name
        assert info.provider in BUILT_IN, name
        assert 0 < info.max_output <= info.window <= (info.max_window or info.window), name
        assert "text" in info.modalities, name
        assert info.effort is None or info.effort in info.efforts, name
        assert (info.thinking is not None) == name.startswith("claude"), name


@pytest.mark.parametrize(
    ("slug", "window", "is_known"),
    [
        ("gpt-5.4", 272_000, True),
        ("gpt-5.4-2026-03-05", 272_000, True),
        ("openai/gpt-4o", 128_000, True),
        ("GPT-4o-mini", 128_000, True),
        ("claude-haiku-4-5-20251001", 200_000, True),
        ("claude-haiku-5-5", 1_000_000, True),
        ("gpt-5.45", 32_768, False),
        ("gpt-5.9", 32_768, False),
        ("qwen3-coder:30b", 32_768, False),
        ("", 32_768, False),
    ],
)
def test_the_longest_name_at_a_boundary_decides(slug: str, window: int, is_known: bool) -> None:
    assert (window, is_known) == (model_info(slug).window, model_info(slug).known)


def test_a_longer_name_wins_over_a_shorter_one() -> None:
    assert (922_000, None) == (model_info("gpt-5.4").max_window, model_info("gpt-5.4-mini").max_window)


def test_settings_add_to_the_catalogue_and_correct_it(load: Load) -> None:
    settings = load(
        'model = "local:qwen3-coder:30b"\n[providers.local]\napi = "chat"\nbase_url = "http://127.0.0.1:8000/v1"\n'
        '[providers.local.models."qwen3-coder"]\nwindow = 65536\nmodalities = ["text", "image"]\n'
        '[providers.openai.models."gpt-5.4"]\nwindow = 100000\n'
    )
    own, changed = choose(settings), choose(settings, "openai:gpt-5.4")

    assert ("local", "qwen3-coder:30b", 65_536) == (own.name, own.slug, own.info.window)
    assert own.info.known
    assert (100_000, 128_000) == (changed.info.window, changed.info.max_output)
    assert () == settings.unknown


@pytest.mark.parametrize("row", ["window = 'big'", "windows = 1", "window = 0", "thinking = 'hard'"])
def test_a_row_that_cannot_be_used_is_one_sentence(load: Load, row: str) -> None:
    settings = load(f'[providers.openai.models."gpt-5.4"]\n{row}\n')
    with pytest.raises(BadSetting, match=r"gpt-5\.4"):
        choose(settings, "openai:gpt-5.4")


def test_without_a_model_one_sentence_says_how_to_set_one(load: Load) -> None:
    with pytest.raises(BadSetting) as caught:
        choose(load())

    sentence = caught.value.sentence()
    assert sentence.startswith("No model is set. Set one")
    assert all(word in sentence for word in ("config.toml", "COMMONPLACE_MODEL", "-m", "openai:gpt-5.4"))


@pytest.mark.parametrize(
    ("name", "who", "slug"),
    [
        ("openai:gpt-5.4", "openai", "gpt-5.4"),
        ("gpt-5.4", "openai", "gpt-5.4"),
        ("claude-opus-5-5", "anthropic", "claude-opus-5-5"),
        ("ollama:qwen3:8b", "ollama", "qwen3:8b"),
        ("mine:any/thing:x", "mine", "any/thing:x"),
        ("something", "mine", "something"),
    ],
)
def test_a_name_finds_its_provider(load: Load, name: str, who: str, slug: str) -> None:
    settings = load('[providers.mine]\napi = "responses"\nbase_url = "http://127.0.0.1:1/v1"\n')

    assert (who, slug) == (choose(settings, name).name, choose(settings, name).slug)


def test_a_name_without_a_provider_means_the_gateway_of_the_persons_own_model(home: Path) -> None:
    """As Codex asks the provider that is set, whatever model is named; the catalogue knows only who made it."""
    home.mkdir(exist_ok=True)
    gateway = 'model = "{}"\n[providers.gate]\napi = "responses"\nbase_url = "http://127.0.0.1:9/v1"\n'
    found: list[str] = []
    for own in ("gate:gpt-5.5", "anthropic:claude-sonnet-4-5"):
        (home / "config.toml").write_text(gateway.format(own))
        for settings, name in (
            (config.load({"COMMONPLACE_HOME": str(home)}), "gpt-5.4"),
            (config.load({"COMMONPLACE_HOME": str(home)}, {"model": "gpt-5.4"}), None),
        ):
            chosen = choose(settings, name)
            found.append(f"{chosen.name}:{chosen.slug}")

    assert found == ["gate:gpt-5.4"] * 2 + ["openai:gpt-5.4"] * 2


@pytest.mark.parametrize("name", ["something", "nobody:gpt", "qwen3:8b", "embedded", "openai:", ":x"])
def test_a_name_without_a_provider_is_refused(load: Load, name: str) -> None:
    with pytest.raises(BadSetting):
        choose(load(), name)


@pytest.mark.parametrize(
    "row",
    [
        "",
        'api = "soap"\nbase_url = "http://x/v1"',
        'api = "chat"',
        'api = "chat"\nbase_url = "ftp://x"',
        'api = "chat"\nbase_url = "http://[x/v1"',
        'api = "chat"\nbase_url = "nonsense"',
        'api = "chat"\nbase_url = "http://x/v1"\nkey = "s"',
        'api = "chat"\nbase_url = "http://x/v1"\nretries = -1',
        'api = "chat"\nbase_url = "http://x/v1"\nidle_seconds = 0',
    ],
)
def test_a_provider_that_cannot_be_used_is_one_sentence(load: Load, row: str) -> None:
    with pytest.raises(BadSetting, match=r"providers\.bad"):
        choose(load(f"[providers.bad]\n{row}\n"), "bad:m")


def test_a_provider_that_is_no_table_is_one_sentence(load: Load) -> None:
    with pytest.raises(BadSetting, match="table"):
        choose(load("[providers]\nbad = 7\n"), "bad:m")


def test_a_key_is_read_from_its_variable_and_never_shown(load: Load) -> None:
    choice = choose(load(), "openai:gpt-5.4")
    model = connect(choice, {"OPENAI_API_KEY": " sk-very-secret-key \n"})

    assert isinstance(model, HttpModel)
    assert "sk-very" not in repr(model) + repr(vars(model)) + repr(choice)


@pytest.mark.parametrize("value", [None, "", "  ", "two words", "schlüssel"])
def test_a_missing_or_broken_key_is_said_before_anything_is_sent(load: Load, value: str | None) -> None:
    with pytest.raises(BadSetting, match="OPENAI_API_KEY"):
        connect(choose(load(), "openai:gpt-5.4"), {} if value is None else {"OPENAI_API_KEY": value})


def test_a_provider_without_a_key_needs_none(load: Load) -> None:
    assert isinstance(connect(choose(load(), "ollama:qwen3:8b"), {}), HttpModel)


def test_a_password_in_an_address_is_not_shown(load: Load) -> None:
    row = 'api = "chat"\nbase_url = "http://user:hunter2-hunter2@127.0.0.1:1/v1"'
    model = connect(choose(load(f"[providers.mine]\n{row}\n"), "mine:m"), {})

    assert "hunter2" not in repr(model) + repr(vars(model))


@pytest.mark.parametrize("family", [None, "gpt", "claude", "no_such_family", "../secrets"])
def test_instructions_are_whole_for_every_model(family: str | None) -> None:
    info = ModelInfo(window=1, max_output=1, instructions=family)
    text = instructions(info)

    assert text.startswith("You are a coding agent")
    assert PLACEHOLDER not in text
    assert "\n\n\n" not in text
    assert text.endswith("\n")


def test_a_personality_takes_its_place_and_an_unknown_one_leaves_none() -> None:
    friendly = instructions(model_info("gpt-5.4"), "friendly")

    assert "warm colleague" in friendly
    assert (
        instructions(model_info("gpt-5.4"))
        == instructions(model_info("gpt-5.4"), "no_such")
        == instructions(model_info("gpt-5.4"), "../base")
    )
    assert instructions(model_info("gpt-5.4")) != instructions(model_info("claude-opus-5")) != instructions()


def test_every_family_of_the_catalogue_has_its_text() -> None:
    general = instructions()

    assert all(instructions(model_info(name)) != general for name in NAMES if model_info(name).instructions)


def test_a_model_that_is_only_named_loads_no_http_library(tmp_path: Path) -> None:
    code = (
        "import sys; from commonplace import config; from commonplace.models import choose, connect, instructions;"
        f"settings = config.load({{'COMMONPLACE_HOME': {str(tmp_path)!r}}});"
        "connect(choose(settings, 'ollama:m')); instructions(); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert set() == {"httpx2", "anyio", "asyncio", "ssl"} & set(done.stdout.split())


def test_settings_are_not_changed_by_choosing(load: Load) -> None:
    settings = load("[providers.openai]\nretries = 2\n")
    before: Any = dict(settings.providers["openai"])
    choice = choose(settings, "openai:gpt-5.4")

    assert (2, "responses") == (choice.provider.retries, choice.provider.api)
    assert before == settings.providers["openai"]

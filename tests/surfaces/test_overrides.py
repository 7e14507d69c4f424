"""`--config key=value`: our names and Codex's, values as TOML or as text."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.app import config_overrides
from commonplace.app.config_overrides import Overrides
from commonplace.errors import BadInput

FLAGS: dict[str, tuple[str, str, Any]] = {
    "text without quotes": ("model=openai:gpt-5.4", "model", "openai:gpt-5.4"),
    "text with quotes": ('model="a=b"', "model", "a=b"),
    "a number": ("compaction.at_tokens=20_000", "compaction.at_tokens", 20_000),
    "a truth": ("memory.use=false", "memory.use", False),
    "a list": ('memory.exclude=["a", "b"]', "memory.exclude", ["a", "b"]),
    "spaces": (" effort = high ", "effort", "high"),
    "Codex's name": ("model_reasoning_effort=high", "effort", "high"),
    "Codex's name of a table": ("memories.use_memories=false", "memory.use", False),
    "a table": ("memory={use=false}", "memory.use", False),
    "a policy that is no more": ("approval_policy=on-failure", "approval", "on-request"),
    "a policy": ('approval_policy="never"', "approval", "never"),
    "what is no TOML": ("model=[", "model", "["),
    "brackets without end": ("model=" + "[" * 20_000, "model", "[" * 20_000),
    "a number without end": ("model=" + "9" * 5_000, "model", "9" * 5_000),
    "nothing": ("model=", "model", ""),
}


@pytest.mark.parametrize("what", FLAGS)
def test_a_setting_is(what: str) -> None:
    pair, key, value = FLAGS[what]

    found = config_overrides.parse([pair])

    assert (found.flags, found.ignored, found.providers) == ({key: value}, [], {})


PROVIDERS: dict[str, tuple[list[str], dict[str, dict[str, Any]]]] = {
    "our names": (
        ["providers.a.api=chat", "providers.a.base_url=http://x/v1"],
        {"a": {"api": "chat", "base_url": "http://x/v1"}},
    ),
    "Codex's names": (
        [
            "model_providers.a.wire_api=responses",
            "model_providers.a.env_key=KEY",
            "model_providers.a.request_max_retries=0",
        ],
        {"a": {"api": "responses", "api_key_env": "KEY", "retries": 0}},
    ),
    "one table": (
        ['model_providers.a={wire_api="chat", base_url="http://x/v1"}'],
        {"a": {"api": "chat", "base_url": "http://x/v1"}},
    ),
    "a table of tables": (
        ['providers={a={api="chat"}, b={api="responses"}}'],
        {"a": {"api": "chat"}, "b": {"api": "responses"}},
    ),
    "headers, at once and one by one": (
        ['model_providers.a.http_headers={X="1"}', "model_providers.a.http_headers.Y=two"],
        {"a": {"headers": {"X": "1", "Y": "two"}}},
    ),
    "a row of the catalogue": (["providers.a.models.m.window=8000"], {"a": {"models": {"m": {"window": 8000}}}}),
    "the address of OpenAI": (['openai_base_url="http://x/v1"'], {"openai": {"base_url": "http://x/v1"}}),
}


@pytest.mark.parametrize("what", PROVIDERS)
def test_a_provider_is_described_by(what: str) -> None:
    pairs, providers = PROVIDERS[what]

    found = config_overrides.parse(pairs)

    assert (found.providers, found.ignored, found.flags) == (providers, [], {})


@pytest.mark.parametrize(
    "key",
    [
        "model_providers.a.name",
        "nonsense.deep.key",
        "model_providers",
    ],
)
def test_what_means_nothing_here_is_let_be_and_returned(key: str) -> None:
    found = config_overrides.parse([f"{key}=true"])

    assert (found.ignored, found.flags, found.providers) == ([key], {}, {})


@pytest.mark.parametrize("pair", ["", "model", "=x", "  =x"])
def test_what_is_no_pair_is_refused(pair: str) -> None:
    with pytest.raises(BadInput, match="key=value"):
        config_overrides.parse([pair])


MODELS: dict[str, tuple[list[str], str | None, str | None]] = {
    "as it is named": ([], "gpt-5.5", "gpt-5.5"),
    "not named": ([], None, None),
    "with the provider that is set": (["model_provider=mock"], "gpt-5.5", "mock:gpt-5.5"),
    "with a provider of its own": (["model_provider=mock"], "openai:gpt-5.5", "openai:gpt-5.5"),
    "set beside its provider": (["model_provider=mock", "model=m"], None, "mock:m"),
    "named and set": (["model_provider=mock", "model=m"], "n", "mock:n"),
    "served where OpenAI is said to be": (["openai_base_url=http://x/v1"], "m", "openai:m"),
    "no text": (["model_provider=mock", "model=5"], None, None),
}


@pytest.mark.parametrize("how", MODELS)
def test_the_model_is(how: str) -> None:
    pairs, named, expected = MODELS[how]

    assert config_overrides.parse(pairs).model(named) == expected


def test_a_profile_and_older_names() -> None:
    found = config_overrides.parse(["profile=fast", "memory.phase_1_model=a:b", "memories.consolidation_model=c:d"])

    assert found.profile == "fast"
    assert found.flags == {"memory.extract_model": "a:b", "memory.consolidate_model": "c:d"}
    assert found.notes() == [
        "--config memory.phase_1_model is called memory.extract_model now; it still works.",
        "--config memories.consolidation_model is called memory.consolidate_model now; it still works.",
    ]


def test_nothing_is_set_by_nothing() -> None:
    assert config_overrides.parse([]) == Overrides()

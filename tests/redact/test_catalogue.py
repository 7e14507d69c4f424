"""Every format of the catalogue, made up anew, in everything that a session's text consists of."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from commonplace.redact import MARK, find, redact
from commonplace.redact.catalogue import formats
from generated_rows import strides
from redact import made

FORMATS = made.read("formats.txt")
NAMES = made.read("names.txt")
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 12))]


def is_gone(value: str, text: str) -> bool:
    """Neither the value nor a long part of it is left, as it stands or escaped."""
    written = json.dumps(value)[1:-1]
    parts = [value, written, *([value[8:24]] if len(value) >= 24 else [])]
    return not any(part in text for part in parts)


def shape(value: Any) -> Any:
    """A JSON document without its string values."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [shape(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return "" if isinstance(value, str) else value


def misses(rows: list[made.Row], *, named: bool, seed: int, stride: int) -> tuple[list[str], int]:
    """Try each row in every so-manieth surrounding, another one to begin with each time."""
    draw = random.Random(seed)
    missed: list[str] = []
    tried = 0
    for number, row in enumerate(rows):
        for prefix in row.prefixes:
            value = prefix + made.make(row.shape, draw)
            for case in made.cases(row.kind, value, named=named)[number % stride :: stride]:
                out = redact(case.text)
                tried += 1
                if not is_gone(value, out):
                    missed.append(f"{row.kind} in {case.name}")
                if case.is_json:
                    assert shape(json.loads(out)) == shape(json.loads(case.text)), case.text
                assert redact(out) == out
    return missed, tried


def test_every_row_of_the_catalogue_has_made_up_values() -> None:
    known = {row.kind for row in FORMATS}

    assert {row.kind for row in formats()} - known == set()


def test_a_format_is_found_where_it_stands() -> None:
    too_often: dict[str, list[str]] = {}
    for row in FORMATS:
        draw = random.Random(row.kind)
        tries = [prefix + made.make(row.shape, draw) for prefix in row.prefixes for _ in range(8)]
        missed = [value for value in tries if redact(f"see {value} there") != f"see {MARK} there"]
        if len(missed) > len(tries) // 8:
            too_often[row.kind] = missed

    assert too_often == {}


@strides(3)
@pytest.mark.parametrize("seed", SEEDS)
def test_99_of_100_made_up_credentials_are_replaced_in_every_surrounding(seed: int, stride: int) -> None:
    missed, tried = misses(FORMATS, named=False, seed=seed, stride=stride)

    assert len(missed) <= tried // 100, missed


@strides(3)
@pytest.mark.parametrize("seed", SEEDS)
def test_99_of_100_values_that_only_a_name_shows_are_replaced(seed: int, stride: int) -> None:
    missed, tried = misses(NAMES, named=True, seed=seed, stride=stride)

    assert len(missed) <= tried // 100, missed


@pytest.mark.parametrize("form", [*made.BARE], ids=str)
def test_what_stands_around_a_credential_stays(form: str) -> None:
    draw = random.Random(form)
    for row in FORMATS:
        value = row.prefixes[0] + made.make(row.shape, draw)
        text = made.BARE[form](row.kind, value)
        before, _, behind = text.partition(value)
        assert redact(text) in (before + MARK + behind, text), text


def test_a_finding_tells_place_and_kind_in_characters() -> None:
    value = "ghp_" + made.make("<A36>", random.Random(1))
    text = f"naïve → {value}."
    (finding,) = find(text)

    assert (value, "github_token") == (text[finding.start : finding.end], finding.kind)


def test_a_text_without_secrets_is_returned_as_it_is() -> None:
    text = "nothing to see: token_count = 12"

    assert redact(text) is text

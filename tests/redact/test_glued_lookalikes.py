"""What has the letters of a prefix inside of a word and is no credential stays: one template on a line."""

from __future__ import annotations

import base64
import random
from pathlib import Path

import pytest

from commonplace.redact import redact
from redact import made
from redact.test_benign import surroundings

LINES = (Path(__file__).parent / "lookalikes.txt").read_text("utf-8").splitlines()
TEMPLATES = [line for line in LINES if line and not line.startswith("#")]
PREFIXES = sorted(
    {prefix for name in ("glued.txt", "glued_apart.txt") for row in made.read(name) for prefix in row.prefixes}
)
WORDS = """
    release notes parser settings handler session window server record update delete create branch commit schema
    migration worker queue thread memory context report metric gauge counter widget layout button dialog import export
"""


def test_there_are_enough_look_alikes() -> None:
    assert len(set(TEMPLATES)) >= 200


def test_a_look_alike_stays() -> None:
    changed: list[tuple[str, str]] = []
    for template in TEMPLATES:
        draw = random.Random(template)
        texts = [made.fill(template, draw)[1] for _ in range(3)]
        changed += [(template, shown) for text in texts for shown in surroundings(text) if redact(shown) != shown]

    assert changed == []


def test_words_behind_a_prefix_stay() -> None:
    changed: list[str] = []
    for prefix in PREFIXES:
        draw = random.Random(prefix)
        for sign in "-_." * 6:
            words = draw.choices(WORDS.split(), k=9)
            text = f"see {draw.choice(WORDS.split())}{sign}{prefix}{draw.choice('-_').join(words)} there"
            if redact(text) != text:
                changed.append(text)

    assert changed == []


@pytest.mark.parametrize("seed", range(6))
def test_names_in_camel_case_behind_a_prefix_stay(seed: int) -> None:
    draw = random.Random(seed)
    for prefix in PREFIXES:
        name = "".join(word.capitalize() for word in draw.choices(WORDS.split(), k=8))
        text = f"see my_{prefix}{name} there"
        assert redact(text) == text


@pytest.mark.parametrize(
    "prefix",
    [
        "ghp_",
        "hf_",
        "npm_",
        "gsk_",
        "pplx-",
        "ATBB",
        "nfp_",
        "xoxb-",
        "glc_",
        "vcr_",
        "glpat-",
        "hvs.",
        "figd_",
        "nvapi-",
        "phx_",
    ],
)
def test_a_hash_behind_a_prefix_whose_values_are_no_hashes_stays(prefix: str) -> None:
    draw = random.Random(prefix)
    for shape in ("<H32>", "<H36>", "<H52>", "<H64>", "<N36>", "<V>"):
        text = f"see cache.{prefix}{made.make(shape, draw)} there"
        assert redact(text) == text


@pytest.mark.parametrize("seed", range(4))
def test_random_base64_has_no_credentials_inside(seed: int) -> None:
    draw = random.Random(seed)
    data = draw.randbytes(150_000)
    for text in (base64.b64encode(data), base64.urlsafe_b64encode(data), data.hex().encode()):
        assert redact(text.decode()) == text.decode()

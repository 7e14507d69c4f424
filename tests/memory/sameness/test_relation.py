"""Two lessons are one only if nothing that one says is missing in the other."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.memory.sameness import Relation, compare, is_supported_by, read

PAIRS = [json.loads(line) for line in (Path(__file__).parent / "pairs.jsonl").read_text("utf-8").splitlines()]
EXPECTED = {"same": Relation.SAME, "replace": Relation.REPLACES, "different": Relation.DIFFERENT}
APART = {
    "indentation": ["two spaces in YAML", "four spaces in Python"],
    "people": [
        "ask Anna before touching billing",
        "ask Bert before touching billing",
        "ask Carla before touching billing",
    ],
    "services": [
        "auth runs on port 4001",
        "mail runs on port 4002",
        "search runs on port 4003",
        "billing runs on port 4004",
    ],
    "commands": ["run `npm test` in packages/core", "run `npm test` in packages/web"],
    "objects": ["never mock the database in tests", "never mock the clock in tests"],
    "order": ["run the linter before you commit", "run the linter after you commit"],
    "scope": ["Use tabs for indentation.", "Use tabs for indentation in Makefiles only."],
    "halves": ["keep answers short", "keep answers short when I am on my phone"],
}
ONE = [
    ("use pnpm", "use pnpm please"),
    ("Always use pnpm, never npm.", "use pnpm instead of npm"),
    ("open PRs as drafts", "always open draft PRs"),
    ("Don't commit without asking me", "ask before committing"),
    ("never push to main", "do not push to main directly"),
]
REPLACED = [
    ("Use npm.", "Actually use pnpm from now on."),
    ("Use npm", "Use pnpm"),
    ("use tabs", "use spaces"),
    ("run tests with jest", "we use vitest for tests now, not jest"),
    ("deploy on Fridays is fine", "never deploy on Fridays"),
    ("Use 4 spaces", "use 2 spaces"),
]


def relation(older: str, newer: str) -> Relation:
    return compare(read(older), read(newer))


def test_of_the_pairs_none_is_merged_wrongly_and_most_repeats_are_found() -> None:
    """These pairs are a regression test; quality is measured on others."""
    counts = Counter((pair["class"], relation(pair["old"], pair["new"])) for pair in PAIRS)

    assert 0 == counts["different", Relation.SAME] + counts["replace", Relation.SAME]
    assert 0 == counts["different", Relation.REPLACES]
    assert counts["same", Relation.SAME] >= 80
    assert counts["replace", Relation.REPLACES] >= 76


@pytest.mark.parametrize("texts", APART.values(), ids=APART)
def test_what_differs_in_one_thing_stays_apart(texts: list[str]) -> None:
    found = {(one, two): relation(one, two) for one, two in itertools.permutations(texts, 2)}

    assert {} == {pair: each for pair, each in found.items() if each is not Relation.DIFFERENT}


@pytest.mark.parametrize(("older", "newer"), ONE)
def test_the_same_in_other_words_is_one(older: str, newer: str) -> None:
    assert relation(older, newer) is Relation.SAME


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_the_newer_takes_the_place_of_the_older(older: str, newer: str) -> None:
    assert relation(older, newer) is Relation.REPLACES


def test_a_question_replaces_nothing() -> None:
    assert relation("use tabs in this file", "why don't we use spaces in this file?") is Relation.DIFFERENT


def test_a_longer_lesson_supports_a_shorter_one_and_is_not_merged_with_it() -> None:
    short, long = "open PRs as drafts", "open the PR as a draft and put the ticket number into its title"

    assert is_supported_by(read(short), read(long))
    assert not is_supported_by(read(long), read(short))
    assert relation(short, long) is Relation.DIFFERENT


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("push to main", "never push to main when the build is red"),
        ("run tests before the commit", "run tests after the commit and push then"),
        ("use pnpm", "use npm instead of pnpm for the docs"),
    ],
)
def test_a_longer_lesson_that_says_otherwise_supports_nothing(short: str, long: str) -> None:
    assert not is_supported_by(read(short), read(long))


NAMES = ["Anna", "Bert", "Carla", "Dmitri", "Emeka"]
THINGS = ["billing", "search", "auth", "mail", "the parser", "checkout"]
NUMBERS = ["3000", "4001", "8080", "9090"]
PATHS = ["src/app.py", "docs/guide.md", "packages/web", "infra/main.tf"]
FRAMES = [
    "ask {name} before changing {thing}",
    "{thing} is owned by {name}",
    "{thing} listens on port {number}",
    "the settings of {thing} are in {path}",
    "retry uploads of {thing} {number} times",
    "{name} reviews changes in {path}",
]
FILLED = st.tuples(
    st.sampled_from(FRAMES),
    st.sampled_from(NAMES),
    st.sampled_from(THINGS),
    st.sampled_from(NUMBERS),
    st.sampled_from(PATHS),
).map(lambda row: row[0].format(name=row[1], thing=row[2], number=row[3], path=row[4]))


@given(FILLED, FILLED)
def test_frames_with_other_names_numbers_or_paths_are_never_the_same(one: str, two: str) -> None:
    assert (relation(one, two) is Relation.SAME) == (one == two)


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_compared(one: str, two: str) -> None:
    assert relation(one, two) in Relation
    assert relation(one, one) is not Relation.REPLACES

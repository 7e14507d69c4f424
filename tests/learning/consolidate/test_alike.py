"""When two lessons mean the same and when one takes the other's place, one row per rule."""

from __future__ import annotations

import pytest

from commonplace.memory import similarity

SAME = [
    ("I want complete type hints on everything you write in Python.", "again: complete type hints, always"),
    ("never push to main directly", "don't push straight to main"),
    ("run the tests before committing", "never commit without running the tests"),
    ("keep answers short", "short replies please, three sentences at most"),
    ("no commits from you please, I commit myself after reading the diff", "never commit for me, leave it as it is"),
    ("explain things in plain words, I'm a choir director", "again in plain words please, no jargon"),
    ("I don't want new dependencies for ten lines of code", "keine neuen Abhängigkeiten ohne mich zu fragen"),
    ("请用中文回答我,英文我看得慢", "怎么又是英文?以后都用中文回答"),
    (
        "no real patient names in fixtures, use the made-up ones from names.txt",
        "fixtures get names from names.txt only",
    ),
    ("money fields are integers in cents in this codebase", "one principle here: amounts of money are integer cents"),
    ("please don't reformat code you don't change", "don't touch the formatting of files you edit"),
    ("No toques el README si no te lo pido", "el README no: no lo toques nunca si no te lo pido"),
]
OTHERWISE = [
    (
        "I prefer jest for all my JavaScript tests.",
        "I changed my mind about jest: from now on use vitest for JavaScript tests",
    ),
    ("In this repo hotfixes always go to the branch release/stable.", "hotfixes now go to the branch hotfix/main"),
    ("use tabs for indentation", "indent with 4 spaces please"),
    ("commit messages in English", "commit messages in German from now on"),
    ("the api listens on port 8080", "the api now listens on port 9090"),
    ("use uv not pip", "we use poetry here, not pip"),
    ("we're on pnpm in this repo. use pnpm add", "So we're back on npm here, package-lock.json is checked in again"),
    (
        "we store the sign-ups in SQLite, one file is easy to back up",
        "new decision: Postgres, because the disk is wiped",
    ),
    ("aquí las ramas siempre salen de master", "ojo, master ya no se usa: las ramas salen de principal"),
    ("give me bullet lists when you answer", "write full sentences in prose from here on"),
]
APART = [
    ("commit messages are written in English", "never commit for me"),
    ("show me the list before you delete anything", "log messages are in English"),
    ("put tests next to the code", "use pnpm for everything"),
    ("the staging host has 8 GB of memory", "answers should be short"),
    ("never push to main", "never touch the generated files"),
]


@pytest.mark.parametrize(("one", "two"), SAME)
def test_the_same_in_other_words_is_the_same(one: str, two: str) -> None:
    assert similarity.is_same(similarity.words(one), similarity.words(two))
    assert similarity.is_same(similarity.words(two), similarity.words(one))


@pytest.mark.parametrize(("older", "newer"), OTHERWISE)
def test_what_says_otherwise_takes_the_place(older: str, newer: str) -> None:
    assert similarity.clash(similarity.words(older), similarity.words(newer))
    assert not similarity.is_same(similarity.words(older), similarity.words(newer))


@pytest.mark.parametrize(("one", "two"), APART)
def test_different_things_stay_apart(one: str, two: str) -> None:
    assert not similarity.is_same(similarity.words(one), similarity.words(two))
    assert not similarity.clash(similarity.words(one), similarity.words(two))

"""From texts to terms, one row for each rule."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.search.rank import analysis
from commonplace.search.rank.analysis import Analyser, query_terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("the flaky test", ["flaky", "test"]),
        ("Caroline's lamp", ["caroline", "lamp"]),
        ("don't", []),
        ("socket.io", ["socket", "io", "socket_io"]),
        ("src/auth.py", ["src", "auth", "py", "src_auth_py"]),
        ("parseHTML2", ["parsehtml2", "parse", "html", "2"]),
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("snake_case_name", ["snake", "case", "name", "snake_case_name"]),
        ("aB", ["ab"]),
        ("v2.8.0", ["v2", "2", "8", "0", "v2_8_0"]),
        ("café Über", ["cafe", "uber"]),
        ("ﬁnal", ["final"]),
        ("测试端口", ["测试", "试端", "端口"]),
        ("测", ["测"]),
        ("使用pytest测试", ["使用", "pytest", "测试"]),
        ("データベース", ["デー", "ータ", "タベ", "ベー", "ース"]),
        ("", []),
        ("?! …", []),
        ("x" * 65, []),
    ],
)
def test_a_question_falls_into_terms(text: str, terms: list[str]) -> None:
    assert list(query_terms(text)) == terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("running", "runs"),
        ("migrations", "migration"),
        ("RETRY", "retry"),
        ("naïve", "naive"),
        ("Ｐｙｔｈｏｎ", "python"),
    ],
)
def test_forms_of_a_word_are_one_term(one: str, other: str) -> None:
    assert set(query_terms(one).values()) == set(query_terms(other).values())


def test_a_term_of_a_question_counts_once() -> None:
    assert len(query_terms("retry retries retrying")) == 1


def terms_of(text: str) -> set[int]:
    analyser = Analyser()
    numbers = list(analyser.chunks(text))
    starts = array("I", [0, *analyser.ends])
    return {key for number in numbers for key in analyser.keys[starts[number] : starts[number + 1]]}


@given(st.text(max_size=60))
def test_a_text_is_found_by_every_term_of_itself(text: str) -> None:
    assert set(query_terms(text).values()) <= terms_of(text)


@given(st.text(alphabet="aB1_'./-é测 ", max_size=40))
def test_a_text_dense_in_joints_is_found_by_every_term_of_itself(text: str) -> None:
    assert set(query_terms(text).values()) <= terms_of(text)


def test_a_single_character_finds_a_longer_run_that_holds_it() -> None:
    assert set(query_terms("口").values()) <= terms_of("测试端口")


@pytest.mark.parametrize(
    ("text", "is_dated"),
    [
        ("we met last week", True),
        ("on 2026-05-12 it broke", True),
        ("since 2019", True),
        ("12/05/2026", True),
        ("yesterday", True),
        ("the build is green", False),
        ("port 5433", False),
    ],
)
def test_chunks_tell_dates(text: str, is_dated: bool) -> None:
    analyser = Analyser()
    assert any(analyser.dated[number] for number in analyser.chunks(text)) is is_dated


def test_no_word_can_be_read_in_a_key() -> None:
    assert analysis.key("secret").to_bytes(8, "little") not in (b"secret\0\0", b"secretse")

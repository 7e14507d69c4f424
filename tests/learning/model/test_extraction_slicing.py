"""Slices: between turns, then between events, never larger than they may be."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.context.tokens import approximate_tokens
from commonplace.learning.extract.model import slices
from commonplace.learning.extract.model.session_text import EventText

SIZES = st.lists(st.lists(st.integers(1, 3_000), min_size=1, max_size=8), max_size=12)


def made(sizes: list[list[int]]) -> list[EventText]:
    """Pieces of so many letters, turn by turn."""
    places = iter(range(10_000))
    return [EventText(turn, next(places), "é" * size) for turn, own in enumerate(sizes, 1) for size in own]


@given(SIZES, st.integers(slices.LEAST, 1_000))
def test_every_event_is_in_exactly_one_slice_in_its_order(sizes: list[list[int]], tokens: int) -> None:
    pieces = made(sizes)
    cut = slices.cut(pieces, tokens)

    assert [piece.event for piece in pieces] == [piece.event for part in cut for piece in part.pieces]
    assert all(part.pieces for part in cut)


@given(SIZES, st.integers(slices.LEAST, 1_000))
def test_no_slice_is_larger_than_it_may_be(sizes: list[list[int]], tokens: int) -> None:
    assert all(approximate_tokens(part.text()) <= tokens for part in slices.cut(made(sizes), tokens))


@given(SIZES, st.integers(slices.LEAST, 1_000))
def test_only_a_turn_that_is_larger_than_a_slice_is_cut(sizes: list[list[int]], tokens: int) -> None:
    for one, two in pairwise(slices.cut(made(sizes), tokens)):
        turn = two.pieces[0].turn
        whole = [piece for piece in made(sizes) if piece.turn == turn]
        is_large = sum(len(piece.text.encode()) + 1 for piece in whole) + 48 > tokens * 4

        assert (one.pieces[-1].turn == turn) == two.goes_on
        assert not two.goes_on or is_large


@given(SIZES)
def test_what_fits_is_one_slice_with_every_text_as_it_was(sizes: list[list[int]]) -> None:
    pieces = made(sizes)

    assert [tuple(pieces)] * bool(pieces) == [part.pieces for part in slices.cut(pieces, 1_000_000)]


@given(st.integers(slices.LEAST, 400), st.integers(1, 9_000))
def test_an_event_larger_than_a_slice_keeps_its_ends_and_says_so(tokens: int, size: int) -> None:
    text = "a" * size + "b" * size
    (part,) = slices.cut([EventText(1, 0, text)], tokens)
    shown = part.pieces[0].text

    assert text == shown or ("chars truncated" in shown and shown[0] == "a" and shown[-1] == "b")


def test_a_slice_has_a_heading_for_each_turn() -> None:
    (part,) = slices.cut(
        [EventText(1, 0, "PERSON\n  a"), EventText(1, 1, "ASSISTANT\n  b"), EventText(2, 2, "PERSON\n  c")], 500
    )

    assert "=== turn 1 ===\nPERSON\n  a\nASSISTANT\n  b\n\n=== turn 2 ===\nPERSON\n  c" == part.text()


def test_a_turn_that_goes_on_says_so() -> None:
    pieces = [EventText(7, place, "x" * 200) for place in range(3)]
    first, second, third = slices.cut(pieces, slices.LEAST)

    assert first.text().startswith("=== turn 7 ===\n")
    assert second.text().startswith("=== turn 7 (continued) ===\n")
    assert third.goes_on


@pytest.mark.parametrize("goes_on", [True, False])
def test_slices_that_are_cut_again_know_that_their_turn_had_begun(goes_on: bool) -> None:
    cut = slices.cut([EventText(7, place, "x" * 200) for place in range(2)], slices.LEAST, goes_on=goes_on)

    assert [goes_on, True] == [part.goes_on for part in cut]

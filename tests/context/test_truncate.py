"""Truncation keeps head and tail of a text within a budget of tokens; the numbers are those of Codex 0.166."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.context.truncate import (
    REPLAY_TOKENS,
    approximate_tokens,
    split_middle,
    truncate,
    truncate_parts,
)
from commonplace.protocol.items import Content


@pytest.mark.parametrize(
    ("size", "tokens", "head", "removed", "tail"),
    [
        (48_001, REPLAY_TOKENS, 24_000, 1, 24_000),
        (48_005, REPLAY_TOKENS, 24_000, 2, 24_000),
        (300_000, REPLAY_TOKENS, 24_000, 63_000, 24_000),
        (300_000, 74_999, 149_998, 1, 149_998),
        (300_000, 20_000, 40_000, 55_000, 40_000),
        (300_000, 120, 240, 74_880, 240),
        (300_000, 1, 2, 75_000 - 1, 2),
        (300_000, 0, 0, 75_000, 0),
    ],
)
def test_a_text_over_budget_keeps_both_halves_around_a_marker(
    size: int, tokens: int, head: int, removed: int, tail: int
) -> None:
    text = "".join(chr(ord("a") + place % 26) for place in range(size))

    expected = text[:head] + f"…{removed} tokens truncated…" + text[size - tail :]

    assert expected == truncate(text, tokens)


@pytest.mark.parametrize(
    ("size", "tokens"), [(0, 0), (0, REPLAY_TOKENS), (4, 1), (48_000, REPLAY_TOKENS), (300_000, 75_000)]
)
def test_a_text_within_budget_is_untouched(size: int, tokens: int) -> None:
    assert "a" * size == truncate("a" * size, tokens)
    assert split_middle("a" * size, tokens) is None


@pytest.mark.parametrize(
    ("text", "head", "removed", "tail"),
    [
        # A three-byte character straddles the cut: head or tail give it up, the count stays that of the bytes.
        ("a" * 23_999 + "€" + "b" * 30_000, "a" * 23_999, 1_501, "b" * 24_000),
        ("a" * 23_998 + "€" + "b" * 30_000, "a" * 23_998, 1_501, "b" * 24_000),
        ("a" * 23_997 + "€" + "b" * 30_000, "a" * 23_997 + "€", 1_500, "b" * 24_000),
        ("a" * 30_000 + "€" + "b" * 23_999, "a" * 24_000, 1_501, "b" * 23_999),
        ("a" * 30_000 + "€" + "b" * 23_998, "a" * 24_000, 1_501, "b" * 23_998),
        ("a" * 30_000 + "€" + "b" * 23_997, "a" * 24_000, 1_500, "€" + "b" * 23_997),
        ("😀" * 20_000, "😀" * 6_000, 8_000, "😀" * 6_000),
    ],
)
def test_cuts_move_inwards_to_characters(text: str, head: str, removed: int, tail: str) -> None:
    assert (head, f"…{removed} tokens truncated…", tail) == split_middle(text, REPLAY_TOKENS)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("€", 1), ("€€", 2)])
def test_tokens_are_bytes_by_four_rounded_up(text: str, tokens: int) -> None:
    assert tokens == approximate_tokens(text)


@given(st.text(max_size=200), st.integers(0, 60))
def test_what_is_kept_is_within_the_budget_and_from_the_ends(text: str, tokens: int) -> None:
    pieces = split_middle(text, tokens)
    if pieces is None:
        assert approximate_tokens(text) <= tokens
        return
    head, _, tail = pieces

    assert text.startswith(head)
    assert text.endswith(tail)
    assert tokens * 4 - 6 <= len((head + tail).encode()) <= tokens * 4


def text_part(text: str) -> Content:
    return Content("input_text", text=text)


IMAGE = Content("input_image", image_url="data:image/png;base64,AAAA")
SECRET = Content("encrypted_content", encrypted_content="x" * 1000)


@pytest.mark.parametrize(
    ("parts", "tokens", "expected"),
    [
        ([], 0, None),
        ([text_part("abcd"), text_part("efgh")], 2, None),
        ([IMAGE, SECRET], 0, None),
        ([text_part("")], 0, None),
        ([text_part("abcd"), text_part("efghijkl")], 2, [(0, "abcd"), (1, "ef…1 tokens truncated…kl")]),
        # Each text costs whole tokens: 5 bytes cost two of three, so one is left for the next.
        ([text_part("abcde"), text_part("fghijk")], 3, [(0, "abcde"), (1, "fg…1 tokens truncated…jk")]),
        ([text_part("abcd"), text_part("e"), text_part("f")], 1, [(0, "abcd"), (-1, "[omitted 2 text items ...]")]),
        ([text_part("a")], 0, [(-1, "[omitted 1 text items ...]")]),
        (
            [IMAGE, text_part("abcdefgh"), IMAGE, text_part("i"), SECRET],
            1,
            [(1, "ab…1 tokens truncated…gh"), (-1, "[omitted 1 text items ...]")],
        ),
    ],
)
def test_parts_share_one_budget(parts: list[Content], tokens: int, expected: list[tuple[int, str]] | None) -> None:
    assert expected == truncate_parts(parts, tokens)


def test_a_long_part_after_a_short_one_gets_the_rest_of_the_budget() -> None:
    """A 33-byte part costs 9 tokens, which leaves 11,991 for the one after it."""
    parts = [text_part("w" * 33), text_part("x" * 60_000)]

    kept = truncate_parts(parts, REPLAY_TOKENS)

    assert [(0, "w" * 33), (1, "x" * 23_982 + "…3009 tokens truncated…" + "x" * 23_982)] == kept

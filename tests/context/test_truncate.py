"""Truncation keeps head and tail of a text within a budget; the numbers are those of Codex 0.166."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.context.tokens import approximate_tokens, audio_tokens
from commonplace.context.truncate import (
    TruncatedParts,
    TruncationPolicy,
    exec_output,
    split_middle,
    truncate,
    truncate_parts,
)
from commonplace.protocol.items import Content

REPLAY_TOKENS = 12_000


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


def in_bytes(limit: int) -> TruncationPolicy:
    return TruncationPolicy("bytes", limit)


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("", 0, ""),
        ("abc", 3, "abc"),
        ("abcdef", 4, "ab…2 chars truncated…ef"),
        ("abcdef", 3, "a…3 chars truncated…ef"),
        ("abcdef", 1, "…5 chars truncated…f"),
        ("abcdef", 0, "…6 chars truncated…"),
        ("€€€€", 7, "€…2 chars truncated…€"),
        ("€€€€", 5, "…3 chars truncated…€"),
        ("€€€€", 2, "…4 chars truncated…"),
        ("😀" * 10, 16, "😀😀…6 chars truncated…😀😀"),
        ("a" * 20_000, 10_000, "a" * 5_000 + "…10000 chars truncated…" + "a" * 5_000),
    ],
)
def test_in_byte_mode_the_marker_counts_characters(text: str, limit: int, expected: str) -> None:
    assert expected == truncate(text, in_bytes(limit))


@pytest.mark.parametrize(
    ("policy", "with_headroom"),
    [
        (TruncationPolicy("tokens", 10_000), TruncationPolicy("tokens", 12_000)),
        (TruncationPolicy("bytes", 10_000), TruncationPolicy("bytes", 12_000)),
        (TruncationPolicy("tokens", 1), TruncationPolicy("tokens", 2)),
        (TruncationPolicy("tokens", 3), TruncationPolicy("tokens", 4)),
        (TruncationPolicy("bytes", 5), TruncationPolicy("bytes", 6)),
        (TruncationPolicy("bytes", 0), TruncationPolicy("bytes", 0)),
    ],
)
def test_recording_allows_a_fifth_more_rounded_up(policy: TruncationPolicy, with_headroom: TruncationPolicy) -> None:
    assert with_headroom == policy.with_headroom()


@pytest.mark.parametrize(
    ("policy", "limit", "budget"),
    [(TruncationPolicy("tokens", 1), 500, 2_000), (TruncationPolicy("bytes", 1), 2_000, 2_000)],
)
def test_a_limit_that_a_person_sets_is_in_tokens(policy: TruncationPolicy, limit: int, budget: int) -> None:
    asked = policy.with_token_limit(500)

    assert TruncationPolicy(policy.mode, limit) == asked
    assert budget == asked.budget


MARKER = re.compile("…([0-9]+) (tokens|chars) truncated…")


@given(st.text(max_size=200), st.sampled_from(["bytes", "tokens"]), st.integers(0, 300))
def test_a_cut_never_splits_a_character_and_never_exceeds_the_budget_plus_its_marker(
    text: str, mode: str, limit: int
) -> None:
    policy = TruncationPolicy("bytes" if mode == "bytes" else "tokens", limit)
    pieces = split_middle(text, policy)
    if pieces is None:
        assert len(text.encode()) <= policy.budget
        return
    head, marker, tail = pieces

    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) < len(text)
    assert policy.budget - 6 <= len((head + tail).encode()) <= policy.budget
    found = MARKER.fullmatch(marker)
    assert found is not None
    removed = len(text) - len(head) - len(tail) if mode == "bytes" else approximate_tokens(text) - limit
    assert int(found[1]) == removed


# --- What a model is told of a command.


@pytest.mark.parametrize(
    ("output", "limit", "expected"),
    [
        ("fine\n", 10, "Exit code: 3\nWall time: 1.2 seconds\nOutput:\nfine\n"),
        ("", 10, "Exit code: 3\nWall time: 1.2 seconds\nOutput:\n"),
        (
            "a\n" * 10,
            2,
            "Exit code: 3\nWall time: 1.2 seconds\nTotal output lines: 10\nOutput:\na\na\n…3 tokens truncated…a\na\n",
        ),
        ("abcdefghi", 1, "Exit code: 3\nWall time: 1.2 seconds\nOutput:\nab…2 tokens truncated…hi"),
    ],
    ids=["whole", "empty", "lines went", "a cut inside one line"],
)
def test_a_command_is_told_with_its_lines_only_where_some_went(output: str, limit: int, expected: str) -> None:
    assert expected == exec_output(3, 1.23, output, limit)


# --- Lists of parts.


def text_part(text: str) -> Content:
    return Content("input_text", text=text)


def fitted(texts: dict[int, str], dropped: set[int], *notes: str) -> TruncatedParts:
    return TruncatedParts(texts, frozenset(dropped), notes)


IMAGE = Content("input_image", image_url="data:image/png;base64,AAAA")
SECRET = Content("encrypted_content", encrypted_content="x" * 1000)
AUDIO = Content("input_audio", audio_url="data:audio/mp3;base64,AAAAA")
"""28 bytes of URL: seven tokens."""
NO_TEXT, NO_AUDIO = "[omitted 1 text items ...]", "[omitted 1 audio items ...]"


@pytest.mark.parametrize(
    ("parts", "limit", "expected"),
    [
        ([], 0, None),
        ([text_part("abcd"), text_part("efgh")], 2, None),
        ([IMAGE, SECRET], 0, None),
        ([text_part("")], 0, None),
        ([text_part("abcd"), text_part("efghijkl")], 2, fitted({1: "ef…1 tokens truncated…kl"}, set())),
        # Each text costs whole tokens: 5 bytes cost two of three, so one is left for the next.
        ([text_part("abcde"), text_part("fghijk")], 3, fitted({1: "fg…1 tokens truncated…jk"}, set())),
        (
            [text_part("abcd"), text_part("e"), text_part("f")],
            1,
            fitted({}, {1, 2}, "[omitted 2 text items ...]"),
        ),
        ([text_part("a")], 0, fitted({}, {0}, NO_TEXT)),
        (
            [IMAGE, text_part("abcdefgh"), IMAGE, text_part("i"), SECRET],
            1,
            fitted({1: "ab…1 tokens truncated…gh"}, {3}, NO_TEXT),
        ),
        ([text_part("abc"), text_part("defgh")], in_bytes(5), fitted({1: "d…3 chars truncated…h"}, set())),
        ([text_part("abc"), text_part("de")], in_bytes(5), None),
        ([AUDIO], 7, None),
        ([AUDIO], 6, fitted({}, {0}, NO_AUDIO)),
        ([AUDIO], in_bytes(28), None),
        ([AUDIO], in_bytes(27), fitted({}, {0}, NO_AUDIO)),
        # A recording that does not fit leaves its share to what comes after it.
        ([AUDIO, text_part("abcd"), AUDIO], 6, fitted({}, {0, 2}, "[omitted 2 audio items ...]")),
        ([AUDIO, text_part("abcd"), text_part("e")], 8, fitted({}, {2}, NO_TEXT)),
        (
            [text_part("abcdefgh"), text_part("x"), AUDIO],
            1,
            fitted({0: "ab…1 tokens truncated…gh"}, {1, 2}, NO_TEXT, NO_AUDIO),
        ),
    ],
)
def test_parts_share_one_budget(
    parts: list[Content], limit: TruncationPolicy | int, expected: TruncatedParts | None
) -> None:
    assert 7 == audio_tokens(AUDIO.audio_url or "")
    assert expected == truncate_parts(parts, limit)


def test_a_long_part_after_a_short_one_gets_the_rest_of_the_budget() -> None:
    """A 33-byte part costs 9 tokens, which leaves 11,991 for the one after it."""
    parts = [text_part("w" * 33), text_part("x" * 60_000)]

    kept = truncate_parts(parts, REPLAY_TOKENS)

    assert fitted({1: "x" * 23_982 + "…3009 tokens truncated…" + "x" * 23_982}, set()) == kept


@given(st.lists(st.text(max_size=30).map(text_part) | st.sampled_from([IMAGE, SECRET, AUDIO])), st.integers(0, 40))
def test_kept_texts_and_recordings_are_within_the_shared_budget(parts: list[Content], limit: int) -> None:
    kept = truncate_parts(parts, limit) or fitted({}, set())
    cost = 0
    for index, part in enumerate(parts):
        if index in kept.dropped:
            assert part not in (IMAGE, SECRET)
        elif part.audio_url:
            cost += audio_tokens(part.audio_url)
        elif part.text is not None:
            cost += approximate_tokens(MARKER.sub("", kept.texts.get(index, part.text)))

    assert cost <= limit
    assert bool(kept.notes) == bool(kept.dropped)

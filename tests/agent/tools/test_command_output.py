"""What commands print: kept whole in bounded memory, and cut as the one rule of truncation says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.agent.tools.command_output import CommandOutput
from commonplace.context.truncate import TruncationPolicy, exec_output, truncate

_texts = st.lists(st.text(st.sampled_from("ab\n ä€😀\r\x00"), max_size=12), max_size=12)
_policies = st.builds(TruncationPolicy, st.sampled_from(["bytes", "tokens"]), st.integers(0, 20))


@given(_texts, _policies, st.integers(0, 64))
def test_the_model_gets_the_same_however_the_text_is_kept(
    pieces: list[str], policy: TruncationPolicy, in_memory: int
) -> None:
    printed = CommandOutput(in_memory=in_memory)
    for piece in pieces:
        printed.add(piece)
    whole = "".join(pieces)

    assert whole == printed.text()
    assert truncate(whole, policy) == printed.cut(policy)
    assert exec_output(3, 1.25, whole, policy) == printed.report(3, 1.25, policy)


@given(_texts, _policies, st.integers(4, 40), st.integers(100, 120))
def test_what_is_not_kept_does_not_change_what_the_model_gets(
    pieces: list[str], policy: TruncationPolicy, kept: int, last: int
) -> None:
    printed = CommandOutput(in_memory=0, kept=max(kept, policy.budget + 8), last=last)
    for piece in pieces:
        printed.add(piece)
    whole = "".join(pieces)

    assert len(whole.encode()) == printed.size
    assert exec_output(0, 0.0, whole, policy) == printed.report(0, 0.0, policy)


@given(_texts, st.integers(0, 10), st.integers(1, 10))
def test_beginning_and_end_are_kept_and_the_gap_is_told(pieces: list[str], kept: int, last: int) -> None:
    printed = CommandOutput(in_memory=0, kept=kept, last=last)
    for piece in pieces:
        printed.add(piece)
    whole, text = "".join(pieces), printed.text()

    if printed.missing:
        begin, _, end = text.partition(f"\n[{printed.missing} bytes are not kept]\n")
        assert whole.startswith(begin)
        assert whole.endswith(end)
        assert len(whole.encode()) == len(begin.encode()) + printed.missing + len(end.encode())
    else:
        assert whole == text


def test_nothing_printed_is_nothing() -> None:
    printed = CommandOutput()

    assert ("", 0, 0) == (printed.text(), printed.size, printed.lines)
    assert "Exit code: 0\nWall time: 0.0 seconds\nOutput:\n" == printed.report(0, 0.0, TruncationPolicy("tokens", 10))


@pytest.mark.parametrize("rounds", [200])
def test_a_flood_stays_in_bounded_memory(rounds: int) -> None:
    printed = CommandOutput(in_memory=1000, kept=5000, last=1000)
    for _ in range(rounds):
        printed.add("x" * 1000)

    assert rounds * 1000 == printed.size
    assert len(printed.text()) < 8000
    assert len(printed.cut(TruncationPolicy("bytes", 100))) < 200

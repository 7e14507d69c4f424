"""The plan inside an answer: lines between tags, however the answer is cut into pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.protocol.proposed_plan import CLOSE, OPEN, PlanSplitter


def parted(*pieces: str) -> tuple[str, str, str | None]:
    """Return the words, the text that was shown as a plan, and the plan."""
    splitter = PlanSplitter()
    found = [part for piece in pieces for part in splitter.push(piece)] + splitter.finish()
    words, shown = ("".join(part.text for part in found if part.is_plan == is_plan) for is_plan in (False, True))
    return words, shown, splitter.plan


@pytest.mark.parametrize(
    ("text", "words", "plan"),
    [
        ("no plan", "no plan", None),
        (f"a\n{OPEN}\n- one\n{CLOSE}\nb", "a\nb", "- one\n"),
        (f"{OPEN}\n- only\n{CLOSE}", "", "- only\n"),
        (f"a {OPEN} b {CLOSE} c", f"a {OPEN} b {CLOSE} c", None),
        (f"{OPEN}\nnever closed\nx", "", "never closed\nx"),
        (f"{OPEN}\nA\n{CLOSE}\ny\n{OPEN}\nB\n{CLOSE}\nz", "y\nz", "B\n"),
        (f"  {OPEN}  \n  A\n {CLOSE} trailing\nq", "", f"  A\n {CLOSE} trailing\nq"),
        (f"{CLOSE}\nx", f"{CLOSE}\nx", None),
        (f"x\n{OPEN}", "x\n", ""),
        (f"x\r\n{OPEN}\r\nA\r\n{CLOSE}\r\n", "x\r\n", "A\r\n"),
        (" " * 300 + OPEN + "\nx", " " * 300 + OPEN + "\nx", None),
        ("", "", None),
    ],
)
def test_a_plan_stands_between_lines_that_are_tags(text: str, words: str, plan: str | None) -> None:
    assert (words, plan) == parted(text)[::2]


PARTS = st.sampled_from([OPEN, CLOSE, "\n", " ", "x", "<", "\r\n", "<proposed", "_plan>", "</", "é"])


@given(st.lists(PARTS, max_size=30), st.lists(st.integers(0, 60), max_size=8))
def test_it_is_the_same_however_the_answer_is_cut(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    at = sorted({0, *(cut for cut in cuts if cut < len(text)), len(text)})
    pieces = [text[start:end] for start, end in pairwise(at)]

    assert parted(*pieces) == parted(text)
    assert parted(*text) == parted(text)

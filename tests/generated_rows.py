"""Tables that nobody wrote by hand: one test tells of all rows that fail; `make test` takes some, `make soak` all."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")


def strides(step: int) -> pytest.MarkDecorator:
    """Give a test a `stride`: it takes every so-manieth row, and in a soak every row."""
    every = pytest.param(1, id="every one", marks=pytest.mark.soak)
    return pytest.mark.parametrize("stride", [pytest.param(step, id=f"one of {step}"), every])


def check_each(rows: Iterable[tuple[object, T]], check: Callable[[T], None]) -> None:
    """Call `check` with every row; it raises for one that is wrong.

    Args:
        rows: Name and row; there must be some.

    Raises:
        AssertionError: with the names of the rows that are wrong, and what was raised for each.
    """
    count = 0
    wrong: list[str] = []
    for count, (name, row) in enumerate(rows, 1):  # noqa: B007 (it is looked at below)
        try:
            check(row)
        except Exception:
            wrong.append(f"--- {name}\n{traceback.format_exc(limit=-2)}")
    assert count, "the table is empty"
    assert not wrong, f"{len(wrong)} of {count} rows are wrong:\n" + "\n".join(wrong[:20])

"""The title of a thread that nobody named."""

from __future__ import annotations

import pytest

from commonplace.state.thread_titles import title_of_preview


@pytest.mark.parametrize(
    ("preview", "title"),
    [
        ("", ""),
        ("fix the login test\nand push", "fix the login test"),
        ("\n\n  fix   the login test  ", "fix the login test"),
        ("Implement the following plan:\n\n# Move the parser\n\n## Context\nx", "Move the parser"),
        ("Here is the log:\nno heading", "Here is the log:"),
        ("fix this\n# not a title", "fix this"),
        ("word " * 30, "word " * 22 + "word…"),
        ("x" * 200, "x" * 119 + "…"),
    ],
)
def test_a_title_is_the_first_line_or_the_heading_that_it_announces(preview: str, title: str) -> None:
    assert title == title_of_preview(preview)

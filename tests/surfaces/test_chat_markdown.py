"""Markdown that streams: what is finished, what is not, and that nothing is lost or dangerous on the way."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.surfaces.cli.chat.markdown import LONGEST, MarkdownStream, markdown, plain

TEXT = """First *paragraph*
goes on.

## A heading
- one
  - nested

    still one
- two

> quoted
lazy

```python
# no heading

x = 1
```
Last [link][a].

[a]: http://127.0.0.1/

| a | b |
|---|---|
| 1 | 2 |
"""


def fed(pieces: list[str]) -> list[str]:
    stream, blocks = MarkdownStream(), list[str]()
    for piece in pieces:
        stream.feed(piece)
        blocks += stream.finished()
    return blocks + stream.end()


@given(st.lists(st.integers(0, len(TEXT)), max_size=12))
def test_blocks_are_the_same_however_the_text_is_cut(places: list[int]) -> None:
    cuts = [0, *sorted(places), len(TEXT)]
    blocks = fed([TEXT[begin:end] for begin, end in itertools.pairwise(cuts)])

    assert [block.strip() for block in blocks] == [block.strip() for block in fed([TEXT])]


@given(st.text(alphabet="ab \n`~#->*|1.[]:\t<&", max_size=200), st.integers(1, 7))
def test_every_word_is_in_some_block(text: str, size: int) -> None:
    blocks = fed([text[place : place + size] for place in range(0, len(text), size)])

    assert re.sub(r"\s+", "", "".join(blocks)) == re.sub(r"\s+", "", text)


@given(st.text(max_size=200))
def test_what_is_drawn_cannot_steer_a_terminal(text: str) -> None:
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", markdown(text, 40) + plain(text, 40))

    assert [char for char in drawn if not char.isprintable() and char != "\n"] == []


@pytest.mark.parametrize("entity", ["&#27;[2J", "&#x1b;]0;x&#7;", "&#13;&#8;", "&#x9b;", "&#x202e;", "&NewLine;"])
def test_an_entity_is_no_way_around_that(entity: str) -> None:
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", markdown(f"a {entity} b `{entity}` [x]({entity})", 80))

    assert [char for char in drawn if not char.isprintable() and char != "\n"] == []


def test_a_code_block_without_end_is_printed_in_parts_that_are_code() -> None:
    lines = [f"x{number} = {number}  # " + "y" * 60 for number in range(400)]
    blocks = fed(["```python\n", *(f"{line}\n" for line in lines), "```\n\nEnd."])

    assert len(blocks) > 3
    assert max(len(block) for block in blocks) < LONGEST + 200
    drawn = "\n".join(re.sub(r"\x1b\[[0-9;]*m", "", markdown(block, 200)) for block in blocks)
    assert drawn.split("\n") == [*lines, "End."]


def test_lines_have_no_spaces_at_their_ends_and_windows_line_ends_are_line_ends() -> None:
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", markdown("a\r\n\r\n- b\r\n\r\n```\r\nc\r\n```\r\n", 40))

    assert drawn == "a\n\n • b\n\nc"

"""The title of a thread that nobody named: the first line of what was said, or the heading that this line announces."""

from __future__ import annotations

from typing import Final

from commonplace.patterns import regex

_HEADING: Final = regex(r"(?m)^#{1,3} ++(\S.*)$")
_MAX_TITLE: Final = 120
"""How many characters of a first line are a title."""


def title_of_preview(preview: str) -> str:
    """Return the title of a thread by its first message.

    A first line that ends with a colon only announces the rest ("Implement the following plan:"): a heading behind it
    says more.
    """
    lines = preview.strip().splitlines()
    first = lines[0].strip() if lines else ""
    heading = _HEADING.search(preview) if first.endswith(":") else None
    title = " ".join((heading[1] if heading is not None else first).split())
    if len(title) <= _MAX_TITLE:
        return title
    cut = title[: _MAX_TITLE - 1]
    return (cut.rpartition(" ")[0] or cut).rstrip(" ,.;:") + "…"

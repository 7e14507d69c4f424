"""The sentences that this program itself says to a model, one file each, so that people can read and change them.

A notice is plain text without markers; whoever sends it wraps it in the tag of its kind.
"""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def notice(name: str) -> str:
    """Return the text of a notice, without the space around it."""
    return resources.files("commonplace.context.notices").joinpath(f"{name}.md").read_text("utf-8").strip()

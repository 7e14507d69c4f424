"""The sentences that this program itself says to a model, one file each, so that people can read and change them.

A notice is plain text without markers; whoever sends it wraps it in the tag of its kind.
"""

from __future__ import annotations

from functools import cache

from commonplace import package_files


@cache
def notice(name: str) -> str:
    """Return the text of a notice, without the space around it."""
    return package_files.text(f"context/notices/{name}.md").strip()

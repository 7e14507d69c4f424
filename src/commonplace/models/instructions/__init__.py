"""Base instructions: what every model is told about its work here, in our own words.

`base.md` is for any model; a family of models that the catalogue knows may have a text of its own beside it. Each text
has one place for a personality, filled from `personalities/`; without one, or with one that does not exist, the place
closes up and the text stands on its own.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from commonplace import package_files
from commonplace.models.catalog import ModelInfo
from commonplace.patterns import regex

PLACEHOLDER: Final = "{{ personality }}"
FALLBACK: Final = "base"
_NAME: Final = regex(r"[a-z][a-z_]*")
_GAP: Final = regex(r"\n{3,}")


def instructions(info: ModelInfo | None = None, personality: str | None = None) -> str:
    """Return the base instructions for a model, with a personality where one is asked for and known."""
    return _filled((info.instructions if info else None) or FALLBACK, personality)


@cache
def _filled(name: str, personality: str | None) -> str:
    text = _read(name) or _read(FALLBACK) or ""
    manner = _read(f"personalities/{personality}") if personality else None
    return _GAP.sub("\n\n", text.replace(PLACEHOLDER, (manner or "").strip())).strip() + "\n"


@cache
def _read(name: str) -> str | None:
    parts = name.split("/")
    if not all(_NAME.fullmatch(part) for part in parts):
        return None
    place = package_files.ROOT.joinpath("models/instructions", *parts[:-1], f"{parts[-1]}.md")
    return place.read_text("utf-8") if place.is_file() else None

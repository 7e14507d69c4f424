"""What models are told of each tool; the words stand in `descriptions.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path


@cache
def _descriptions() -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_name("descriptions.toml").read_text("utf-8"))


def description(name: str) -> str:
    """Return what a model is told of a tool."""
    return _descriptions()[name].strip()

"""What the restricted agent is told, from the files beside this one: instructions with their version, and small texts.

The version stands in the first line of `prompt.md`; whoever changes what the instructions ask for counts it up.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Final

_VERSION: Final = re.compile(r"\A<!-- version: (\d+) -->\n")
_PROBLEMS: Final = 12
"""How many problems are named in a repair."""


@cache
def _file(name: str) -> str:
    return resources.files("commonplace.pipeline.curation").joinpath(name).read_text("utf-8")


@cache
def _texts() -> dict[str, str]:
    return {name: text.strip("\n") for name, text in tomllib.loads(_file("texts.toml")).items()}


@cache
def version() -> str:
    """Return the version of the instructions."""
    found = _VERSION.match(_file("prompt.md"))
    assert found, "prompt.md begins with its version"
    return found[1]


@cache
def instructions() -> str:
    """Return what the model is told about its work."""
    return _VERSION.sub("", _file("prompt.md")).strip() + "\n"


def text(name: str, **values: str) -> str:
    """Return a text with its names filled in, once: what is put in is not searched for names."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), _texts()[name])


def repair(problems: Sequence[str]) -> str:
    """Return the message that asks for what is wrong to be put right."""
    shown = [f"- {each}" for each in problems[:_PROBLEMS]]
    more = [f"- and {len(problems) - _PROBLEMS} more of the kind"] if len(problems) > _PROBLEMS else []
    return text("repair", problems="\n".join([*shown, *more]))


@cache
def orders() -> re.Pattern[str]:
    """Return the words by which a fact becomes an order."""
    return re.compile(_texts()["orders"], re.IGNORECASE)


@cache
def denials() -> re.Pattern[str]:
    """Return the words by which a wish becomes its opposite."""
    return re.compile(_texts()["denials"], re.IGNORECASE)

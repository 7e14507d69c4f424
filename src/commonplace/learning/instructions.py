"""What a model is told, from files beside the code that uses it: `prompt.md` with its version, and `texts.toml`.

The version stands in the first line of `prompt.md`; whoever changes what the instructions ask for counts it up.
"""

from __future__ import annotations

import tomllib
from functools import cached_property
from typing import Final

from commonplace import package_files
from commonplace.patterns import regex

_VERSION: Final = regex(r"\A<!-- version: (\d+) -->\n")
_NAME: Final = regex(r"\{(\w+)\}")


class InstructionTexts:
    """The texts of the instructions in one folder of the package; each file is read once."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def _file(self, name: str) -> str:
        return package_files.text(f"{self._folder}/{name}")

    @cached_property
    def _prompt(self) -> str:
        return self._file("prompt.md")

    @cached_property
    def _texts(self) -> dict[str, str]:
        return {name: text.strip("\n") for name, text in tomllib.loads(self._file("texts.toml")).items()}

    @cached_property
    def version(self) -> str:
        """The version of the instructions."""
        found = _VERSION.match(self._prompt)
        assert found, "prompt.md begins with its version"
        return found[1]

    @cached_property
    def instructions(self) -> str:
        """What the model is told about its work."""
        return _VERSION.sub("", self._prompt).strip() + "\n"

    def text(self, name: str, **values: str) -> str:
        """Return a text with its names filled in, once: what is put in is not searched for names."""
        return _NAME.sub(lambda found: values.get(found[1], found[0]), self._texts[name])

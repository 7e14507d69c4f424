"""The catalogue: what is known of models by their names.

One TOML file holds the facts; `[providers.NAME.models."SLUG"]` in `config.toml` adds to them or corrects them. The
longest name that the slug begins with, ending at a boundary, decides. A slug that nobody knows gets cautious values: a
small window only means that a conversation is compacted early, one that is too large breaks it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

import msgspec

from commonplace import package_files
from commonplace.errors import BadSetting


class ModelInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of one model."""

    window: int
    max_output: int
    max_window: int | None = None
    modalities: tuple[str, ...] = ("text",)
    efforts: tuple[str, ...] = ()
    effort: str | None = None
    thinking: Literal["adaptive", "budget"] | None = None
    verbosity: bool = False
    provider: str | None = None
    instructions: str | None = None
    """The text of base instructions that was written for its kind; None means the general one."""
    known: bool = True
    """False for the cautious values of a model that is not listed."""


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    """A row as it is written in a file: everything may be missing."""

    family: str | None = None
    window: int | None = None
    max_output: int | None = None
    max_window: int | None = None
    modalities: list[str] | None = None
    efforts: list[str] | None = None
    effort: str | None = None
    thinking: Literal["adaptive", "budget"] | None = None
    verbosity: bool | None = None
    provider: str | None = None
    instructions: str | None = None

    def set_fields(self) -> dict[str, Any]:
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}


class _CatalogFile(msgspec.Struct):
    unknown: _Row
    families: dict[str, _Row]
    models: dict[str, _Row]


@cache
def _file() -> _CatalogFile:
    text = package_files.text("models/catalog.toml")
    return msgspec.convert(tomllib.loads(text), _CatalogFile)


def names() -> list[str]:
    """Return the names of the models that are known."""
    return [*_file().models]


def model_info(slug: str, overrides: Mapping[str, Any] | None = None) -> ModelInfo:
    """Return what is known of a model; `overrides` are rows by name, as in a provider's settings.

    Raises:
        BadSetting: an override has a field or a value that no row can have.
    """
    file = _file()
    name = match(slug, file.models)
    row = file.models[name].set_fields() if name is not None else {}
    family = file.families[row.pop("family")].set_fields() if "family" in row else {}
    own = match(slug, overrides or {})
    wanted = _override(own, (overrides or {})[own]) if own is not None else {}
    values = {**file.unknown.set_fields(), **family, **row, **wanted, "known": name is not None or own is not None}
    return msgspec.convert(values, ModelInfo)


def match(slug: str, rows: Mapping[str, Any]) -> str | None:
    """Return the longest name that a slug begins with at a boundary; a path before the slug does not count."""
    for text in (slug.lower(), slug.lower().rpartition("/")[2]):
        fitting = [name for name in rows if _begins(text, name.lower())]
        if fitting:
            return max(fitting, key=len)
    return None


def _begins(slug: str, name: str) -> bool:
    if not name or not slug.startswith(name):
        return False
    rest = slug[len(name) :]
    return not rest or not (rest[0].isalnum() or rest[0] == ".")


def _override(name: str, row: Any) -> dict[str, Any]:
    try:
        given = msgspec.convert(row, _Row).set_fields()
    except msgspec.ValidationError as error:
        raise BadSetting(f"The settings of model {name!r} cannot be used: {error}.", hint="Correct them.") from None
    given.pop("family", None)
    for key in ("window", "max_window", "max_output"):
        if given.get(key, 1) < 1:
            raise BadSetting(f"{key} of model {name!r} is {given[key]}.", hint="Use a number above 0.")
    return given

"""`commonplace config …`: the effective settings, and where the file is."""

from __future__ import annotations

from typing import Any, Final, cast

import click

from commonplace import config
from commonplace.surfaces.cli import output

_HEADER: Final = ("setting", "from", "value")


@click.group("config")
def command() -> None:
    """Show the settings and where they come from."""


@command.command()
@output.json_option
def show(as_json: bool) -> None:
    """Print every setting, its value and where that came from."""
    settings = config.load()
    values = [(setting.key, settings.sources[setting.key], setting.of(settings)) for setting in config.SETTINGS]
    read_from = [("home", settings.home_source, str(settings.home))]
    if settings.profile is not None:
        read_from.append(("profile", settings.sources["profile"], settings.profile))
    if as_json:
        output.print_json(
            {
                **{key: {"value": value, "source": source} for key, source, value in read_from},
                "settings": {key: {"value": value, "source": source} for key, source, value in values},
                "providers": settings.providers,
                "unknown": settings.unknown,
            }
        )
        return
    output.columns(read_from + [(key, source, _shown(value)) for key, source, value in values], _HEADER)
    for note in config.notes(settings):
        output.warn(note)


def _shown(value: Any) -> str:
    if value is None:
        return "(none)"
    return str(list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value)


@command.command()
@output.json_option
def path(as_json: bool) -> None:
    """Print where the settings file is (whether or not it exists)."""
    file = config.load().home / config.FILE
    if as_json:
        output.print_json({"path": str(file)})
    else:
        output.say(str(file))

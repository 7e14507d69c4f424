"""`commonplace config …`: the effective settings, where the file is, and changing one of them."""

from __future__ import annotations

import json
from typing import Any, Final

import click

from commonplace import config
from commonplace.config import edit
from commonplace.surfaces.cli import output
from commonplace.surfaces.cli.command_group import CommandGroup

_HEADER: Final = ("setting", "from", "value")


@click.group("config", cls=CommandGroup)
def command() -> None:
    """Show and change the settings."""


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
    """Return a value as the settings file writes it."""
    if value is None:
        return "(none)"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, bool | tuple) else str(value)


@command.command()
@output.json_option
def path(as_json: bool) -> None:
    """Print where the settings file is (whether or not it exists)."""
    file = config.load().home / config.FILE
    if as_json:
        output.print_json({"path": str(file)})
    else:
        output.say(str(file))


@command.command("set")
@click.argument("key")
@click.argument("value")
@output.json_option
def set_setting(key: str, value: str, as_json: bool) -> None:
    """Set a setting in the settings file; its comments and other lines stay.

    KEY is a name as `config show` prints it, such as memory.background. A list is written with commas.
    """
    _change(key, value, as_json=as_json)


@command.command()
@click.argument("key")
@output.json_option
def unset(key: str, as_json: bool) -> None:
    """Take a setting out of the settings file, so that its default counts."""
    _change(key, None, as_json=as_json)


def _change(key: str, value: str | None, *, as_json: bool) -> None:
    home = config.home_folder()
    name = edit.change(home, key, value)
    settings = config.load()
    setting = next(each for each in config.SETTINGS if each.key == name)
    effective, source = setting.of(settings), settings.sources[name]
    if as_json:
        output.print_json({"key": name, "value": effective, "source": source, "path": str(home / config.FILE)})
        return
    output.say(f"{name} is {_shown(effective)} now ({source}).")
    if value is not None and source not in (config.FILE, "default"):
        output.warn(f"{source} overrides what the file says.")

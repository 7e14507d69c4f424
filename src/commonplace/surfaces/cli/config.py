"""`commonplace config …`: the effective settings, and where the file is."""

from __future__ import annotations

import click

from commonplace import config
from commonplace.surfaces.cli import output


@click.group("config")
def command() -> None:
    """Settings and where they come from."""


@command.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def show(as_json: bool) -> None:
    """Print every setting, its value and where that came from."""
    settings = config.load()
    if as_json:
        output.print_json(
            {
                "home": {"value": str(settings.home), "source": settings.home_source},
                "settings": {
                    key: {"value": item.value, "source": item.source} for key, item in settings.values.items()
                },
                "providers": settings.providers,
                "unknown": settings.unknown,
            }
        )
        return
    rows = [("home", settings.home_source, str(settings.home))]
    rows += [
        (key, item.source, "(none)" if item.value is None else str(item.value)) for key, item in settings.values.items()
    ]
    output.columns(rows, ("setting", "from", "value"))
    for key in settings.unknown:
        output.warn(f"{config.FILE} sets {key!r}, which means nothing to this version.")


@command.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def path(as_json: bool) -> None:
    """Print where the settings file is (whether or not it exists)."""
    file = config.load().home / config.FILE
    if as_json:
        output.print_json({"path": str(file)})
    else:
        output.say(str(file))

"""`commonplace acp`: the agent for editors that speak the Agent Client Protocol."""

from __future__ import annotations

import sys
from typing import cast

import click

from commonplace.surfaces.cli import output


@click.command("acp")
@click.option("-c", "--config", "pairs", multiple=True, metavar="KEY=VALUE", help="A setting, for this run.")
@click.option("-p", "--profile", metavar="NAME", help="Use the settings of [profiles.NAME] in config.toml.")
@click.pass_context
def command(context: click.Context, pairs: tuple[str, ...], profile: str | None) -> None:
    """Be the agent of an editor: Zed, JetBrains, Neovim.

    Any editor that speaks the Agent Client Protocol starts it by itself. It speaks on stdin and stdout, one JSON
    object a line.
    """
    from commonplace.app import config_overrides
    from commonplace.surfaces.acp import serving

    if sys.stdin.isatty():
        output.warn("Waiting for an editor to speak on stdin. Ctrl-D ends it.")
    before = cast("tuple[str, ...]", context.find_root().obj or ())
    given = config_overrides.parse([*before, *pairs])
    for note in given.notes():
        output.warn(note)
    serving.run(given, profile)

"""`commonplace app-server`: serves editors and SDKs that speak the protocol of Codex's app server."""

from __future__ import annotations

import sys
from typing import cast

import click

from commonplace.surfaces.cli import output
from commonplace.surfaces.cli.command_group import CommandGroup


@click.group("app-server", cls=CommandGroup, invoke_without_command=True)
@click.option(
    "--listen",
    "address",
    default="stdio://",
    show_default=True,
    metavar="ADDRESS",
    help="Where to listen: stdio://, unix://[PATH] or ws://127.0.0.1:PORT.",
)
@click.option("--stdio", "on_stdio", is_flag=True, help="Short for --listen stdio://.")
@click.option("-c", "--config", "pairs", multiple=True, metavar="KEY=VALUE", help="A setting, for this run.")
@click.option("-p", "--profile", metavar="NAME", help="Use the settings of [profiles.NAME] in config.toml.")
@click.pass_context
def command(context: click.Context, address: str, on_stdio: bool, pairs: tuple[str, ...], profile: str | None) -> None:
    """Serve editors and SDKs that speak the protocol of Codex's app server.

    Editors and SDKs start it by themselves, instead of `codex app-server`. It speaks on stdin and stdout, one JSON
    object a line.

    \b
    With --listen, one server serves many clients, over WebSocket:
      unix://             a socket that only you can open, in the home folder (unix://PATH: elsewhere)
      ws://127.0.0.1:PORT a port of this machine; a client shows the token of COMMONPLACE_APP_SERVER_TOKEN,
                          or else of app-server/token in the home folder
    """
    if context.invoked_subcommand is not None:
        return
    from commonplace.app import config_overrides
    from commonplace.surfaces.app_server import serving

    listen = "stdio://" if on_stdio else address
    if listen == "stdio://" and sys.stdin.isatty():
        output.warn("Waiting for a client to speak on stdin. Ctrl-D ends it.")
    before = cast("tuple[str, ...]", context.find_root().obj or ())
    given = config_overrides.parse([*before, *pairs])
    for note in given.notes():
        output.warn(note)
    serving.run(given, profile, listen)


@command.command()
def schema() -> None:
    """Print the JSON schema of the protocol."""
    from commonplace.surfaces.app_server.schema import schema as made

    output.print_json(made())


@command.command()
@click.option("--sock", "path", default="", metavar="PATH", help="The server's socket, if it is not the home's own.")
def proxy(path: str) -> None:
    """Connect stdin and stdout with a server that listens on unix://."""
    from commonplace import config
    from commonplace.surfaces.app_server import addresses
    from commonplace.surfaces.app_server import proxy as bridge

    bridge.run(addresses.socket_file(path, config.home_folder()).path)

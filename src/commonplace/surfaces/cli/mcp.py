"""`commonplace mcp`: serves the memory to other agents, and registers the server with them.

The server is loaded by what it is asked to do: a client waits for the first answer on stdin, and whatever is imported
before that is waited for too.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, cast

import click

from commonplace.errors import BadInput
from commonplace.surfaces.cli import hooks, output
from commonplace.surfaces.cli.command_group import CommandGroup

if TYPE_CHECKING:
    from commonplace.clients.registration import Client, PlannedChange

_CLIENTS = ("codex", "claude-code")

client_argument = click.argument("client", type=click.Choice(_CLIENTS))
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.option(
    "--http",
    "port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help="Serve HTTP on this port of 127.0.0.1 instead of stdin and stdout; 0 takes a free one.",
)
@click.option("--allow-notes", is_flag=True, help="Let agents write down notes.")
@click.option("--project", metavar="P", help="Show the memory of this project, wherever the agent works.")
@click.option("--only", is_flag=True, help="With --project: no argument of a tool shows another project.")
@click.pass_context
def command(context: click.Context, port: int | None, allow_notes: bool, project: str | None, only: bool) -> None:
    """Serve the memory to other agents (MCP).

    Agents start it by themselves once `mcp install` has told them. It speaks on stdin and stdout; with --http it needs
    a token, which it prints, or takes from COMMONPLACE_MCP_TOKEN.
    """
    if context.invoked_subcommand is not None:
        return
    from commonplace.surfaces.mcp.server import ServerOptions

    if only and not project:
        raise click.UsageError("--only needs --project: it confines the server to that one.")
    options = ServerOptions(project=project, notes=allow_notes, only=only)
    if port is None:
        from commonplace.surfaces.mcp import stdio

        if sys.stdin.isatty():
            output.warn(
                "Waiting for an agent to speak on stdin; `commonplace mcp install` tells agents. Ctrl-D ends it."
            )
        stdio.run(options)
    else:
        from commonplace.surfaces.mcp import http

        http.run(options, port)


@command.command()
@client_argument
@click.option("--allow-notes", is_flag=True, help="Let this agent write down notes.")
@yes_option
@output.json_option
def install(client: str, allow_notes: bool, yes: bool, as_json: bool) -> None:
    """Tell an agent about the memory server.

    Shows what changes in the agent's configuration, asks, and keeps a copy. For Claude Code also: what is remembered
    is put into each new session, and each session is imported when it ends.
    """
    from commonplace.clients import registration

    name = cast("Client", client)
    changes = registration.install(name, os.environ, notes=allow_notes)
    _change(name, changes, yes=yes, as_json=as_json, is_install=True)


@command.command()
@client_argument
@yes_option
@output.json_option
def uninstall(client: str, yes: bool, as_json: bool) -> None:
    """Take out of an agent's configuration what `install` put there."""
    from commonplace.clients import registration

    name = cast("Client", client)
    _change(name, registration.uninstall(name, os.environ), yes=yes, as_json=as_json)


def _change(
    client: Client, changes: list[PlannedChange], *, yes: bool, as_json: bool, is_install: bool = False
) -> None:
    from commonplace import config
    from commonplace.app import ready_sections
    from commonplace.clients import registration

    wanted = [change for change in changes if change.is_one]
    if not as_json:
        for change in wanted:
            output.say(change.diff().rstrip("\n"))
    if wanted and not yes:
        if not sys.stdin.isatty():
            raise BadInput(f"This changes files of {client}.", hint="Confirm it with --yes.")
        click.confirm("Make these changes?", abort=True, err=True)
    done = registration.apply(client, changes, config.load().now())
    if wanted and is_install:
        ready_sections.prepare(os.environ)
    if as_json:
        output.print_json(done)
        return
    if not wanted:
        output.say(f"Nothing to change: {client} is set up that way already.")
    for file in done.files:
        if file.changed:
            kept = f" (the old one is {file.backup})" if file.backup else ""
            output.say(f"Changed {file.path}{kept}.")


@command.command(hidden=True)
@click.argument("event", type=click.Choice(hooks.EVENTS))
@click.option("--allow-notes", is_flag=True, help="The server was installed with it.")
def hook(event: str, allow_notes: bool) -> None:
    """Answer a hook of Codex or Claude Code: what it tells is read from stdin."""
    hooks.answer(event, notes=allow_notes)

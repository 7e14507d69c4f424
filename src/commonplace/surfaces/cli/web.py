"""`commonplace web`: the memory in a browser of this machine."""

from __future__ import annotations

import sys

import click

from commonplace.surfaces.cli import output


@click.command("web")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Serve on this port of 127.0.0.1; without it, or with 0, a free one is taken.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in your browser.")
def command(port: int, opens: bool) -> None:
    """Show what is remembered, where it came from, and change it, in your browser.

    The page is served on this machine only. The address that is printed lets one browser in, once. Ctrl-C ends it.
    """
    from commonplace.surfaces.web import server

    server.run(port, _tell, output.warn, opens=opens)


def _tell(text: str) -> None:
    """Print a line at once: who starts this program for a person reads the address from a pipe."""
    output.say(text)
    sys.stdout.flush()

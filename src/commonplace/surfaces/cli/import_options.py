"""The options that say whose sessions are imported, and from where."""

from __future__ import annotations

from pathlib import Path

import click

from commonplace.importers.sources import NAMES

source_option = click.option(
    "--from", "source", type=click.Choice(NAMES), help="Whose sessions; found out where it is not said."
)
path_option = click.option(
    "--path",
    "paths",
    type=click.Path(path_type=Path),
    multiple=True,
    help="An agent's folder, a folder of sessions, or a file (may be repeated); else the usual places.",
)

"""`commonplace plugin DIR`: writes a plugin for Codex and Claude Code."""

from __future__ import annotations

import os
from pathlib import Path

import click

from commonplace import config
from commonplace.clients import plugin
from commonplace.surfaces.cli import output


@click.command("plugin")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--allow-notes", is_flag=True, help="Let agents write down notes.")
@output.json_option
def command(folder: Path, allow_notes: bool, as_json: bool) -> None:
    """Write a plugin for Codex and Claude Code into a folder.

    It has the memory server and the hooks; each agent installs it with commands of its own. `commonplace setup` does
    the same without a plugin.
    """
    from commonplace.app import ready_sections

    place = folder.expanduser().absolute()
    prompt_hits = config.load().memory.prompt_hits
    written = plugin.write(place, plugin.files(os.environ, prompt_hits=prompt_hits, notes=allow_notes))
    ready_sections.prepare(os.environ)
    if as_json:
        output.print_json({"path": str(place), "files": [str(path) for path in written]})
        return
    output.say(f"Wrote {len(written)} files to {place}. To install it:")
    for program, verb in (("codex", "add"), ("claude", "install")):
        output.say(f"  {program} plugin marketplace add {place}")
        output.say(f"  {program} plugin {verb} {plugin.NAME}@{plugin.NAME}")

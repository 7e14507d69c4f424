"""One folder that is a plugin for Codex and for Claude Code: two manifests, one memory server, one set of hooks.

It is also a marketplace with this one plugin, because both programs install plugins from marketplaces. The command in
it is that of the program that wrote it, with its whole path: agents start servers and hooks with a PATH of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from commonplace.clients import foreign_files, registration
from commonplace.errors import BadInput
from commonplace.version import __version__

NAME: Final = "commonplace"
_DESCRIPTION: Final = "What earlier sessions with coding agents taught: told at the start of a session, and searchable."
_OWNER: Final = {"name": "Commonplace"}


def files(environment: Mapping[str, str], *, prompt_hits: bool = False, notes: bool = False) -> dict[str, Any]:
    """Return the plugin's files by their paths in its folder, as values to be written as JSON."""
    ours = registration.server_command(environment, notes=notes)
    events = ("SessionStart", *(("UserPromptSubmit",) if prompt_hits else ()), "SessionEnd")
    server: dict[str, Any] = {"command": ours.server[0], "args": ours.server[1:]}
    server |= {"env": ours.variables} if ours.variables else {}
    manifest = {"name": NAME, "version": __version__, "description": _DESCRIPTION, "author": _OWNER}
    return {
        ".claude-plugin/plugin.json": manifest,
        ".claude-plugin/marketplace.json": {
            "name": NAME,
            "description": _DESCRIPTION,
            "owner": _OWNER,
            "plugins": [{"name": NAME, "source": "./", "description": _DESCRIPTION}],
        },
        ".codex-plugin/plugin.json": {**manifest, "mcpServers": "./.mcp.json"},
        ".mcp.json": {"mcpServers": {registration.SERVER: server}},
        "hooks/hooks.json": {"hooks": {event: [ours.group(event)] for event in events}},
    }


def write(folder: Path, contents: Mapping[str, Any]) -> list[Path]:
    """Write the plugin into a folder that is new, empty, or holds an older one; return the files.

    Raises:
        BadInput: the folder holds something else.
    """
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is not a folder.", hint="Name a folder that is new or empty.")
    strange = sorted(
        str(path.relative_to(folder))
        for path in (folder.rglob("*") if folder.is_dir() else ())
        if not path.is_dir() and str(path.relative_to(folder)) not in contents
    )
    if strange:
        raise BadInput(f"{folder} holds other files ({strange[0]}).", hint="Name a folder that is new or empty.")
    written: list[Path] = []
    for name, value in contents.items():
        path = folder / name
        foreign_files.replace(path, f"{json.dumps(value, indent=2)}\n".encode(), mode=0o644)
        written.append(path)
    return written

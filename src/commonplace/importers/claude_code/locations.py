"""Where Claude Code keeps its transcripts.

<root>/projects/<slug>/<session>.jsonl                          root: $CLAUDE_CONFIG_DIR, else ~/.claude
<root>/projects/<slug>/<session>/subagents/**/agent-<id>.jsonl  its sub-agents (older: agent-<id>.jsonl beside it)
<root>/projects/<slug>/<session>/tool-results/<id>.txt          outputs that were too large for it
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

PROJECTS: Final = "projects"
_AGENT: Final = "agent-"
_OTHER_FOLDERS: Final = frozenset({"tool-results", "memory", "file-history", "shell-snapshots", "todos", "statsig"})
_OTHER_FILES: Final = frozenset({"history.jsonl", "journal.jsonl"})


def default_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder that Claude Code uses."""
    chosen = environment.get("CLAUDE_CONFIG_DIR")
    return Path(chosen).expanduser() if chosen else Path("~/.claude").expanduser()


def find(path: Path) -> Iterator[Path]:
    """Yield the transcripts at a path: a file, Claude Code's folder, or any folder with transcripts in it."""
    if path.is_file():
        yield path
        return
    projects = path / PROJECTS
    for place, folders, files in os.walk(projects if projects.is_dir() else path):
        folders[:] = sorted(folder for folder in folders if folder not in _OTHER_FOLDERS)
        for name in sorted(files):
            if name.endswith(".jsonl") and name not in _OTHER_FILES:
                yield Path(place, name)


def sub_agents(path: Path) -> Iterator[Path]:
    """Yield the files of a session's sub-agents that stand in its own folder."""
    for place, folders, files in os.walk(path.with_suffix("") / "subagents"):
        folders.sort()
        yield from (Path(place, name) for name in sorted(files) if name.startswith(_AGENT) and name.endswith(".jsonl"))

"""Where Gemini CLI keeps sessions: `<home>/.gemini/tmp/<project>/chats/`, sub-agents one folder deeper.

A session does not name its working directory. The project's folder has a marker file, or is listed in the registry
`projects.json`, by its short id or (in older versions) by the SHA-256 of the project's path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from commonplace.importers import json_lines

_MARKER: Final = ".project_root"
_REGISTRY: Final = "projects.json"
_CHATS: Final = "chats"
_MAX_NOTE_BYTES: Final = 2**20
"""Longest marker or registry that is read."""


class _Registry(msgspec.Struct):
    projects: dict[str, str] = {}


def default_folder(environment: Mapping[str, str]) -> Path:
    """Return the home that Gemini CLI would use."""
    chosen = environment.get("GEMINI_CLI_HOME") or environment.get("HOME")
    return (Path(chosen) if chosen else Path.home()) / ".gemini"


def find(path: Path) -> Iterator[Path]:
    """Yield the session files at a path: a home or its parent, a project's folder, a `chats` folder, or a file."""
    if path.is_file():
        if is_session(path):
            yield path
        return
    for home in (path, path / ".gemini"):
        if (home / "tmp").is_dir():
            for project in sorted((home / "tmp").iterdir()):
                yield from _sessions(project / _CHATS)
            return
    yield from _sessions(path / _CHATS if (path / _CHATS).is_dir() else path)


def _sessions(chats: Path) -> Iterator[Path]:
    for path in json_lines.walk(chats):
        # A resumed session is carried over from the old form to the new, and the old file stays behind.
        if is_session(path) and not (path.suffix == ".json" and path.with_suffix(".jsonl").is_file()):
            yield path


def is_session(path: Path) -> bool:
    """Say whether a file is a session by its name; set-aside copies, logs and saved checkpoints are not."""
    name = path.name
    if ".unreadable-" in name or ".tmp-" in name or name.startswith(("checkpoint-", ".")) or name == "logs.json":
        return False
    return name.endswith(".jsonl") or (name.endswith(".json") and name.startswith("session-"))


def parent_session(path: Path) -> str | None:
    """Return the session whose sub-agent wrote a file: its folder, where that stands in a `chats` folder."""
    return path.parent.name if path.parent.parent.name == _CHATS else None


def project_root(path: Path) -> str:
    """Return the working directory that a session file belongs to, or nothing where no note tells it."""
    chats = path.parent.parent if parent_session(path) is not None else path.parent
    if chats.name != _CHATS:
        return ""
    project = chats.parent
    marked = _note(project / _MARKER).decode("utf-8", "replace").strip()
    if Path(marked).is_absolute():
        return marked
    return _registered(project.name, project.parent.parent / _REGISTRY)


def _registered(project: str, registry: Path) -> str:
    try:
        known = msgspec.json.decode(_note(registry), type=_Registry).projects
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    for root, short in known.items():
        if project in (short, hashlib.sha256(root.encode("utf-8", "replace")).hexdigest()):
            return root
    return ""


def _note(path: Path) -> bytes:
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(_MAX_NOTE_BYTES)
    except OSError:
        return b""

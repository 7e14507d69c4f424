"""The agents whose sessions can be imported, where each keeps them, and whose file a file is.

Codex's files are ledgers already: they are referred to where they are. All others are converted. A converter's module
exports `convert` and `find`, `default_folder` where the agent has one, and `stamp` where a session is not one file.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

from commonplace.errors import NotASession
from commonplace.importers import aider, specstory
from commonplace.importers.converter import Converter
from commonplace.patterns import regex
from commonplace.rollout import layout
from commonplace.rollout.reader import is_compressed, open_session

CODEX: Final = "codex"
NAMES: Final = (
    CODEX,
    "claude-code",
    "gemini",
    "opencode",
    "copilot",
    "entire",
    "specstory",
    "aider",
    "swe-agent",
    "transcript",
)
WITH_COPIES: Final = frozenset({"entire", "specstory"})
"""Sources that keep other agents' sessions, Codex's too."""
_SNIFFED_BYTES: Final = 256 * 1024
"""How much of a file is read to find out which agent wrote it."""
_OPENCODE: Final = regex(rb'\s*\{\s*"info"\s*:\s*\{\s*"id"\s*:\s*"[^"]*"\s*,\s*"(?:slug|projectID|version)"')
"""How an exported session of OpenCode begins."""
_SUFFIXES: Final = (".jsonl", ".jsonl.zst", ".json", ".traj", ".md")
_ROLLOUT_TYPES: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})


def module(name: str) -> ModuleType:
    """Return the converter's module of a source that is converted."""
    return importlib.import_module("commonplace.importers." + name.replace("-", "_"))


def converter(name: str) -> Converter:
    """Return what reads the files of a source that is converted."""
    return module(name).convert


def find(name: str, path: Path) -> Iterator[Path]:
    """Yield the files of a source at a path (of Codex, as a home's index would find them)."""
    if name == CODEX:
        yield from (file.path for file in layout.walk_any(path))
    else:
        yield from module(name).find(path)


def stamp(name: str, path: Path) -> tuple[int, int]:
    """Return the size of a session and when it was last written, in ns; both stay while it stays (raises OSError)."""
    look = getattr(module(name), "stamp", None)
    if look is not None:
        return look(path)
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def default_folder(name: str, environment: Mapping[str, str]) -> Path | None:
    """Return where a source keeps its sessions on this machine; None if there is no such place."""
    if name == CODEX:
        chosen = environment.get("CODEX_HOME")
        return Path(chosen).expanduser() if chosen else Path("~/.codex").expanduser()
    look = getattr(module(name), "default_folder", None)
    return look(environment) if look is not None else None


def detect(path: Path) -> str | None:
    """Return whose sessions a file or folder holds, by names and then by content; None if nobody's that is known."""
    if path.is_dir():
        return _detect_folder(path)
    if layout.parse_name(path.name) is not None:
        return CODEX
    if "opencode.db" in (path.name, path.parent.name):
        return "opencode"
    if path.name == aider.FILE:
        return "aider"
    if path.suffix == ".md":
        return "specstory" if specstory.is_history(path) else None
    if path.name.endswith((".traj", ".traj.json")):
        return "swe-agent"
    try:
        with open_session(path) as file:
            head = file.read(_SNIFFED_BYTES)
    except NotASession:
        return None
    return _by_lines(head) or (None if is_compressed(path) else _by_document(head))


def _detect_folder(path: Path) -> str | None:
    # Claude Code has a folder `sessions` too, and Codex a folder `tmp`: first, what is in them.
    if next(layout.walk(path), None) is not None:
        return CODEX
    if (path / ".specstory" / "history").is_dir():
        return "specstory"
    if (path / "projects").is_dir():
        return "claude-code"
    if (path / "session-state").is_dir():
        return "copilot"
    if _is_opencode(path):
        return "opencode"
    if (path / layout.SESSIONS).is_dir() or (path / layout.ARCHIVED).is_dir():
        return CODEX
    if (path / "tmp").is_dir() or (path / "chats").is_dir():
        return "gemini"
    for place, folders, files in os.walk(path):
        folders.sort()
        for name in sorted(files):
            if name.endswith(_SUFFIXES) and (found := detect(Path(place, name))):
                return found
    return None


def _is_opencode(path: Path) -> bool:
    stored = any((place / "session").is_dir() and (place / "message").is_dir() for place in (path, path / "storage"))
    return stored or (path / "opencode.db").is_file()


def _by_lines(head: bytes) -> str | None:
    for raw in head.split(b"\n")[:50]:
        try:
            record = msgspec.json.decode(raw)
        except (ValueError, RecursionError):  # no JSON, or no UTF-8
            continue
        if isinstance(record, dict) and (found := _by_record(record)):  # pyright: ignore[reportUnknownArgumentType]
            return found
    return None


def _by_record(record: dict[str, Any]) -> str | None:
    kind = record.get("type")
    kind = kind if kind is None or isinstance(kind, str) else ""
    if "projectHash" in record or "$set" in record or "$rewindTo" in record:
        return "gemini"
    if "messages" in record and isinstance(record.get("info"), dict) and "projectID" in record["info"]:
        return "opencode"
    if "trajectory" in record or "trajectory_format" in record:
        return "swe-agent"
    if "role" in record and "text" in record and "session" in record:
        return "transcript"
    if kind == "session.start":
        return "copilot"
    if kind in _ROLLOUT_TYPES or "record_type" in record:
        return CODEX
    if "sessionId" in record or "parentUuid" in record or "leafUuid" in record:
        return "claude-code"
    if kind is None and {"id", "timestamp"} <= record.keys():
        return CODEX  # the first line of a file of 2025
    if kind in ("file-history-snapshot", "queue-operation", "last-prompt", "ai-title", "mode", "permission-mode"):
        return "claude-code"
    return None


def _by_document(head: bytes) -> str | None:
    """Tell a document that spans lines by the names of its keys."""
    if _OPENCODE.match(head):
        return "opencode"
    if b'"projectHash"' in head or (b'"sessionId"' in head and b'"messages"' in head):
        return "gemini"
    if b'"trajectory"' in head or (b'"messages"' in head and b'"info"' in head):
        return "swe-agent"
    return None

"""The memory tools: `list`, `read` and `search` the workspace exactly, and `add_ad_hoc_note`.

    folder = Folder(home / "memories")
    call(folder, "search", {"queries": ["pytest"]}, Visibility(scope="github.com/acme/shop", project_of=…))

Every call returns a result or raises a `ToolError`, whatever it is given and whatever is in the folder. Errors of the
system are tool errors too: a damaged file is no reason to end a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from commonplace.memory.recall.tool_definitions import DEFINITIONS, Definition
from commonplace.memory.recall.tools import (
    add_note,  # redaction is slow to load
    failures,
    file_cache,
    files,
    list_files,
    read_file,
    search_files,
)
from commonplace.memory.recall.tools.arguments import (
    ListArguments,
    NoteArguments,
    ReadArguments,
    SearchArguments,
    decode,
)
from commonplace.memory.recall.tools.results import (
    DirectoryEntry,
    FileMatch,
    Listing,
    MatchPage,
    NoteAdded,
    Reading,
    Result,
)
from commonplace.memory.recall.visibility import OwnershipFiles, SessionOwners, Visibility, sessions
from commonplace.memory.workspace.layout import RAW

__all__ = [
    "DEFINITIONS",
    "Definition",
    "DirectoryEntry",
    "FileMatch",
    "Listing",
    "MatchPage",
    "MemoryFolder",
    "NoteAdded",
    "Reading",
    "Result",
    "call",
]


class MemoryFolder:
    """The memory folder, and what is kept of it between calls. Safe to use from several threads at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cache = file_cache.FileCache()
        self._sessions: tuple[files.Stamp, SessionOwners] | None = None

    def beside(self, root: files.MemoryRoot) -> OwnershipFiles:
        """Return the files that others are judged by, as an open root has them."""
        before = root.stamp(RAW)
        known = self._sessions
        if known is not None and known[0] == before:
            return OwnershipFiles(root.text, known[1])
        found = sessions(root.text(RAW) or "")
        self._sessions = (before, found) if before is not None and file_cache.is_settled(before) else None
        return OwnershipFiles(root.text, found)


def call(folder: MemoryFolder, name: str, arguments: Mapping[str, Any] | str | bytes, view: Visibility) -> Result:
    """Call a tool.

    Raises:
        ToolError: it cannot do what it was asked.
    """
    try:
        return _call(folder, name, arguments, view)
    except OSError as error:
        raise failures.io(error) from None


def _call(folder: MemoryFolder, name: str, arguments: Mapping[str, Any] | str | bytes, view: Visibility) -> Result:
    match name:
        case "list":
            wanted = decode(arguments, ListArguments)
        case "read":
            wanted = decode(arguments, ReadArguments)
        case "search":
            wanted = decode(arguments, SearchArguments)
        case "add_ad_hoc_note":
            return add_note.add(folder.root, decode(arguments, NoteArguments), view.scope, is_allowed=view.is_allowed)
        case _:
            raise failures.bad_arguments(f"there is no memory tool {failures.quoted(name)}")
    with files.MemoryRoot(folder.root) as root:
        if view.scope is None:
            beside = OwnershipFiles(root.text, SessionOwners())
        else:
            view = Visibility(view.scope, cache(partial(_project, view.project_of)))
            beside = folder.beside(root)
        if isinstance(wanted, ListArguments):
            return list_files.listing(root, wanted, view, beside)
        if isinstance(wanted, ReadArguments):
            return read_file.read(root, wanted, view, beside)
        return search_files.search(root, folder.cache, wanted, view, beside)


def _project(project_of: Callable[[str], str | None], cwd: str) -> str | None:
    """Return whose a folder is; what a file names as its folder may be no path at all."""
    try:
        return project_of(cwd)
    except (OSError, ValueError, RuntimeError):
        return None

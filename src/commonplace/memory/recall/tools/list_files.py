"""`list`: the files and folders right below a path, a page at a time.

A reader who sees one project does not see the files and folders that are wholly for another.
"""

from __future__ import annotations

from typing import Final

from commonplace.memory.recall.tools import failures, files
from commonplace.memory.recall.tools.arguments import ListArguments, offset, page
from commonplace.memory.recall.tools.results import DirectoryEntry, Listing
from commonplace.memory.recall.visibility import OwnershipFiles, Visibility, owner

MAX_RESULTS: Final = 2000
"""The most names on one page."""


def listing(root: files.MemoryRoot, arguments: ListArguments, view: Visibility, beside: OwnershipFiles) -> Listing:
    """List what is below a path.

    Raises:
        ToolError: the path or the cursor cannot be used.
    """
    with root.find(arguments.path) as target:
        start = offset(arguments.cursor)
        target.must_exist(arguments.path)
        found = [entry for entry in _entries(target) if _is_shown(entry, view, beside)]
    end = page(len(found), start, arguments.max_results, MAX_RESULTS)
    following = str(end) if end < len(found) else None
    return Listing(arguments.path, found[start:end], following, following is not None)


def _entries(target: files.OpenedPath) -> list[DirectoryEntry]:
    """Return what a target holds, in the order of the bytes of its names; a file holds itself."""
    if target.kind == "file":
        return [DirectoryEntry(target.path, "file")]
    if target.kind != "folder":
        return []
    if target.error is not None:
        raise failures.io(target.error)
    below, folders = files.entries(target.descriptor)
    prefix = f"{target.path}/" if target.path else ""
    named = [(entry.name, DirectoryEntry(prefix + entry.name, "file")) for entry in below]
    named += [(name, DirectoryEntry(prefix + name, "directory")) for name in folders]
    return [entry for _, entry in sorted(named, key=lambda each: each[0])]


def _is_shown(entry: DirectoryEntry, view: Visibility, beside: OwnershipFiles) -> bool:
    return view.scope is None or view.shows(owner(view, entry.path, None, beside))

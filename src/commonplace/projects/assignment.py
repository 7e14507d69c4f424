"""Assigning a project to each thread, from everything that is known, independent of the order in which it came."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import anyio.to_thread

from commonplace.projects import scope
from commonplace.projects.identity import Repositories
from commonplace.projects.scope import FolderIdentity, ProjectMap
from commonplace.protocol.remotes import remote_identity
from commonplace.state.home import Home

_IDENTITY: Final = re.compile(r"[\w.-]+(?::\d+)?(?:/[\w.~ -]+)+|[0-9a-f]{40}|[0-9a-f]{64}")


async def settle(home: Home) -> ProjectMap:
    """Bring the project of every listed thread up to date with the disk and with what other threads noted."""
    root = home.key
    database = await home.database()
    rows = await database.read(lambda tx: tx.query("threads.places", home=root))
    pairings = [
        FolderIdentity(row["cwd"], identity_of(row["git_url"]), seen)
        for row in rows
        for seen in (row["first_s"], row["last_s"])
    ]
    broad = ("/", str(Path.home()))
    settled = await anyio.to_thread.run_sync(lambda: scope.settle(pairings, Repositories(), broad=broad))
    changes = [
        {"home": root, "cwd": row["cwd"], "git_url": row["git_url"], "project": _project(settled, row["cwd"], noted)}
        for row in rows
        for noted in [identity_of(row["git_url"])]
    ]
    if changes:
        await database.write(lambda tx: tx.execute_many("threads.set_project", changes))
    return settled


def _project(settled: ProjectMap, cwd: str, noted: str | None) -> str:
    """Return a thread's project: the repository that it noted itself, else that of its folder."""
    return settled.aliases.get(noted, noted) if noted else settled.project(cwd)


def identity_of(url: str) -> str | None:
    """Return the identity that a thread noted: of a remote's address, or as an import found it."""
    return remote_identity(url) or (url if _IDENTITY.fullmatch(url) else None)

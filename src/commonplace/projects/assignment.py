"""Assigning a project to each thread, from everything that is known, independent of the order in which it came.

`assign` decides the projects of a home from the evidence of all its sessions and from what a person decided, and stores
them with the names by which they are known. `settle` gives every thread its project by those names; a folder that is
new since then belongs to the repository that the disk or a thread tells, until projects are decided again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio.to_thread
import msgspec

from commonplace.patterns import regex
from commonplace.projects import evidence, names, paths, scope, union
from commonplace.projects.evidence import FolderEvidence, SessionTrace
from commonplace.projects.identity import Repositories
from commonplace.projects.names import ProjectNames
from commonplace.projects.scope import FolderIdentity, ProjectMap
from commonplace.projects.union import ProjectDecisions, SessionFolder
from commonplace.protocol.remotes import remote_identity
from commonplace.rollout import decisions
from commonplace.state import projects
from commonplace.state.database import Row
from commonplace.state.home import Home

_IDENTITY: Final = regex(r"[\w.-]+(?::\d+)?(?:/[\w.~ -]+)+|[0-9a-f]{40}|[0-9a-f]{64}")
_evidence: Final = msgspec.json.Decoder(FolderEvidence)


async def assign(home: Home, found: Mapping[str, FolderEvidence] | None = None) -> dict[str, str]:
    """Decide the projects of all threads; return the project of each.

    `found` is evidence that is not stored yet, by thread id; it is stored first. A session without evidence counts with
    its folder and what it noted when it started.
    """
    root, database = home.key, await home.database()
    if found:
        texts = {thread_id: msgspec.json.encode(each).decode() for thread_id, each in found.items()}
        await database.write(lambda tx: projects.put_evidence(tx, texts))
    settled = await settle(home)
    rows = await database.read(lambda tx: projects.threads(tx, home.sources_key))
    decided = await anyio.to_thread.run_sync(read_decisions, home.path)
    groups = await anyio.to_thread.run_sync(lambda: union.unite(_sessions(rows, settled, root), decided))
    why = {group.project: group.why for group in groups}
    await database.write(lambda tx: projects.replace(tx, home.memory_key, why, names.of_groups(groups)))
    await settle(home)
    await _settle_elsewhere(home, [row for row in rows if row["home"] != root])
    rows = await database.read(lambda tx: projects.threads(tx, home.sources_key))
    return {row["thread_id"]: row["project"] for row in rows}


def read_decisions(home: Path) -> ProjectDecisions:
    """Return what a person decided about the projects of a home."""
    return ProjectDecisions(tuple(decisions.project_merges(home)), tuple(decisions.project_splits(home)))


async def _settle_elsewhere(home: Home, rows: list[Row]) -> None:
    """Give the threads of other homes that share the memory the projects that were decided.

    Their folders are not on this disk: what was not decided about stays as their own host settled it.
    """
    if not rows:
        return
    known = await names.read(home)
    places = {(row["home"], row["cwd"], row["git_url"]): row["project"] for row in rows if row["cwd"]}
    changes = [
        {"home": place, "cwd": cwd, "git_url": url, "project": project}
        for (place, cwd, url), before in places.items()
        if (project := known.project(cwd, identity_of(url) or _noted(before))) not in (None, before)
    ]
    if changes:
        await (await home.database()).write(lambda tx: tx.execute_many("threads.set_project", changes))


def _noted(project: str) -> str:
    """Return the identity that a host found for a folder of its own; empty if all it found is the folder."""
    return "" if project.startswith("/") else project


def _sessions(rows: list[Row], settled: ProjectMap, own: str) -> list[SessionFolder]:
    """Return the sessions that ran in a folder, with their evidence; those of other homes as their hosts know them."""
    return [
        SessionFolder(
            row["thread_id"],
            _evidence_of(row),
            settled.identity(row["cwd"], identity_of(row["git_url"]))
            if row["home"] == own
            else identity_of(row["git_url"]) or _noted(row["project"]),
        )
        for row in rows
        if row["cwd"]
    ]


def _evidence_of(row: Row) -> FolderEvidence:
    """Return the stored evidence of a thread; without any, what it noted when it started."""
    try:
        stored = _evidence.decode(row["evidence"]) if row["evidence"] else None
    except msgspec.DecodeError:  # a newer version wrote it
        stored = None
    if stored is not None and stored.folder == paths.normal(row["cwd"]):
        return stored
    return evidence.evidence_of(SessionTrace(row["cwd"], row["git_branch"], row["git_url"], row["git_commit"]))


async def settle(home: Home) -> ProjectMap:
    """Bring the project of every listed thread up to date with the disk and with what other threads noted."""
    root = home.key
    database = await home.database()
    rows = await database.read(lambda tx: tx.query("threads.places", home=root))
    known = await names.read(home)
    pairings = [
        FolderIdentity(row["cwd"], identity_of(row["git_url"]), seen)
        for row in rows
        for seen in (row["first_s"], row["last_s"])
    ]
    broad = ("/", str(Path.home()))
    settled = await anyio.to_thread.run_sync(lambda: scope.settle(pairings, Repositories(), broad=broad))
    changes = [
        {"home": root, "cwd": row["cwd"], "git_url": row["git_url"], "project": _project(settled, known, row)}
        for row in rows
    ]
    if changes:
        await database.write(lambda tx: tx.execute_many("threads.set_project", changes))
    return settled


def _project(settled: ProjectMap, known: ProjectNames, row: Row) -> str:
    """Return a thread's project: as it was decided, else the repository that it noted itself, else its folder's."""
    cwd, noted = row["cwd"], identity_of(row["git_url"])
    decided = known.project(cwd, settled.identity(cwd, noted)) if cwd else None
    if decided is not None:
        return decided
    found = settled.aliases.get(noted, noted) if noted else settled.project(cwd)
    return known.addresses.get(found, found)


def identity_of(url: str) -> str | None:
    """Return the identity that a thread noted: of a remote's address, or as an import found it."""
    return remote_identity(url) or (url if _IDENTITY.fullmatch(url) else None)

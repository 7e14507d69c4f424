"""The names by which projects are known, as they were last decided: folders, and addresses of repositories."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from commonplace.projects import paths
from commonplace.projects.union import ProjectGroup
from commonplace.state import projects
from commonplace.state.home import Home
from commonplace.state.projects import ProjectName


class ProjectNames(msgspec.Struct, frozen=True):
    """The project that each folder and each address means."""

    folders: dict[tuple[str, str], str] = {}
    """By the folder and the identity that was noted there."""
    addresses: dict[str, str] = {}

    def project(self, folder: str, identity: str) -> str | None:
        """Return the project of a folder whose repository has an identity (empty: unknown); None if it is new."""
        return self.folders.get((paths.normal(folder), identity)) or self.addresses.get(identity)

    def named(self, name: str) -> str | None:
        """Return the project that a folder or an address means; None if it means none or several."""
        if name in self.addresses:
            return self.addresses[name]
        found = {project for (folder, _), project in self.folders.items() if folder == name}
        return found.pop() if len(found) == 1 else None


async def read(home: Home) -> ProjectNames:
    """Return the names of a home's projects."""
    key = home.memory_key
    rows = await (await home.database()).read(lambda tx: projects.names(tx, key))
    return ProjectNames(
        {(row.name, row.noted): row.project for row in rows if _is_folder(row.name)},
        {row.name: row.project for row in rows if not _is_folder(row.name)},
    )


def of_groups(groups: Iterable[ProjectGroup]) -> list[ProjectName]:
    """Return the names to store: the folders and addresses of each group."""
    found: dict[tuple[str, str], ProjectName] = {}
    for group in groups:
        for folder, noted in group.folders:
            found[folder, noted] = ProjectName(folder, group.project, noted)
        for name in (group.project, *group.addresses):
            found.setdefault((name, ""), ProjectName(name, group.project))
    return list(found.values())


def _is_folder(name: str) -> bool:
    return name.startswith("/") or name[1:3] in (":/", ":\\")

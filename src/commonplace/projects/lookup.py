"""Looking up the scope of a project by its name or a folder, for the command line, prompts and tools."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

import anyio.to_thread

from commonplace.errors import BadInput, StateError
from commonplace.projects import names, paths
from commonplace.projects.identity import identify
from commonplace.projects.names import ProjectNames
from commonplace.projects.scope import GLOBAL
from commonplace.protocol.remotes import is_commit, remote_identity
from commonplace.state.database import Row
from commonplace.state.home import Home

_HINT: Final = "`commonplace memory list` shows what there is."


async def named_scope(home: Home, text: str, known_scopes: Iterable[str]) -> str:
    """Return the scope that a text names: an identity, the last part of one, an address, or a folder.

    A folder or an address of a project means the project, whatever that is called by now.

    Raises:
        BadInput: it names none, or several.
    """
    current: list[Row] = []
    known = ProjectNames()
    if home.has_index():
        root = home.key
        current = await (await home.database()).read(lambda tx: tx.query("threads.current", home=root))
        known = await names.read(home)
    scopes = sorted({*known_scopes, *(row["project"] for row in current), GLOBAL} - {""})
    wanted = text.strip().rstrip("/").lower()
    decided = known.named(text.strip().rstrip("/")) or known.named(remote_identity(text) or wanted)
    if decided is not None:
        return decided
    same = [scope for scope in scopes if scope.lower() == wanted]
    commits = {scope for scope in scopes if is_commit(scope)}
    folders = {row["project"]: row["cwd"] for row in current if row["project"] in commits} if commits else {}
    short = [scope for scope in scopes if wanted in _short_names(scope, folders.get(scope, scope))]
    if same or len(short) == 1:
        return (same or short)[0]
    if len(short) > 1:
        raise BadInput(f"{text!r} names {len(short)} projects: {', '.join(short)}.", hint="Give the whole identity.")
    place = Path(text).expanduser()
    if os.path.isdir(place) or text.startswith(("/", "~", ".")):  # noqa: PTH112 (a name that is too long is none)
        folder = place.absolute()
        identity = await anyio.to_thread.run_sync(identify, folder)
        decided = known.project(str(folder), identity or "") or known.named(str(folder))
        noted = next((row["project"] for row in current if row["cwd"] == str(folder)), None)
        return decided or identity or noted or str(folder.resolve())
    identity = remote_identity(text) or (wanted if wanted.count("/") >= 2 else None)
    if identity is None:
        others = ", ".join(scope for scope in scopes if scope != GLOBAL)
        raise BadInput(f"No project is called {text!r}.", hint=f"Known are: {others}." if others else _HINT)
    return identity


def _short_names(scope: str, folder: str) -> set[str]:
    """Return the names that a person may call a scope by; a repository without an address is called by its folder."""
    return {name.lower() for name in (scope.rpartition("/")[2], paths.title(scope), paths.title(folder))}


async def folder_scope(home: Home, folder: Path, named: str | None, scopes: Collection[str]) -> str:
    """Return the scope that a project's name means, else that of a folder: as the disk says, as threads noted there.

    Raises:
        BadInput: no project is called that.
    """
    if named is not None:
        return await named_scope(home, named, scopes)
    place = folder.expanduser().absolute()
    identity = await anyio.to_thread.run_sync(identify, place)
    decided = await _decided(home, place, identity or "")
    if decided is not None and (decided in scopes or identity not in scopes):
        return decided
    if identity in scopes:
        return str(identity)
    try:
        noted = await _noted(home, place)
    except StateError:
        noted = None
    if noted is not None and (noted in scopes or identity is None):
        return noted  # a repository that was renamed since is known by its old name until memory is made anew
    return identity or str(await anyio.to_thread.run_sync(place.resolve))


async def _decided(home: Home, place: Path, identity: str) -> str | None:
    """Return the project that was decided for a folder and its repository; None if it is new or nothing is stored."""
    if not home.has_index():
        return None
    try:
        known = await names.read(home)
    except StateError:
        return None
    return known.project(str(place), identity) or known.named(str(place))


async def _noted(home: Home, place: Path) -> str | None:
    """Return the project that threads in a folder belong to, if it is not just the folder."""
    if not home.has_index():
        return None
    root = home.key
    names = {"place": str(place), "resolved": str(place.resolve())}
    rows = await (await home.database()).read(lambda tx: tx.query("threads.in_folder", home=root, **names))
    return rows[0]["project"] or None if rows else None


async def folder_projects(home: Home) -> dict[str, str]:
    """Return the project of every folder that a session ran in; nothing if the database cannot be read."""
    if not home.has_index():
        return {}
    key = home.key
    try:
        rows = await (await home.database()).read(lambda tx: tx.query("threads.current", home=key))
    except StateError:
        return {}
    return {row["cwd"]: row["project"] for row in rows if row["project"]}

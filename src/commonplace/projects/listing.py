"""The projects of a home, as a person sees them, and what the person decides about them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Final

import anyio.to_thread
import msgspec

from commonplace.errors import BadInput
from commonplace.projects import assignment, lookup, paths
from commonplace.projects.scope import GLOBAL, short_names
from commonplace.protocol.ids import wire_time
from commonplace.rollout import decisions
from commonplace.state import entries, projects
from commonplace.state.database import Transaction
from commonplace.state.home import Home

_HINT: Final = "`commonplace projects list` shows projects and their folders."


class ListedProject(msgspec.Struct, frozen=True):
    """A project in a listing (the JSON of `projects list`)."""

    scope: str
    """Its identity."""
    name: str
    folders: list[str]
    """Where its sessions started."""
    sessions: int
    entries: int
    """How many entries of the memory are for it."""
    why: list[str]
    """Why the folders are one project, in sentences."""


async def listed(home: Home) -> list[ListedProject]:
    """Return the projects of a home, those with most sessions first."""
    return await (await home.database()).read(lambda tx: _listed(tx, home))


def _listed(tx: Transaction, home: Home) -> list[ListedProject]:
    folders: dict[str, set[str]] = defaultdict(set)
    sessions: dict[str, int] = defaultdict(int)
    for row in tx.query("threads.current", home=home.key):
        if row["project"] and row["is_root"]:
            folders[row["project"]].add(row["cwd"])
            sessions[row["project"]] += 1
    counts = entries.scopes(tx, home.memory_key)
    why = projects.reasons(tx, home.memory_key)
    scopes = sorted({*folders, *counts} - {GLOBAL}, key=lambda scope: (-sessions[scope], scope))
    names = short_names(scopes, {scope: min(found) for scope, found in folders.items()})
    return [
        ListedProject(
            scope, names[scope], sorted(folders[scope]), sessions[scope], counts.get(scope, 0), why.get(scope, [])
        )
        for scope in scopes
    ]


async def merge(home: Home, kept: str, other: str) -> list[ListedProject]:
    """Decide that two projects are one, under the name of the first; return the projects as they are then.

    Raises:
        BadInput: one of them is not known, or both are one already.
    """
    first, second = [await _known_project(home, text) for text in (kept, other)]
    if first == second:
        raise BadInput(f"{kept!r} and {other!r} are one project already: {first}.", hint=_HINT)
    await _decide(home, "merge", projects=[first, second])
    return await listed(home)


async def split(home: Home, folder: Path) -> list[ListedProject]:
    """Decide that a folder is a project of its own, with everything below it; return the projects as they are then.

    Raises:
        BadInput: no session started in the folder or below it, or it is a project of its own already.
    """
    place = paths.normal(str(folder.expanduser().absolute()))
    found = await listed(home)
    inside = [each for each in found if any(_is_within(cwd, place) for cwd in each.folders)]
    if not inside:
        raise BadInput(f"No session started in {folder}.", hint=_HINT)
    if all(_is_within(cwd, place) for each in inside for cwd in each.folders) and len(inside) == 1:
        raise BadInput(f"{folder} is a project of its own already: {inside[0].scope}.", hint=_HINT)
    await _decide(home, "split", path=place)
    return await listed(home)


def _is_within(cwd: str, place: str) -> bool:
    return paths.normal(cwd) == place or paths.is_below(paths.normal(cwd), place)


async def _known_project(home: Home, text: str) -> str:
    """Return the project that a text names (raises BadInput: none, or several)."""
    scopes = [each.scope for each in await listed(home)]
    found = await lookup.named_scope(home, text, scopes)
    if found not in scopes:
        raise BadInput(f"No project is called {text!r}.", hint=_HINT)
    return found


async def _decide(home: Home, kind: str, **fields: str | list[str]) -> None:
    """Note a decision about projects, and decide the projects anew."""
    moment = wire_time(home.now())
    await anyio.to_thread.run_sync(lambda: decisions.append(home.path, kind, moment, **fields))
    await assignment.assign(home)

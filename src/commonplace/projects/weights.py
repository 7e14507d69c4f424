"""How much two groups of folders have in common, in one number: from 1 on they are of one project.

The table is measured. Each kind of evidence has a weight and a limit; what a pair has in common is summed over kinds.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec

from commonplace.projects import modules, paths
from commonplace.projects.evidence import FolderEvidence

ENOUGH: Final = 1.0
"""The sum from which two groups are one."""
_SURE: Final = 2
"""The weight from which an address beside a stronger one counts as an identity."""
_SURE_SHARE: Final = 0.2
_MENTIONED_SHARE: Final = 0.6
_MENTIONED: Final = ((3, 0.6), (2, 0.5))
_COMMITS: Final = ((3, 1.0), (2, 0.4), (1, 0.2))
_FILES: Final = ((8, 0.2, 1.0), (3, 0.7, 0.7), (3, 0.1, 0.5), (1, 0.0, 0.2))
"""How many files two groups share, how much of the smaller one that is at least, and the weight."""
_BRANCH: Final = 0.6
_LONG_BRANCH: Final = 0.8
_LONG_BRANCH_WORDS: Final = 4
_MODULES_AT_MOST: Final = 0.8
_WORKSPACE: Final = 0.8
_SESSION: Final = 0.5
_OWNER_AND_NAME: Final = 0.7
_PATH_END: Final = 0.4
_FOLDER_NAME: Final = 0.3
RENAMED_COMMITS: Final = 3
"""How many commits two repositories of one name share if one is a fork of the other, or its old address."""


class Pool(msgspec.Struct):
    """The evidence of a group of folders, taken together."""

    folders: set[str] = msgspec.field(default_factory=set[str])
    own: Counter[str] = msgspec.field(default_factory=Counter[str])
    said: Counter[str] = msgspec.field(default_factory=Counter[str])
    roots: set[str] = msgspec.field(default_factory=set[str])
    """First commits of repositories without a remote."""
    modules: set[str] = msgspec.field(default_factory=set[str])
    commits: set[str] = msgspec.field(default_factory=set[str])
    branches: set[str] = msgspec.field(default_factory=set[str])
    files: set[str] = msgspec.field(default_factory=set[str])
    sessions: set[str] = msgspec.field(default_factory=set[str])
    in_git: bool = False

    def add(self, evidence: FolderEvidence, session: str) -> None:
        """Add what a session tells about a folder of the group."""
        self.folders.add(evidence.folder)
        self.own.update(evidence.own)
        self.said.update(evidence.said)
        self.modules.update(evidence.modules)
        self.commits.update(evidence.commits)
        self.branches.update(evidence.branches)
        self.files.update(evidence.files)
        self.sessions.add(session)
        self.in_git = self.in_git or evidence.in_git

    def absorb(self, other: Pool) -> None:
        """Add the evidence of another group."""
        self.folders |= other.folders
        self.own.update(other.own)
        self.said.update(other.said)
        self.roots |= other.roots
        self.modules |= other.modules
        self.commits |= other.commits
        self.branches |= other.branches
        self.files |= other.files
        self.sessions |= other.sessions
        self.in_git = self.in_git or other.in_git

    def identities(self) -> frozenset[str]:
        """Return the addresses that the group is sure of: the strongest, and those that come near it."""
        if not self.own:
            return frozenset()
        strongest = max(self.own.values())
        sure = {name for name, weight in self.own.items() if weight >= max(_SURE, _SURE_SHARE * strongest)}
        return frozenset(sure) or frozenset({self.strongest()})

    def strongest(self) -> str:
        """Return the address that most tells; empty if there is none."""
        return min(self.own, key=lambda name: (-self.own[name], name), default="")

    def mentions(self) -> dict[str, float]:
        """Return the weight of each repository that is mostly mentioned here."""
        total = self.said.total()
        found: dict[str, float] = {}
        for name, count in self.said.items():
            weight = next((weight for fewest, weight in _MENTIONED if count >= fewest), 0.0)
            if weight and count >= _MENTIONED_SHARE * total:
                found[name] = weight
        return found


class FolderProfile(msgspec.Struct, frozen=True):
    """What pairs are compared by: a pool, and what follows from it."""

    pool: Pool
    identities: frozenset[str]
    mentions: dict[str, float]
    names: frozenset[str]
    """Names of the folders that may tell a project."""
    ends: frozenset[str]
    """Ends of the folders' paths with two uncommon names."""
    owner_names: frozenset[str]
    """The last two parts of the folders' paths."""
    repositories: frozenset[str]
    """The owner and name of each identity."""
    workspaces: frozenset[str]
    """Names of projects in the paths of workspaces."""


def profile_of(pool: Pool) -> FolderProfile:
    """Return what a group is compared by."""
    identities = pool.identities()
    folders = pool.folders
    return FolderProfile(
        pool,
        identities,
        pool.mentions(),
        frozenset(name for folder in folders if (name := paths.last_name(folder))),
        frozenset(end for folder in folders for end in paths.telling_ends(folder)),
        frozenset(name for folder in folders if (name := paths.owner_and_name(folder))),
        frozenset(name for identity in identities if (name := paths.owner_and_name(identity))),
        frozenset(name for folder in folders if (name := paths.workspace_name(folder))),
    )


def weigh(one: FolderProfile, two: FolderProfile) -> dict[str, float]:
    """Return what two groups have in common: the weight of each kind of evidence that they share."""
    a, b = one.pool, two.pool
    found = {
        "the same repository": 1.0 if one.identities & two.identities else 0.0,
        "a repository that is mentioned": max(_mentioned(one, two), _mentioned(two, one)),
        "the name of a workspace": _WORKSPACE if _share_workspace(one, two) else 0.0,
        "modules": _modules(a.modules & b.modules),
        "commits": _commits(a.commits, b.commits),
        "branches": _branches(a.branches & b.branches),
        "files": _files(a.files, b.files),
        "a session": _SESSION if not a.sessions.isdisjoint(b.sessions) else 0.0,
        "the end of the path": _path_end(one, two),
    }
    return {kind: weight for kind, weight in found.items() if weight}


def may_join(a: Pool, b: Pool) -> bool:
    """Say whether two groups may be one: no addresses that do not meet, unless one is a fork or has another name."""
    mine, theirs = a.identities(), b.identities()
    if mine and theirs and not mine & theirs:
        names = {name.rpartition("/")[2] for name in mine} & {name.rpartition("/")[2] for name in theirs}
        return bool(names) and len(a.commits & b.commits) >= RENAMED_COMMITS
    return bool(mine & theirs) or not (a.roots and b.roots and a.roots.isdisjoint(b.roots))


def _mentioned(here: FolderProfile, there: FolderProfile) -> float:
    return max((here.mentions.get(name, 0.0) for name in there.identities), default=0.0)


def _share_workspace(one: FolderProfile, two: FolderProfile) -> bool:
    return bool(one.workspaces & (two.names | two.workspaces)) or bool(two.workspaces & one.names)


def _modules(shared: set[str]) -> float:
    return min(_MODULES_AT_MOST, sum(modules.weight(name) for name in shared))


def _commits(mine: set[str], theirs: set[str]) -> float:
    shared = len(mine & theirs)
    return next((weight for fewest, weight in _COMMITS if shared >= fewest), 0.0)


def _branches(shared: set[str]) -> float:
    return min(1.0, sum(_branch_weight(name) for name in shared))


def _branch_weight(name: str) -> float:
    words = [word for word in name.replace("/", "-").replace("_", "-").split("-") if word]
    return _LONG_BRANCH if len(words) >= _LONG_BRANCH_WORDS else _BRANCH


def _files(mine: set[str], theirs: set[str]) -> float:
    shared = len(mine & theirs)
    smaller = min(len(mine), len(theirs))
    return next((weight for fewest, share, weight in _FILES if shared >= fewest and shared >= share * smaller), 0.0)


def _path_end(one: FolderProfile, two: FolderProfile) -> float:
    is_repository = bool(one.owner_names & two.repositories or two.owner_names & one.repositories)
    return (
        (_OWNER_AND_NAME if is_repository else 0.0)
        + (_PATH_END if one.ends & two.ends else 0.0)
        + (_FOLDER_NAME if one.names & two.names else 0.0)
    )

"""Which folders are one project, from the evidence of all sessions together.

Facts come first: what a person decided, one first commit, a worktree and its main checkout, a folder inside a checkout,
one address. Then pairs of groups are joined, those with most in common first, while they have enough in common
(`weights`); the evidence of each group is pooled, and groups are compared again. Groups whose addresses do not meet are
never joined, unless a person says so. The result depends on the evidence alone, not on the order in which it came.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from itertools import chain
from typing import Final

import msgspec

from commonplace.projects import paths, weights
from commonplace.projects.evidence import ORIGIN, FolderEvidence
from commonplace.projects.weights import FolderProfile, Pool
from commonplace.protocol.remotes import is_commit

ROUNDS: Final = 4
_MOST_ALIKE: Final = 64
"""With how many groups a group is compared at most."""
_MOST_REASONS: Final = 12


class SessionFolder(msgspec.Struct, frozen=True):
    """A session with its evidence, and the identity of its repository if the session or the disk tells it."""

    session: str
    evidence: FolderEvidence
    identity: str = ""


class ProjectDecisions(msgspec.Struct, frozen=True):
    """What a person decided about projects."""

    merges: tuple[tuple[str, str], ...] = ()
    """Pairs of projects or folders that are one project; the first one gives the name."""
    splits: tuple[str, ...] = ()
    """Folders that are projects of their own, with everything below them."""


class ProjectGroup(msgspec.Struct, frozen=True):
    """A project: its identity, and the folders and addresses by which it is known."""

    project: str
    folders: tuple[tuple[str, str], ...]
    """Each folder, with the identity that was noted there (empty if none was)."""
    addresses: tuple[str, ...]
    sessions: tuple[str, ...]
    """The sessions that started in one of the folders."""
    why: tuple[str, ...]
    """Why the folders are one project, in sentences."""

    @property
    def title(self) -> str:
        """The name that people read."""
        return paths.title(self.project)


Node = tuple[str, str]
"""A folder, and the identity that was noted there."""


def unite(sessions: Iterable[SessionFolder], decisions: ProjectDecisions | None = None) -> list[ProjectGroup]:
    """Return the projects of all folders, in the order of their identities."""
    union = _Union(sessions, decisions or ProjectDecisions())
    union.join_decided()
    union.join_roots()
    union.join_worktrees()
    union.join_inner_folders()
    for _ in range(ROUNDS):
        union.join_addresses()
        if not union.join_pairs():
            break
    return sorted(union.groups(), key=lambda group: group.project)


class _Union:
    """The groups while they grow: a forest over folders, with a pool of evidence at each root."""

    def __init__(self, sessions: Iterable[SessionFolder], decisions: ProjectDecisions) -> None:
        self.decisions = decisions
        self.pools: dict[Node, Pool] = {}
        self.started: dict[Node, set[str]] = defaultdict(set)
        self._read(sorted(sessions, key=lambda each: each.session))
        self.nodes = sorted(self.pools)
        self.parent = {node: node for node in self.nodes}
        self.why: dict[Node, list[str]] = defaultdict(list)
        self.merged: list[tuple[str, str, Node]] = []
        """The names of each pair that a person merged, with a folder of its group; the newest is the last."""
        self.by_folder: dict[str, list[Node]] = defaultdict(list)
        for node in sorted(self.nodes, key=lambda node: (-len(self.pools[node].sessions), node)):
            self.by_folder[node[0]].append(node)
        self.label = {node: self._split_of(node[0]) for node in self.nodes}

    def _read(self, sessions: Sequence[SessionFolder]) -> None:
        noted: dict[str, Counter[str]] = defaultdict(Counter)
        for each in sessions:
            if each.identity:
                noted[each.evidence.folder][each.identity] += 1
        usual = {folder: min(found, key=lambda name: (-found[name], name)) for folder, found in noted.items()}
        for each in sessions:
            folder = each.evidence.folder
            node = (folder, each.identity or usual.get(folder, ""))
            self._add(node, each.evidence, each.session)
            self.started[node].add(each.session)
            for moved in each.evidence.moved:
                self._add((moved.folder, usual.get(moved.folder, "")), moved, each.session)

    def _add(self, node: Node, evidence: FolderEvidence, session: str) -> None:
        pool = self.pools.setdefault(node, Pool())
        pool.add(evidence, session)
        identity = node[1]
        if is_commit(identity):
            pool.roots.add(identity)
        elif identity:
            pool.own[identity] += ORIGIN
            pool.in_git = True

    def _split_of(self, folder: str) -> str:
        """Return the innermost folder at or above this one that a person split off; empty if there is none."""
        found = [split for split in self.decisions.splits if folder == split or paths.is_below(folder, split)]
        return max(found, key=len, default="")

    def find(self, node: Node) -> Node:
        """Return the folder that stands for the group of a folder."""
        while self.parent[node] != node:
            self.parent[node] = self.parent[self.parent[node]]
            node = self.parent[node]
        return node

    def join(self, one: Node, two: Node, why: str, *, decided: bool = False) -> bool:
        """Make one group of two; return False if they are one already, or may not be."""
        a, b = sorted((self.find(one), self.find(two)))
        if a == b or self.label[a] != self.label[b]:
            return False
        if not decided and not weights.may_join(self.pools[a], self.pools[b]):
            return False
        self.parent[b] = a
        self.pools[a].absorb(self.pools.pop(b))
        self.why[a] += [*self.why.pop(b, []), why]
        return True

    def join_decided(self) -> None:
        """Join what a person merged."""
        for kept, other in self.decisions.merges:
            named = {name: [node for node in self.nodes if self._is_named(node, name)] for name in (kept, other)}
            if not named[kept] or not named[other]:
                continue
            first = named[kept][0]
            for node in (*named[kept], *named[other]):
                self.join(first, node, f"You merged {other} into {kept}.", decided=True)
            self.merged.append((kept, other, first))

    def _is_named(self, node: Node, name: str) -> bool:
        """Say whether a project's name means a folder: by its path, its main checkout, or its repository."""
        folder, identity = node
        if name in (folder, identity, paths.main_checkout(folder)):
            return True
        return name in self.pools[self.find(node)].identities()

    def join_roots(self) -> None:
        """Join the folders whose repositories began with the same commit and have no address."""
        first: dict[str, Node] = {}
        for node in self.nodes:
            if is_commit(node[1]):
                self.join(first.setdefault(node[1], node), node, f"{node[0]} has the same first commit.")

    def join_worktrees(self) -> None:
        """Join worktrees with their main checkout, or with each other if nothing is known of that."""
        by_main: dict[str, list[Node]] = defaultdict(list)
        for node in self.nodes:
            main = paths.main_checkout(node[0])
            if main is not None:
                by_main[main].append(node)
        for main, worktrees in by_main.items():
            for target in (*self.by_folder.get(main, ()), worktrees[0]):
                for node in worktrees:
                    self.join(target, node, f"{node[0]} is a worktree of {main}.")

    def join_inner_folders(self) -> None:
        """Join a folder with the nearest one above it that is in git, unless it has another address."""
        for node in self.nodes:
            above = self._checkout_above(node[0])
            if above is not None:
                self.join(above, node, f"{node[0]} is inside of {above[0]}.")

    def _checkout_above(self, folder: str) -> Node | None:
        place = folder.rpartition("/")[0]
        while place and not paths.is_broad(place):
            for node in self.by_folder.get(place, ()):
                if self.pools[self.find(node)].in_git:
                    return node
            place = place.rpartition("/")[0]
        return None

    def join_addresses(self) -> None:
        """Join the groups that are sure of the same address."""
        first: dict[tuple[str, str], Node] = {}
        for root in sorted(self.pools):
            for identity in sorted(self.pools[self.find(root)].identities()) if root in self.pools else ():
                target = first.setdefault((identity, self.label[root]), root)
                self.join(target, root, f"{root[0]} is a checkout of {identity}.")

    def join_pairs(self) -> bool:
        """Join the pairs that have enough in common, the most alike first; return whether any was joined."""
        roots = sorted(self.pools)
        profiles = [weights.profile_of(self.pools[root]) for root in roots]
        pairs: list[tuple[float, int, int, str]] = []
        for one, two in _comparable(profiles):
            shared = weights.weigh(profiles[one], profiles[two])
            total = round(sum(shared.values()), 6)
            if total >= weights.ENOUGH:
                pairs.append((-total, one, two, ", ".join(shared)))
        joined = False
        for _, one, two, shared in sorted(pairs):
            a, b = roots[one], roots[two]
            joined = self.join(a, b, f"{a[0]} and {b[0]} share {shared}.") or joined
        return joined

    def groups(self) -> Iterable[ProjectGroup]:
        """Yield the projects."""
        members: dict[Node, list[Node]] = defaultdict(list)
        for node in self.nodes:
            members[self.find(node)].append(node)
        for root, nodes in members.items():
            yield ProjectGroup(
                self._project(root, nodes),
                tuple(nodes),
                () if self.label[root] else self._addresses(root),
                tuple(sorted({session for node in nodes for session in self.started.get(node, ())})),
                (
                    *([f"You split off {self.label[root]}."] if self.label[root] else []),
                    *self.why[root][:_MOST_REASONS],
                ),
            )

    def _addresses(self, root: Node) -> tuple[str, ...]:
        """Return the identities by which a group is known, also those that a person merged into it."""
        pool = self.pools[root]
        merged = {name for kept, other, node in self.merged if self.find(node) == root for name in (kept, other)}
        return tuple(sorted(pool.identities() | pool.roots | {name for name in merged if not name.startswith("/")}))

    def _project(self, root: Node, nodes: list[Node]) -> str:
        """Return a group's identity: as decided, else its address, else its first commit, else its checkout."""
        pool = self.pools[root]
        if self.label[root]:
            return self.label[root]
        for kept, _, node in reversed(self.merged):
            if self.find(node) == root:
                return kept
        return pool.strongest() or min(pool.roots, default="") or _shortest_checkout({folder for folder, _ in nodes})


def _shortest_checkout(folders: set[str]) -> str:
    """Return the folder that stands for a group: a main checkout before worktrees, a name before a number."""
    mains = Counter(main for folder in folders if (main := paths.main_checkout(folder)))
    known = {folder for folder in folders if paths.main_checkout(folder) is None}
    known |= {main for main, count in mains.items() if count > 1}
    return min(
        known or folders, key=lambda folder: (paths.ends_in_number(folder), folder.count("/"), len(folder), folder)
    )


def _comparable(profiles: list[FolderProfile]) -> Iterable[tuple[int, int]]:
    """Yield the pairs that share evidence, each once.

    Where very many groups share evidence, each is compared with those with which it shares most, and of one piece of
    evidence only with the groups that have most. Those are joined first, and the others are compared with the whole in
    the next round.
    """
    richest = sorted(range(len(profiles)), key=lambda place: (-_richness(profiles[place]), place))
    index: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place in richest:
        for key in _keys(profiles[place]):
            index[key].append(place)
    index = {key: places[:_MOST_ALIKE] for key, places in index.items() if len(places) > 1}
    pairs: set[tuple[int, int]] = set()
    for place, profile in enumerate(profiles):
        alike = Counter(chain.from_iterable(index.get(key, ()) for key in _keys(profile)))
        del alike[place]
        nearest = nsmallest(_MOST_ALIKE, ((-count, other) for other, count in alike.items()))
        pairs.update((place, other) if place < other else (other, place) for _, other in nearest)
    return sorted(pairs)


def _richness(profile: FolderProfile) -> int:
    pool = profile.pool
    return len(pool.files) + len(pool.commits) + len(pool.branches) + len(pool.modules) + len(pool.own)


def _keys(profile: FolderProfile) -> Iterable[tuple[str, str]]:
    """Yield everything by which a group may have something in common with another."""
    pool = profile.pool
    kinds: tuple[tuple[str, Iterable[str]], ...] = (
        ("address", (*profile.identities, *profile.mentions)),
        ("repository", profile.repositories | profile.owner_names),
        ("name", profile.names | profile.workspaces),
        ("end", profile.ends),
        ("module", pool.modules),
        ("commit", pool.commits),
        ("branch", pool.branches),
        ("file", pool.files),
        ("session", pool.sessions),
    )
    for kind, names in kinds:
        for name in names:
            yield kind, name

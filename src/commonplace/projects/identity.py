"""The identity of a folder's repository, read from its files: the remote `origin`, else the first commit.

`repository_files` reads the files; whatever is damaged, unborn or cut short is no repository. Only a history without a
remote is opened with libgit2, to follow it to its root; of a repository that belongs to another user, libgit2 tells
nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from commonplace.patterns import regex
from commonplace.projects.repository_files import (
    common_folder,
    find_git_folder,
    git_folder,
    origin_url,
    read_text,
    remote_at,
)
from commonplace.protocol.rollout import GitInfo

_MAX_COMMITS: Final = 2**18
"""Longest way to a root that is walked; a history this long has a remote."""
_CREDENTIALS: Final = regex(r"//[^/@]*@")


class DirectoryIdentity(msgspec.Struct, frozen=True):
    """What the disk says about a working directory."""

    exists: bool
    identity: str | None = None


class Repositories:
    """Looks at each working directory once; a session store names the same few thousands of times."""

    def __init__(self) -> None:
        self._known: dict[str, DirectoryIdentity] = {}

    def __call__(self, cwd: str) -> DirectoryIdentity:
        if cwd not in self._known:
            self._known[cwd] = look(cwd)
        return self._known[cwd]


def look(cwd: str) -> DirectoryIdentity:
    """Return what the disk says about a working directory, by a path that need not make sense here."""
    try:
        path = Path(cwd)
        if not path.is_absolute() or not path.is_dir():
            return DirectoryIdentity(exists=False)
        return DirectoryIdentity(exists=True, identity=identify(path))
    except (OSError, ValueError):  # a folder that may not be entered, or a name with a zero in it
        return DirectoryIdentity(exists=False)


def identify(cwd: Path) -> str | None:
    """Return the identity of the repository that a folder is in, or None where there is none to be told."""
    try:
        git = find_git_folder(cwd)
        return _identity(git) if git is not None else None
    except (OSError, ValueError, RuntimeError):
        return None


def identity_files(cwd: Path) -> list[Path]:
    """Return the files and folders that decide a folder's identity: if all stay as they are, it does, too."""
    files: list[Path] = []
    try:
        folder = cwd.resolve(strict=True)
        for place in (folder, *folder.parents):
            files.append(place / ".git")
            git = git_folder(place)
            if git is not None:
                common = common_folder(git)
                # Where no remote tells the identity, the first commit does: HEAD and its branch show that there is one.
                head = read_text(git / "HEAD").strip().removeprefix("ref:").strip()
                branch = [common / head] if head.startswith("refs/") else []
                has_origin = origin_url(read_text(common / "config")) is not None
                return [*files, common / "config", *([] if has_origin else [git / "HEAD", *branch])]
    except (OSError, ValueError, RuntimeError):
        pass
    return files


def checkout(cwd: Path) -> GitInfo | None:
    """Return the commit, branch and remote that a folder is at, as a thread notes them; None outside a repository."""
    try:
        git = find_git_folder(cwd)
        if git is None:
            return None
        common = common_folder(git)
        head = read_text(git / "HEAD").strip()
        name = head.removeprefix("ref:").strip() if head.startswith("ref:") else None
        commit = head if name is None else read_text(common / name).strip() or _packed(common, name)
        url = origin_url(read_text(common / "config"))
    except (OSError, ValueError, RuntimeError):
        return None
    return GitInfo(
        commit_hash=commit or None,
        branch=name.removeprefix("refs/heads/") if name else None,
        repository_url=_CREDENTIALS.sub("//", url) if url else None,
    )


def _packed(common: Path, name: str) -> str:
    """Return the commit of a branch that has no file of its own."""
    for line in read_text(common / "packed-refs").splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return commit
    return ""


def _identity(git: Path) -> str | None:
    common = common_folder(git)
    if not (common / "objects").is_dir():
        return None
    return remote_at(git) or (None if (common / "shallow").is_file() else _first_commit(git))


def _first_commit(git: Path) -> str | None:
    """Return the commit that a history began with, going from each commit to its first parent."""
    import pygit2

    try:
        repository = pygit2.Repository(str(git), pygit2.enums.RepositoryOpenFlag.NO_SEARCH)
        if repository.head_is_unborn:
            return None
        commit = repository.head.peel(pygit2.Commit)
        for _ in range(_MAX_COMMITS):
            if not commit.parent_ids:
                return str(commit.id)
            commit = repository[commit.parent_ids[0]].peel(pygit2.Commit)
    except (pygit2.GitError, KeyError, ValueError, OSError):
        pass
    return None

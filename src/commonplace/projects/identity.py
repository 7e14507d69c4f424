"""The identity of a folder's repository, read from its files: the remote `origin`, else the first commit.

The files of `.git` are read here and nothing is run, so that no hook, filter or configured program of a repository that
somebody else prepared can come into play. Nothing is ever written, and whatever is damaged, unborn or cut short is no
repository. Only a history without a remote is opened with libgit2, to follow it to its root; of a repository that
belongs to another user, libgit2 tells nothing.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from commonplace.protocol.remotes import remote_identity
from commonplace.protocol.rollout import GitInfo

_MAX_FILE_BYTES: Final = 2**20
"""How much of a repository's small files is read."""
_MAX_COMMITS: Final = 2**18
"""Longest way to a root that is walked; a history this long has a remote."""
_SECTION: Final = re.compile(r'\s*\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\](.*)', re.DOTALL)
_ENTRY: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=(.*))?", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "b": "\b", "\\": "\\", '"': '"'}


_CREDENTIALS: Final = re.compile(r"//[^/@]*@")


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
        folder = cwd.resolve(strict=True)
        for place in (folder, *folder.parents):
            found = _git_folder(place)
            if found is not None:
                return _identity(found) if _is_whole(found) else None
    except (OSError, ValueError, RuntimeError):
        pass
    return None


def identity_files(cwd: Path) -> list[Path]:
    """Return the files and folders that decide a folder's identity: if all stay as they are, it does, too."""
    files: list[Path] = []
    try:
        folder = cwd.resolve(strict=True)
        for place in (folder, *folder.parents):
            files.append(place / ".git")
            git = _git_folder(place)
            if git is not None:
                shared = _text(git / "commondir").strip()
                common = git / shared if shared else git
                # Where no remote tells the identity, the first commit does: HEAD and its branch show that there is one.
                head = _text(git / "HEAD").strip().removeprefix("ref:").strip()
                branch = [common / head] if head.startswith("refs/") else []
                has_origin = origin_url(_text(common / "config")) is not None
                return [*files, common / "config", *([] if has_origin else [git / "HEAD", *branch])]
    except (OSError, ValueError, RuntimeError):
        pass
    return files


def checkout(cwd: Path) -> GitInfo | None:
    """Return the commit, branch and remote that a folder is at, as a thread notes them; None outside a repository."""
    try:
        folder = cwd.resolve(strict=True)
        git = next((found for place in (folder, *folder.parents) if (found := _git_folder(place)) is not None), None)
        if git is None or not _is_whole(git):
            return None
        shared = _text(git / "commondir").strip()
        common = git / shared if shared else git
        head = _text(git / "HEAD").strip()
        name = head.removeprefix("ref:").strip() if head.startswith("ref:") else None
        commit = head if name is None else _text(common / name).strip() or _packed(common, name)
        url = origin_url(_text(common / "config"))
    except (OSError, ValueError, RuntimeError):
        return None
    return GitInfo(
        commit_hash=commit or None,
        branch=name.removeprefix("refs/heads/") if name else None,
        repository_url=_CREDENTIALS.sub("//", url) if url else None,
    )


def _packed(common: Path, name: str) -> str:
    """Return the commit of a branch that has no file of its own."""
    for line in _text(common / "packed-refs").splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return commit
    return ""


def _git_folder(place: Path) -> Path | None:
    """Return the folder that holds a repository's files, if a repository begins here."""
    marker = place / ".git"
    try:
        mode = marker.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        # A repository without a working tree is its own folder.
        is_bare = (place / "HEAD").is_file() and (place / "objects").is_dir() and (place / "refs").is_dir()
        return place if is_bare else None
    if not stat.S_ISREG(mode):
        return marker
    link = _text(marker)
    target = link.removeprefix("gitdir:").strip()
    return place / target if link.startswith("gitdir:") and target else marker


def _is_whole(git: Path) -> bool:
    return (git / "HEAD").is_file()


def _identity(git: Path) -> str | None:
    # The files of a linked working tree name the folder that has the configuration of all of them.
    shared = _text(git / "commondir").strip()
    common = git / shared if shared else git
    if not (common / "objects").is_dir():
        return None
    url = origin_url(_text(common / "config"))
    identity = remote_identity(url) if url else None
    return identity or (None if (common / "shallow").is_file() else _first_commit(git))


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


def _text(path: Path) -> str:
    """Return a small file's text, or nothing if there is none."""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_FILE_BYTES).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return ""


def origin_url(config: str) -> str | None:
    """Return the URL that a git configuration gives for the remote `origin`; other remotes do not count."""
    urls: list[str] = []
    here = False
    for line in _lines(config):
        section = _SECTION.fullmatch(line)
        if section is not None:
            here = _is_origin(section[1], section[2])
        entry = _ENTRY.fullmatch(section[3] if section is not None else line)
        if here and entry is not None and entry[1].lower() == "url":
            value = _value(entry[2] or "")
            urls = [*urls, value] if value else []  # an empty one takes back those before it
    return urls[0] if urls else None


def _is_origin(section: str, name: str | None) -> bool:
    if name is None:  # an old way of writing it, without regard to case
        return section.lower() == "remote.origin"
    return section.lower() == "remote" and re.sub(r"\\(.)", r"\1", name) == "origin"


def _lines(config: str) -> Iterator[str]:
    """Yield the lines of a configuration, those that end in a backslash together with the next."""
    held = ""
    for line in config.removeprefix("\ufeff").splitlines():
        held += line
        if len(line) - len(line.rstrip("\\")) & 1:
            held = held[:-1]
            continue
        yield held
        held = ""
    if held:
        yield held


def _value(raw: str) -> str:
    """Return what a value means: comments end it, quotes keep its spaces, backslashes say what they say in git."""
    out: list[str] = []
    kept = 0
    quoted = False
    letters = iter(raw.lstrip())
    for letter in letters:
        if letter == "\\":
            following = next(letters, "")
            out.append(_ESCAPES.get(following, following))
            kept = len(out)
        elif letter == '"':
            quoted = not quoted
            kept = len(out)
        elif letter in "#;" and not quoted:
            break
        else:
            out.append(letter)
            kept = len(out) if quoted or not letter.isspace() else kept
    return "".join(out[:kept])

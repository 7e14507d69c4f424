"""The files of a folder's repository: where they are, and the address of its remote `origin`.

The files of `.git` are read and nothing is run, so that no hook, filter or configured program of a repository that
somebody else prepared can come into play. Nothing is ever written. This module loads only a few modules of Python
itself, because hooks of agents need it (`memory.recall.section_cache`).
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from commonplace.patterns import regex
from commonplace.protocol.remotes import remote_identity

_MAX_FILE_BYTES: Final = 2**20
"""How much of a repository's small files is read."""
_SECTION: Final = regex(r'\s*\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\](.*)', re.DOTALL)
_ENTRY: Final = regex(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=(.*))?", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "b": "\b", "\\": "\\", '"': '"'}


def find_git_folder(folder: Path) -> Path | None:
    """Return the folder that holds the files of the repository that a folder is in; None where there is none.

    Raises:
        OSError, RuntimeError: the folder cannot be looked at.
    """
    place = folder.resolve(strict=True)
    found = next((git for each in (place, *place.parents) if (git := git_folder(each)) is not None), None)
    return found if found is not None and (found / "HEAD").is_file() else None


def remote_of(folder: str) -> str | None:
    """Return the identity of the remote of the repository that a folder is in; None where no remote tells it."""
    try:
        git = find_git_folder(Path(folder))
        return remote_at(git) if git is not None else None
    except (OSError, ValueError, RuntimeError):
        return None


def remote_at(git: Path) -> str | None:
    """Return the identity of the remote of a repository, by the folder that holds its files."""
    common = common_folder(git)
    url = origin_url(read_text(common / "config")) if (common / "objects").is_dir() else None
    return remote_identity(url) if url else None


def common_folder(git: Path) -> Path:
    """Return the folder that has the configuration of a repository and all its linked working trees."""
    shared = read_text(git / "commondir").strip()
    return git / shared if shared else git


def git_folder(place: Path) -> Path | None:
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
    link = read_text(marker)
    target = link.removeprefix("gitdir:").strip()
    return place / target if link.startswith("gitdir:") and target else marker


def read_text(path: Path) -> str:
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

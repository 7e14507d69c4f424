"""Which repository git would work on in a folder, and whether it can make git run a program that a model wrote.

A repository names programs in its configuration (watchers, filters, viewers, transports) and holds hooks. So it is
plain only if git finds it where the sandbox guards it or where no model can write, its configuration has nothing but
settings that are known to name no program, and it has no submodules, whose repositories git would enter.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from commonplace.agent.approvals.workplace import Workplace
from commonplace.patterns import regex

_KNOWN: Final[dict[str, frozenset[str]]] = {
    name: frozenset(keys.split())
    for name, keys in {
        "core": "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf"
        " eol safecrlf quotepath abbrev compression longpaths preloadindex untrackedcache",
        "remote": "url pushurl fetch push prune tagopt gh-resolved",
        "branch": "remote merge rebase pushremote description vscode-merge-base gh-merge-base github-pr-owner-number",
        "user": "name email",
        "push": "default autosetupremote followtags",
        "pull": "rebase ff",
        "fetch": "prune prunetags",
        "merge": "ff conflictstyle",
        "diff": "renames algorithm mnemonicprefix colormoved",
        "init": "defaultbranch",
        "extensions": "objectformat worktreeconfig",
        "lfs": "repositoryformatversion",
    }.items()
}
"""Settings that name no program, by section."""
_HEADER: Final = regex(r"\[([A-Za-z0-9.-]+)(?: \"([^\"\\]*)\")?\]")
_NAME: Final = regex(r"[A-Za-z][A-Za-z0-9-]*")
_NETWORK: Final = regex(r"(?:https|ssh|git)://[^-/].*|(?:[\w.]+@)?[A-Za-z0-9][\w.-]*:(?!:)(?!//).*", re.ASCII)
"""Addresses that lead to another machine; a path would make git run the hooks of the repository there."""
_BARE: Final = ("HEAD", "objects", "refs")
_SHARED: Final = "commondir"
"""A file beside `HEAD` that says in which folder the rest of a repository is."""
_BRANCH: Final = regex(r"ref:\s*refs/\S+|[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_BYTES: Final = 256 * 1024
_LINK_MODE: Final = 0o160000
_SAMPLE: Final = ".sample"
_SYSTEM: Final = "/etc/gitconfig"
_HOOKS_PATH: Final = regex(rb"(?mi)^[ \t]*+hookspath\b|\]\s*+hookspath\b")


class PlainRepository(msgspec.Struct, frozen=True):
    """A repository that makes git run nothing while git only reads."""

    folder: str
    """The folder of the repository's own files."""
    remotes: dict[str, list[str]]
    """The addresses of each remote; git takes the name of one without an address for a path."""
    upstreams: frozenset[str]
    """The remotes that branches name; git also takes an address or a path there."""
    has_hooks: bool
    has_other_remotes: bool = False
    """No setting names some of the remotes, or a setting makes git push something else than a branch by its name."""

    @property
    def is_remote_elsewhere(self) -> bool:
        """Whether every remote is on another machine, and gets branches by their names."""
        addresses = [address for each in self.remotes.values() for address in each]
        is_known = self.upstreams <= self.remotes.keys() and all(self.remotes.values()) and not self.has_other_remotes
        return is_known and all(map(_NETWORK.fullmatch, addresses))


def plain_repository(workplace: Workplace, cwd: Path) -> PlainRepository | None:
    """Return the repository of a folder; None if there is none, or if it may make git run a program."""
    if not workplace.has_plain_git:
        return None
    tree = _work_tree(cwd)
    if tree is None or not _is_guarded(workplace, tree):
        return None
    own, shared = _folders(tree / ".git")
    if own is None or not _is_repository(own, shared) or (tree / ".gitmodules").exists() or _has_submodules(tree):
        return None
    if not _is_root(workplace, tree) and any(map(workplace.is_writable, (str(own), str(shared)))):
        return None
    settings = [*_settings(shared / "config"), *_settings(own / "config.worktree", must_exist=False)]
    for path in filter(workplace.is_writable, workplace.git_settings()):
        settings += _settings(Path(path), must_exist=False)
    if any(setting is None for setting in settings):
        return None
    remotes: dict[str, list[str]] = {}
    upstreams: set[str] = set()
    has_other_remotes = any(_has_entries(shared / name) for name in ("remotes", "branches"))
    for section, subsection, key, value in filter(None, settings):
        if key not in _KNOWN.get(section, ()) or (key == "bare" and value.lower() not in ("false", "no", "0")):
            return None
        if section == "remote":
            remotes.setdefault(subsection, []).extend([value] if key == "url" else [])
            is_forced = key == "push" and (value.startswith("+") or ":" in value)
            has_other_remotes |= is_forced or (key == "pushurl" and _NETWORK.fullmatch(value) is None)
        if section == "branch" and key in ("remote", "pushremote"):
            upstreams.add(value)
    has_hooks = _has_entries(shared / "hooks", _SAMPLE) or any(map(_moves_hooks, (*workplace.git_settings(), _SYSTEM)))
    return PlainRepository(str(own), remotes, frozenset(upstreams), has_hooks, has_other_remotes)


def is_planted(folder: Path) -> bool:
    """Return whether git would take a folder without `.git` for a repository of its own."""
    return not os.path.lexists(folder / ".git") and _looks_bare(folder)


def _looks_bare(folder: Path) -> bool:
    """Return whether git may take a folder for a repository; it may hold nothing but what points to another one."""
    names = {name for name in (*_BARE, _SHARED) if os.path.lexists(folder / name)}
    return "HEAD" in names and (_SHARED in names or names.issuperset(_BARE))


def planted_warnings(work: Iterable[Path], temporary: Iterable[Path]) -> Iterator[str]:
    """Yield what a person must know of repositories that a command may have put where git finds them by itself."""
    for folder in (*work, *temporary):
        if is_planted(folder):
            yield f"{folder} looks like a bare repository: git would run what its settings name."
    for folder in temporary:
        if os.path.lexists(folder / ".git"):
            yield f"{folder / '.git'}: git run in any folder of {folder} would run what the settings there name."


def _work_tree(cwd: Path) -> Path | None:
    """Return the folder whose `.git` git finds; None if git would find a bare repository first, or none."""
    here = cwd.resolve()
    for folder in (here, *here.parents):
        if os.path.lexists(folder / ".git"):
            return folder
        if _looks_bare(folder):
            return None
    return None


def _is_guarded(workplace: Workplace, tree: Path) -> bool:
    return _is_root(workplace, tree) or not workplace.is_writable(str(tree / ".git"))


def _is_root(workplace: Workplace, tree: Path) -> bool:
    return any(os.path.realpath(root) == str(tree) for root in workplace.roots)


def _is_repository(own: Path, shared: Path) -> bool:
    """Return whether git takes what `.git` names for a repository; if not, git looks for another one around it."""
    is_branch = _BRANCH.fullmatch(_first_line(own / "HEAD")) is not None and not (own / "HEAD").is_symlink()
    return is_branch and (shared / "objects").is_dir() and (shared / "refs").is_dir()


def _folders(git: Path) -> tuple[Path | None, Path]:
    """Return the repository's own folder and the one it shares with other work trees."""
    if git.is_symlink():
        return None, git
    if git.is_dir():
        return (git, git) if (git / "HEAD").is_file() and not (git / "commondir").exists() else (None, git)
    pointed = _first_line(git)
    if not pointed.startswith("gitdir:"):
        return None, git
    own = git.parent / pointed.removeprefix("gitdir:").strip()
    common = _first_line(own / "commondir")
    return (own, own / common if common else own) if (own / "HEAD").is_file() else (None, git)


def _first_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return os.fsdecode(file.read(4096).split(b"\n")[0].strip())
    except OSError:
        return ""


def _settings(path: Path, *, must_exist: bool = True) -> Iterator[tuple[str, str, str, str] | None]:
    """Yield section, subsection, name and value of each setting of a file; None for what is not understood."""
    try:
        text = path.read_text("utf-8") if path.stat().st_size <= _MOST_BYTES else "?"
    except FileNotFoundError:
        text = "?" if must_exist else ""
    except (OSError, UnicodeDecodeError):
        text = "?"
    section, subsection = "", ""
    for line in text.split("\n"):
        stripped = line.strip(" \t\r")
        if not stripped or stripped[0] in "#;":
            continue
        name, _, value = stripped.partition("=")
        if header := _HEADER.fullmatch(stripped):
            section, subsection = header[1].lower(), header[2] or ""
        elif _NAME.fullmatch(name.rstrip()) and not set(value) & {'"', "\\"}:
            yield section, subsection, name.rstrip().lower(), value.strip()
        else:
            yield None


def _has_submodules(tree: Path) -> bool:
    import pygit2  # slow to load, and only needed for commands of git

    try:
        entries = cast("Iterable[Any]", pygit2.Repository(str(tree)).index)
        return any(entry.mode == _LINK_MODE for entry in entries)
    except (pygit2.GitError, OSError):
        return True


def _moves_hooks(path: str) -> bool:
    """Return whether a person's own settings say where hooks are: that may be a folder of the workspace."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return _HOOKS_PATH.search(file.read(_MOST_BYTES)) is not None
    except OSError:
        return False


def _has_entries(folder: Path, ignored: str = "/") -> bool:
    """Return whether a folder holds anything whose name does not end with what is ignored."""
    try:
        return any(not name.endswith(ignored) for name in os.listdir(folder))
    except FileNotFoundError:
        return False
    except OSError:
        return True

"""The evidence of one session for the project of the folder that it started in.

Evidence is a small value that is stored for each session. Files are kept as short hashes. Where there is more than is
kept, the smallest hashes stay, so that two sessions about the same files keep the same ones.

An address counts as the folder's own only where a command in the folder itself tells it: a sub-folder may be another
clone, and an address that the command line names may be anybody's. All other addresses are only mentioned.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from commonplace.patterns import regex
from commonplace.projects import addresses, modules, paths, tables
from commonplace.protocol import shell
from commonplace.protocol.remotes import remote_identity

MAX_FILES: Final = 200
MAX_COMMITS: Final = 100
MAX_NAMES: Final = 12
"""How many addresses, modules and branches are kept, of each the strongest."""

NOTED: Final = 3
"""The weight of the repository that a session noted when it started."""
ORIGIN: Final = 5
OTHER_REMOTE: Final = 2
TRANSFER: Final = 3
"""The weight of a repository that was pushed to or fetched from."""
ONLY_ADDRESS: Final = 1
"""The weight of the one repository in the output of `gh`."""

_COMMIT: Final = regex(
    r"(?<![0-9A-Za-z_/.-])(?=[a-f]*+[0-9])(?=[0-9]*+[a-f])([0-9a-f]{7})[0-9a-f]{0,33}(?![0-9A-Za-z_])"
)
_BLOBS: Final = regex(r"^index [0-9a-f]+\.\.[0-9a-f]+", re.MULTILINE)
_BRANCH: Final = regex(r"^(?:On branch |Switched to (?:a new )?branch ')([\w./-]+)", re.MULTILINE)
_PATH: Final = regex(r"(?<![\w@.+/~:-])/?[\w@.+-]++(?:/[\w@.+-]++)+")
_VERSION: Final = regex(r"v?[0-9.x_-]+|(?:release|version|hotfix)s?[/-]v?[0-9.x_-]+")
_LETTERS: Final = regex(r"[a-z]")
_FEWEST_LETTERS: Final = 8
_GIT_VALUES: Final = frozenset({"-c", "--git-dir", "--work-tree", "--namespace"})
_GH_TOPICS: Final = frozenset({"pr", "issue", "run", "release", "workflow"})
_GH_TEXTS: Final = frozenset({"diff", "download", "checkout"})
"""What `gh` prints for these is no list of pages of the repository."""
_TRANSFERS: Final = frozenset({"push", "fetch", "pull"})


class FolderEvidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one session tells about a folder that it worked in."""

    folder: str
    in_git: bool = False
    own: dict[str, int] = {}
    """The folder's repository, by identity, with weights."""
    said: dict[str, int] = {}
    """Repositories that were only mentioned, with how many calls mentioned them."""
    modules: list[str] = []
    commits: list[str] = []
    """The first seven digits of commits."""
    branches: list[str] = []
    files: list[str] = []
    """Hashes of paths relative to the folder."""
    moved: list[FolderEvidence] = []
    """The folders outside this one that the session moved to."""


class CallTrace(msgspec.Struct, frozen=True):
    """A tool call, as far as it may tell a project."""

    folder: str
    """The session's working folder when the call was made."""
    command: str = ""
    """For a shell: the command line."""
    paths: tuple[str, ...] = ()
    """The files that its arguments name."""
    output: str = ""


class SessionTrace(msgspec.Struct, frozen=True):
    """A session, as far as it may tell a project: what it noted at its start, and its calls."""

    folder: str
    branch: str | None = None
    repository_url: str | None = None
    commit_hash: str | None = None
    calls: Sequence[CallTrace] = ()


class _SimpleCommand(msgspec.Struct, frozen=True):
    """A command of a command line, with the folder that it runs in."""

    folder: str
    program: str
    words: tuple[str, ...]
    """The words after the program; for git without the options before its subcommand."""

    @property
    def verb(self) -> str:
        return self.words[0] if self.words else ""


class _Collected:
    """The evidence for one folder while a session is read."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.in_git = False
        self.own: Counter[str] = Counter()
        self.said: Counter[str] = Counter()
        self.modules: Counter[str] = Counter()
        self.branches: Counter[str] = Counter()
        self.commits: set[str] = set()
        self.files: set[str] = set()

    def evidence(self, moved: list[FolderEvidence]) -> FolderEvidence:
        return FolderEvidence(
            self.folder,
            self.in_git or bool(self.commits or self.branches),
            _strongest(self.own),
            _strongest(self.said),
            sorted(_strongest(self.modules)),
            sorted(self.commits)[:MAX_COMMITS],
            sorted(_strongest(self.branches)),
            sorted(self.files)[:MAX_FILES],
            moved,
        )


def evidence_of(session: SessionTrace) -> FolderEvidence:
    """Return what a session tells about the folder that it started in, and about those that it moved to."""
    start = paths.normal(session.folder)
    folders = {start: _Collected(start)}
    first = folders[start]
    if session.branch:
        first.in_git = True
        first.branches.update(_telling_branches([session.branch]))
    if session.repository_url and (identity := remote_identity(session.repository_url)):
        first.own[identity] += NOTED
    if session.commit_hash:
        first.commits.update(_COMMIT.findall(session.commit_hash))
    for call in session.calls:
        _read_call(call, start, folders)
    moved = [folders[folder].evidence([]) for folder in sorted(folders) if folder != start]
    return first.evidence([each for each in moved if each.own or each.commits or each.files])


def _strongest(counts: Counter[str]) -> dict[str, int]:
    """Return the names that count most, in an order that does not depend on when they were seen."""
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_NAMES])


def _read_call(call: CallTrace, start: str, folders: dict[str, _Collected]) -> None:
    """Add what a call tells to the folder that it ran in."""
    folder = paths.normal(call.folder) or start
    base = start if folder == start or paths.is_below(folder, start) else folder
    if paths.is_broad(base) and base != start:
        return
    collected = folders.get(base)
    if collected is None:
        collected = folders[base] = _Collected(base)
    commands = _simple_commands(call.command, folder)
    mentions = addresses.mentioned(call.output)
    for command in commands:
        if command.program == "git":
            mentions -= _read_git(command, call, collected)
        elif command.program == "gh":
            mentions -= _read_gh(command, call, collected)
            mentions |= addresses.of_api_call(" ".join(command.words))
    collected.said.update(mentions)
    git = next((command for command in commands if command.program == "git"), None)
    if git is not None and git.folder == base:
        _read_git_output(call, collected)
    collected.modules.update(_modules(call, commands, folder, base))
    _add_files(call.paths, folder, collected)
    _add_files(_shown_files(call.command), commands[-1].folder if commands else folder, collected)


def _read_git(command: _SimpleCommand, call: CallTrace, collected: _Collected) -> set[str]:
    """Add the addresses that git printed; return those that are the folder's own."""
    found: Counter[str] = Counter()
    if command.verb == "remote" and "get-url" in command.words:
        identity = remote_identity(call.output.strip().partition("\n")[0])
        found.update({identity: ORIGIN if "origin" in command.words else OTHER_REMOTE} if identity else {})
    elif command.verb == "config" and "remote.origin.url" in command.words:
        identity = remote_identity(call.output.strip().partition("\n")[0])
        found.update({identity: ORIGIN} if identity else {})
    elif command.verb == "remote":
        for name, identity in addresses.remotes(call.output).items():
            found[identity] += ORIGIN if name == "origin" else OTHER_REMOTE
    elif command.verb in _TRANSFERS and not addresses.mentioned(" ".join(command.words)):
        found.update(dict.fromkeys(addresses.transfers(call.output), TRANSFER))
    return _add_addresses(found, command, collected)


def _read_gh(command: _SimpleCommand, call: CallTrace, collected: _Collected) -> set[str]:
    """Add the one repository whose pages `gh` printed; return it if it is the folder's own."""
    line = " ".join(command.words)
    elsewhere = any(word.startswith(("-R", "--repo")) for word in command.words) or "://" in line
    if elsewhere or command.verb not in _GH_TOPICS or not _GH_TEXTS.isdisjoint(command.words):
        return set()
    pages = addresses.of_pages(call.output)
    return _add_addresses(Counter(dict.fromkeys(pages, ONLY_ADDRESS)), command, collected) if len(pages) == 1 else set()


def _add_addresses(found: Counter[str], command: _SimpleCommand, collected: _Collected) -> set[str]:
    """Add addresses as the folder's own if the command ran in it, else as mentioned."""
    if command.folder == collected.folder:
        collected.own.update(found)
        collected.in_git = collected.in_git or bool(found)
        return set(found)
    collected.said.update(set(found))
    return set(found)


def _read_git_output(call: CallTrace, collected: _Collected) -> None:
    """Add the commits, branches and files that git printed."""
    output = call.output
    collected.commits.update(_COMMIT.findall(_BLOBS.sub("", output)))
    collected.branches.update(_telling_branches(_BRANCH.findall(output)))
    found = _shown_files(output)
    if "diff --git" in output:
        found = [path[2:] if path.startswith(("a/", "b/")) else path for path in found]
    _add_files(found, collected.folder, collected)


def _telling_branches(names: Iterable[str]) -> list[str]:
    """Return the branches whose names are long enough to tell a project, and neither everyday words nor versions."""
    return [
        name
        for name in (name.rstrip(".").lower() for name in names)
        if len(_LETTERS.findall(name)) >= _FEWEST_LETTERS
        and name not in tables.EVERYDAY_BRANCHES
        and _VERSION.fullmatch(name) is None
    ]


def _modules(call: CallTrace, commands: list[_SimpleCommand], folder: str, base: str) -> set[str]:
    """Return the modules that a call in the folder itself shows."""
    places = {command.folder for command in commands} or {folder}
    found = modules.of_go_tests(call.output) if places == {base} else set[str]()
    texts = (folder, *places, *call.paths, *(word for each in commands for word in each.words))
    if not modules.may_name_manifest(texts):
        return found
    named = {posixpath.normpath(posixpath.join(folder, path)) for path in call.paths}
    named |= {posixpath.normpath(posixpath.join(each.folder, word)) for each in commands for word in each.words}
    return found | modules.of_manifests(
        (posixpath.basename(name) for name in named if posixpath.dirname(name) == base), call.output
    )


def _shown_files(text: str) -> list[str]:
    """Return what looks like the path of a file in a command line or an output."""
    return [path for path in _PATH.findall(text) if paths.has_extension(path)]


def _add_files(names: Iterable[str], folder: str, collected: _Collected) -> None:
    """Add the files below the folder that tell a project."""
    for name in names:
        seen = paths.relative(name.replace("\\", "/"), folder, collected.folder)
        key = paths.file_key(seen) if seen else None
        if key is not None:
            collected.files.add(key)


def _simple_commands(script: str, folder: str) -> list[_SimpleCommand]:
    """Return the commands of a command line, each with the folder that `cd` and `git -C` lead to."""
    found: list[_SimpleCommand] = []
    for segment in shell.segments(script) if script else ():
        words = segment.texts[shell.prefix_length(segment.texts) :]
        if not words:
            continue
        program = posixpath.basename(words[0])
        if program in ("cd", "pushd"):
            folder = _moved(folder, words[1] if len(words) > 1 else "~")
        elif program == "git":
            found.append(_git_command(words[1:], folder))
        else:
            found.append(_SimpleCommand(folder, program, tuple(words[1:])))
    return found


def _git_command(words: list[str], folder: str) -> _SimpleCommand:
    """Return a git command without the options before its subcommand."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-C" and at + 1 < len(words):
            folder = _moved(folder, words[at + 1])
        at += 2 if words[at] in _GIT_VALUES or words[at] == "-C" else 1
    return _SimpleCommand(folder, "git", tuple(words[at:]))


def _moved(folder: str, target: str) -> str:
    """Return the folder that `cd TARGET` leads to; one that cannot exist where the shell would expand the target."""
    if target.startswith(("~", "$", "-", "`")):
        return "//unknown"
    return paths.normal(posixpath.join(folder, target))

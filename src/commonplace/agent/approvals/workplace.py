"""Where a command would run: the session's folder, the folders that a model can write, and which program a name means.

Nothing in a folder that a model can write is trusted to be what its name says, and neither is a path that leads
through a link in such a folder. It makes no difference whether this session may write there: an earlier one may have.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from commonplace.agent.sandbox.writable_paths import is_within, trail
from commonplace.errors import ToolError
from commonplace.patterns import regex

_SHARED: Final = ("/tmp", "/var/tmp", "/dev", "/proc")  # noqa: S108  # the folders themselves are meant
"""Folders that everybody can write, or in which a process decides what a name means: `/proc/1/cwd/git`."""
_GIT_VARIABLES: Final = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_EXEC_PATH",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
)
"""Variables with which git works on another repository, with other settings, or runs other programs."""
_LOADERS: Final = regex(
    r"BASH_ENV|ENV|PS4|(?:LD|DYLD|GIT)_\w+|GCONV_PATH|MAGIC|RIPGREP_CONFIG_PATH|EDITOR|VISUAL|SSH_ASKPASS"
)
"""Variables that name files with code, or with options, for the programs that are known here."""
_PATHS: Final = regex(r"(?:BASH_)?ENV|(?:LD|DYLD)_\w*PATH|MAGIC|RIPGREP_CONFIG_PATH|GIT_CONFIG_SYSTEM")
"""Those whose values are paths, so that one without `/`, or none at all, is in the folder of the work."""
_SETTINGS: Final = "GIT_CONFIG_GLOBAL"
"""What it names is read before git is known to be harmless."""
_BETWEEN_PATHS: Final = regex(r"[\s:;=,'\"]+")


class Workplace(msgspec.Struct, frozen=True):
    """Where the commands of a session run."""

    folder: Path
    """The session's folder."""
    roots: tuple[Path, ...]
    """The folders of the work, the session's own first; Git's files at their top are guarded by the sandbox."""
    variables: Mapping[str, str]

    @property
    def writable(self) -> frozenset[str]:
        """The folders that a model can write, as they are named and as they really are."""
        named = [*map(str, self.roots), *_SHARED, self.variables.get("TMPDIR", "")]
        known = [os.path.abspath(path) for path in named if path]  # noqa: PTH100  # no link is followed
        return frozenset((*known, *(os.path.realpath(path) for path in known)))

    def is_writable(self, path: str) -> bool:
        """Return whether a path, or a link on the way to it, lies in a folder that a model can write."""
        writable = self.writable
        try:
            end, links = trail(Path(path))
        except ToolError:  # links in a circle
            return True
        return any(each == root or is_within(each, root) for each in (path, end, *links) for root in writable)

    def is_inside(self, path: str, cwd: Path) -> bool:
        """Return whether a path lies in a folder of the work but not in git's own, and no link is on the way."""
        if path.startswith("~") or {"..", ".git"} & set(path.lower().split("/")):
            return False
        end, links = trail(Path(os.path.realpath(cwd)) / path)
        return not links and any(is_within(end, os.path.realpath(root)) for root in self.roots)

    def program(self, name: str, cwd: Path) -> str | None:
        """Return the path of the program that a name means in a folder; None if there is none."""
        if "/" in name:
            candidates = [os.path.join(cwd, name)]  # noqa: PTH118
        else:
            folders = self.variables.get("PATH", os.defpath).split(":")
            candidates = [os.path.join(cwd, folder, name) for folder in folders]  # noqa: PTH118
        for path in candidates:
            if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
                return os.path.normpath(path) if "/../" not in path else path
        return None

    def shown_program(self, name: str, cwd: Path) -> str:
        """Return the path of a program for a person to read, with what stands behind a link that a model can set."""
        path = self.program(name, cwd)
        if path is None:
            return name
        end = os.path.realpath(path)
        return f"{path} -> {end}" if end != path and self.is_writable(path) else path

    def trusted_program(self, name: str, cwd: Path) -> str | None:
        """Return the path of the program that a name means, if no model can have put it there."""
        path = self.program(name, cwd)
        is_function = f"BASH_FUNC_{name}%%" in self.variables
        return None if path is None or is_function or ".." in path.split("/") or self.is_writable(path) else path

    def trusted_path(self) -> str:
        """Return the folders of `PATH` in which no model can put a program."""
        folders = self.variables.get("PATH", os.defpath).split(":")
        return ":".join(folder for folder in folders if folder.startswith("/") and not self.is_writable(folder))

    @property
    def has_absolute_path(self) -> bool:
        """Whether a name of a program means the same in every folder."""
        return all(folder.startswith("/") for folder in self.variables.get("PATH", os.defpath).split(":"))

    @property
    def has_own_home(self) -> bool:
        """Whether a person's home, with the settings of their programs, is out of a model's reach."""
        try:
            listed = pwd.getpwuid(os.getuid()).pw_dir  # where ssh looks, whatever the variable says
        except KeyError:
            listed = ""
        return not any(place and self.is_writable(place) for place in (self.variables.get("HOME", ""), listed))

    def git_settings(self) -> tuple[str, ...]:
        """Return the files that may hold a person's settings of git."""
        home, named = self.variables.get("HOME", ""), self.variables.get("XDG_CONFIG_HOME", "")
        general = named or os.path.join(home, ".config")  # noqa: PTH118
        paths = (os.path.join(home, ".gitconfig"), os.path.join(general, "git", "config"))  # noqa: PTH118
        given = self.variables.get("GIT_CONFIG_GLOBAL", "")
        return tuple(path for path in (*paths, given) if path.startswith("/"))

    @property
    def has_plain_environment(self) -> bool:
        """Whether no variable makes a shell or a program load what a model can have written."""
        loaded = (
            piece
            for name, value in self.variables.items()
            if value and name != _SETTINGS and _LOADERS.fullmatch(name)
            for piece in _BETWEEN_PATHS.split(value)
            if "/" in piece or _PATHS.fullmatch(name)
        )
        return not any(self.is_writable(os.path.join(self.folder, piece)) for piece in loaded)  # noqa: PTH118

    @property
    def has_plain_git(self) -> bool:
        """Whether no variable makes git work on another repository than that of the folder."""
        return not any(self.variables.get(name) for name in _GIT_VARIABLES)

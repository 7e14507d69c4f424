"""Paths and commands that an entry names, and whether its project still has them.

Only what can be told is told. A path is looked for where the project is and, since people shorten paths, below it; a
word with a slash in it counts as a path if it has an ending, or begins in a folder that is there. A command is what
stands in backquotes and is known to be one. It no longer resolves if its program is neither on the search path nor in
the project, or if the Makefile, justfile or package.json that it needs has no such target. Errors that an entry quotes
name much that was never there: of a fix, only what worked is looked at.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from commonplace import package_files
from commonplace.memory.entries import Entry
from commonplace.patterns import regex
from commonplace.protocol import shell

MAX_WALKED: Final = 50_000
"""How many files of a project are walked."""
_MAX_FILE_BYTES: Final = 2**20
"""Larger files are not read for targets and scripts."""
_SPAN: Final = regex(r"`([^`\n]+)`")
_PATH: Final = regex(r"(?:\./)?[\w@.+-]+(?:/[\w@.+-]+)+/?")
_ENDING: Final = regex(r"[\w-]\.[A-Za-z]\w{0,7}$")
_HOST: Final = regex(r"^[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}$")
_LINE: Final = regex(r":\d{1,9}(?:[-:]\d{1,9}){0,9}$|::.*")
_ASSIGNED: Final = regex(r"^\w+=")
_WORKED: Final = regex(r"; (?=`)")
_INCLUDES: Final = regex(r"^-?include\b|^import\b|^mod\b|^[^#%\n]*%[^\n]*:|^set fallback", re.MULTILINE)
"""A file of targets that does not name them all itself."""
_PROBABLY: Final = ("verify", "procedure")
_MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
_JUSTFILES: Final = ("justfile", "Justfile", ".justfile")
_decode = msgspec.json.Decoder(dict[str, Any])


class StaleName(msgspec.Struct, frozen=True):
    """A path or command that an entry names and that no longer exists."""

    what: Literal["path", "command"]
    name: str
    problem: str


@cache
def _table() -> dict[str, frozenset[str]]:
    text = package_files.text("memory/stale_names.toml")
    return {name: frozenset(words) for name, words in tomllib.loads(text).items()}


class ProjectFolders:
    """The folders of a project on this machine."""

    def __init__(self, folders: list[Path], which: Callable[[str], str | None] = shutil.which) -> None:
        self.folders = folders
        self._which = which

    def stale_names(self, entry: Entry) -> list[StaleName]:
        """Return the paths and commands that an entry names and the project no longer has, each once."""
        if not self.folders or entry.kind == "failure":
            return []
        text = _WORKED.split(entry.text)[-1] if entry.kind == "fix" else entry.text
        commands = [
            found for span in _SPAN.findall(text) for found in self._of_command(span, sure=entry.kind in _PROBABLY)
        ]
        named = {each.name for each in commands}
        paths = [StaleName("path", path, f"{path} is gone") for path in _paths(text) if self._is_gone(path)]
        return list(dict.fromkeys([*(each for each in paths if each.name not in named), *commands]))

    def _is_gone(self, path: str) -> bool:
        if path.startswith("/"):
            own = any(path.startswith(f"{folder}/") for folder in self.folders)
            return own and not os.path.lexists(path)
        plain = path.removeprefix("./").rstrip("/")
        if any(os.path.lexists(folder / plain) for folder in self.folders):
            return False
        first = plain.partition("/")[0]
        begins = path.startswith("./") or any((folder / first).is_dir() for folder in self.folders)
        if not begins and (_HOST.match(first) or first.startswith("@") or not _ENDING.search(plain)):
            return False  # it may be no path at all
        if self._walked is None:
            return False
        return not any(each.endswith(f"/{plain}") for each in self._walked.get(plain.rpartition("/")[2], ()))

    @cached_property
    def _walked(self) -> dict[str, list[str]] | None:
        """Every path in the project by its last part, as far as it is worth looking; None if there are too many."""
        found: dict[str, list[str]] = defaultdict(list)
        left = MAX_WALKED
        for top in self.folders:
            for folder, folders, names in os.walk(top):
                folders[:] = [name for name in folders if name not in _table()["unwalked"]]
                for name in (*folders, *names):
                    found[name].append(f"{folder}/{name}")
                left -= len(folders) + len(names)
                if left < 0:
                    return None
        return found

    def _of_command(self, span: str, *, sure: bool) -> Iterator[StaleName]:
        folders = self.folders
        for segment in shell.segments(span):
            before = shell.prefix_length(segment.texts)
            words = segment.texts[before:] if segment.is_closed else []
            if not words or not (sure or (words[0] in _table()["runners"] and len(words) > 1)):
                continue
            if words[0] == "cd" and len(words) == 2:
                folders = [folder / words[1] for folder in folders if (folder / words[1]).is_dir()]
                continue
            if not folders:
                return
            problem = self._unresolved(words, folders)
            if problem:
                yield StaleName("command", span[segment.words[before].start : segment.end], problem)

    def _unresolved(self, words: list[str], folders: list[Path]) -> str | None:
        """Return why a command no longer resolves; None if it does, or if that cannot be told."""
        program = words[0]
        if program in _table()["builtins"] or re.search(r"[$*?{}()<>]", program):
            return None
        if "/" in program:
            there = [Path(program)] if program.startswith("/") else [folder / program for folder in folders]
            return None if program.startswith("~") or any(path.exists() for path in there) else f"{program} is gone"
        own = (folder / place / program for folder in folders for place in _table()["folders"])
        if self._which(program) is None and not any(path.exists() for path in own):
            return f"{program} is neither on the PATH nor in the project"
        rest = [word for word in words[1:] if not _ASSIGNED.match(word)]
        if any(word.startswith("-") for word in rest[:1]) or not rest:
            return None
        if program == "make":
            return _target(rest[0], folders, _MAKEFILES, "make")
        if program == "just":
            return _target(rest[0], folders, _JUSTFILES, "just")
        if program in _table()["package_managers"]:
            return _script(program, rest, folders)
        return None


def _paths(text: str) -> list[str]:
    """Return the words of a text that may be paths."""
    found: list[str] = []
    for word in text.split():
        bare = _LINE.sub("", word.lstrip("`\"'([{").rstrip("`\"')]},;:!?."))
        if "/" not in bare.rstrip("/") or "//" in bare or ".." in bare:
            continue
        if _PATH.fullmatch(bare.removeprefix("/")):
            found.append(bare)
    return list(dict.fromkeys(found))


def _target(name: str, folders: list[Path], files: tuple[str, ...], program: str) -> str | None:
    texts = [text for folder in folders for file in files if (text := _text(folder / file)) is not None]
    if not texts:
        return f"{program} has no {files[-1] if program == 'make' else files[0]} here"
    if any(_INCLUDES.search(text) for text in texts):
        return None  # what it includes is not read
    rule = rule_of(program, name)
    if any(rule.search(text) for text in texts):
        return None
    is_file = program == "make" and any((folder / name).exists() for folder in folders)
    return None if is_file else f"there is no target {name}"


def rule_of(program: str, name: str) -> re.Pattern[str]:
    """Return what the line looks like that makes a target, in a makefile or in a justfile."""
    named = re.escape(name)
    if program == "make":
        before = rf"[^\s:#](?>(?:(?![ \t]{named}[ \t:])[^:#=\n])*)[ \t]"
        return re.compile(rf"^(?:{before})?{named}(?:[ \t][^:=\n]*)?::?(?!=)", re.MULTILINE)
    return re.compile(rf"^@?{named}\b[^:\n]*:(?!=)|^alias {named}\b", re.MULTILINE)


def _script(program: str, rest: list[str], folders: list[Path]) -> str | None:
    is_run = rest[0] in ("run", "run-script")
    name = next((word for word in rest[1:] if not word.startswith("-")), "") if is_run else rest[0]
    if (
        not name
        or (is_run and rest[1:2] and rest[1].startswith("-"))
        or (not is_run and name in _table()["subcommands"])
    ):
        return None
    if program == "npm" and not is_run and name not in ("test", "start", "stop", "restart", "t"):
        return None
    packages = [found for folder in folders if (found := _package(folder / "package.json")) is not None]
    if not packages:
        return f"{program} has no package.json here"
    name = "test" if name == "t" else name
    held = {each for package in packages for table in _tables(package, is_run=is_run) for each in table}
    is_program = not is_run and any((folder / "node_modules/.bin" / name).exists() for folder in folders)
    if name in held or is_program or (program == "npm" and name in ("start", "restart")):
        return None
    return f"there is no script {name}"


def _tables(package: dict[str, Any], *, is_run: bool) -> Iterator[dict[str, Any]]:
    """Yield where a package names what can be run: its scripts, and without `run` also what it depends on."""
    names = ("scripts",) if is_run else ("scripts", "dependencies", "devDependencies")
    yield from (table for name in names if isinstance(table := package.get(name), dict))


def _package(path: Path) -> dict[str, Any] | None:
    text = _text(path)
    try:
        return _decode.decode(text) if text is not None else None
    except msgspec.DecodeError:
        return None


def _text(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > _MAX_FILE_BYTES:
            return None
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return None

"""Files that this program runs unconfined for a person: the programs of hooks and servers, and what is handed to them.

A model that could change such a file would be out of its sandbox with the next call. So each file of the workspace that
a hook or a server names is protected like the settings, wherever in its command, and so is each place of the workspace
where a program or a module would be found before the one that is meant, and the file of a runner such as `make`.
"""

# Paths are put together as texts, as a shell would.
# ruff: noqa: PTH112, PTH118, PTH119, PTH207

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import escape, iglob
from itertools import islice
from pathlib import Path
from string import Template
from typing import Final

from commonplace.patterns import regex
from commonplace.protocol import shell

Command = str | Sequence[str]
"""A script for the shell, or a program and its arguments."""
_MOST_WORDS: Final = 400
"""How many words of a command are looked at."""
_MOST_FOLDERS: Final = 20
"""How many of them as folders that others may be in."""
_MOST_MATCHES: Final = 1_000
_WORD: Final = regex(r"(?:\\.|[^\s\"'`;&|()<>{}$=,:])+")
_QUOTED: Final = regex(r"\"([^\"]{1,4096})\"|'([^']{1,4096})'")
_DEFAULT: Final = regex(r"\$\{\w+:?[-=+]([^${}]*)\}")
_OUTPUT: Final = regex(r"\$\([^()]*\)|`[^`]*`")
_VARIABLE: Final = regex(r"\$\{[^{}]*\}|\$\w+")
_QUOTES: Final = regex(r"[\"']")
_ASSIGNED: Final = regex(r"(?:^|(?<=[\s;&|(]))([A-Za-z_]\w*)=([^\s;&|()]+)")
_MODULE: Final = regex(r"(?:^|\s)-m\s*([A-Za-z_][\w.]*)")
_SCRIPTS: Final = regex(r"[^*?\[]*[*?\[].*\.(?:ba|z|k)?sh\Z")
"""A pattern for scripts of a shell; other patterns are mostly of files that are only read."""
_PATTERN: Final = regex(r"[^*?\[]*[*?\[]")
_INTERPRETERS: Final = frozenset({*shell.SHELLS, "source", ".", "python", "python3", "node", "ruby", "perl"})
_FINDERS: Final = frozenset({"find", "fd", "fdfind"})
_MOST_WALKED: Final = 400
_MOST_ENTRIES: Final = 5_000
"""How many folders, and how many entries of each, are looked at for what a finder hands to an interpreter."""
_RUNNERS: Final = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", ".justfile", "Justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    "cargo": ("Cargo.toml", "build.rs", ".cargo/config.toml", ".cargo/config"),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties"),
    "mvn": ("pom.xml", ".mvn/maven.config", ".mvn/jvm.config", ".mvn/extensions.xml"),
    "tox": ("tox.ini", "setup.cfg", "pyproject.toml"),
    "nox": ("noxfile.py",),
    "pytest": ("conftest.py", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"),
    "deno": ("deno.json", "deno.jsonc"),
    "composer": ("composer.json",),
    "bundle": ("Gemfile",),
    "mise": ("mise.toml", ".mise.toml"),
    "invoke": ("tasks.py",),
    "doit": ("dodo.py",),
    "scons": ("SConstruct",),
    "pre-commit": (".pre-commit-config.yaml",),
    "lefthook": ("lefthook.yml", "lefthook.yaml", ".lefthook.yml"),
    "direnv": (".envrc",),
    "foreman": ("Procfile",),
    "docker": ("docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml", "Dockerfile"),
    **dict.fromkeys(("poetry", "uv", "hatch", "pdm"), ("pyproject.toml",)),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun", "npx", "turbo", "nx"), ("package.json",)),
}
"""Programs that run what a file of the folder says."""
_RUN_ALL: Final = ("run-parts",)
_LOADED: Final = (
    *(".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".sh", ".rb", ".pl", ".pm", ".lua", ".php"),
    *("/__main__.py", "/index.js", "/package.json"),
)
"""What an interpreter puts behind a name that is none of a file."""


def program_files(commands: Iterable[Command], cwd: Path, variables: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the paths that commands name, as far as their words tell, and where their programs are looked for."""
    known = {**variables, "PWD": str(cwd)}
    return tuple(dict.fromkeys(path for command in commands for path in _paths(command, cwd, known)))


def _paths(command: Command, cwd: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    yield from _mentioned(command if isinstance(command, str) else "\n".join(command), cwd, variables)
    script = command if isinstance(command, str) else shell.wrapped_script(command)
    if script is None:
        yield from _named(list(command), cwd, variables)
        return
    if not isinstance(command, str):
        yield from _named(command[:1], cwd, variables)
    lines = [[_expanded(word, variables) for word in segment.texts] for segment in shell.segments(script)]
    yield from _handed_on(lines, cwd)
    for words in lines:
        start = shell.prefix_length(words)
        for wrapper in words[:start]:
            yield from _named([wrapper] if not shell.is_assignment(wrapper) else [], cwd, variables)
        yield from _named(words[start:], cwd, variables)
        inner = shell.wrapped_script(words[start:])
        if inner is not None and inner != script:
            yield from _paths(inner, cwd, variables)


def _handed_on(lines: Sequence[Sequence[str]], cwd: Path) -> Iterator[Path]:
    """Yield the files that an interpreter gets by a pattern, or from a program that finds them by their names."""
    own = [words for words in lines if words and shell.wrapped_script(words) is None]  # others are looked into
    names = [[os.path.basename(word) for word in words] for words in own]
    for words, (first, *_) in zip(own, names, strict=True):
        if first in _INTERPRETERS:
            for word in filter(_PATTERN.match, words[1:]):
                yield from map(Path, islice(iglob(os.path.join(escape(str(cwd)), word)), _MOST_MATCHES))
    known = {name for each in names for name in each} - {"."}  # mostly a folder here
    if known & _FINDERS and known & _INTERPRETERS:
        wanted = [word for words in own for word in words if "." in word.strip(".") and "/" not in word]
        for folder, _, files in islice(os.walk(cwd), _MOST_WALKED):
            paths = [Path(folder, name) for name in files[:_MOST_ENTRIES]]
            yield from (path for path in paths if any(map(path.match, wanted)))


def _mentioned(text: str, cwd: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files that stand anywhere in a command: behind `cd` and `<`, in code, by a pattern, as a module."""
    words = _words(_DEFAULT.sub(r"\1", text), cwd, variables)
    runners = [name for word in words for name in _RUNNERS.get(os.path.basename(word), ())]
    folders = _folders(words, cwd)
    for folder in folders:
        yield from (folder / word for word in (*words, *runners) if _is_file(folder / word))
        for word in words:
            yield from (Path(f"{folder / word}{end}") for end in _LOADED if _is_file(Path(f"{folder / word}{end}")))
            if _SCRIPTS.match(word) or (word in _RUN_ALL and folder != cwd):
                pattern = "*" if word in _RUN_ALL else word
                yield from map(Path, islice(iglob(os.path.join(escape(str(folder)), pattern)), _MOST_MATCHES))
    for name in _MODULE.findall(text):
        yield from _modules(name, cwd)
        yield from (path for folder in folders[1:] for path in _modules(name, folder) if _is_file(path))


def _words(text: str, cwd: Path, variables: Mapping[str, str]) -> list[str]:
    """Return what may be a path in a command: as it is written, and with the folder in place of what is not known."""
    here = _OUTPUT.sub(lambda _: str(cwd), _QUOTES.sub("", text))
    assigned = dict(_ASSIGNED.findall(here))
    for _ in range(2):  # a variable may be set from another one
        here = Template(here).safe_substitute({**variables, **assigned})
    here = _VARIABLE.sub(lambda _: str(cwd), here)
    text = Template(text).safe_substitute({**variables, **assigned})
    quoted = (double or single for double, single in _QUOTED.findall(text))
    found = [word.replace("\\", "") for word in (*_WORD.findall(text), *_WORD.findall(here), *quoted)]
    values = (word[2:] for word in found if word.startswith("-") and word[1:2].isalpha())  # `-r./file`, `-fMakefile`
    kept = (word for word in (*found, *values) if word and "\0" not in word and len(word) < 4096)
    return list(dict.fromkeys(kept))[:_MOST_WORDS]


def _folders(words: Sequence[str], cwd: Path) -> list[Path]:
    """Return the folder of the work, and those in it that words name, also one in another."""
    named = [Path(os.path.normpath(cwd / word)) for word in words if _is_below(cwd / word, cwd)]
    inner = [folder / word for folder in named for word in words if _is_below(folder / word, folder)]
    return list(dict.fromkeys((cwd, *named, *inner)))[:_MOST_FOLDERS]


def _modules(name: str, cwd: Path) -> Iterator[Path]:
    """Yield where Python looks for a module in the folder, before it looks elsewhere."""
    place = cwd
    for part in name.split("."):
        yield Path(f"{place / part}.py")
        place = place / part
        yield from (place / "__init__.py", place / "__main__.py")


def _is_below(path: Path, cwd: Path) -> bool:
    """Say whether a path is a folder inside of the working directory."""
    here = os.path.normpath(path)
    return here != str(cwd) and here.startswith(f"{cwd}/") and os.path.isdir(here)


def _expanded(word: str, variables: Mapping[str, str]) -> str:
    if word.startswith("~/"):
        word = variables.get("HOME", "~") + word[1:]
    return Template(word).safe_substitute(variables)


def _named(words: Sequence[str], cwd: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    """Yield the candidates for the program, and the arguments that are files or look like paths."""
    for word in words[:1]:
        if "/" in word:
            yield cwd / word
        else:
            yield from _candidates(word, cwd, variables.get("PATH", os.defpath))
    for word in words[1:]:
        text = word.partition("=")[2] if word.startswith("-") else word
        if text and "\0" not in text and len(text) < 4096 and (text.startswith(("./", "../")) or _is_file(cwd / text)):
            yield cwd / text


def _candidates(name: str, cwd: Path, path: str) -> Iterator[Path]:
    """Yield where a program is looked for, up to where it is; a folder that does not exist is no such place."""
    for folder in path.split(":"):
        place = Path(os.path.join(cwd, folder, name))
        if place.parent.is_dir():
            yield place
        if _is_file(place):
            return


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # too long, or not allowed
        return False

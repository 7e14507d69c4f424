"""Names in a text: paths, symbols, tests, flags, commits and the like, which the next steps of a session will use.

A text falls into runs of the characters that names are made of, and the first rule that fits a run decides its kind. A
run is judged once and remembered; so the vocabulary pays, not the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

import msgspec

from commonplace.patterns import regex


class Kind(IntEnum):
    """What a name names."""

    PATH = 0
    SYMBOL = 1
    TEST = 2
    GIT = 3
    COMMAND = 4
    FLAG = 5
    NUMBER = 6
    URL = 7
    ERROR = 8
    MESSAGE = 9
    """The words of an error message, known by their first ones."""


class SessionName(msgspec.Struct, frozen=True):
    """A name in a session, and its kind."""

    kind: Kind
    text: str


_URL: Final = regex(r"https?://[^\s\"'<>`\\)\]}|]+")
_TAG: Final = regex(r"(?:</|(?<!\w)<)[a-z][a-z0-9_-]{0,60}(?=\s{0,9}/?>|\s{1,9}[a-z][\w:-]{0,60}=)")
"""A tag of a harness, such as `<system-reminder>`, without its attributes.

The parameter of a generic type stands behind a word.
"""
_RUN: Final = regex(r"[A-Za-z0-9_~./@#+{},-]{2,}")
_NUMBER: Final = regex(
    r"\b\d+(?:\.\d+)?\s?(?:%|(?:ms|µs|us|ns|secs?|seconds|mins?|minutes|hours|days|[KMGT]i?B|kB|px|fps|[MG]?Hz)\b)"
)
_EXTENSION: Final = regex(
    r"\.(?:py|pyi|go|rs|ts|tsx|js|jsx|mjs|cjs|java|kt|kts|scala|c|cc|cpp|cxx|h|hh|hpp|cs|fs|rb|php|swift|m|mm|lua|pl|pm|r|jl|ex|exs"
    r"|erl|hs|ml|clj|dart|zig|nim|sh|bash|zsh|fish|ps1|bat|sql|html|htm|css|scss|sass|less|vue|svelte|astro|xml|json|jsonl|json5"
    r"|yaml|yml|toml|ini|cfg|conf|env|md|mdx|rst|txt|csv|tsv|lock|log|proto|graphql|tf|tfvars|hcl|nix|gradle|cmake|mk|ipynb|svg"
    r"|png|jpg|jpeg|gif|webp|ico|pdf|zip|gz|zst|tar|whl|wasm|so|db|sqlite|pem|crt|patch|diff|snap|tmpl|j2|service|plist|ejs)\Z"
)
_NAMED_FILES: Final = frozenset({
    "Makefile", "Dockerfile", "Justfile", "Rakefile", "Gemfile", "Procfile", "Vagrantfile", "Jenkinsfile", "go.mod",
    "go.sum", "BUILD", "WORKSPACE", "LICENSE", "README", "CHANGELOG", "CODEOWNERS", ".gitignore", ".dockerignore",
    ".editorconfig", ".env", ".npmrc",
})  # fmt: skip
_UUID: Final = regex(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_HEX: Final = regex(r"(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,40}")
_ISSUE: Final = regex(r"#\d{1,7}|[A-Z][A-Z0-9]{1,9}-\d{1,6}")
_FLAG: Final = regex(r"--[A-Za-z][A-Za-z0-9][A-Za-z0-9-]*")
_CODE: Final = regex(r"[A-Z]{1,3}\d{3,5}|E[A-Z]{4,}|SIG[A-Z]{3,6}")
_WORD: Final = regex(r"[A-Za-z0-9_]+")
_TEST: Final = regex(r"[Tt]est_\w+|Test[A-Z]\w*|test[A-Z]\w*")
_HUMP: Final = regex(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_BRACES: Final = regex(r"([^{}]*)\{([^{}]+)\}([^{}]*)")
_SHORTEST: Final = 5
"""Shorter words, in characters, are no names."""
_LONGEST: Final = 200
"""Longer runs of characters are no names."""
_MOST: Final = 200_000
"""The most runs that are remembered; it bounds memory in very long sessions."""


class SessionNames:
    """The names of one session: each has a number, and judged runs of characters are remembered."""

    def __init__(self, cwd: str = "") -> None:
        self.known: list[SessionName] = []
        self.branches: set[str] = set()
        self._numbers: dict[SessionName, int] = {}
        self._runs: dict[str, tuple[int, ...]] = {}
        self._plain: set[str] = set()
        """Runs that hold no name."""
        self._cwd = cwd.rstrip("/") + "/" if cwd else ""

    def number(self, name: SessionName) -> int:
        """Return the number of a name."""
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = len(self.known)
            self.known.append(name)
        return found

    def look(self, name: SessionName) -> int | None:
        """Return the number of a name that is known."""
        return self._numbers.get(name)

    def count(self, text: str) -> Counter[int]:
        """Return how often each name occurs in a text."""
        found: Counter[int] = Counter()
        if "://" in text:
            for url in _URL.findall(text):
                found[self.number(SessionName(Kind.URL, url.rstrip(".,;:")))] += 1
            text = _URL.sub(" ", text)
        if "<" in text:
            text = _TAG.sub(" ", text)
        runs = Counter(_RUN.findall(text))
        plain = self._plain
        for run in [run for run in runs if run not in plain]:  # in the order of the text, whatever the run of Python
            numbers = self._runs.get(run)
            if numbers is None:
                numbers = self._judged(run)
            times = runs[run]
            for number in numbers:
                found[number] += times
        for number in _NUMBER.findall(text):
            found[self.number(SessionName(Kind.NUMBER, " ".join(number.split())))] += 1
        return found

    def _judged(self, run: str) -> tuple[int, ...]:
        numbers = tuple(self.number(name) for name in _of_run(run, self._cwd, self.branches))
        if len(self._runs) + len(self._plain) >= _MOST:
            self._runs.clear()
            self._plain.clear()
        if numbers:
            self._runs[run] = numbers
        else:
            self._plain.add(run)
        return numbers

    def add_branch(self, name: str) -> None:
        """Take a word for a branch from now on."""
        if name and name not in self.branches and len(name) > 2:
            self.branches.add(name)
            self._runs.pop(name, None)
            self._plain.discard(name)


def _of_run(run: str, cwd: str, branches: set[str]) -> list[SessionName]:
    if run in branches:
        return [SessionName(Kind.GIT, run)]
    if "{" in run and (found := _BRACES.fullmatch(run)) and "/" in found[1]:
        return [name for part in found[2].split(",") for name in _of_run(f"{found[1]}{part}{found[3]}", cwd, branches)]
    plain = run.strip(".,{}+@") if not run.startswith((".", "@")) else run.rstrip(".,{}+@")
    if not plain or len(plain) > _LONGEST:
        return []
    return list(_judge(plain, cwd))


def _judge(run: str, cwd: str) -> Iterator[SessionName]:
    if path := _path(run, cwd):
        yield SessionName(Kind.PATH, path)
    elif _UUID.fullmatch(run):
        yield SessionName(Kind.GIT, run[:12].lower())
    elif _HEX.fullmatch(run) or _ISSUE.fullmatch(run):
        yield SessionName(Kind.GIT, run)
    elif _FLAG.fullmatch(run):
        yield SessionName(Kind.FLAG, run)
    elif run in _NAMED_FILES or ("/" not in run and len(run) > 3 and run[0].isalnum() and _EXTENSION.search(run)):
        yield SessionName(Kind.PATH, run)
    elif _CODE.fullmatch(run):
        yield SessionName(Kind.ERROR, run)
    else:
        for word in _WORD.findall(run):
            if len(word) >= _SHORTEST and (kind := _word(word)) is not None:
                yield SessionName(kind, word)


def _word(word: str) -> Kind | None:
    if _TEST.fullmatch(word):
        return Kind.TEST
    inner = word.strip("_")
    return Kind.SYMBOL if "_" in inner or _HUMP.search(word) else None


def _path(run: str, cwd: str) -> str:
    """Return a path as the session speaks of it: without the working directory, or what a diff puts before it."""
    if "/" not in run or "," in run or run.endswith(("//", "...")):
        return ""
    path = run.removeprefix(cwd) if cwd and run.startswith(cwd) else run
    for prefix in ("a/", "b/", "./"):
        if path.startswith(prefix) and path.count("/") > 0 and (prefix == "./" or _EXTENSION.search(path)):
            path = path.removeprefix(prefix)
            break
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or all(part.isdigit() for part in parts):
        return ""
    rooted = path.startswith(("/", "~", ".")) and len(parts) >= 2
    if not (_EXTENSION.search(path) or rooted or len(parts) >= 3 or (path != run and parts)):
        return ""
    return path.rstrip("/")

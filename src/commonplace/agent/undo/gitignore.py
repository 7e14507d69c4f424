"""The rules of `.gitignore` files, on bytes, without opening a repository. Pure.

One file of rules becomes at most two regular expressions, one for names and one for paths. The alternatives stand in
reverse order: the first alternative that matches is the last rule of the file, which decides. A caller walks a tree
from the top down and does not enter ignored folders; so no file below an ignored folder can be included again.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from commonplace.patterns import regex

BUILT_IN: Final = b"""\
node_modules/
bower_components/
.venv/
venv/
virtualenv/
__pycache__/
*.pyc
.mypy_cache/
.pytest_cache/
.ruff_cache/
.hypothesis/
.tox/
.nox/
.eggs/
.cache/
.gradle/
.terraform/
.next/
.nuxt/
.parcel-cache/
.turbo/
.svelte-kit/
.dart_tool/
.Trash/
.DS_Store
.hg/
.svn/
"""
"""The rules for a folder that is no repository: files that tools make and can make again."""

_WILD: Final = regex(rb"[*?\[\\]")
_WITHIN: Final = rb"[^/]*"
"""What a star stands for."""
_CLASSES: Final = {
    b"alnum": rb"0-9A-Za-z",
    b"alpha": rb"A-Za-z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"\x21-\x7e",
    b"lower": rb"a-z",
    b"print": rb"\x20-\x7e",
    b"punct": rb"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    b"space": rb" \t\n\r\f\v",
    b"upper": rb"A-Z",
    b"xdigit": rb"0-9A-Fa-f",
}


class _IgnoreRule(msgspec.Struct, frozen=True):
    regex: bytes
    of_path: bool
    folders_only: bool
    includes: bool


class IgnoreRules:
    """The rules of one file, about paths below the folder of that file."""

    def __init__(self, text: bytes, *, fold_case: bool = False) -> None:
        rules = [rule for line in _lines(text) if (rule := _rule(line)) is not None]
        rules.reverse()
        self._by_name = _Matcher([(place, one) for place, one in enumerate(rules) if not one.of_path], fold_case)
        self._by_path = _Matcher([(place, one) for place, one in enumerate(rules) if one.of_path], fold_case)
        self.is_empty = not rules

    def decide(self, path: bytes, name: bytes, *, is_folder: bool) -> bool | None:
        """Return whether a path from this file's folder is ignored; None if no rule matches it."""
        name_place, name_ignored = self._by_name.match(name, is_folder=is_folder)
        if self._by_path.is_empty:
            return name_ignored
        path_place, path_ignored = self._by_path.match(path, is_folder=is_folder)
        return name_ignored if name_place < path_place else path_ignored


_NONE: Final = (2**31, None)


class _Matcher:
    """Some rules, each with its place in the order of precedence."""

    def __init__(self, rules: list[tuple[int, _IgnoreRule]], fold_case: bool) -> None:
        flags = re.DOTALL | (re.IGNORECASE if fold_case else 0)
        self.is_empty = not rules
        self._of_folders = self._compile(rules, flags)
        self._of_files = self._compile([one for one in rules if not one[1].folders_only], flags)

    @staticmethod
    def _compile(
        rules: list[tuple[int, _IgnoreRule]], flags: int
    ) -> tuple[re.Pattern[bytes], list[tuple[int, bool | None]]] | None:
        if not rules:
            return None
        pattern = re.compile(b"|".join(b"(" + rule.regex + b")" for _, rule in rules), flags)
        return pattern, [(place, not rule.includes) for place, rule in rules]

    def match(self, text: bytes, *, is_folder: bool) -> tuple[int, bool | None]:
        compiled = self._of_folders if is_folder else self._of_files
        if compiled is None:
            return _NONE
        found = compiled[0].fullmatch(text)
        return _NONE if found is None or found.lastindex is None else compiled[1][found.lastindex - 1]


def _lines(text: bytes) -> list[bytes]:
    return [line.removesuffix(b"\r") for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n")]


def _rule(line: bytes) -> _IgnoreRule | None:
    if line.startswith(b"#"):
        return None
    line = _without_trailing_spaces(line)
    includes = line.startswith(b"!")
    line = line[1:] if includes else line
    folders_only = line.endswith(b"/")
    line = line[:-1] if folders_only else line
    if not line:
        return None
    of_path = b"/" in line
    regex = _translate(line.removeprefix(b"/"), of_path=of_path)
    if regex is None:
        return None
    return _IgnoreRule(regex, of_path, folders_only, includes)


def _without_trailing_spaces(line: bytes) -> bytes:
    """Return a line without the spaces at its end, except those behind a backslash."""
    end = place = 0
    while place < len(line):
        place += 2 if line[place : place + 1] == b"\\" and place + 1 < len(line) else 1
        if line[place - 1 : place] != b" " or line[place - 2 : place - 1] == b"\\":
            end = place
    return line[:end]


def _translate(pattern: bytes, *, of_path: bool) -> bytes | None:
    """Return a regular expression for git's wildcards; None for a pattern that matches nothing."""
    out = _Expression()
    place = 0
    while place < len(pattern):
        letter = pattern[place : place + 1]
        if letter == b"*":
            end = place
            while pattern[end : end + 1] == b"*":
                end += 1
            regex, place = _stars(pattern, place, end, of_path=of_path)
            out.append_star(regex)
            continue
        place += 1
        if letter == b"?":
            out.append(rb"[^/]")
        elif letter == b"[":
            found = _bracket(pattern, place)
            if found is None:
                return None
            out.append(found[0])
            place = found[1]
        elif letter == b"\\":
            if place >= len(pattern):
                return None
            out.append(re.escape(pattern[place : place + 1]))
            place += 1
        else:
            out.append(re.escape(letter))
    return b"".join(out.parts)


class _Expression:
    """A regular expression in the making, which takes linear time however many stars it has.

    What stands between two stars is taken where it comes first and not looked for again: if the rest does not match
    behind the first place, it does not behind a later one, because the second star may stand for what is between.
    """

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._star: int | None = None
        """Where the last star of this folder's name stands."""
        self._folders: int | None = None
        """Where the last `**` stands."""

    def append(self, regex: bytes) -> None:
        """Add what stands for one character."""
        if regex == b"/":
            self._star = None
        self.parts.append(regex)

    def append_star(self, regex: bytes) -> None:
        """Add what a run of stars stands for."""
        if regex == _WITHIN:
            self._settle(self._star, b"(?>[^/]*?")
            self._star = len(self.parts)
        else:
            self._settle(self._folders, b"(?>(?:.*?/)??")
            self._star, self._folders = None, len(self.parts)
        self.parts.append(regex)

    def _settle(self, place: int | None, regex: bytes) -> None:
        """Take what a star stood for at its first place."""
        if place is not None:
            self.parts[place] = regex
            self.parts.append(b")")


def _stars(pattern: bytes, start: int, end: int, *, of_path: bool) -> tuple[bytes, int]:
    """Return the regular expression of a run of stars: `**` between slashes crosses folders, others do not."""
    # Git compares what stands before the first wildcard by itself, so that a wildcard after it is at a beginning, too.
    begins = pattern[start - 1 : start] in (b"", b"/") or not _WILD.search(pattern[:start])
    if not of_path or end - start < 2 or not begins:
        return _WITHIN, end
    if end == len(pattern):
        return rb".*", end
    if pattern[end : end + 1] == b"/":
        return rb"(?:.*/)?", end + 1
    return _WITHIN, end


def _bracket(pattern: bytes, place: int) -> tuple[bytes, int] | None:
    """Return the regular expression of a `[…]` whose content begins at an offset, and the offset of its end."""
    negated = pattern[place : place + 1] in (b"!", b"^")
    place += negated
    out: list[bytes] = []
    first, previous = True, b""
    while True:
        letter = pattern[place : place + 1]
        if not letter:
            return None
        if letter == b"]" and not first:
            break
        first = False
        if letter == b"[" and pattern[place + 1 : place + 2] == b":" and (end := pattern.find(b"]", place)) > 0:
            inner = _CLASSES.get(pattern[place + 2 : end - 1]) if pattern[end - 1 : end] == b":" else None
            if inner is None:
                return None
            out.append(inner)
            place, previous = end + 1, b""
            continue
        is_range = letter == b"-" and bool(previous) and pattern[place + 1 : place + 2] not in (b"]", b"")
        place += is_range
        place += pattern[place : place + 1] == b"\\"
        letter = pattern[place : place + 1]
        place += 1
        if not is_range:
            out.append(re.escape(letter))
            previous = letter
        elif letter:
            # The first letter of a range counts even where the range runs backwards.
            out.append(re.escape(previous) + b"-" + re.escape(letter) if previous <= letter else b"")
            previous = b""
    # A wildcard never stands for a slash.
    inside = b"".join(out)
    return (rb"[^/" + inside + b"]" if negated else rb"(?!/)[" + inside + b"]"), place + 1

"""Command lines, piece by piece: what ran, without what changes from run to run."""

from __future__ import annotations

import contextlib
import re
import shlex
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

import msgspec

_LONGEST: Final = 140
_PIECES: Final = 40
_HEREDOC: Final = re.compile(r"<<-?\s*+(['\"]?)(\w++)\1")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_WORD: Final = re.compile(r"[a-z][\w:.-]{0,30}")
_BRANCH: Final = re.compile(
    r"(?:checkout\s+-[bB]|switch\s+(?:-c|--create)|branch(?:\s+-[mM])?|push\s+(?:-\S{1,80}\s+){0,8}\S{1,200})\s+([\w./-]{3,80})"
)
_TRIVIAL: Final = frozenset({
    "cd", "ls", "cat", "grep", "rg", "echo", "sed", "awk", "head", "tail", "find", "pwd", "which", "wc", "sort",
    "uniq", "tr", "cut", "tee", "true", "false", "test", "sleep", "mkdir", "touch", "cp", "mv", "rm", "chmod",
    "export", "source", "printf", "set", "xargs", "tree", "stat", "file", "less", "more", "diff", "env", "date",
    "exit", "type", "command", "ps", "kill", "nl", "[", ":",
})  # fmt: skip
_SPECIAL: Final = frozenset("'\"\\;&|\n#")
_PREFIXES: Final = frozenset({"sudo", "time", "nohup", "exec", "command", "env", "nice", "timeout", "stdbuf"})


class Piece(msgspec.Struct, frozen=True):
    """One command of a line."""

    text: str
    normal: str
    """Program, what it is to do, and its flags in order: the same for every run of the same thing."""
    branches: tuple[str, ...] = ()


def pieces(line: str) -> list[Piece]:
    """Return the commands of a line that tell something; pipes keep their first, trivial programs are left out."""
    if not line:
        return []
    found: list[Piece] = []
    for text in list(_split(_without_heredocs(line)))[:_PIECES]:
        words = _words(text)
        if words and words[0] not in _TRIVIAL:
            branches = tuple(name for name in _BRANCH.findall(text) if not name.startswith("-"))
            found.append(Piece(text[:_LONGEST], _normal(words), branches))
    return found


def _without_heredocs(line: str) -> str:
    """Return a command line without the texts that it gives to its commands, as far as their last lines are there."""
    if "<<" not in line:
        return line
    ends: dict[str, list[int]] = {}
    at = 0
    for each in line.split("\n"):
        at += len(each) + 1
        ends.setdefault(each.strip(), []).append(at - 1)
    kept: list[str] = []
    done = 0
    for found in _HEREDOC.finditer(line):
        marks = ends.get(found[2], [])
        place = bisect_right(marks, found.end())
        if found.start() >= done and place < len(marks):
            kept.append(line[done : found.start()])
            done = marks[place]
    return "".join(kept) + line[done:]


def _split(line: str) -> Iterator[str]:
    """Split at `&&`, `||`, `;` and line breaks outside of quotes; of a pipe, only what feeds it."""
    if _SPECIAL.isdisjoint(line):
        yield " ".join(line.split())
        return
    piece: list[str] = []
    quote, place, is_fed = "", 0, False
    while place <= len(line):
        char = line[place : place + 1]
        pair = line[place : place + 2]
        if quote:
            quote = "" if char == quote else quote
        elif char in ("'", '"'):
            quote = char
        elif not char or char in ";\n" or pair in ("&&", "||"):
            text = "".join(piece).strip()
            if text:
                yield " ".join(text.split())
            piece, is_fed = [], False
            place += 2 if pair in ("&&", "||") else 1
            continue
        elif char == "|":
            is_fed = True
        if not is_fed:
            piece.append(char)
        place += 2 if char == "\\" and quote != "'" else 1
        if char == "\\" and quote != "'" and not is_fed:
            piece.append(line[place - 1 : place])


def _words(text: str) -> list[str]:
    words = text.split()
    if not _SPECIAL.isdisjoint(text):
        with contextlib.suppress(ValueError):
            words = shlex.split(text, comments=True)
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _PREFIXES or words[0].lstrip("-").isdigit()):
        words.pop(0)
    if words:
        words[0] = words[0].rpartition("/")[2] if not words[0].startswith("./") else words[0]
    return words


def _normal(words: list[str]) -> str:
    subcommands: list[str] = []
    for word in words[1:3]:
        if not _WORD.fullmatch(word) or "." in word or "/" in word:
            break
        subcommands.append(word)
    flags = sorted({word.partition("=")[0] for word in words[1:] if word.startswith("-") and len(word) > 1})
    return " ".join([words[0], *subcommands, *flags])[:_LONGEST]

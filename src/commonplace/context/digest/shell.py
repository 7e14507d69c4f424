"""Command lines, piece by piece: what ran, without what changes from run to run."""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.patterns import regex
from commonplace.protocol import shell

_LONGEST: Final = 140
_MAX_PIECES: Final = 40
_HEREDOCS: Final = frozenset({"<<", "<<-"})
_WORD: Final = regex(r"[a-z][\w:.-]{0,30}")
_BRANCH: Final = regex(
    r"(?:checkout\s+-[bB]|switch\s+(?:-c|--create)|branch(?:\s+-[mM])?|push\s+(?:-\S{1,80}\s+){0,8}\S{1,200})\s+([\w./-]{3,80})"
)
_TRIVIAL: Final = frozenset({
    "cd", "ls", "cat", "grep", "rg", "echo", "sed", "awk", "head", "tail", "find", "pwd", "which", "wc", "sort",
    "uniq", "tr", "cut", "tee", "true", "false", "test", "sleep", "mkdir", "touch", "cp", "mv", "rm", "chmod",
    "export", "source", "printf", "set", "xargs", "tree", "stat", "file", "less", "more", "diff", "env", "date",
    "exit", "type", "command", "ps", "kill", "nl", "[", ":",
})  # fmt: skip


class CommandPiece(msgspec.Struct, frozen=True):
    """One command of a line."""

    text: str
    normal: str
    """Program, what it is to do, and its flags in order: the same for every run of the same thing."""
    branches: tuple[str, ...] = ()
    is_telling: bool = True
    """How the line ended tells how this command ended: nothing behind it hides that."""


def pieces(line: str) -> list[CommandPiece]:
    """Return the commands of a line that tell something; pipes keep their first, trivial programs are left out."""
    found: list[CommandPiece] = []
    segments = shell.segments(line)
    hiding = [place for place, segment in enumerate(segments) if segment.after not in ("", "&&", "\n")]
    last = segments[-1].start if segments else 0
    commands = [
        (segment, segment.start == last or not any(place >= number for place in hiding))
        for number, segment in enumerate(segments)
        if segment.words and not segment.is_fed
    ]
    for segment, is_telling in commands[:_MAX_PIECES]:
        if not segment.is_closed:
            break
        words = _words(segment)
        if words and words[0] not in _TRIVIAL:
            end = next((each.start for each in segment.redirections if each.operator in _HEREDOCS), segment.end)
            text = " ".join(line[segment.start : end].split())
            branches = tuple(name for name in _BRANCH.findall(text) if not name.startswith("-"))
            found.append(CommandPiece(text[:_LONGEST], _normal(words), branches, is_telling))
    return found


def _words(segment: shell.CommandSegment) -> list[str]:
    texts = segment.texts
    words = texts[shell.prefix_length(texts) :]
    if words and not words[0].startswith("./"):
        words[0] = words[0].rpartition("/")[2]
    return words


def _normal(words: list[str]) -> str:
    subcommands: list[str] = []
    for word in words[1:3]:
        if not _WORD.fullmatch(word) or "." in word or "/" in word:
            break
        subcommands.append(word)
    flags = sorted({word.partition("=")[0] for word in words[1:] if word.startswith("-") and len(word) > 1})
    return " ".join([words[0], *subcommands, *flags])[:_LONGEST]

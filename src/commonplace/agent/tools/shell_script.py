"""What a shell script does to files: its commands, and which files they read or search (spec §4).

Only scripts of plain commands are understood, joined by `&&`, `||`, `;`, `|` or line ends, with literal words and
quoted strings. Anything that the shell would expand or evaluate (variables, substitutions, patterns, redirections,
control flow) makes the whole script unknown. So does one unknown command, for `effects_of`.
"""

from __future__ import annotations

import posixpath
import shlex
import shutil
from collections.abc import Sequence
from functools import cache
from typing import Final, Literal

import msgspec

from commonplace.patterns import regex
from commonplace.protocol import shell

Words = list[str]
_JOINTS: Final = frozenset({"", "&&", "||", "|", ";", "\n"})
_GO_ON: Final = frozenset({"&&", "||", "|"})
"""Operators that need a command behind them."""
_KEYWORDS: Final = frozenset(
    {"if", "for", "while", "until", "case", "function", "select", "time", "coproc", "then", "do"}
)


class CommandEffect(msgspec.Struct, frozen=True):
    """What one command does to files; only reads and searches have paths."""

    kind: Literal["read", "search", "list"]
    paths: tuple[str, ...] = ()
    """The operands, joined to the folder of a `cd` before."""


@cache
def shell_path() -> str:
    """Return the path of the shell that runs command lines."""
    return shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin") or "/bin/sh"


def typed(command: Sequence[str]) -> str:
    """Return a command line as a person would type it; only the script of our own shell stands for the whole."""
    if len(command) == 3 and (command[0], command[1]) == (shell_path(), "-c"):
        return command[2].rstrip("\n")
    return shlex.join(command)


def script_of(command: str | Sequence[str]) -> str | Words:
    """Return the script that a command gives to a shell, or the words of the command if it runs a single program."""
    if isinstance(command, str):
        return command
    script = shell.wrapped_script(command) if len(command) == 3 else None
    return list(command) if script is None else script


def effects_of(command: str | Sequence[str]) -> tuple[CommandEffect, ...] | None:
    """Return what each command of a command line does; None if one of them is not known."""
    script = script_of(command)
    commands = split(script) if isinstance(script, str) else [script]
    if not commands:
        return None
    base = ""
    found: list[CommandEffect] = []
    for words in commands:
        if words[0] == "cd":
            if len(words) != 2 or words[1].startswith("-"):
                return None
            base = joined_path(base, words[1])
        elif not _says_nothing(words) and not is_formatting(words):
            done = effect_of(words)
            if done is None:
                return None
            paths = tuple(joined_path(base, path) for path in done.paths)
            found.append(msgspec.structs.replace(done, paths=paths))
    return tuple(found) or None


def joined_path(base: str, path: str) -> str:
    """Return a path relative to the folder of a `cd` before."""
    return path if not base or path.startswith(("/", "~")) else posixpath.join(base, path)


def split(script: str) -> list[Words] | None:
    """Return the commands of a script, each as its words; None if the script is more than plain commands."""
    segments = shell.segments(script)
    if not all(map(_is_plain, segments)) or (segments and segments[-1].after in _GO_ON):
        return None
    return [segment.texts for segment in segments]


def _is_plain(segment: shell.CommandSegment) -> bool:
    """Return whether a segment is a simple command of literal words, joined to others by plain operators."""
    if not segment.words or segment.redirections or segment.has_comment or not segment.is_closed:
        return False
    if segment.before not in _JOINTS or segment.after not in _JOINTS:
        return False
    first = segment.words[0].text
    return all(word.is_literal for word in segment.words) and not (first in _KEYWORDS or shell.is_assignment(first))


_FORMATTING: Final = frozenset({"wc", "tr", "cut", "sort", "uniq", "tee", "column", "yes", "printf"})
_CHANGES: Final = frozenset(
    {"rm", "mv", "cp", "ln", "chmod", "chown", "touch", "mkdir", "rmdir", "tee", "truncate", "sh"}
)
_IN_PLACE: Final = frozenset({"sed", "perl", "ruby"})
_RANGE: Final = regex(r"\d+(,(\d+|\$))?p")
_COUNT: Final = regex(r"[-+]?\d+")


def _says_nothing(words: Words) -> bool:
    """Return whether a command touches no file: `echo`, `true`, `nl` of its input."""
    if words[0] in ("echo", "true"):
        return True
    return words[0] == "nl" and all(word.startswith("-") for word in words[1:])


def is_formatting(words: Words) -> bool:
    """Return whether a command only formats the output of another."""
    name, rest = words[0], words[1:]
    if name in _FORMATTING:
        return name != "tee" or not operands(rest)
    if name == "xargs":
        return not _changes(rest)
    if name == "awk":
        return len(operands(rest, "-F", "-v", "-f")) <= (0 if "-f" in rest else 1)
    if name in ("head", "tail"):
        return not operands(rest, "-n", "-c") or (name == "tail" and _starts(operands(rest, "-n", "-c")))
    if name == "sed":
        return _sed(rest) is None and not _in_place(rest) and len(operands(rest, "-e", "-f")) <= ("-e" not in rest)
    return False


def _starts(words: Words) -> bool:
    return len(words) == 1 and words[0].startswith("+")


def _changes(words: Words) -> bool:
    """Return whether the program that `xargs` runs changes files, or could."""
    run = operands(words, "-n", "-I", "-P", "-L", "-d", "-E", "-s")
    name = posixpath.basename(run[0]) if run else "echo"
    return name in _CHANGES or name in shell.SHELLS or (name in _IN_PLACE and _in_place(words))


def _in_place(words: Words) -> bool:
    return any(word.startswith(("-i", "--in-place", "-pi")) for word in words)


def operands(words: Words, *with_value: str) -> Words:
    """Return the words that are neither flags nor values of flags."""
    found: Words = []
    pending = iter(words)
    for word in pending:
        if word == "--":
            return [*found, *pending]
        if word in with_value:
            next(pending, None)
        elif not word.startswith("-") or word == "-":
            found.append(word)
    return found


def _sed(words: Words) -> str | None:
    """Return the file whose lines `sed -n` prints; None for other uses of `sed`."""
    if len(words) == 3 and words[0] == "-n" and _RANGE.fullmatch(words[1]) and not words[2].startswith("-"):
        return words[2]
    return None


_READERS: Final[dict[str, tuple[str, ...]]] = {
    "cat": (),
    "more": (),
    "less": ("-p", "-x"),
    "bat": ("-r", "-l", "-H", "--line-range", "--language", "--theme", "--style", "--paging", "--terminal-width"),
    "nl": ("-b", "-s", "-w", "-v", "-i"),
}
_GREP_VALUES: Final = ("-e", "-f", "-m", "-A", "-B", "-C", "-d", "-D", "--color", "--regexp", "--file", "--max-count")
_RG_VALUES: Final = (
    *_GREP_VALUES, "-g", "-t", "-T", "-j", "-M", "-E", "-r", "--glob", "--iglob", "--type", "--type-not", "--sort",
    "--sortr", "--max-depth", "--max-columns", "--threads", "--after-context", "--before-context", "--context",
    "--encoding", "--replace", "--max-filesize", "--path-separator",
)  # fmt: skip
_SEARCHERS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("rg", "rga", "ag", "ack", "pt"), _RG_VALUES),
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep"), _GREP_VALUES),
}
_PATTERN_FLAGS: Final = ("-e", "--regexp", "-f", "--file")
_NAME_TESTS: Final = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex"})
_FIND_ACTS: Final = frozenset(
    {"-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls"}
)
_FD_ACTS: Final = ("-x", "-X", "--exec", "--exec-batch")
_LISTERS: Final = frozenset({"ls", "eza", "exa", "tree", "du"})


def effect_of(words: Words) -> CommandEffect | None:
    """Return what a single command does; None if it is not known."""
    name, rest = posixpath.basename(words[0]), words[1:]
    if name in _LISTERS:
        return CommandEffect("list")
    if name in ("head", "tail", "awk", "sed"):
        return _reads_part(name, rest)
    if (name := "bat" if name == "batcat" else name) in _READERS:
        files = operands(rest, *_READERS[name])
        return CommandEffect("read", (files[0],)) if len(files) == 1 and files[0] != "-" else None
    if name == "git":
        return _git(rest)
    if name in ("fd", "fdfind", "find"):
        return _find(name, rest)
    if name in _SEARCHERS:
        return CommandEffect("list") if name in ("rg", "rga") and "--files" in rest else _search(rest, _SEARCHERS[name])
    return None


def _reads_part(name: str, rest: Words) -> CommandEffect | None:
    if name == "sed":
        file = _sed(rest)
    elif name == "awk":
        found = operands(rest, "-F", "-v", "-f")
        file = found[-1] if len(found) == (1 if "-f" in rest else 2) else None
    else:
        found = [word for word in operands(rest, "-n", "-c") if not (name == "tail" and word.startswith("+"))]
        counts = [rest[at + 1 : at + 2] for at, word in enumerate(rest) if word in ("-n", "-c")]
        sound = all(count and _COUNT.fullmatch(count[0]) for count in counts)
        file = found[0] if len(found) == 1 and sound else None
    return CommandEffect("read", (file,)) if file not in (None, "-") else None


def _git(rest: Words) -> CommandEffect | None:
    if rest[:1] == ["ls-files"]:
        return CommandEffect("list")
    return _search(rest[1:], _GREP_VALUES) if rest[:1] == ["grep"] else None


def _find(name: str, rest: Words) -> CommandEffect | None:
    if name == "find":
        if _FIND_ACTS & set(rest):
            return None
        first = next((at for at, word in enumerate(rest) if word.startswith(("-", "!"))), len(rest))
        return CommandEffect("search", tuple(rest[:first])) if _NAME_TESTS & set(rest) else CommandEffect("list")
    if any(word in _FD_ACTS for word in rest):
        return None
    found = operands(rest, "-e", "-t", "-E", "-d", "--type", "--extension", "--exclude", "--max-depth")
    return CommandEffect("search", tuple(found[1:])) if found else CommandEffect("list")


def _search(rest: Words, with_value: tuple[str, ...]) -> CommandEffect | None:
    found = operands(rest, *with_value)
    if not any(word in _PATTERN_FLAGS or word.startswith(("--regexp=", "--file=")) for word in rest):
        if not found:
            return None
        found = found[1:]
    return CommandEffect("search", tuple(found))

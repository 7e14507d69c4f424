"""The shell calls of a session, each cut once into its simple commands, with how each of them ended.

A call tells one exit code for a whole command line. `calls_of` says of each simple command whether it succeeded or
failed, or that the call does not tell: a pipe into `tail` hides the code of what stands before it, and a chain of `&&`
does not say which part failed. Members of a pipe belong to its first command; what stands in a loop or a condition is
left out, because nobody knows whether it ran. `cd` moves the folder of what follows, `export` adds to its variables.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, Literal

import msgspec

from commonplace.learning.commands import tables
from commonplace.learning.reading.literals import LiteralGate
from commonplace.learning.reading.session_view import SessionView, ToolUse
from commonplace.memory.injection import may_run_fetched
from commonplace.patterns import regex
from commonplace.protocol import shell
from commonplace.protocol.shell import CommandSegment

Status = Literal["ok", "failed", "unknown"]

_FILTERS: Final = tables.words("calls", "filters")
_OPENS: Final = tables.words("calls", "opens")
_CLOSES: Final = tables.words("calls", "closes")
_INSIDE: Final = tables.words("calls", "inside")
_MOVES: Final = tables.words("calls", "moves")
_SETS: Final = tables.words("calls", "sets")
_NO_END: Final = tables.pattern("calls", "no_end")
_HARMLESS: Final = tables.pattern("calls", "harmless")
_WRAPPERS: Final = tables.words("forms", "wrappers", "programs")
_WITH_NUMBER: Final = tables.words("forms", "wrappers", "with_number")
_WRAPPER_VALUES: Final = tables.words("forms", "wrappers", "value_flags")
_DURATION: Final = regex(r"[0-9.]++[smhd]?")
_EXIT_CODE: Final = regex(r"Exit code:? (\d++)")
_SESSION_ID: Final = regex(r"Process running with session ID (\d++)")
_POWERSHELLS: Final = frozenset({"pwsh", "powershell", "pwsh.exe", "powershell.exe"})
_POWERSHELL_VARIABLE: Final = regex(r"\$env:(\w++)=", re.IGNORECASE)
_PLAIN: Final = regex(r"[\w@%+=:,./~^{}\[\]!-]++")
_BREAKS: Final = frozenset({";", "&", "\n", "||", ";;"})
"""Operators that hide the exit code of what stands before them."""
_MAX_DEPTH: Final = 2
"""How often the script of `bash -c SCRIPT` is opened."""
_FEW_PARTS: Final = 3
"""Up to so many commands, a failure in the output counts for each whose exit code is hidden."""
_WHOLE_OUTPUT: Final = 12_000
_OUTPUT_TAIL: Final = 6_000


class SimpleCommand(msgspec.Struct, frozen=True):
    """One program with its arguments, as it was run."""

    words: tuple[str, ...]
    """The program and its arguments, without assignments, wrappers, quotes and redirections; at least one."""
    assignments: tuple[str, ...] = ()
    """`NAME=value`, of the command itself and of `export` before it."""
    folder: str | None = ""
    """The absolute folder that it ran in; None if nobody knows."""
    status: Status = "unknown"
    is_counted: bool = True
    """False if its output went into a program that does more than show a part of it."""
    is_chained: bool = False
    """It stands behind `&&`, so the command before it succeeded."""
    is_root: bool = False
    """It ran by `sudo`."""

    @property
    def text(self) -> str:
        """The command as one would type it, without assignments."""
        return " ".join(map(_quoted, self.words))

    @property
    def typed(self) -> str:
        """The command as it was typed, without assignments."""
        return f"sudo {self.text}" if self.is_root else self.text

    @property
    def program(self) -> str:
        """The name of the program, without its folder."""
        return program_name(self.words[0])


class Call(msgspec.Struct):
    """A shell call with its simple commands."""

    use: ToolUse
    commands: list[SimpleCommand]
    code: int | None
    """The exit code; None if the call does not tell one."""
    shows_failure: bool
    """The output shows that something failed, whatever the exit code says."""


class _Piece(msgspec.Struct):
    """A simple command with the operators around it, before its status is known."""

    words: tuple[str, ...]
    assignments: tuple[str, ...]
    folder: str | None
    before: str
    after: str
    is_piped: bool
    is_counted: bool
    only_moves: bool = False
    is_root: bool = False


def calls_of(view: SessionView) -> list[Call]:
    """Return the shell calls of a session that were let run, in order."""
    folder = view.cwd
    calls: list[Call] = []
    for use in _with_late_output(view):
        if may_run_fetched(use.command):  # nobody is told to run what somebody else put on a page
            continue
        given = use.folder and posixpath.normpath(posixpath.join(view.cwd, use.folder))
        call, end = _call(use, given or folder, view.cwd)
        calls.append(call)
        if given is None and call.code == 0 and end is not None and is_inside(end, view.cwd):
            folder = end if view.source == "claude-code" else folder  # its shell stays where it went
    return calls


def program_name(word: str) -> str:
    """Return the name of a program without its folder and without `.exe`."""
    return word.replace("\\", "/").rpartition("/")[2].removesuffix(".exe").removesuffix(".cmd") or word


def is_inside(path: str, folder: str) -> bool:
    """Return whether an absolute path is a folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def shows_failure(output: str) -> bool:
    """Return whether an output shows that something failed."""
    text = output if len(output) <= _WHOLE_OUTPUT else output[-_OUTPUT_TAIL:]
    possible = gate().open_for(text)
    if not possible:
        return False
    bare = _HARMLESS.sub("", text)
    return any(failure(each).search(bare) for each in possible)


@cache
def gate() -> LiteralGate:
    """Return what tells which expressions for failures may match an output."""
    return LiteralGate({each: [each] for each in tables.table("calls")["failures"]})


@cache
def failure(expression: str) -> re.Pattern[str]:
    """Return one of the expressions for failures, compiled."""
    return regex(expression, re.MULTILINE)


def _with_late_output(view: SessionView) -> Iterator[ToolUse]:
    """Yield the shell calls; one that went on in the background has the end that a later call reported."""
    uses = [event for event in view.events() if isinstance(event, ToolUse) and not event.is_memory]
    waiting: dict[str, int] = {}
    ends: dict[int, ToolUse] = {}
    for number, use in enumerate(uses):
        if use.command and (found := _SESSION_ID.search(use.output[:400])):
            waiting[found[1]] = number
        elif use.name == "write_stdin" and use.code is not None and (session := _session_number(use)) in waiting:
            ends[waiting.pop(session)] = use
    for number, use in enumerate(uses):
        if use.command and not use.refused:
            end = ends.get(number, use)
            yield msgspec.structs.replace(use, ok=end.ok, code=end.code, output=end.output)


def _session_number(use: ToolUse) -> str:
    try:
        return str(msgspec.json.decode(use.arguments, type=_SessionNumber).session_id)
    except (msgspec.DecodeError, RecursionError):
        return ""


class _SessionNumber(msgspec.Struct):
    session_id: int | str = ""


def _exit_code(use: ToolUse) -> int | None:
    if use.ok is None or (use.code is None and _NO_END.match(use.output)):
        return None
    if use.code is not None:
        return use.code
    if use.ok:
        return 0
    found = _EXIT_CODE.match(use.output)
    return int(found[1]) if found else 1


def _call(use: ToolUse, folder: str, home: str) -> tuple[Call, str | None]:
    """Return a call and the folder in which its shell was left."""
    cutter = _Cutter(folder, home)
    cutter.cut(use.command, 0)
    code = _exit_code(use)
    fails = shows_failure(use.output)
    return Call(use, _with_status(cutter.pieces, code, fails), code, fails), cutter.folder


def _with_status(pieces: list[_Piece], code: int | None, fails: bool) -> list[SimpleCommand]:
    """Return the simple commands of a call with their status, without what only moves."""
    count = sum(not piece.only_moves for piece in pieces)
    hidden = _hidden(pieces)
    found: list[SimpleCommand] = []
    is_joined = True  # by `&&` alone to the command before
    for number, piece in enumerate(pieces):
        is_joined = is_joined and piece.before == "&&"
        if piece.only_moves:
            continue
        is_last = number == len(pieces) - 1
        status = _status(piece, code, count, is_last=is_last, fails=fails, is_hidden=hidden[number])
        found.append(
            SimpleCommand(
                piece.words, piece.assignments, piece.folder, status, piece.is_counted, is_joined, piece.is_root
            )
        )
        is_joined = True
    return found


def _hidden(pieces: list[_Piece]) -> list[bool]:
    """Return of each piece whether what stands behind it hides its exit code."""
    found: list[bool] = []
    is_hidden = False
    for piece in reversed(pieces):
        found.append(is_hidden)
        is_hidden = is_hidden or piece.before in _BREAKS
    return found[::-1]


def _status(piece: _Piece, code: int | None, count: int, *, is_last: bool, fails: bool, is_hidden: bool) -> Status:
    if code is None or piece.after == "&" or piece.before == "||":
        return "unknown"
    if code:
        is_told = count == 1 or (is_last and piece.before in _BREAKS)
        return "failed" if is_told else "unknown"
    if is_hidden or piece.is_piped or piece.after == "||":
        return "failed" if fails and count <= _FEW_PARTS else "ok"
    return "ok"


class _Cutter:
    """Cuts one command line and follows its folder and its variables."""

    def __init__(self, folder: str, home: str) -> None:
        self.pieces: list[_Piece] = []
        self.folder: str | None = folder
        self._home = home
        self._previous: str | None = folder
        self._assignments: tuple[str, ...] = ()
        self._saved: list[tuple[str | None, tuple[str, ...]]] = []
        self._loops = 0

    def cut(self, script: str, depth: int) -> None:
        """Add the pieces of a script."""
        for pipeline in shell.pipelines(script):
            if not self._is_in_loop(pipeline):
                self._add(pipeline, depth)

    def _is_in_loop(self, pipeline: list[CommandSegment]) -> bool:
        """Return whether a pipeline stands in a loop or a condition, and follow where those begin and end."""
        was_inside = self._loops > 0
        begins = False
        for segment in pipeline:
            texts = [text for text in segment.texts if text not in _INSIDE]
            first = texts[0] if texts else ""
            if first in _OPENS or (first.endswith("()") and "{" in texts):
                self._loops += 1
                begins = True
            elif first in _CLOSES:
                self._loops = max(0, self._loops - 1)
        return was_inside or begins or pipeline[0].texts[0] in _INSIDE

    def _add(self, pipeline: list[CommandSegment], depth: int) -> None:
        head, *rest = pipeline
        if head.before == "(":
            self._saved.append((self.folder, self._assignments))
        assignments, words = without_wrappers(head.texts)
        before, after = head.before, pipeline[-1].after
        if words and (script := _script(words)) is not None and depth < _MAX_DEPTH:
            self._open(script, before, after, depth)
        elif not words or self._moves(words):
            if not words:
                self._assignments += assignments  # `NAME=value` alone
            self.pieces.append(_Piece((), (), None, before, after, False, True, only_moves=True))
        else:
            fed = [without_wrappers(segment.texts)[1][:1] for segment in rest]
            filters = all(each and program_name(each[0]) in _FILTERS for each in fed)
            both = (*self._assignments, *assignments)
            folder, words = self._of_git(words)
            is_root = "sudo" in head.texts[: len(head.texts) - len(words)]
            piece = _Piece(tuple(words), both, folder, before, after, bool(rest), filters, is_root=is_root)
            self.pieces.append(piece)
        if after == ")" and self._saved:
            self.folder, self._assignments = self._saved.pop()

    def _of_git(self, words: list[str]) -> tuple[str | None, list[str]]:
        """Return the folder of a command and its words, without the `-C FOLDER` of git."""
        if words[0] == "git" and words[1:2] == ["-C"] and len(words) > 3:
            return self._target(words[2]), ["git", *words[3:]]
        return self.folder, words

    def _open(self, script: str, before: str, after: str, depth: int) -> None:
        """Add the pieces of `bash -c SCRIPT` in its place."""
        outer, first = (self.folder, self._assignments, self._loops), len(self.pieces)
        self._loops = 0
        self.cut(script, depth + 1)
        self.folder, self._assignments, self._loops = outer
        if len(self.pieces) > first:
            self.pieces[first].before = before
            self.pieces[-1].after = after

    def _moves(self, words: Sequence[str]) -> bool:
        """Follow a command that moves to a folder or sets variables; return whether it is one."""
        if words[0] in _MOVES:
            target = next((word for word in words[1:] if word == "-" or not word.startswith("-")), "")
            self.folder, self._previous = self._target(target), self.folder
            return True
        if words[0] in _SETS:
            self._assignments += tuple(word for word in words[1:] if shell.is_assignment(word))
            return True
        if found := _POWERSHELL_VARIABLE.match(words[0]):
            value = words[0][found.end() :] or " ".join(words[1:])
            self._assignments += (f"{found[1]}={value}",)
            return True
        return False

    def _target(self, target: str) -> str | None:
        if target == "-":
            return self._previous
        if "rev-parse --show-toplevel" in target:
            return self._home
        if not target or target.startswith("~") or "$" in target or "`" in target:
            return None
        base = self.folder if self.folder is not None else "" if posixpath.isabs(target) else None
        return None if base is None else posixpath.normpath(posixpath.join(base, target))


def without_wrappers(texts: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the assignments before a program, and the program with its arguments, without `sudo`, `timeout 30` …"""
    assignments: list[str] = []
    at = 0
    while at < len(texts):
        word = texts[at]
        if shell.is_assignment(word):
            assignments.append(word)
            at += 1
        elif word in _WRAPPERS and texts[at + 1 : at + 2] not in (["-v"], ["-V"]):  # `command -v go` only looks
            at = _behind_flags(texts, at + 1)
            if word in _WITH_NUMBER and at < len(texts) and _DURATION.fullmatch(texts[at]):
                at += 1
        elif word == "!":
            at += 1
        else:
            break
    return tuple(assignments), list(texts[at:])


def _behind_flags(texts: Sequence[str], at: int) -> int:
    while at < len(texts) and texts[at].startswith("-"):
        at += 2 if texts[at] in _WRAPPER_VALUES else 1
    return min(at, len(texts))


def _script(words: Sequence[str]) -> str | None:
    """Return the script that a shell is given as an argument."""
    if (script := shell.wrapped_script(words)) is not None:
        return script
    if program_name(words[0]).lower() in _POWERSHELLS:
        for place, word in enumerate(words[1:-1], 1):
            if word.lower() in ("-command", "-c"):
                return " ".join(words[place + 1 :])
    return None


def _quoted(word: str) -> str:
    if _PLAIN.fullmatch(word):
        return word
    return f'"{word}"' if "'" in word or "$" in word else f"'{word}'"

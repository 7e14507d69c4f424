"""Troubles of a session: commands that failed for a known kind of reason, and what cured them.

A trouble is cured when, within the next calls, a command that fits the kind of trouble ran and after it, or by it, the
same goal was reached: the same program or another command of the same role succeeded and the error was gone. Errors of
the code that is being written are no troubles; the kinds (`trouble.toml`) are those of tools, machines and settings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, cast

import msgspec

from commonplace.learning.commands import tables
from commonplace.learning.commands.calls import Call, SimpleCommand
from commonplace.learning.commands.canonical import Canonical
from commonplace.learning.commands.carriers import carried
from commonplace.learning.commands.places import Place, place_of
from commonplace.learning.commands.plain_cures import plain_cure
from commonplace.learning.commands.variables import without_secret
from commonplace.learning.reading.literals import LiteralGate
from commonplace.patterns import regex

_TABLE: Final = tables.table("trouble")
_READERS: Final = frozenset(_TABLE["readers"].split())
_GIT_READERS: Final = frozenset(_TABLE["git_readers"].split())
_WITH_SUBCOMMAND: Final = frozenset(_TABLE["with_subcommand"].split())
_LOOKS: Final = frozenset({"--version", "--help"})
_WITHIN: Final = 15
"""How many calls after a trouble are searched for its cure."""
_MAX_TROUBLES: Final = 20
"""How many troubles of one session are kept."""
_MAX_TEXT: Final = 90
"""The longest command that is shown in full."""
_MAX_SIGN: Final = 60
_NAME_PARTS: Final = regex(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])")
_MOST_PARTS: Final = 4
"""How many words a name may have that only an output says."""
_MAX_NAME: Final = 40
_LONGEST_LINE: Final = 1_000
_PLAIN: Final = "other"
"""The kind of troubles that no other kind explains."""
_NEW_BRANCH: Final = regex(r"^(git (?:checkout|switch) -[bBcC]) \S++")
_PROCESS: Final = regex(r"^(kill(?: -\w++)?) \d[\d ]*+$")

Form = Canonical | None
Forms = Sequence[Sequence[Form]]
"""The canonical forms of the commands of each call."""


class TroubleKind(msgspec.Struct, frozen=True):
    """A kind of trouble."""

    name: str
    signs: re.Pattern[str]
    """What an output shows; its named groups tell what is missing."""
    cure: re.Pattern[str] | None
    may_be_same_command: bool
    """A changed form of the command that failed may be the cure."""
    has_it: re.Pattern[str] | None
    """Which commands have this trouble most likely, of several in one call."""
    says: str
    """How the trouble is called; empty if the output's own words are best."""
    cured_sessions: int
    """In how many sessions a cure must have been seen to be told."""
    uncured_sessions: int
    """In how many sessions a trouble without a cure must have been seen to be told; 0 for never."""


class Trouble(msgspec.Struct, frozen=True, omit_defaults=True):
    """A trouble of a session, and its cure if one was seen."""

    kind: str
    failed: str
    """The command that failed, in short."""
    sign: str
    """What the output said."""
    place: Place
    detail: str = ""
    """What is missing: a program, a variable, a task."""
    cure: str = ""
    cure_place: Place | None = None
    is_other_form: bool = False
    """The cure is the same command in another form."""


def _kinds() -> dict[str, TroubleKind]:
    found: dict[str, TroubleKind] = {}
    for row in cast("list[dict[str, Any]]", _TABLE["kinds"]):
        cure = regex(row["cure"]) if "cure" in row else None
        found[row["name"]] = TroubleKind(
            row["name"],
            regex(row["signs"], re.MULTILINE),
            cure,
            row.get("may_be_same_command", False),
            regex(row["has_it"]) if "has_it" in row else None,
            row.get("says", ""),
            row.get("cured_sessions", 2),
            row.get("uncured_sessions", 0),
        )
    found[_PLAIN] = TroubleKind(_PLAIN, regex(r"(?!)"), None, False, None, "", 2, 0)
    return found


KINDS: Final = _kinds()


@cache
def gate() -> LiteralGate:
    """Return what tells which kinds an output may show."""
    return LiteralGate({row["name"]: [row["signs"]] for row in _TABLE["kinds"]})


_CLASS: Final = regex(
    r"\b(?:[A-Z][A-Za-z0-9]{1,40}(?:Error|Exception)|ERR_[A-Z_]{2,40}|E[A-Z]{4,14}|error TS\d{3,5}|error NU\d{4}"
    r"|NETSDK\d{4}|GH\d{3}|P\d{4}|error\[E\d{4}\])(?![\w-])"
)
"""The class or the code of an error."""
_ERROR_WORDS: Final = frozenset(_TABLE["error_words"].split())
_GENERIC: Final = frozenset({"error", "errors", "failed", "failure", "fatal", "exception", "warning"})
"""Words that say no more than that something failed."""
_LINKING: Final = frozenset(_TABLE["linking_words"].split())
"""Words that end no phrase."""
_MOST_WORDS: Final = 8
_TELLING: Final = regex(
    r"(?i)^.*(?:error\b|\b(?:errors|fail(?:ed|ure|s)?|cannot|can't|denied|refused|missing|unable|no such|not found"
    r"|invalid|locked|exceeded|reached|erreur|fehler)\b).*$",
    re.MULTILINE,
)


def error_words(line: str) -> str:
    """Return what of an error may be told: classes and codes of errors and words of a fixed list, side by side.

    What else a program prints is its own text, which may be meant for whoever reads the memory.
    """
    best: list[str] = []
    run: list[str] = []
    is_first = True
    for word in [*line[:_LONGEST_LINE].split(), ""]:
        bare = word.strip("'\"():,.;![]")
        is_known = bool(bare) and (bare.lower() in _ERROR_WORDS or _CLASS.fullmatch(bare) is not None)
        if is_known:
            run.append(f"{bare}:" if word.endswith(":") else bare)
        if not is_known or word.endswith((",", ";", ".", ")", "!")):
            while run and run[-1].lower() in _LINKING:
                run.pop()
            if len(run) > len(best) and (is_first or any(map(_names_error, run))):
                best = run[:_MOST_WORDS]
            run, is_first = [], False
    says_more = any(word.rstrip(":").lower() not in _GENERIC for word in best)
    return " ".join(best)[:_MAX_SIGN].strip(" :") if says_more else ""


def _names_error(word: str) -> bool:
    bare = word.rstrip(":")
    return bare.lower() in _GENERIC or _CLASS.fullmatch(bare) is not None


def troubles_of(calls: Sequence[Call], forms: Forms, edits: Sequence[int] = ()) -> list[Trouble]:
    """Return the troubles of a session, each kind and detail once, a cured one rather than an open one.

    `edits` are the places of the session where files were changed.
    """
    found: dict[tuple[str, str], Trouble] = {}
    for number, call in enumerate(calls):
        trouble = _trouble(number, call, calls, forms, edits)
        if trouble is None:
            continue
        key = (trouble.kind, trouble.detail)
        if key not in found or (trouble.cure and not found[key].cure):
            found[key] = trouble
    return list(found.values())[:_MAX_TROUBLES]


def _trouble(number: int, call: Call, calls: Sequence[Call], forms: Forms, edits: Sequence[int]) -> Trouble | None:
    if not call.code and not call.shows_failure:
        return None
    doers = [place for place, command in enumerate(call.commands) if is_doer(command)]
    if not doers:
        return None
    possible = gate().open_for(call.use.output)
    for kind in KINDS.values():
        if kind.name in possible and (sign := kind.signs.search(call.use.output)):
            break
    else:
        return _plain(number, calls, forms, edits)
    detail = next((value for value in sign.groupdict().values() if value), "")
    at = _failed_command(kind, call, doers, detail)
    if at is None:
        return None
    if not is_name(detail, call.use.command):
        return _plain(number, calls, forms, edits)
    command, form = call.commands[at], forms[number][at]
    said = error_words(sign[0])
    trouble = Trouble(kind.name, short(command, form), said, place_of(call.use, command.text), detail)
    goal = _Goal(kind, command, form, detail)
    for later in range(number + 1, min(number + 1 + _WITHIN, len(calls))):
        if cured := goal.cured_by(calls[later], forms[later]):
            return msgspec.structs.replace(
                trouble, cure=cured.text, cure_place=cured.place, is_other_form=cured.is_other_form
            )
    return _plain(number, calls, forms, edits) or (trouble if kind.uncured_sessions else None)


def _plain(number: int, calls: Sequence[Call], forms: Forms, edits: Sequence[int]) -> Trouble | None:
    """Return a failure that one command more, a variable or an option cured."""
    cure = plain_cure(number, calls, edits)
    if cure is None:
        return None
    call = calls[number]
    lines = _TELLING.findall(call.use.output)
    said = error_words(lines[-1] if lines else "")
    failed = short(cure.failed, forms[number][0])
    place = place_of(call.use, cure.failed.text)
    detail = f"{failed}: {cure.text}"
    return Trouble(_PLAIN, failed, said, place, detail, cure.text, cure.place, cure.is_other_form)


def is_name(detail: str, command: str) -> bool:
    """Return whether what an output names is told: it stands in the command, or is too short for a sentence.

    `AGENTS_MUST_NOW_RUN_X_SH is not set` is a text of the program that printed it, although it looks like a name.
    """
    words = [word for word in _NAME_PARTS.split(detail) if word]
    return detail in command or (len(words) <= _MOST_PARTS and len(detail) <= _MAX_NAME)


def is_doer(command: SimpleCommand) -> bool:
    """Return whether a command can have a trouble: it does more than look, and is none of `gh`."""
    if command.program == "git":
        return _subcommand(command) not in _GIT_READERS
    return command.program != "gh" and not _is_reader(command)


def _is_reader(command: SimpleCommand) -> bool:
    return command.program in _READERS or not _LOOKS.isdisjoint(command.words[1:])


def short(command: SimpleCommand, form: Form) -> str:
    """Return a command as it is told: its form, else the whole of it if it is short, else the program."""
    if form is not None:
        return form.form
    text = _PROCESS.sub(r"\1 <pid>", _NEW_BRANCH.sub(r"\1 <branch>", command.text))
    if len(text) <= _MAX_TEXT and "\n" not in text:
        return text
    return f"{command.program} {_subcommand(command)}".strip()


def runs_program(command: SimpleCommand, program: str) -> bool:
    """Return whether a command runs a program, by itself or behind a carrier."""
    inner = carried(command.words)
    return command.program == program or (bool(inner.words) and inner.words[0] == program)


def _subcommand(command: SimpleCommand) -> str:
    words = iter(command.words[1:])
    for word in words:
        if word in ("-C", "-c"):
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""


def _failed_command(kind: TroubleKind, call: Call, doers: Sequence[int], detail: str) -> int | None:
    """Return which command of a call had the trouble: of those that likely have it, one that did not succeed."""
    if kind.name == "not-found" and any(runs_program(command, detail) for command in call.commands):
        return next((at for at in doers if runs_program(call.commands[at], detail)), None)
    likely = [at for at in doers if kind.has_it is not None and kind.has_it.match(call.commands[at].text)]
    failed = [at for at in likely or doers if call.commands[at].status != "ok"]
    return next(iter(failed or likely or doers), None)


class _Cure(msgspec.Struct, frozen=True):
    text: str
    place: Place
    is_other_form: bool


class _Goal:
    """What a failed command was to reach, and the last command that may have cured its trouble."""

    def __init__(self, kind: TroubleKind, failed: SimpleCommand, form: Form, detail: str) -> None:
        self._kind = kind
        self._failed = failed
        self._form = form
        self._missing = detail if kind.name == "not-found" else ""
        self._cure: _Cure | None = None

    def cured_by(self, call: Call, forms: Sequence[Form]) -> _Cure | None:
        """Look at the next call; return the cure once the goal is reached."""
        is_gone = call.code == 0 and not self._kind.signs.search(call.use.output)
        for command, form in zip(call.commands, forms, strict=True):
            is_same_goal = self._is_same_goal(command, form)
            if command.status != "failed" and self._fits(command, form, is_same_goal=is_same_goal):
                place = place_of(call.use, command.text)
                is_other_form = self._is_other_form(command, form)
                self._cure = _Cure(self._shown(command, form, is_other_form=is_other_form), place, is_other_form)
                if not self._cure.is_other_form:
                    continue  # a cure does not show by itself that it helped
            if is_same_goal and command.status == "ok" and is_gone and self._cure is not None:
                return self._cure
        return None

    def _shown(self, command: SimpleCommand, form: Form, *, is_other_form: bool) -> str:
        """Return a cure as it is told: with the variables that make it another form, as typed if it is short."""
        variables = [each for each in command.assignments if each not in self._failed.assignments]
        text = short(command, form)
        if form is None or (form.is_narrowed and not variables):
            return text
        typed = " ".join((*(map(without_secret, variables) if is_other_form else ()), command.typed))
        return typed if len(typed) <= _MAX_TEXT and "\n" not in typed else text

    def _is_same_goal(self, command: SimpleCommand, form: Form) -> bool:
        if self._missing and runs_program(command, self._missing):
            return True
        if form is not None and self._form is not None and form.role == self._form.role:
            return True
        if command.program != self._failed.program:
            return False
        return command.program not in _WITH_SUBCOMMAND or _subcommand(command) == _subcommand(self._failed)

    def _is_other_form(self, command: SimpleCommand, form: Form) -> bool:
        """Return whether a cure does what the failed command was to do."""
        if self._missing and runs_program(command, self._missing):
            return True
        if form is not None and self._form is not None:
            return form.role == self._form.role
        return form is self._form and self._is_same_goal(command, form)

    def _fits(self, command: SimpleCommand, form: Form, *, is_same_goal: bool) -> bool:
        """Return whether a command may cure the trouble."""
        kind = self._kind
        if _is_reader(command) or self._is_same_command(command, form):
            return False
        is_carried = bool(self._missing) and command.program != self._missing and runs_program(command, self._missing)
        if kind.may_be_same_command and (is_carried or (is_same_goal and kind.cure is None and form is not None)):
            return True
        if kind.cure is None:
            return False
        whole = " ".join((*command.assignments, command.text))
        return kind.cure.search(command.text) is not None or kind.cure.search(whole) is not None

    def _is_same_command(self, command: SimpleCommand, form: Form) -> bool:
        if command.assignments != self._failed.assignments:
            return False
        if form is not None and self._form is not None and not self._missing:
            return (form.form, form.name) == (self._form.form, self._form.name)
        return command.words == self._failed.words

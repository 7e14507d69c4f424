"""Cures of failures that no known kind of trouble explains: the same command succeeds after one other command, or with
a variable or an option more, and no file was changed between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from commonplace.learning.commands import tables
from commonplace.learning.commands.calls import Call, SimpleCommand
from commonplace.learning.commands.canonical import is_for_once
from commonplace.learning.commands.places import Place, place_of
from commonplace.learning.commands.variables import without_secret

_LOOKS: Final = frozenset({"--version", "--help", "-version", "-v", "-l"})
_NO_CURES: Final = tables.words("trouble", "readers") | tables.words("trouble", "no_cures")
_WITHIN: Final = 5
"""A cure is among so many calls after the failure that do more than look."""
_MAX_MORE: Final = 4
"""A command with so many words more is the same command in another form."""


class PlainCure(msgspec.Struct, frozen=True):
    """What a failed command needed."""

    failed: SimpleCommand
    text: str
    place: Place
    is_other_form: bool


def plain_cure(number: int, calls: Sequence[Call], edits: Sequence[int]) -> PlainCure | None:
    """Return what made a failed call succeed; None if nothing did, or if files were changed before that.

    `edits` are the places of the session where files were changed.
    """
    call = calls[number]
    if not call.code or len(call.commands) != 1 or not _may_cure(call.commands[0]):
        return None
    failed = call.commands[0]
    helpers: list[tuple[SimpleCommand, Call]] = []
    steps = 0
    for later in calls[number + 1 :]:
        done = [command for command in later.commands if _may_cure(command)]
        if not done:
            continue
        steps += 1
        if steps > _WITHIN or any(call.use.at.start < edit < later.use.at.start for edit in edits):
            return None
        *first, last = done
        is_same = (last.words, last.assignments, last.is_root) == (failed.words, failed.assignments, failed.is_root)
        if later.code != 0:
            helpers = [] if is_same else helpers
            continue
        helpers += [(command, later) for command in first]
        if is_same:
            return _helped(failed, helpers)
        if text := _other_form(failed, last):
            return PlainCure(failed, text, place_of(later.use, last.text), is_other_form=True)
        helpers.append((last, later))
    return None


def _helped(failed: SimpleCommand, helpers: list[tuple[SimpleCommand, Call]]) -> PlainCure | None:
    """Return the command that was run last before the failed one succeeded, unless it is for one time only."""
    if not helpers or is_for_once(helpers[-1][0].text):
        return None
    command, call = helpers[-1]
    return PlainCure(failed, command.typed, place_of(call.use, command.text), is_other_form=False)


def _may_cure(command: SimpleCommand) -> bool:
    return command.program not in _NO_CURES and _LOOKS.isdisjoint(command.words[1:])


def _other_form(failed: SimpleCommand, command: SimpleCommand) -> str:
    """Return a command as it was typed if it is the failed one in another form; else nothing.

    Another form has variables or options more, runs by `sudo`, or runs in something that carries the command.
    """
    variables = [each for each in command.assignments if each not in failed.assignments]
    typed = " ".join((*map(without_secret, variables), command.typed))
    if command.words == failed.words:
        return typed if variables or command.is_root != failed.is_root else ""
    size = len(failed.words)
    is_carried = len(command.words) > size and command.words[-size:] == failed.words
    wanted = [word for word in failed.words[1:] if not word.startswith("-")]
    rest = list(wanted)
    more = [word for word in command.words[1:] if not (rest and word == rest[0] and rest.pop(0))]
    options = [word for word in more if word not in failed.words]
    is_longer = command.program == failed.program and not rest and 0 < len(options) <= _MAX_MORE
    return typed if is_carried or (is_longer and options[0].startswith("-")) else ""

"""Lines about commands: what a person or an agent is told, with the sessions that show it."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from commonplace.learning.commands.places import Place

MAX_TEXT: Final = 160
"""The longest text of a line."""

LineKind = Literal["verify", "procedure", "fix", "failure"]


class CommandSource(msgspec.Struct, frozen=True):
    """Where a session shows what a line says."""

    thread_id: str
    turn: int
    start: int
    end: int
    quote: str
    updated_s: int


class CommandLine(msgspec.Struct, frozen=True):
    """A line about commands."""

    kind: LineKind
    role: str
    """The role of the command; for troubles, the kind of trouble."""
    text: str
    commands: tuple[str, ...]
    sources: list[CommandSource]
    """The newest session first."""
    sessions: int
    is_told: bool
    """False for a candidate: found by a search and shown for review, never told to an agent."""


def source_of(thread_id: str, updated_s: int, place: Place) -> CommandSource:
    """Return the source that a place of a session is."""
    return CommandSource(thread_id, place.turn, place.start, place.end, place.quote, updated_s)


def newest_first(sources: list[CommandSource]) -> list[CommandSource]:
    """Return sources in the order in which they are shown."""
    return sorted(sources, key=lambda source: (-source.updated_s, source.thread_id, source.start))


def code(text: str) -> str:
    """Return a command as it stands in a sentence; a backtick within it is taken out."""
    return f"`{text.replace('`', '')}`"

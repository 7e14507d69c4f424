"""Additional context: what a client knows about the moment (an open file, a page) and hands in with a person's input.

A turn comes with the complete map of key → value; a session remembers the last one. An entry is told when its value or
its kind is new, in the order of the keys, before the person's words; an entry that is left out is forgotten without a
word, and told again when it comes back. What comes from the client itself speaks as a developer, what it only passes
on speaks as a user inside a tag that says it is external.

Invariants: a map is judged as a whole before anything changes; a key is any text, escaped where it becomes a tag;
values go to the model as they are, cut to `VALUE_TOKENS`; what is remembered is the uncut value; nothing here is
written to disk.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from commonplace.context import injected_messages, truncate
from commonplace.context.injected_messages import InjectedText, Item
from commonplace.errors import BadInput

Kind = Literal["untrusted", "application"]

VALUE_TOKENS: Final = 1_000
"""Budget of one value, in approximate tokens."""
EXTERNAL_TOKENS: Final = 10_000
"""Budget of a message of another program, as of a tool's output."""
_ESCAPED: Final = frozenset("<>/")


class AdditionalContext(msgspec.Struct, frozen=True):
    """One thing a client knows; fields that we do not know are ignored."""

    value: str
    kind: Kind


class LastGivenContext(msgspec.Struct, frozen=True):
    """The map that a session was last given. It begins empty, also after a resume; a compaction does not change it."""

    entries: dict[str, AdditionalContext] = {}

    def merge(self, entries: Mapping[str, AdditionalContext]) -> tuple[LastGivenContext, list[InjectedText]]:
        """Return the new memory and what of the map the model has not been told."""
        told = [injected_text(key, entries[key]) for key in sorted(entries) if self.entries.get(key) != entries[key]]
        return LastGivenContext(dict(entries)), told


def check(entries: Mapping[str, AdditionalContext]) -> None:
    """Refuse what could not be sent as UTF-8.

    Raises:
        BadInput: a text is not Unicode.
    """
    for key, entry in entries.items():
        try:
            f"{key}{entry.value}".encode()
        except UnicodeEncodeError:
            raise BadInput(
                f"The additional context's value for {key!r} is not valid Unicode.",
                hint="Send text that can be written as UTF-8.",
                key=key,
            ) from None


def _tag(key: str) -> str:
    """Return a key as the name of a tag: what would end the tag or begin another is written as its number."""
    return "".join(f"&#{ord(char)};" if _is_escaped(char) else char for char in key)


def _is_escaped(char: str) -> bool:
    return char in _ESCAPED or char.isspace() or unicodedata.category(char) == "Cc"


def external(entries: Mapping[str, AdditionalContext]) -> list[Item]:
    """Return what other programs say, as messages; it is told each time (raises BadInput: it cannot be sent)."""
    check(entries)
    return injected_messages.messages([injected_text(key, entry, EXTERNAL_TOKENS) for key, entry in entries.items()])


def injected_text(key: str, entry: AdditionalContext, tokens: int = VALUE_TOKENS) -> InjectedText:
    """Return an entry as the model gets it: the value cut and wrapped as it is, in a message of its own."""
    value, key = truncate.truncate(entry.value, tokens), _tag(key)
    kind = f"additional_content.{key}"
    if entry.kind == "untrusted":
        return InjectedText("user", f"<external_{key}>{value}</external_{key}>", kind, alone=True)
    return InjectedText("developer", f"<{key}>{value}</{key}>", kind, alone=True)


def start(
    remembered: LastGivenContext, entries: Mapping[str, AdditionalContext], messages: Sequence[Item]
) -> tuple[LastGivenContext, list[Item]]:
    """Return the memory and the input of a new turn; without words of a person the context alone is the input.

    Raises:
        BadInput: an entry cannot be sent; the memory stays as it was.
    """
    check(entries)
    after, told = remembered.merge(entries)
    return after, [*injected_messages.messages(told), *messages]


def steer(
    remembered: LastGivenContext, entries: Mapping[str, AdditionalContext], messages: Sequence[Item]
) -> tuple[LastGivenContext, list[Item]]:
    """Return the memory and the input that joins a running turn.

    Call it after every other check of the steer, since a steer that is refused changes nothing.

    Raises:
        BadInput: nobody said anything (context alone does not steer), or an entry cannot be sent.
    """
    if not messages:
        raise BadInput(
            "A running turn cannot be steered without input.",
            hint="Send the additional context together with something to do, or with the next turn.",
            reason="empty_input",
        )
    return start(remembered, entries, messages)

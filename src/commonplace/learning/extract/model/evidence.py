"""Quotes, looked for in the session: what is there gets its place and its speaker, what is not is no evidence.

A quote is compared without white space, and with the marks that writers change (curly quotes, long dashes) made plain.
It is looked for in the turn that it names, then everywhere; where several events hold it, the person's own words come
first, then what ran, then what was printed or said. Whose words they are decides what may rest on them:

    said by the user          typed by the person, outside of what they pasted
    shown by a command        a command line that ran, or its output
    shown by a tool           arguments of other tools (`change`), and what they returned (`tool`)
    said by the assistant
    pasted into the session   in a message of the person, but not their own words

What came out of a memory is never looked at. Quotes of a few letters prove nothing, unless they are all that was said.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final, Literal

import msgspec

from commonplace.learning.lasting import authors
from commonplace.learning.lasting.authors import Author, Stretch
from commonplace.learning.lasting.statements import PersonMessage, messages
from commonplace.learning.reading import exclusions, tables
from commonplace.learning.reading.findings import quote
from commonplace.learning.reading.session_view import EventSpan, ModelText, SessionView, ToolUse, UserText, ViewEvent
from commonplace.memory.lessons import Evidence

LEAST: Final = 6
"""Bytes that a quote has at least, blanks not counted, unless it is the whole of what was said."""
Whose = Literal["person", "command", "change", "output", "tool", "assistant", "pasted"]
HOW: Final[dict[Whose, str]] = {
    "person": "said by the user",
    "command": "shown by a command",
    "change": "shown by a tool",
    "output": "shown by a command",
    "tool": "shown by a tool",
    "assistant": "said by the assistant",
    "pasted": "pasted into the session",
}
_ORDER: Final[tuple[Whose, ...]] = ("person", "command", "change", "output", "tool", "assistant", "pasted")
_GUESSED: Final = frozenset({"impersonal", "indented", "gap", "code"})
"""Rules by which a line only looks as if nobody had typed it. A model that reads the message knows better."""
_ANNOUNCED: Final = tables.pattern("announced")
_RULES_FOLLOW: Final = tables.pattern("rules_follow")
_PLAIN: Final = str.maketrans({"“": '"', "”": '"', "„": '"', "’": "'", "‘": "'", "–": "-", "—": "-"})


class Proof(msgspec.Struct, frozen=True):
    """A quote that was found, and whose words it is."""

    evidence: Evidence
    whose: Whose


class SpokenText(msgspec.Struct, frozen=True):
    """One text of a session, and whose it is."""

    at: EventSpan
    text: str
    whose: Whose
    bare: str


def comparable_text(text: str) -> str:
    """Return the form of a text that is compared."""
    return "".join(text.translate(_PLAIN).split())


class QuoteFinder:
    """The texts of a session in which quotations are searched; made once, used for each answer about the session."""

    def __init__(self, view: SessionView) -> None:
        self._view = view
        self._known: dict[tuple[int | None, str], Proof | None] = {}

    @cached_property
    def texts(self) -> list[SpokenText]:
        """The texts of the session, the person's own words first."""
        found = [text for message in messages(self._view) for text in _of_message(message)]
        found += [text for event in self._view.events() for text in _of_event(event)]
        return sorted(found, key=lambda text: _ORDER.index(text.whose))  # within one speaker the order stays

    def lines(self, *whose: Whose) -> list[str]:
        """Return the lines of what some speakers said, ran or printed."""
        return [line for text in self.texts if text.whose in whose for line in text.text.splitlines()]

    @cached_property
    def calls(self) -> list[ToolUse]:
        """The calls that ran a command."""
        calls = (event for event in self._view.events() if isinstance(event, ToolUse) and event.command)
        return [call for call in calls if not call.is_memory and not call.refused]

    @cached_property
    def bare(self) -> str:
        """All texts in the form that is compared, in small letters."""
        return "\n".join(text.bare for text in self.texts).lower()

    def answered(self, evidence: Evidence) -> list[str]:
        """Return the lines of what the assistant said last before words of the person: what they may answer."""
        before = [text for text in self.texts if text.whose == "assistant" and text.at.start < evidence.start]
        last = max(before, key=lambda text: text.at.start, default=None)
        return last.text.splitlines() if last is not None else []

    def proof(self, turn: int | None, words: str) -> Proof | None:
        """Return where a quote stands and whose words it is; None if it is not in the session."""
        if (turn, words) not in self._known:
            self._known[turn, words] = self._look_for(turn, words)
        return self._known[turn, words]

    def _look_for(self, turn: int | None, words: str) -> Proof | None:
        whole = comparable_text(words)
        stripped = whole.strip("\"'`")
        named = [text for text in self.texts if text.at.turn == turn]
        for wanted in dict.fromkeys((whole, stripped, whole.strip("…."), stripped.strip("…."))):
            found = (_first(named, wanted) or _first(self.texts, wanted)) if wanted else None
            if found is None:
                continue  # some put quotation marks around a quote, or an ellipsis where they stop to quote
            told = quote(_original(found, wanted))
            at = found.at
            evidence = Evidence(at.turn, at.start, at.end, told, HOW[found.whose])
            return None if exclusions.is_unfit(told) else Proof(evidence, found.whose)
        return None


def _first(texts: list[SpokenText], wanted: str) -> SpokenText | None:
    is_long = len(wanted.encode("utf-8", "replace")) >= LEAST
    return next((text for text in texts if (wanted in text.bare if is_long else wanted == text.bare.strip(".!"))), None)


def _original(text: SpokenText, wanted: str) -> str:
    """Return the words as they stand in the session."""
    start = text.bare.index(wanted)
    places = [place for place, letter in enumerate(text.text) if not letter.isspace()]
    return text.text[places[start] : places[start + len(wanted) - 1] + 1]


def _of_message(message: PersonMessage) -> Iterator[SpokenText]:
    """Yield the person's own words in a message, and the message as a whole if others' words are in it."""
    parts = authors.stretches(message.text, marks=message.marks)
    own = [part for number, part in enumerate(parts) if _is_own(message.text, part, parts[:number])]
    said = _text(message.at, "".join(message.text[part.start : part.end] for part in own), "person")
    whole = _text(message.at, message.text, "pasted")
    if said.bare:
        yield said
    if said.bare != whole.bare:
        yield whole


def _is_own(text: str, part: Stretch, before: list[Stretch]) -> bool:
    """Say whether words are the person's: typed, or taken for others' by a guess that does not count here."""
    if part.author.is_own or part.rule in _GUESSED:
        return True
    if part.author is not Author.PASTED or part.rule != "announced" or not before:
        return False
    lines = text[: part.start].rstrip().splitlines()
    return bool(_RULES_FOLLOW.search(lines[-1])) or not _ANNOUNCED.search(lines[-1])


def _of_event(event: ViewEvent) -> Iterator[SpokenText]:
    match event:
        case UserText(voice="shell"):
            yield _text(event.at, event.text, "command")
        case ModelText():
            yield _text(event.at, event.text, "assistant")
        case ToolUse() if not event.is_memory:
            is_shell = bool(event.command)
            has_run = is_shell and not event.refused
            yield _text(event.at, event.command or event.arguments, "command" if has_run else "change")
            if not event.refused:
                yield _text(event.output_at or event.at, event.output, "output" if is_shell else "tool")
        case _:
            pass


def _text(at: EventSpan, text: str, whose: Whose) -> SpokenText:
    return SpokenText(at, text, whose, comparable_text(text))

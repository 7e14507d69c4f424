"""Quotes, looked for in the session: what is there gets its place and its speaker, what is not is no evidence.

A quote is compared without white space, and with the marks that writers change (curly quotes, long dashes) made plain.
It is looked for in the turn that it names, then everywhere; where several events hold it, the person's own words come
first, then what ran, then what was printed or said. Whose words they are decides what may rest on them:

    said by the user          typed by the person, outside of what they pasted
    shown by a command        a command line that ran, or its output
    shown by a tool           arguments and outputs of other tools
    said by the assistant
    pasted into the session   in a message of the person, but not their own words

What came out of a memory is never looked at. Quotes of a few letters prove nothing, unless they are all that was said.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final, Literal

import msgspec

from commonplace.learning.extract.model.drafts import Reference
from commonplace.learning.reading import exclusions, sentences
from commonplace.learning.reading.findings import FindingEvidence, quote
from commonplace.learning.reading.session_view import EventSpan, ModelText, SessionView, ToolUse, UserText, ViewEvent
from commonplace.protocol import shell

LEAST: Final = 8
"""Bytes that a quote has at least, blanks not counted, unless it is the whole of what was said."""
Whose = Literal["person", "command", "output", "tool", "assistant", "pasted"]
HOW: Final[dict[Whose, str]] = {
    "person": "said by the user",
    "command": "shown by a command",
    "output": "shown by a command",
    "tool": "shown by a tool",
    "assistant": "said by the assistant",
    "pasted": "pasted into the session",
}
_ORDER: Final[tuple[Whose, ...]] = ("person", "command", "output", "tool", "assistant", "pasted")
_MAX_COMMANDS: Final = 32
"""How many commands of one line are compared."""
_PLAIN: Final = str.maketrans({"“": '"', "”": '"', "„": '"', "’": "'", "‘": "'", "–": "-", "—": "-"})


class Proof(msgspec.Struct, frozen=True):
    """A quote that was found, and whose words it is."""

    evidence: FindingEvidence
    whose: Whose


class _Text(msgspec.Struct, frozen=True):
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
        self._known: dict[Reference, Proof | None] = {}

    @cached_property
    def _texts(self) -> list[_Text]:
        found = [text for event in self._view.events() for text in _of_event(event)]
        return sorted(found, key=lambda text: _ORDER.index(text.whose))  # within one speaker the order stays

    @cached_property
    def user_lines(self) -> list[str]:
        """The person's own words, line by line."""
        return [line for text in self._texts if text.whose == "person" for line in text.text.splitlines()]

    @cached_property
    def command_lines(self) -> list[str]:
        """The command lines that ran."""
        return [line for text in self._texts if text.whose == "command" for line in text.text.splitlines()]

    @cached_property
    def folders(self) -> frozenset[str]:
        """The folders that work was done in, as far as calls name them."""
        calls = (event for event in self._view.events() if isinstance(event, ToolUse))
        return frozenset(call.folder for call in calls if call.folder) | {self._view.cwd}

    @cached_property
    def _calls(self) -> list[tuple[ToolUse, tuple[str, ...]]]:
        """The calls that ran a command, each with its line from the start and from each command in it."""
        calls = (event for event in self._view.events() if isinstance(event, ToolUse) and event.command)
        ran = [call for call in calls if not call.is_memory and not call.refused]
        return [(call, tuple(map(comparable_text, _from_each_command(call.command)))) for call in ran]

    def has_run(self, command: str, *, ok: bool | None = None) -> bool:
        """Say whether a command was run, and ended so if that matters."""
        wanted = comparable_text(command.rstrip("…"))
        return any(_begins(lines, wanted) and (ok is None or call.ok is ok) for call, lines in self._calls)

    def has_failed_with(self, command: str, error: str) -> bool:
        """Say whether a command failed and said this."""
        wanted, said = (
            comparable_text(command.rstrip("…")),
            [comparable_text(part.strip().rstrip("…")) for part in error.split(" | ")],
        )
        outputs = [
            comparable_text(call.output) for call, lines in self._calls if call.ok is False and _begins(lines, wanted)
        ]
        return any(all(part in output for part in said) for output in outputs)

    def proof(self, reference: Reference) -> Proof | None:
        """Return where the words of a reference stand; None if nowhere, or if they must not be kept."""
        if reference not in self._known:
            self._known[reference] = self._look_for(reference)
        return self._known[reference]

    def _look_for(self, reference: Reference) -> Proof | None:
        whole = comparable_text(reference.quote)
        for wanted in dict.fromkeys((whole, whole.strip("…."), whole.partition("->")[0])):
            named = [text for text in self._texts if text.at.turn == reference.turn]
            found = (_first(named, wanted) or _first(self._texts, wanted)) if wanted else None
            if found is None:
                continue  # some put an ellipsis where they stop to quote, or an arrow before what came of it
            words = quote(_original(found, wanted))
            return (
                None
                if exclusions.is_unfit(words)
                else Proof(FindingEvidence(found.at, words, HOW[found.whose]), found.whose)
            )
        return None


def _from_each_command(line: str) -> list[str]:
    """Return a command line from its start and from each command in it, also those that it gives to a shell."""
    found = [line]
    for segment in shell.segments(line)[:_MAX_COMMANDS]:
        script = shell.wrapped_script(segment.texts[shell.prefix_length(segment.texts) :]) or ""
        found += [line[segment.start :], *(script[inner.start :] for inner in shell.segments(script)[:_MAX_COMMANDS])]
    return found


def _begins(lines: tuple[str, ...], wanted: str) -> bool:
    return any(line.startswith(wanted) for line in lines)


def _first(texts: list[_Text], wanted: str) -> _Text | None:
    is_long = len(wanted.encode("utf-8", "replace")) >= LEAST
    return next((text for text in texts if (wanted in text.bare if is_long else wanted == text.bare)), None)


def _original(text: _Text, wanted: str) -> str:
    """Return the words as they stand in the session."""
    start = text.bare.index(wanted)
    places = [place for place, letter in enumerate(text.text) if not letter.isspace()]
    return text.text[places[start] : places[start + len(wanted) - 1] + 1]


def _of_event(event: ViewEvent) -> Iterator[_Text]:
    match event:
        case UserText(voice="shell"):
            yield _text(event.at, event.text, "command")
        case UserText():
            own = _text(event.at, "\n".join(sentences.own_lines(event.text)), "person")
            whole = _text(event.at, event.text, "pasted")
            yield own
            if own.bare != whole.bare:
                yield whole
        case ModelText():
            yield _text(event.at, event.text, "assistant")
        case ToolUse() if not event.is_memory:
            is_shell = bool(event.command)
            has_run = is_shell and not event.refused
            yield _text(event.at, event.command or event.arguments, "command" if has_run else "tool")
            if not event.refused:
                yield _text(event.output_at or event.at, event.output, "output" if is_shell else "tool")
        case _:
            pass


def _text(at: EventSpan, text: str, whose: Whose) -> _Text:
    return _Text(at, text, whose, comparable_text(text))

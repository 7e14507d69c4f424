"""`commonplace memory review`, `keep` and `drop`: a person decides about candidates and doubtful entries.

On a terminal each entry has a screen and each answer is one key. A decision is stored when its key is pressed; the
memory's files are made anew once, at the end.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

import click

from commonplace.surfaces.cli import output
from commonplace.surfaces.cli.command import call
from commonplace.surfaces.cli.keys import Keys

if TYPE_CHECKING:
    from commonplace.memory.edits.review import Decided, Verdict
    from commonplace.memory.evidence import Link
    from commonplace.memory.listing import Listed
    from commonplace.memory.source_turn import TurnLine

Answer = Literal["keep", "drop", "edit", "context", "skip", "stop"]
_KEYS: Final[dict[str, Answer]] = {
    "k": "keep",
    "d": "drop",
    "e": "edit",
    "c": "context",
    "n": "skip",
    "\n": "skip",
    "\r": "skip",
    "s": "stop",
    "q": "stop",
    "": "stop",
}
_HINT: Final = "k keep · d drop · e edit · c more context · n or Enter skip · s stop ›"
_MARKS: Final = {"user": "›", "assistant": "·", "command": "$"}
_WIDTH: Final = 100
_TURN_LINES: Final = 24
"""How many lines of a turn are shown at once."""
_NO_TERMINAL: Final = (
    "A review needs a terminal. Use --json to list what waits, "
    "then `commonplace memory keep ID` and `commonplace memory drop ID` to decide."
)


@click.command()
@click.option("--project", metavar="P", help="Only this project: an identity, its last part, or a folder.")
@output.json_option
def review(project: str | None, as_json: bool) -> None:
    """Decide about what is in doubt, one key for each entry.

    First candidates, then entries that rest on one session which does not show that they last, then what a model said
    and its session does not bear out. What you decide is never asked again, and raises or lowers the rank of entries of
    the same kind. With --json, list what waits.
    """
    if not as_json and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(_NO_TERMINAL)
    found = call(lambda memory: memory.review(project))
    if as_json:
        output.print_json({"candidates": found})
    elif not found:
        output.say("Nothing waits for a review.")
    else:
        _Review(found).run()


class _Review:
    """One review on a terminal."""

    def __init__(self, waiting: list[Listed]) -> None:
        self._waiting = waiting
        self._counts: Counter[str] = Counter()

    def run(self) -> None:
        """Ask about each entry until all are answered or the person stops; then make the files anew."""
        try:
            with Keys() as keys:
                for place, entry in enumerate(self._waiting, 1):
                    self._show(place, entry)
                    if self._ask(entry, keys) == "stop":
                        break
        except KeyboardInterrupt:
            output.say()
        changed = self._counts["keep"] + self._counts["drop"] + self._counts["edit"]
        if changed:
            call(lambda memory: memory.rebuild())
        left = len(self._waiting) - changed
        edited = f", {self._counts['edit']} edited" if self._counts["edit"] else ""
        output.say(
            f"{self._counts['keep']} kept, {self._counts['drop']} dropped{edited}; "
            f"{left} still {'waits' if left == 1 else 'wait'}."
        )

    def _ask(self, entry: Listed, keys: Keys) -> Answer:
        """Return the answer about one entry, after it was stored."""
        links = list(entry.chain) if isinstance(entry.chain, list) else []
        shown = 0
        _prompt(_HINT)
        while True:
            answer = _KEYS.get(keys.read().lower())
            if answer is None:
                continue
            output.say(f" {answer}")
            if answer == "context":
                _show_turn(links[shown % len(links)] if links else None)
                shown += 1
            elif answer != "edit" or self._edit(entry, keys):
                self._store(entry, answer)
                return answer
            _prompt(_HINT)

    def _store(self, entry: Listed, answer: Answer) -> None:
        match answer:
            case "keep" | "drop":
                call(lambda memory: memory.decide([entry.id], answer, rebuild=False))
            case _:
                pass
        self._counts[answer] += 1

    def _edit(self, entry: Listed, keys: Keys) -> bool:
        """Let the person write other words; say whether they did, and they are stored."""
        old = entry.text.strip('"')
        with keys.released():
            try:
                new = " ".join((_written(old) or "").split())
            except (click.ClickException, EOFError, KeyboardInterrupt) as failed:
                output.say(failed.format_message() if isinstance(failed, click.ClickException) else "")
                return False
        if not new or new == old:
            output.say("Nothing was changed.")
            return False
        call(lambda memory: memory.reword(entry.id, new))
        return True

    def _show(self, place: int, entry: Listed) -> None:
        """Draw the screen of an entry."""
        click.clear()
        kind = "refused line" if entry.id.startswith("r") else "candidate" if entry.candidate else "doubtful entry"
        output.say(f"{place} of {len(self._waiting)} · {kind} {entry.id}")
        output.say(f"{entry.kind} for {entry.project or 'every project'}\n")
        for line in _wrapped(entry.text):
            output.say(f"  {line}")
        output.say()
        for link in (entry.chain if isinstance(entry.chain, list) else [])[:3]:
            if link.quote.strip() != entry.text.strip('"'):
                output.say(f"  › {output.one_line(link.quote, _WIDTH)}")
            output.say(f"  {_source(link)}")
        output.say(f"  seen {_when(entry)}")
        output.say(f"  in doubt: {entry.reason}\n")


def _when(entry: Listed) -> str:
    first, last = entry.first_seen[:10], entry.last_seen[:10]
    return f"on {last}" if first == last else f"from {first} to {last}"


def _source(link: Link) -> str:
    return f"note {link.path}" if link.thread_id is None else f"session {link.thread_id}, turn {link.turn}"


def _prompt(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _wrapped(text: str) -> list[str]:
    width = min(_WIDTH, output.terminal_width(_WIDTH) - 4)
    return textwrap.wrap(output.safe(text), max(20, width)) or [""]


def _written(old: str) -> str | None:
    """Return what a person writes in the place of a text: in their editor, else on a line."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if editor:
        return click.edit(old + "\n", editor=editor, extension=".md", require_save=True)
    output.say("Write it as it should be, on one line; an empty line changes nothing.")
    return input("› ")


def _show_turn(link: Link | None) -> None:
    """Print the turn that a source stands in, as far as it fits on a screen around the source."""
    lines = call(lambda memory: memory.read_turn(link)) if link is not None else []
    output.say()
    if link is None or not lines:
        output.say("  There is no more: its session cannot be read, or a note says it.\n")
        return
    output.say(f"  {_source(link)}")
    drawn = [(each, line) for each in lines for line in _drawn(each, is_source=each.offset == link.byte_start)]
    here = next((place for place, (each, _) in enumerate(drawn) if each.offset == link.byte_start), 0)
    first = max(0, min(here - _TURN_LINES // 3, len(drawn) - _TURN_LINES))
    for _, line in drawn[first : first + _TURN_LINES]:
        output.say(f"  {line}")
    output.say()


def _drawn(line: TurnLine, *, is_source: bool) -> list[str]:
    """Return the lines of a message; those of the source are not cut as short as the others."""
    mark = _MARKS.get(line.role, " ")
    wrapped = [part for text in line.text.split("\n") if text.strip() for part in _wrapped(text)]
    most = 12 if is_source else 4
    shown = wrapped if len(wrapped) <= most else [*wrapped[: most - 1], "…"]
    return [f"{mark if not place else ' '} {text}" for place, text in enumerate(shown)]


@click.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@output.json_option
def keep(ids: tuple[str, ...], as_json: bool) -> None:
    """Keep candidates or entries: they count as sure, and are not asked about again.

    What was dropped can be kept again by its id.
    """
    _decide(ids, "keep", as_json=as_json)


@click.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@output.json_option
def drop(ids: tuple[str, ...], as_json: bool) -> None:
    """Drop candidates or entries: they leave the memory and are not learned again.

    `memory keep` takes it back. What is pinned or noted by hand is not dropped: use `memory pin --unpin` or
    `memory forget`.
    """
    _decide(ids, "drop", as_json=as_json)


def _decide(ids: tuple[str, ...], verdict: Verdict, *, as_json: bool) -> None:
    decided: list[Decided] = call(lambda memory: memory.decide(ids, verdict))
    if as_json:
        output.print_json(decided[0] if len(ids) == 1 else {"decisions": decided})
        return
    for each in decided:
        output.say(f"{each.id} is {'kept' if each.decision == 'keep' else 'dropped'}.")


COMMANDS = (review, keep, drop)

"""The events of a turn on the screen: finished items are printed once, running items are drawn below them.

Answers are printed block by block while they stream, commands when they have ended, with the last lines of their
output; until then a command's newest lines are drawn. Deltas that come fast are drawn together.
"""

from __future__ import annotations

import asyncio
from typing import Final

from commonplace.agent import events
from commonplace.surfaces.cli import exec_text, output
from commonplace.surfaces.cli.chat import markdown
from commonplace.surfaces.cli.chat.screen import Screen

_TOGETHER: Final = 0.04
"""Seconds for which deltas are collected before they are drawn."""
_TAIL: Final = 3
"""How many lines of a running command's output are drawn."""
_KEPT: Final = 2_000
"""Characters of a running command's output that are kept for drawing."""


class EventView:
    """Shows the events of a conversation on the screen."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._streams: dict[str, markdown.MarkdownStream] = {}
        self._running: dict[str, tuple[str, str]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._drawn: tuple[int, list[str]] | None = None
        self._echoed: list[str] = []
        self.waiting: list[str] = []
        """What was said and is not taken in yet."""
        self.status = ""
        """What is going on, in a few words."""

    def changed(self) -> None:
        """Draw anew."""
        self._drawn = None
        self._screen.draw()

    def live(self, width: int) -> list[str]:
        """Return the lines that still change."""
        if self._drawn is None or self._drawn[0] != width:
            self._drawn = (width, self._lines(width))
        return self._drawn[1]

    def _lines(self, width: int) -> list[str]:
        parts = [markdown.markdown(stream.rest, width) for stream in self._streams.values() if stream.rest.strip()]
        parts = [f"\n{part}" for part in parts]
        for line, text in self._running.values():
            tail = [f"  {output.one_line(each, width - 3)}" for each in text.splitlines()[-_TAIL:]]
            parts.append(markdown.plain("\n".join([line, *tail]), width, "dim"))
        for words in self.waiting:
            parts.append(markdown.plain(f"› {output.one_line(words, width - 24)} (not read yet)", width, "dim"))
        if self.status:
            parts.append(markdown.plain(self.status, width, "dim"))
        return "\n".join(parts).split("\n") if parts else []

    def echo(self, words: str) -> None:
        """Print what a person said, before the turn tells that it took it in."""
        self._echoed.append(words)
        self.show_input(words)

    def show_input(self, words: str, kind: str = "") -> None:
        """Print what a person said."""
        lines = output.safe(words).split("\n")
        text = "\n".join(f"{'  ' if place else '› '}{line}" for place, line in enumerate(lines))
        self._screen.say(text, "bold", kind, wraps=False, opens=True)

    def answer(self, text: str) -> None:
        """Print a whole answer."""
        self._blocks([text])

    def take(self, event: events.Event) -> None:
        """Show one event."""
        match event:
            case events.TextDelta() | events.PlanDelta():
                self._streams.setdefault(event.item_id, markdown.MarkdownStream()).feed(event.text)
                self._soon()
            case events.OutputDelta() if event.item_id in self._running:
                line, text = self._running[event.item_id]
                self._running[event.item_id] = (line, (text + event.text)[-_KEPT:])
                self._soon()
            case events.ItemStarted(item=item):
                self._started(item)
            case events.ItemUpdated(item=events.Plan() as plan):
                self._tell(events.ItemCompleted(turn_id=event.turn_id, item=plan))
            case events.ItemUpdated(item=events.CommandExecution() as run):
                self._running.pop(run.id, None)
                self._screen.say(_command(run), "cyan", "tool")
                self._tell(event)
                self.changed()
            case events.ItemCompleted(item=item):
                self._advance()
                self._completed(event, item)
            case events.Warned() | events.Retrying():
                self._advance()
                for line in exec_text.event_lines(event):
                    self._screen.say(line, "yellow")
            case events.TurnCompleted() | events.TurnFailed() | events.TurnAborted():
                self._ended(event)
            case _:
                pass

    def _started(self, item: events.Item) -> None:
        if isinstance(item, events.CommandExecution):
            self._running[item.id] = (_command(item), "")
            self.changed()
        elif isinstance(item, events.Plan):
            self._tell(events.ItemCompleted(turn_id="", item=item))

    def _completed(self, event: events.ItemCompleted, item: events.Item) -> None:
        match item:
            case events.UserMessage():
                self._show_taken_input("\n".join(str(part["text"]) for part in item.content if "text" in part))
            case events.AgentMessage():
                stream = self._streams.pop(item.id, None)
                self._blocks(stream.end() if stream is not None and stream.said else [item.text])
            case events.Plan():
                pass  # told when it changed
            case events.ProposedPlan():
                stream = self._streams.pop(item.id, None)
                self._blocks(stream.end() if stream is not None and stream.said else [item.text])
            case events.CommandExecution():
                self._running.pop(item.id, None)
                self._screen.say(_command(item), "cyan", "tool")
                self._tell(event)
            case _:
                self._tell(event)
        self.changed()

    def _show_taken_input(self, words: str) -> None:
        """Take an input of a person out of the queue, because the turn took it in."""
        if words in self._echoed:
            self._echoed.remove(words)
            return
        if words in self.waiting:
            self.waiting.remove(words)
        self.show_input(words)

    def _tell(self, event: events.Event) -> None:
        lines = list(exec_text.event_lines(event))
        if lines:
            self._screen.say("\n".join(lines), "dim", "tool")

    def _ended(self, end: events.End) -> None:
        for stream in self._streams.values():
            self._blocks(stream.end())
        self._streams.clear()
        self._running.clear()
        self._echoed.clear()
        if isinstance(end, events.TurnFailed):
            self._screen.say(f"! {end.error.sentence()}", "red")
        elif isinstance(end, events.TurnAborted):
            self._screen.say("! stopped", "yellow")
        self.changed()

    def _soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_TOGETHER, self._advance)

    def _advance(self) -> None:
        """Print the blocks that are finished, draw the rest."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for stream in self._streams.values():
            self._blocks(stream.finished())
        self.changed()

    def _blocks(self, blocks: list[str]) -> None:
        for block in blocks:
            if block.strip():
                self._screen.print(markdown.markdown(block, self._screen.width))


def _command(item: events.CommandExecution) -> str:
    started = events.ItemStarted(turn_id="", item=item)
    return next(iter(exec_text.event_lines(started)))

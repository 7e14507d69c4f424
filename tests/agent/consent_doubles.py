"""Those who are asked in a scene: a person who always answers alike, and hooks that note what they were told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio.to_thread
import msgspec
from scripted_session import Stage

from commonplace.agent import events
from commonplace.agent.approvals.requests import Decision
from commonplace.agent.hooks.config import HookCommand

_SCRIPT = 'told=$(cat); printf "%s\\n" "$told" >> "$1"; printf %s "$2"; printf %s "$3" >&2; exit "$4"'
_GATE = 'cat >> "$1"; echo >> "$1"; echo here > "$2"; read -r word < "$3"; [ "$word" = go ] || exit 1; printf %s "$4"'


def answering(here: Stage, decision: Decision) -> list[events.Asked]:
    """Answer every question in one way; return those that were asked."""
    asked: list[events.Asked] = []

    def listen(event: events.Event) -> None:
        if isinstance(event, events.Asked):
            asked.append(event)
            here.session.decide(event.request_id, decision)

    here.listeners.append(listen)
    return asked


def warnings(here: Stage) -> list[str]:
    """What the person was warned of."""
    return [event.message for event in here.events if isinstance(event, events.Warned)]


class Listener:
    """A hook that notes what it is told, in a file of its own."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def says(self, answer: object = "", *, err: str = "", code: int = 0, matcher: str = "") -> HookCommand:
        """Return it with an answer: words, or what becomes JSON."""
        text = answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
        return HookCommand(("/bin/sh", "-c", _SCRIPT, "hook", str(self.log), text, err, str(code)), matcher)

    def refuses(self, reason: str, matcher: str = "") -> HookCommand:
        """Return it with the exit code that refuses."""
        return self.says(err=reason, code=2, matcher=matcher)

    @property
    def told(self) -> list[dict[str, Any]]:
        """What it was told."""
        return [msgspec.json.decode(line) for line in self.log.read_bytes().splitlines()] if self.log.exists() else []

    def field(self, name: str) -> list[Any]:
        """One field of all that it was told."""
        return [each.get(name) for each in self.told]


class Gate:
    """A hook that waits: it says that it runs, and goes on when it is told to."""

    def __init__(self, folder: Path, answer: str = "") -> None:
        self._here, self._go = folder / "gate.here", folder / "gate.go"
        os.mkfifo(self._here)
        os.mkfifo(self._go)
        words = ("/bin/sh", "-c", _GATE, "hook", str(folder / "gate.log"), str(self._here), str(self._go), answer)
        self.hook = HookCommand(words)

    async def reached(self) -> None:
        """Return when the hook runs."""
        await anyio.to_thread.run_sync(self._here.read_text)

    async def opens(self) -> None:
        """Let it go on."""
        await anyio.to_thread.run_sync(self._go.write_text, "go\n")

"""The runs of hooks as notifications. Events in, notifications out; the time is a parameter."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.agent import events

Json = dict[str, Any]


class HookNotices:
    """Tells the runs of the hooks of one thread, each when it begins and when it has ended."""

    def __init__(self, now: Callable[[], datetime], settings_file: Path) -> None:
        self._now: Final = now
        self._file: Final = str(settings_file)
        """Where hooks are configured."""
        self._began: dict[str, datetime] = {}
        """When the runs began that go on."""

    def notice(self, thread_id: str, event: events.HookStarted | events.HookCompleted) -> tuple[str, Json]:
        """Return the notification of a run."""
        run, now = event.run, self._now()
        words = run.moment.split("_")
        name = ":".join(["-".join(words), str(run.place), self._file, *([run.call_id] if run.call_id else [])])
        is_over = isinstance(event, events.HookCompleted)
        began = self._began.pop(name, now) if is_over else self._began.setdefault(name, now)
        shown: Json = {
            "id": name,
            "eventName": words[0] + "".join(word.capitalize() for word in words[1:]),
            "handlerType": "command",
            "executionMode": "sync",
            "scope": "thread" if run.moment == "session_start" else "turn",
            "sourcePath": self._file,
            "source": "user",
            "displayOrder": run.place,
            "status": run.status,
            "statusMessage": None,
            "startedAt": int(began.timestamp()),
            "completedAt": int(now.timestamp()) if is_over else None,
            "durationMs": max(0, round((now - began).total_seconds() * 1000)) if is_over else None,
            "entries": msgspec.to_builtins(run.entries),
        }
        method = "hook/completed" if is_over else "hook/started"
        return method, {"threadId": thread_id, "turnId": event.turn_id, "run": shown}

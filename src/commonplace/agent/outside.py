"""What a session asks of the rest of the program: the time, memory, tools that need more than a folder.

`runtime` hands one in. `Alone` is a session with nothing around it: it remembers nothing and is asked for nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec

from commonplace.agent.harmless import Prefix
from commonplace.agent.tools.registry import Tool
from commonplace.agent.tools.remembered import Retrieved
from commonplace.protocol.citations import Citation


class Outside(Protocol):
    """What lies around a session."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of this process."""
        ...

    def now(self) -> datetime:
        """Return the time, for the ledger."""
        ...

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        ...

    async def remembered(self, cwd: Path) -> str:
        """Return the section about what is remembered in a folder; nothing if there is nothing."""
        ...

    async def cited(self, citation: Citation) -> msgspec.Struct | None:
        """Count what an answer cites; return what that was found to be."""
        ...

    async def retrieved(self, found: Sequence[Retrieved]) -> None:
        """Count what a command read of the memory."""
        ...

    def external(self, thread_id: str) -> None:
        """Take note that a thread got something from outside; at once, and at most once in a turn."""
        ...

    async def allow(self, cwd: Path, prefixes: Collection[Prefix]) -> None:
        """Remember which commands a person allows in a project, by their first words."""
        ...

    def tools(self, cwd: Path) -> Sequence[Tool]:
        """Return tools besides the agent's own: those of the memory."""
        ...

    def clean(self, text: str) -> str:
        """Take out of a text what may not be shown again."""
        ...


class Alone:
    """Nothing lies around it."""

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.environment: Mapping[str, str] = environment or {}
        self.now = now
        self.monotonic = monotonic

    async def remembered(self, cwd: Path) -> str:
        """Remember nothing."""
        return ""

    async def cited(self, citation: Citation) -> msgspec.Struct | None:
        """Count nothing."""
        return None

    async def retrieved(self, found: Sequence[Retrieved]) -> None:
        """Count nothing."""

    def external(self, thread_id: str) -> None:
        """Take no note."""

    async def allow(self, cwd: Path, prefixes: Collection[Prefix]) -> None:
        """Remember nothing."""

    def tools(self, cwd: Path) -> Sequence[Tool]:
        """Add nothing."""
        return ()

    def clean(self, text: str) -> str:
        """Change nothing."""
        return text

"""The environment of a session: the clock, the variables, memory, and tools of the rest of the program.

Whoever opens a session hands one in. `IsolatedEnvironment` is one without memory and without tools of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec

from commonplace.agent.approvals.harmless_commands import Prefix
from commonplace.agent.tools.memory_reads import MemoryRead
from commonplace.agent.tools.registry import Tool
from commonplace.protocol.citations import Citation


class SessionEnvironment(Protocol):
    """What a session asks of the program around it."""

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables of this process."""
        ...

    def now(self) -> datetime:
        """Return the time, for the ledger."""
        ...

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        ...

    async def remembered(self, cwd: Path) -> str:
        """Return the prompt section with the memories of a folder; empty if there are none."""
        ...

    async def cited(self, citation: Citation) -> msgspec.Struct | None:
        """Count the memories that an answer cites; return a receipt for the ledger, or None."""
        ...

    async def retrieved(self, found: Sequence[MemoryRead]) -> None:
        """Count the memories that commands read."""
        ...

    def external(self, thread_id: str) -> None:
        """Note that a thread got text that was written elsewhere; returns at once, called at most once in a turn."""
        ...

    async def allow(self, cwd: Path, prefixes: Collection[Prefix]) -> None:
        """Store which commands a person allows in a folder."""
        ...

    def tools(self, cwd: Path) -> Sequence[Tool]:
        """Return the tools that a session in this folder gets besides the agent's own."""
        ...

    def clean(self, text: str) -> str:
        """Return a text without secrets and without what a person had forgotten."""
        ...


class IsolatedEnvironment:
    """An environment without memory and without further tools."""

    def __init__(
        self,
        variables: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.variables: Mapping[str, str] = variables or {}
        self.now = now
        self.monotonic = monotonic

    async def remembered(self, cwd: Path) -> str:
        """Remember nothing."""
        return ""

    async def cited(self, citation: Citation) -> msgspec.Struct | None:
        """Count nothing."""
        return None

    async def retrieved(self, found: Sequence[MemoryRead]) -> None:
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

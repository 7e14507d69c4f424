"""What a session taught once its evidence was looked at: tasks with bullets, each with the places that it rests on."""

from __future__ import annotations

import msgspec

from commonplace.learning.extract.rules.findings import Evidence


class Learned(msgspec.Struct, frozen=True):
    """One bullet that may be kept."""

    section: str
    text: str
    evidence: tuple[Evidence, ...] = ()


class Task(msgspec.Struct):
    """One task, as both texts tell it."""

    name: str
    outcome: str
    learned: list[Learned] = []
    """The bullets of `raw_memory`."""
    told: list[Learned] = []
    """The bullets of `rollout_summary`, its steps among them."""


class Told(msgspec.Struct):
    """What one session, or one slice of it, taught."""

    title: str = ""
    context: str = ""
    description: str = ""
    cwd: str = ""
    keywords: list[str] = []
    slug: str | None = None
    tasks: list[Task] = []

    @property
    def is_empty(self) -> bool:
        """Whether no bullet is left."""
        return not any(task.learned for task in self.tasks)

"""What a session taught once its evidence was looked at: tasks with bullets, each with the places that it rests on."""

from __future__ import annotations

import msgspec

from commonplace.learning.reading.findings import FindingEvidence


class VerifiedBullet(msgspec.Struct, frozen=True):
    """One bullet that may be kept."""

    section: str
    text: str
    evidence: tuple[FindingEvidence, ...] = ()


class VerifiedTask(msgspec.Struct):
    """One task with the bullets of both texts."""

    name: str
    outcome: str
    memory_bullets: list[VerifiedBullet] = []
    """The bullets of `raw_memory`."""
    summary_bullets: list[VerifiedBullet] = []
    """The bullets of `rollout_summary`, its steps among them."""


class VerifiedSession(msgspec.Struct):
    """What one session, or one slice of it, taught, after verification."""

    title: str = ""
    context: str = ""
    description: str = ""
    cwd: str = ""
    keywords: list[str] = []
    slug: str | None = None
    tasks: list[VerifiedTask] = []

    @property
    def is_empty(self) -> bool:
        """Whether no bullet is left."""
        return not any(task.memory_bullets for task in self.tasks)

"""Compaction triggers: when a history is compacted, with which model, and where its context goes afterwards."""

from __future__ import annotations

from typing import Literal

import msgspec

Reason = Literal["user_requested", "comp_hash_changed", "model_downshift", "context_limit"]
Phase = Literal["standalone_turn", "pre_turn", "mid_turn"]


class ModelLimits(msgspec.Struct, frozen=True):
    """The facts about a model that decide about compaction."""

    slug: str
    window: int | None = None
    """The effective window: what a request may hold."""
    limit: int | None = None
    """Where compaction begins."""
    comp_hash: str | None = None


class WindowUse(msgspec.Struct, frozen=True):
    """How much of the window is used."""

    total: int
    counted: int | None = None
    """What is compared with the limit where only what came after the prefix counts; None: the total."""

    def reaches(self, model: ModelLimits) -> bool:
        """Say whether a model's limit, or its window, is reached."""
        counted = self.total if self.counted is None else self.counted
        over_limit = model.limit is not None and counted >= model.limit
        return over_limit or (model.window is not None and self.total >= model.window)


class Trigger(msgspec.Struct, frozen=True):
    """Why and when a history is compacted."""

    reason: Reason
    phase: Phase
    injects: bool = False
    """The context goes back in at once, before the last request; else the next turn brings it."""
    by_previous_model: bool = False
    """The model of the last turn writes the summary: its window holds what the new model's may not."""


MANUAL = Trigger("user_requested", "standalone_turn")


def before_turn(used: WindowUse, current: ModelLimits, previous: ModelLimits | None) -> list[Trigger]:
    """Return the compactions that are due before a turn's input is taken in, in their order."""
    found: list[Trigger] = []
    if previous is not None and _hash_changed(previous, current):
        return [Trigger("comp_hash_changed", "pre_turn", by_previous_model=True)]
    if previous is not None and _is_downshift(used, previous, current):
        found.append(Trigger("model_downshift", "pre_turn", by_previous_model=True))
    elif used.reaches(current):
        found.append(Trigger("context_limit", "pre_turn"))
    return found


def after_sampling(
    used: WindowUse, current: ModelLimits, *, follow_up: bool, new_window: bool = False
) -> Trigger | None:
    """Return the compaction that is due between two requests of a turn; a turn that ends does not compact."""
    if follow_up and (new_window or used.reaches(current)):
        return Trigger("context_limit", "mid_turn", injects=True)
    return None


def _hash_changed(previous: ModelLimits, current: ModelLimits) -> bool:
    return previous.comp_hash is not None and current.comp_hash is not None and previous.comp_hash != current.comp_hash


def _is_downshift(used: WindowUse, previous: ModelLimits, current: ModelLimits) -> bool:
    """Say whether a smaller model takes over that cannot go on with what is there."""
    if previous.slug == current.slug or previous.window is None or current.window is None:
        return False
    if previous.window <= current.window:
        return False
    over_limit = used.counted is None and current.limit is not None and used.total > current.limit
    return over_limit or used.total >= current.window

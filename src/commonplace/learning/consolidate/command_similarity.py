"""When two lessons that commands showed are the same: they tell of the same commands, or say the same."""

from __future__ import annotations

from commonplace.memory.lessons import SessionLesson


def is_same(one: SessionLesson, two: SessionLesson) -> bool:
    """Say whether two lessons that commands showed teach the same."""
    if one.kind != two.kind or one.project != two.project:
        return False
    return one.text == two.text or (bool(one.commands) and one.commands == two.commands)

"""Our hooks in the settings of Codex and Claude Code: both list groups of hooks by event, in the same form.

Hooks of others stay, also those in one group with ours. A text and what it should mean then change together, so that
the caller can compare them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from commonplace.clients import foreign_files, json_text
from commonplace.clients.foreign_files import inner_table, set_inside
from commonplace.patterns import regex

EVENTS: Final = {"SessionStart": "session-start", "UserPromptSubmit": "user-prompt", "SessionEnd": "session-end"}
"""The events of agents that we answer, and the names that our command gives them."""
_OURS: Final = regex(r"commonplace\S{0,400} mcp hook (session-start|session-end|user-prompt)")


def has_hook(settings: dict[str, Any], event: str) -> bool:
    """Say whether settings have our hook for an event."""
    groups = cast("dict[str, Any]", settings.get("hooks") or {}).get(event, [])
    return any(_positions(group) for group in cast("list[Any]", groups if isinstance(groups, list) else []))


def put(
    text: str, wanted: dict[str, Any], path: Path, ours: Mapping[str, dict[str, Any]] | None, was: dict[str, Any]
) -> str:
    """Return settings with our groups for some events and for no others; `wanted` is changed to mean the same.

    Where ours are taken out (None), the settings get what they had of ours before (`was`), and the tables that they
    had then stay when they are empty (raises BadInput: the settings have another shape).
    """
    if ours is None:
        ours = _earlier(was)
    for event in EVENTS:
        groups = inner_table(wanted, "hooks", path).get(event, [])
        if not isinstance(groups, list):
            raise foreign_files.misunderstood(path)
        depth = json_text.containers_in(was, ("hooks", event))
        text = _with_group(text, wanted, event, cast("list[Any]", groups), ours.get(event), depth)
    return text


def _earlier(was: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the groups of settings that hold only hooks of ours."""
    found: dict[str, dict[str, Any]] = {}
    for event in EVENTS:
        groups = cast("dict[str, Any]", was.get("hooks") or {}).get(event)
        for group in cast("list[Any]", groups if isinstance(groups, list) else []):
            positions = _positions(group)
            if positions and len(positions) == len(group["hooks"]):
                found[event] = group
    return found


def _with_group(
    text: str, wanted: dict[str, Any], event: str, groups: list[Any], group: dict[str, Any] | None, depth: int
) -> str:
    """Return settings with our group for an event and without older ones; `wanted` is changed to mean the same.

    `depth` says how many of the tables `hooks` and that of the event stay when they are empty.
    """
    ours = [(place, _positions(each)) for place, each in enumerate(groups)]
    ours = [(place, positions) for place, positions in ours if positions]
    if group is not None and [groups[place] for place, _ in ours] == [group]:
        return text
    for place, positions in reversed(ours):
        if len(positions) == len(groups[place]["hooks"]):
            text = json_text.drop(text, ("hooks", event, place), depth)
            del groups[place]
            continue
        for position in reversed(positions):
            text = json_text.drop(text, ("hooks", event, place, "hooks", position))
            del groups[place]["hooks"][position]
    if group is not None:
        text = json_text.put(text, ("hooks", event, len(groups)), group)
        groups.append(group)
    if groups or ours:
        set_inside(wanted, "hooks", event, groups if groups or depth > 1 else None, keep=depth > 0)
    return text


def _positions(group: Any) -> list[int]:
    """Return where in a group of hooks ours stand."""
    hooks = cast("dict[str, Any]", group).get("hooks") if isinstance(group, dict) else None
    return [
        position
        for position, each in enumerate(cast("list[Any]", hooks) if isinstance(hooks, list) else [])
        if isinstance(each, dict) and _OURS.search(str(cast("dict[str, Any]", each).get("command")))
    ]

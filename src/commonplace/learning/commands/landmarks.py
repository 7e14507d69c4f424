"""Landmarks of a session: steps of which a procedure may be made, in the order in which they were taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from commonplace.learning.commands.calls import Call, SimpleCommand
from commonplace.learning.commands.canonical import Canonical
from commonplace.learning.commands.places import Place, place_of
from commonplace.learning.commands.roles import Role
from commonplace.patterns import regex

STEPS: Final[frozenset[Role]] = frozenset({"deploy", "release", "migrate", "codegen", "run", "build", "setup"})
"""Roles of commands that may be steps of a procedure."""
_TAG: Final = regex(r"git tag (?>(?:-[asfm] )*)(?P<prefix>(?:[\w.-]{1,40}/)?v?)\d[\w.+-]*+")
_WORKFLOW: Final = regex(r"gh workflow run (?P<name>[\w./-]{1,80})")
_MAX_LANDMARKS: Final = 60


class Landmark(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step: its role (`release` for tags and the like), how it is written, where it was taken."""

    role: Role
    text: str
    place: Place
    folder: str = ""
    source: Literal["run", "git"] = "run"


def landmarks_of(calls: Sequence[Call], forms: Sequence[Sequence[Canonical | None]]) -> list[Landmark]:
    """Return the landmarks of a session in order; repeats in a row count once."""
    found: list[Landmark] = []
    for call, call_forms in zip(calls, forms, strict=True):
        for command, form in zip(call.commands, call_forms, strict=True):
            landmark = _landmark(call, command, form)
            if landmark is not None and not (found and found[-1].text == landmark.text):
                found.append(landmark)
    return found[:_MAX_LANDMARKS]


def _landmark(call: Call, command: SimpleCommand, form: Canonical | None) -> Landmark | None:
    if command.status == "failed" or not command.is_counted:
        return None
    if form is not None:
        scope = f" {form.scope}" if form.scope else ""
        is_step = form.role in STEPS
        return Landmark(form.role, form.form + scope, place_of(call.use, command.text)) if is_step else None
    if command.program in ("git", "gh") and (text := _git_step(command.text)):
        return Landmark("release", text, place_of(call.use, command.text), source="git")
    return None


def _git_step(text: str) -> str:
    """Return the step that a command of git or gh is, without versions; empty if it is none."""
    if found := _TAG.match(text):
        return f"git tag {found['prefix']}<version>"
    if found := _WORKFLOW.match(text):
        return f"gh workflow run {found['name']}"
    words = text.split()
    if words[:2] == ["git", "push"] and "--tags" in words:
        return "git push --tags"
    return "gh release create" if words[:3] == ["gh", "release", "create"] else ""

"""The rules of consent: what runs without asking, what is refused, and what a person must allow. Pure.

    what is to be done                          untrusted    on-request     never
    a command that only reads                   confined     confined       confined
    any other command                           ask          confined       confined
    a command that asks to run unconfined       ask          ask            refused
    a command that cannot be confined here      ask          ask            refused
    a change inside the workspace               ask          free           free
    a change elsewhere, or to a protected path  ask          ask            refused
    a server's tool that may change something   ask          free           free
    a call that needs consent, such as a note   ask          ask            refused

With full access nothing is confined, and what `untrusted` asks about, besides the last, is all that is asked; Codex
does the same. What a person allowed runs unconfined: they saw it.

A client may say for commands with changes, and for calls, that nobody is asked: what would be asked is refused then.

In plan mode, before all this, whatever may change something is refused: every change, every command that is not known
to be harmless, every call that does not say that it only reads. Neither the sandbox nor consent lifts that.
"""

from __future__ import annotations

from typing import Final, Literal

from commonplace.agent.profile import Profile
from commonplace.agent.tools.registry import Action

Verdict = Literal["confined", "free", "ask"]
PLANNING: Final = (
    "plan mode is on, and {what}. Nothing is changed in this mode, whatever the sandbox and the person's consent "
    "allow: say in the plan what you would do here. Only the person can end plan mode."
)
"""Why plan mode refuses something."""
_NOBODY: Final = "nobody can be asked for consent in this session"


class ActionRefused(Exception):
    """An action may not be done, and nobody can be asked."""


def judge(
    profile: Profile,
    action: Action,
    problem: str | None,
    *,
    is_harmless: bool = False,
    is_allowed: bool = False,
) -> Verdict:
    """Return how an action may be done; `problem` says why it cannot be confined, or why a path is protected.

    `is_harmless`: a command that is known to change nothing; `is_allowed`: one that a person allowed for good.

    Raises:
        ActionRefused: it may not be done.
    """
    if profile.mode == "plan" and (what := _may_change(action, is_harmless=is_harmless)) is not None:
        raise ActionRefused(PLANNING.format(what=what))
    if action.kind == "call" and action.escalated:
        if not profile.asks(action.kind):
            raise ActionRefused(f"a person has to see it first; {_NOBODY}.")
        return "ask"
    is_wary = profile.approval == "untrusted"
    if profile.sandbox == "danger-full-access" and (not is_wary or is_harmless or is_allowed or action.read_only):
        return "free"
    if action.kind == "call":
        return "ask" if is_wary and not action.read_only else "free"
    if profile.sandbox == "danger-full-access":
        return "ask"
    can_be_confined = action.kind == "run" and not action.escalated and problem is None
    if can_be_confined and (not is_wary or is_harmless):
        return "confined"
    if action.kind == "change" and problem is None and not is_wary:
        return "free"
    if action.kind == "run" and is_allowed:
        return "free"
    if not profile.asks(action.kind):
        why = problem or "it asks to run without the sandbox"
        raise ActionRefused(f"{why}; {_NOBODY}. The person can allow it with --sandbox danger-full-access.")
    return "ask"


def _may_change(action: Action, *, is_harmless: bool) -> str | None:
    """Return what an action may change, as a clause; None if it is known to change nothing."""
    if action.kind == "change":
        return "this would change files"
    if action.kind == "run":
        return None if is_harmless else "this command is not known to leave everything as it is"
    return None if action.read_only else "this call may change something"

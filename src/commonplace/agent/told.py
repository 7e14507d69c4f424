"""What the model is told of its surroundings: the sections of the world as they are now.

Rebuilt before every request, told only where it changed (`context.world`). The budget line is one of them: how many
tokens of the window are taken and how many are left, told again at every tenth, so that it costs ten short lines per
window and never touches what was sent before.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from commonplace.agent import sandbox, skills
from commonplace.agent.profile import Profile
from commonplace.agent.sandbox import Level, Policy
from commonplace.context import filesystem, instructions
from commonplace.context.environment import Environment, Environments
from commonplace.context.injected_messages import Injected
from commonplace.context.instructions import Global, Place
from commonplace.context.permissions import Permissions
from commonplace.context.sections import AgentsMd, Collaboration, Model, Personality, Standing
from commonplace.context.world_state import Name, Section
from commonplace.models import instructions as base_instructions

if TYPE_CHECKING:
    from commonplace.agent.session import Session

BUDGET: Final = "token_budget"
_STEPS: Final = 10
_POLICIES: Final = {
    "never": "Nobody can be asked: what is not allowed is refused, so find another way or say what is missing.",
    "on-request": "The person is asked where consent is needed; say why in `justification`.",
    "untrusted": "The person is asked before every command that is not known to be harmless.",
}


def sections(session: Session) -> list[Section]:
    """Return the sections as they are now; a session that is bare has none."""
    profile, now = session.profile, session.outside.now()
    if profile.bare:
        return []
    slug = profile.choice.slug
    found = instructions.discover(session.standing, [Place(cwd=str(profile.cwd))])
    policy = session.policy
    rules = permission_text(policy, session.level, profile.approval)
    return [
        Model(slug, base_instructions(profile.choice.info, profile.personality), session.previous_model),
        Personality(slug, profile.personality, baked=True),
        Permissions(rules, tuple(sorted(session.approvals.prefixes))),
        Collaboration(slug, profile.mode),
        AgentsMd(found),
        environment(profile, policy, now),
        budget(session.history.used(), profile.window.effective),
        skills.section(session.skills),
    ]


def permission_text(policy: Policy, level: Level | None, approval: str) -> str:
    """Return what the model is told that it may do; until a command was confined, that this works is assumed."""
    assumed = level or sandbox.Level(mechanism="bubblewrap", network_off=True, spaces=True)
    return f"{sandbox.permissions(policy, assumed)}\n\n{_POLICIES[approval]}"


def environment(profile: Profile, policy: Policy, now: datetime) -> Environments:
    """Return where the work happens."""
    roots = [str(root) for root in (profile.cwd, *profile.roots)]
    here = Environment(cwd=str(profile.cwd), shell="bash")  # noqa: S604 (the name of the shell, for the model)
    return Environments(
        environments={"local": here},
        current_date=now.date().isoformat(),
        timezone=profile.timezone,
        filesystem=filesystem.element(roots, sandbox.profile(policy)),
    )


def budget(used: int, window: int | None) -> Standing:
    """Return the line about the room that is left; the snapshot is the tenth that is begun."""
    name = Name(BUDGET, BUDGET, lapses=True)
    if window is None or window <= 0:
        return Standing(name=name)
    tenth = min(used * _STEPS // window, _STEPS)
    left = max(window - used, 0)
    text = (
        f"<{BUDGET}>\nAbout {used:,} of {window:,} tokens of the context are used, {left:,} are left; "
        f"when it is full, older parts are summed up.\n</{BUDGET}>"
    )
    return Standing(name=name, remembered=tenth, text=Injected("developer", text, f"{BUDGET}.instructions"))


def memory(text: str) -> Sequence[Injected]:
    """Return what is remembered, as it is told at the beginning of a window."""
    return (Injected("developer", text, "memory.instructions"),) if text else ()


def standing(profile: Profile) -> Global:
    """Return the person's own instructions."""
    return Global() if profile.bare else instructions.read_global(profile.home)

"""The sections of the prompt that describe where the model works: model, permissions, instructions, folder, budget.

They are made anew before every request, and the model is told only those that changed (`context.world`). The budget
section says how many tokens of the window are taken and how many are left. It changes at every tenth of the window, so
that it costs ten short lines per window and never changes what was sent before.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from commonplace.agent import sandbox, skills
from commonplace.agent.profile import Profile
from commonplace.agent.sandbox import SandboxPolicy, SandboxSupport
from commonplace.agent.session import Session
from commonplace.context import filesystem, instructions
from commonplace.context.environment import Environment, Environments
from commonplace.context.injected_messages import InjectedText
from commonplace.context.instructions import Instructions, WorkEnvironment
from commonplace.context.permissions import Permissions
from commonplace.context.sections import AgentsMd, Collaboration, ModelSection, Personality, StandingText
from commonplace.context.world_state import Section, SectionName
from commonplace.models import instructions as base_instructions

BUDGET: Final = "token_budget"
DEVELOPER: Final = "developer_instructions"
_STEPS: Final = 10
"""Into how many parts the window is cut; the budget is told again when another part is begun."""
_POLICIES: Final = {
    "never": "Nobody can be asked: what is not allowed is refused, so find another way or say what is missing.",
    "on-request": "The person is asked where consent is needed; say why in `justification`.",
    "untrusted": "The person is asked before every command that is not known to be harmless.",
}


def sections(session: Session, profile: Profile) -> list[Section]:
    """Return the sections as they are now; a bare profile has none."""
    if profile.bare:
        return []
    slug = profile.choice.slug
    policy = session.sandbox.policy(profile)
    rules = permission_text(policy, session.sandbox.support, profile.approval if profile.asks("run") else "never")
    return [
        ModelSection(slug, base_instructions(profile.choice.info, profile.personality), session.prompt.previous_model),
        Personality(slug, profile.personality, baked=True),
        Permissions(rules, tuple(sorted(session.approvals.prefixes(profile.cwd)))),
        Collaboration(slug, profile.mode, profile.mode_words),
        AgentsMd(_instructions(session, profile)),
        environment(profile, policy, session.environment.now()),
        budget(session.history.used(), profile.window.effective),
        skills.section(session.prompt.skills),
        *([] if profile.developer is None else [developer(profile.developer)]),
    ]


def _instructions(session: Session, profile: Profile) -> Instructions:
    """Return the standing instructions; a person is told of a file that a link leads out of the project."""
    here = WorkEnvironment(cwd=str(profile.cwd), trust=profile.trust)
    found = instructions.discover(session.instructions, [here], profile.instructions)
    for each in found.receipt.passed:
        if each.reason == "outside":
            session.warn_once(f"{each.path} is not read: a link leads out of the project, to {each.detail}.")
    return found


def permission_text(policy: SandboxPolicy, support: SandboxSupport | None, approval: str) -> str:
    """Return the rules for commands and changes; until the sandbox was tried, it is assumed to work."""
    assumed = support or sandbox.SandboxSupport(mechanism="bubblewrap", network_off=True, spaces=True)
    return f"{sandbox.permissions(policy, assumed)}\n\n{_POLICIES[approval]}"


def environment(profile: Profile, policy: SandboxPolicy, now: datetime) -> Environments:
    """Return the section about the folder, the date and the file system."""
    roots = [str(root) for root in (profile.cwd, *profile.roots)]
    here = Environment(cwd=str(profile.cwd), shell="bash")  # noqa: S604 (the name of the shell, for the model)
    return Environments(
        environments={"local": here},
        current_date=now.date().isoformat(),
        timezone=profile.timezone,
        filesystem=filesystem.element(roots, sandbox.filesystem_profile(policy)),
    )


def budget(used: int, window: int | None) -> StandingText:
    """Return the section about the room that is left in the window; its snapshot is the tenth that is begun."""
    name = SectionName(BUDGET, BUDGET, lapses=True)
    if window is None or window <= 0:
        return StandingText(name=name)
    tenth = min(used * _STEPS // window, _STEPS)
    left = max(window - used, 0)
    text = (
        f"<{BUDGET}>\nAbout {used:,} of {window:,} tokens of the context are used, {left:,} are left; "
        f"when it is full, older parts are summed up.\n</{BUDGET}>"
    )
    return StandingText(name=name, remembered=tenth, text=InjectedText("developer", text, f"{BUDGET}.instructions"))


def developer(text: str) -> StandingText:
    """Return the section with the instructions of whoever runs the session."""
    name = SectionName(DEVELOPER, DEVELOPER)
    return StandingText(name=name, remembered=text, text=InjectedText("developer", text, f"{DEVELOPER}.text"))


def memory(text: str) -> Sequence[InjectedText]:
    """Return the text about memories, as it is told at the beginning of a window."""
    return (InjectedText("developer", text, "memory.instructions"),) if text else ()

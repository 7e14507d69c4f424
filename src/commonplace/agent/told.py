"""What the model is told of its surroundings: the sections of the world as they are now.

Rebuilt before every request, told only where it changed (`context.world`). The budget line is one of them: how many
tokens of the window are taken and how many are left, told again at every tenth, so that it costs ten short lines per
window and never touches what was sent before.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from commonplace.agent.profile import Profile
from commonplace.context import filesystem, instructions
from commonplace.context.environment import Environment, Environments
from commonplace.context.filesystem import Profile as Guard
from commonplace.context.injected import Injected
from commonplace.context.instructions import Global, Place
from commonplace.context.permissions import Permissions
from commonplace.context.sections import AgentsMd, Collaboration, Model, Personality, Standing
from commonplace.context.world import Name, Section
from commonplace.models import instructions as base_instructions

BUDGET: Final = "token_budget"
_STEPS: Final = 10
_RULES: Final = {
    "danger-full-access": "Commands run as the person who started this session, without a sandbox.",
    "workspace-write": "Commands need the person's consent before they run; files in the workspace may be changed.",
    "read-only": "Commands and changes to files need the person's consent.",
}
_POLICIES: Final = {
    "never": "Nobody can be asked: what is not allowed is refused, so find another way or say what is missing.",
    "on-request": "The person is asked where consent is needed; say why in `justification`.",
    "untrusted": "The person is asked before every command that is not known to be harmless.",
}


def sections(
    profile: Profile, standing: Global, now: datetime, used: int, previous_model: str | None = None
) -> list[Section]:
    """Return the sections; `standing` are the person's own instructions, read once per thread."""
    slug = profile.choice.slug
    found = instructions.discover(standing, [Place(cwd=str(profile.cwd))])
    return [
        Model(slug, base_instructions(profile.choice.info, profile.personality), previous_model),
        Personality(slug, profile.personality, baked=True),
        Permissions(permission_text(profile)),
        Collaboration(slug, profile.mode),
        AgentsMd(found),
        environment(profile, now),
        budget(used, profile.window.effective),
    ]


def permission_text(profile: Profile) -> str:
    """Return what the model is told that it may do."""
    return f"{_RULES[profile.sandbox]}\n{_POLICIES[profile.approval]}"


def environment(profile: Profile, now: datetime) -> Environments:
    """Return where the work happens."""
    roots = [str(root) for root in (profile.cwd, *profile.roots)]
    guard = Guard("disabled") if profile.sandbox == "danger-full-access" else Guard("managed", ())
    here = Environment(cwd=str(profile.cwd), shell="bash")  # noqa: S604 (the name of the shell, for the model)
    return Environments(
        environments={"local": here},
        current_date=now.date().isoformat(),
        timezone=profile.timezone,
        filesystem=filesystem.element(roots, guard),
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


def standing(home: Path) -> Global:
    """Return the person's own instructions."""
    return instructions.read_global(home)


def sandbox_policy(profile: Profile) -> dict[str, Any]:
    """Return what commands may do, as a `turn_context` says it."""
    if profile.sandbox != "workspace-write":
        return {"type": profile.sandbox}
    return {
        "type": "workspace-write",
        "writable_roots": [str(root) for root in profile.roots],
        "network_access": False,
        "exclude_tmpdir_env_var": False,
        "exclude_slash_tmp": False,
    }

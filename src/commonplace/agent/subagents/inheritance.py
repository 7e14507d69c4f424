"""The settings of a sub-agent: its parent's, changed by the call, by the person's settings and by its role.

Folder, sandbox, approval, roots, allowed commands, hooks, servers and instructions are always the parent's: nothing
that a model or a role says lets a sub-agent do more than its parent.
"""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.agent.agent_identity import THREAD_SOURCE, AgentIdentity
from commonplace.agent.profile import Profile
from commonplace.agent.subagents.roles import RoleSettings
from commonplace.config import Settings
from commonplace.errors import BadSetting, ToolError
from commonplace.models import catalog
from commonplace.models.providers import Choice, choose, key_variables

_SHOWN: Final = 5
"""How many models an error names."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a call asks for besides the task."""

    model: str | None = None
    effort: str | None = None
    service_tier: str | None = None


def profile(settings: Settings, parent: Profile, identity: AgentIdentity, wish: Wish, role: RoleSettings) -> Profile:
    """Return the profile of a new sub-agent.

    Raises:
        ToolError: the model, the effort or the service tier cannot be had.
    """
    if wish.service_tier:
        raise ToolError("service_tier", f"service tier {wish.service_tier!r} is not supported by any model here")
    named = role.model or wish.model or settings.agents.default_subagent_model
    choice = parent.choice
    if named is not None:
        by_person = named != wish.model
        choice = _choice(settings, parent.choice, named.strip(), anywhere=by_person)
    effort = role.effort or wish.effort or settings.agents.default_subagent_reasoning_effort
    if effort is not None:
        _check_effort(choice, effort)
    elif named is None:
        effort = parent.effort
    withheld = parent.withheld if named is None else (*parent.withheld, *key_variables(settings, choice))
    developer = "\n\n".join(text for text in (parent.developer, role.developer_instructions) if text)
    return msgspec.structs.replace(
        parent,
        agent=identity,
        source=identity.source(),
        thread_source=THREAD_SOURCE,
        choice=choice,
        effort=effort,
        withheld=tuple(dict.fromkeys(withheld)),
        developer=developer or None,
        summary=role.summary or parent.summary,
        verbosity=role.verbosity or parent.verbosity,
        personality=role.personality or parent.personality,
    )


def _choice(settings: Settings, parent: Choice, name: str, *, anywhere: bool) -> Choice:
    """Return the model that a name means; `anywhere`: also one of a provider that is not the parent's.

    Only a person says so: a model must not send what it was told to a server that nobody named.

    Raises:
        ToolError: it is not known.
    """
    slug = name.removeprefix(f"{parent.name}:")
    if slug == parent.slug:
        return parent
    try:
        found = choose(settings, name) if anywhere else parent.other_model(slug)
    except BadSetting as error:
        raise ToolError("model", error.sentence()) from None
    if not found.info.known and not anywhere:
        listed = [parent.slug, *(each for each in catalog.names() if _is_of(parent, each) and each != parent.slug)]
        raise ToolError("model", f"unknown model {name[:100]!r}", hint=f"Use one of {', '.join(listed[:_SHOWN])}.")
    return found


def _is_of(parent: Choice, name: str) -> bool:
    return catalog.model_info(name).provider == parent.name


def _check_effort(choice: Choice, effort: str) -> None:
    """Refuse an effort that a model is known not to have (raises ToolError)."""
    known = choice.info.efforts
    if known and effort not in known:
        raise ToolError(
            "effort",
            f"reasoning effort {effort[:100]!r} is not supported by {choice.slug}",
            hint=f"Use one of {', '.join(known)}.",
        )

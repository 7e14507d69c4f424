"""What people and models are told of the sandbox; the words stand in `texts.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from commonplace.agent.sandbox.policy import Policy
from commonplace.agent.sandbox.wrapping import Level, unmet


@cache
def _texts() -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_name("texts.toml").read_text("utf-8"))


def text(name: str) -> str:
    """Return one of the texts."""
    return _texts()[name].strip()


def permissions(policy: Policy, level: Level) -> str:
    """Return what a model is told about what its commands may do."""
    parts = [text(policy.mode)]
    if policy.mode == "danger-full-access":
        return parts[0]
    if policy.mode == "workspace-write":
        folders = (*policy.workspaces(), *policy.temporary())
        parts.append(text("folders").format(folders="\n".join(f"- {folder}" for folder in dict.fromkeys(folders))))
        parts.append(text("protected"))
        if level.mechanism == "landlock" and not level.spaces:
            parts.append(text("nothing_new"))
    parts.append(text("network_allowed" if policy.network else "network_refused"))
    parts.append(text("refused") if unmet(policy, level) is None else text("every_command"))
    return "\n\n".join(parts)

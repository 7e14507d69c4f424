"""What people and models are told of the sandbox; the texts are in `texts.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from commonplace.agent.sandbox.command_wrapper import SandboxSupport, unmet
from commonplace.agent.sandbox.policy import SandboxPolicy


@cache
def _texts() -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_name("texts.toml").read_text("utf-8"))


def text(name: str) -> str:
    """Return a text by its name."""
    return _texts()[name].strip()


def permissions(policy: SandboxPolicy, support: SandboxSupport) -> str:
    """Return the text for a model about what its commands may do."""
    parts = [text(policy.mode)]
    if policy.mode == "danger-full-access":
        return parts[0]
    if policy.mode == "workspace-write":
        folders = (*policy.workspaces(), *policy.temporary())
        parts.append(text("folders").format(folders="\n".join(f"- {folder}" for folder in dict.fromkeys(folders))))
        parts.append(text("protected"))
        if support.mechanism == "landlock" and not support.spaces:
            parts.append(text("nothing_new"))
    parts.append(text("network_allowed" if policy.network else "network_refused"))
    parts.append(text("refused") if unmet(policy, support) is None else text("every_command"))
    return "\n\n".join(parts)

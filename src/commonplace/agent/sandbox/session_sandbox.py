"""The sandbox of one session: its policy, and whether an action can be confined by it on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio.to_thread

from commonplace.agent.profile import Profile
from commonplace.agent.sandbox import detection, hard_links, policy
from commonplace.agent.sandbox.command_wrapper import SandboxSupport, confine, unmet
from commonplace.agent.sandbox.policy import SandboxPolicy
from commonplace.agent.sandbox.program_files import program_files
from commonplace.agent.sandbox.writable_paths import remove_placeholders, unchangeable
from commonplace.agent.servers.config import ServerCommand
from commonplace.agent.skills import PROJECT_FOLDERS
from commonplace.agent.tools.processes import Launch
from commonplace.agent.tools.registry import Action


class SessionSandbox:
    """Confines the commands of one session.

    Invariant: `support` is None until the first command is checked; then it is what this machine really does.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.support: SandboxSupport | None = None
        self._links_looked_for = False

    def policy(self, profile: Profile) -> SandboxPolicy:
        """Return what commands may do under a profile."""
        return policy.session_policy(
            profile.sandbox,
            profile.cwd,
            home=profile.home,
            environment=self._variables,
            roots=profile.roots,
            network=profile.network,
            protected=self._run_files(profile),
        )

    def _run_files(self, profile: Profile) -> tuple[Path, ...]:
        """Return the files of the work that are run unconfined, or that tell a model what to run."""
        files = program_files(
            [hook.command for hooks in profile.hooks.values() for hook in hooks], profile.cwd, self._variables
        )
        for server in profile.servers:
            if isinstance(server.place, ServerCommand):
                words, folder = (server.place.command, *server.place.args), profile.cwd / (server.place.cwd or ".")
                files += program_files([words], folder, self._variables)
        roots = (profile.cwd, *profile.roots)
        inside = [path for path in files if any(_is_in(path, root) for root in roots)]
        inside += hard_links.other_names(inside, roots)
        skills = (root / name for root in roots for name in PROJECT_FOLDERS)
        return (*inside, *(path for path in skills if path.is_dir()))

    async def problem(self, profile: Profile, action: Action) -> str | None:
        """Return why a command cannot be confined, or why a file may not be changed; None if neither is so."""
        if profile.sandbox == "danger-full-access" or action.kind == "call":
            return None
        allowed = self.policy(profile)
        if action.kind == "change":
            reasons = (unchangeable(allowed, Path(path)) for path in action.paths)
            return next((reason for reason in reasons if reason is not None), None)
        self.support = await anyio.to_thread.run_sync(detection.detect)
        return unmet(allowed, self.support)

    async def hard_links(self, profile: Profile) -> str | None:
        """Return a warning of files that have names outside the workspace; once, before a command may change them."""
        if self._links_looked_for or not self.policy(profile).workspaces():
            return None
        self._links_looked_for = True
        files = await anyio.to_thread.run_sync(hard_links.linked_files, self.policy(profile).workspaces())
        return hard_links.warning(files) if files else None

    async def clean_up(self, profile: Profile) -> None:
        """Remove what a command that was killed left in place of Git's files, before anybody takes it for something."""
        await anyio.to_thread.run_sync(remove_placeholders, self.policy(profile))

    def confine(self, profile: Profile, launch: Launch) -> Launch:
        """Return what to start so that a command runs confined (raises ToolError: it cannot be confined)."""
        assert self.support is not None, "a command is checked before it is confined"
        return confine(launch, self.policy(profile), self.support)


def _is_in(path: Path, root: Path) -> bool:
    folder = path.parent.resolve()
    return root.resolve() in (folder, *folder.parents)

"""What a session's commands may do: a mode, folders, the network. A value; nothing here reads the disk.

    read-only            nothing can be written but devices such as /dev/null
    workspace-write      the working folder, further folders and the folders for temporary files can be written
    danger-full-access   commands run as they are

The fields are those that Codex writes into a turn's context, so that its sessions and ours say the same. Protected
paths cannot be changed even inside a folder that can be written: the paths given here, Git's own files
(`protected_paths`), and this program itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from commonplace.context import filesystem
from commonplace.context.filesystem import FilesystemRule

SandboxMode = Literal["read-only", "workspace-write", "danger-full-access"]
_SLASH_TMP: Final = Path("/tmp")  # noqa: S108  # the folder itself is meant


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What commands may do."""

    mode: SandboxMode
    cwd: Path
    """The session's working folder."""
    roots: tuple[Path, ...] = ()
    """Further folders that can be written."""
    protected: tuple[Path, ...] = ()
    """Paths that cannot be changed, even in such a folder, and even if they do not exist yet."""
    network: bool = False
    tmpdir: Path | None = None
    """The value of `TMPDIR`."""
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False

    def workspaces(self) -> tuple[Path, ...]:
        """Return the folders of the work that can be written."""
        return (self.cwd, *self.roots) if self.mode == "workspace-write" else ()

    def temporary(self) -> tuple[Path, ...]:
        """Return the folders for temporary files that can be written."""
        if self.mode != "workspace-write":
            return ()
        tmpdir = () if self.tmpdir is None or self.exclude_tmpdir_env_var else (self.tmpdir,)
        return (*tmpdir, *(() if self.exclude_slash_tmp else (_SLASH_TMP,)))


def session_policy(
    mode: SandboxMode,
    cwd: Path,
    *,
    home: Path,
    environment: Mapping[str, str],
    roots: tuple[Path, ...] = (),
    network: bool = False,
    protected: tuple[Path, ...] = (),
) -> SandboxPolicy:
    """Return the policy of a session; Commonplace's own home and its memories are protected, besides what is given."""
    named = environment.get("TMPDIR", "")
    tmpdir = Path(named) if named.startswith("/") else None
    own = (home, home / "memories", *protected)
    return SandboxPolicy(mode=mode, cwd=cwd, roots=roots, protected=own, network=network, tmpdir=tmpdir)


def wire(policy: SandboxPolicy) -> dict[str, Any]:
    """Return the `sandbox_policy` of a turn's context."""
    if policy.mode == "danger-full-access":
        return {"type": policy.mode}
    if policy.mode == "read-only":
        return {"type": policy.mode, "network_access": True} if policy.network else {"type": policy.mode}
    roots = {"writable_roots": [str(root) for root in policy.roots]} if policy.roots else {}
    return {
        "type": policy.mode,
        **roots,
        "network_access": policy.network,
        "exclude_tmpdir_env_var": policy.exclude_tmpdir_env_var,
        "exclude_slash_tmp": policy.exclude_slash_tmp,
    }


def filesystem_profile(policy: SandboxPolicy) -> filesystem.FilesystemProfile:
    """Return the policy as rules about files, for the environment section of the prompt."""
    if policy.mode == "danger-full-access":
        return filesystem.FilesystemProfile("disabled")
    rules = [FilesystemRule(access="read", target="special", value=":root")]
    if policy.mode == "workspace-write":
        rules.append(FilesystemRule(access="write", target="special", value=":workspace_roots"))
        rules += [FilesystemRule(access="write", target="path", value=str(root)) for root in policy.roots]
        if not policy.exclude_slash_tmp:
            rules.append(FilesystemRule(access="write", target="special", value=":slash_tmp"))
        if policy.tmpdir is not None and not policy.exclude_tmpdir_env_var:
            rules.append(FilesystemRule(access="write", target="special", value=":tmpdir"))
        rules.append(FilesystemRule(access="read", target="special", value=":workspace_roots/.git"))
        rules += [FilesystemRule(access="read", target="path", value=str(path)) for path in policy.protected]
    return filesystem.FilesystemProfile("managed", tuple(rules))

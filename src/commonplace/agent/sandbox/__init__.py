"""The sandbox: a model's commands run confined by bubblewrap, else by Landlock; where neither works, a person is asked.

    policy            what commands may do: a mode, folders, the network (a value)
    protected_paths   paths that no command may change, even in a folder that it can write
    writable_paths    what follows from both for mounts and for Landlock
    seccomp           the system calls that are refused (pure)
    detection         which mechanisms work on this machine, found by trying them
    command_wrapper   the command line that confines a command
    launcher          the program in that line, which sets the confinement up
    session_sandbox   the sandbox of one session
    texts             what people and models are told of the sandbox

Use it in this order: `detect()` once; `unmet(policy, support)` says why a person must be asked; else start
`confine(launch, policy, support)` instead of `launch`. Invariant: a command is confined as the policy says, or
`confine` raises; nothing is confined in part. Tools that change files in this process ask `unchangeable`.
"""

from commonplace.agent.sandbox.command_wrapper import SandboxSupport, confine, unmet
from commonplace.agent.sandbox.detection import detect
from commonplace.agent.sandbox.policy import SandboxMode, SandboxPolicy, filesystem_profile, session_policy, wire
from commonplace.agent.sandbox.texts import permissions
from commonplace.agent.sandbox.writable_paths import unchangeable

__all__ = [
    "SandboxMode",
    "SandboxPolicy",
    "SandboxSupport",
    "confine",
    "detect",
    "filesystem_profile",
    "permissions",
    "session_policy",
    "unchangeable",
    "unmet",
    "wire",
]

"""Commands that a model asks for, confined: by bubblewrap, else by Landlock; where neither works, a person is asked.

    policy                  what commands may do: a mode, folders, the network (a value)
    guarded, areas          what stays as it is all the same; what follows for mounts and rules
    filters                 system calls that are refused (pure)
    levels                  what works on this machine, found by trying
    wrapping, launcher      the command line that confines a command, and the program that stands in it
    texts                   what people and models are told

Used in this order: `level()` once; `unmet(policy, level)` says whether a person must be asked; else
`confine(launch, policy, level)` is started instead of `launch`. Invariant: what cannot be confined is never wrapped
halfway; `confine` raises. Tools that change files in this process ask `unchangeable`.
"""

from commonplace.agent.sandbox.areas import unchangeable
from commonplace.agent.sandbox.levels import level
from commonplace.agent.sandbox.policy import MODES, Mode, Policy, of_session, profile, wire
from commonplace.agent.sandbox.texts import permissions
from commonplace.agent.sandbox.wrapping import Level, confine, unmet

__all__ = [
    "MODES",
    "Level",
    "Mode",
    "Policy",
    "confine",
    "level",
    "of_session",
    "permissions",
    "profile",
    "unchangeable",
    "unmet",
    "wire",
]

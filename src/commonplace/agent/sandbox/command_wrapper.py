"""Wrap a command so that it runs confined: the same `Launch` with another command line.

With bubblewrap, the line is `sh → bwrap → launcher → command`; with namespaces and Landlock, or with Landlock alone,
`launcher → command`. Either way the launcher gives up privileges, then sets up Landlock and the seccomp filter, as far
as they work on this machine, and becomes the command. Invariants:

* If the machine cannot do what a policy asks for, `confine` raises, and `unmet` says why beforehand.
* No program of the line is looked up on a path that a command could have changed.
* The wrappers stay in the process group of the command, ignore signals that ask it to end, and are killed with it;
  whatever is left inside ends with them, and with this process.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from commonplace.agent.sandbox import seccomp, writable_paths
from commonplace.agent.sandbox.policy import SandboxPolicy
from commonplace.agent.tools.processes import Launch
from commonplace.errors import ToolError

_SPACES: Final = 0x10000000 | 0x00020000 | 0x20000000 | 0x08000000
"""User, mounts, processes, shared memory."""
_NETWORK_SPACE: Final = 0x40000000
_WRITING: Final = 0x1FF2
"""Landlock's first rights, but for reading and running: write, remove, make."""
_LATER: Final = ((2, 1 << 13), (3, 1 << 14), (5, 1 << 15))
"""Rights that came with later versions: move between folders, truncate, control devices."""
_SCOPES: Final = 3
"""Abstract sockets and signals of others, from version 6."""
_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
_OWN_DEVICES: Final = ("shm", "pts", "ptmx")
"""Those that are the command's own in its namespaces."""
_START: Final = "import sys; sys.path.append(sys.argv.pop(1)); import launcher; launcher.run()"
_SHELL: Final = "/bin/sh"
_PATIENT: Final = 'trap \'\' INT TERM HUP QUIT; exec "$0" "$@"'
"""bwrap would end, and the command with it, before the command could end by itself; the launcher undoes this."""


class SandboxSupport(msgspec.Struct, frozen=True, kw_only=True):
    """How commands can be confined on this machine."""

    mechanism: str
    """`bubblewrap`, `landlock` or `none`."""
    network_off: bool = False
    """Whether a command can be kept from the network, sockets of this machine included."""
    detail: str = ""
    """A sentence for a person."""
    bwrap: str = ""
    """The path of the program bwrap."""
    spaces: bool = False
    """Whether there are namespaces for mounts and processes."""
    own_network: bool = False
    """Whether there is a namespace for the network; else the filter refuses every socket."""
    landlock: int = 0
    """The version of Landlock; 0 is none."""
    filtered: bool = False
    """Whether system calls are filtered."""


def unmet(policy: SandboxPolicy, support: SandboxSupport) -> str | None:
    """Return why a command cannot be confined as the policy says; None if it can."""
    if policy.mode == "danger-full-access":
        return None
    if support.mechanism == "none":
        return f"commands cannot be confined on this machine: {support.detail}"
    if not policy.network and not support.network_off:
        return f"commands cannot be kept from the network on this machine: {support.detail}"
    return None


def confine(launch: Launch, policy: SandboxPolicy, support: SandboxSupport) -> Launch:
    """Return what to start so that a command runs confined.

    Raises:
        ToolError: it cannot be done here; a person may allow the command as it is.
    """
    if policy.mode == "danger-full-access":
        return launch
    if (why := unmet(policy, support)) is not None:
        raise ToolError("sandbox", why, hint="It can only run with approval.")
    if support.mechanism == "bubblewrap":
        words = _with_bwrap(launch, policy, support)
    elif support.spaces:
        words = _with_spaces(launch, policy, support)
    else:
        words = _alone(launch, policy, support)
    return msgspec.structs.replace(launch, command=tuple(words))


def _with_bwrap(launch: Launch, policy: SandboxPolicy, support: SandboxSupport) -> list[str]:
    area = writable_paths.mount_plan(policy)
    inner = [*_confined(policy, support, (*area.roots, "/dev"))]
    words = [support.bwrap, "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    words += ["--cap-drop", "ALL"]
    if support.own_network and not policy.network:
        words.append("--unshare-net")
    # bwrap's own first process is seen to outlive it, and waits for nothing that a command leaves behind.
    words.append("--as-pid-1")
    inner += ["reap", *(["stay"] if launch.background else [])]
    words += ["--bind" if ("/", True) in area.places else "--ro-bind", "/", "/", "--dev", "/dev"]
    words += ["--proc", "/proc", "--remount-ro", "/proc"]  # or root could set what is everybody's
    for path, writable in area.places:
        if path != "/":
            words += ["--bind" if writable else "--ro-bind", path, path]
    words += ["--chdir", str(launch.cwd), "--", *_launcher(), *inner, "--", *launch.command]
    if area.held:
        return [*_launcher(), *_parent(), *_each("hold", area.held), "--", *words]
    return [_SHELL, "-c", _PATIENT, *words]


def _with_spaces(launch: Launch, policy: SandboxPolicy, support: SandboxSupport) -> list[str]:
    area = writable_paths.mount_plan(policy)
    spaces = _SPACES | (_NETWORK_SPACE if support.own_network and not policy.network else 0)
    words = [*_launcher(), *_parent(), *_each("hold", area.held), "spaces", str(spaces)]
    for path, writable in area.places:
        words += ["write" if writable else "read", path]
    own = tuple(f"/dev/{name}" for name in (*_DEVICES, *_OWN_DEVICES))
    words += _confined(policy, support, (*area.roots, *own))
    return [*words, *(["stay"] if launch.background else []), "--", *launch.command]


def _alone(launch: Launch, policy: SandboxPolicy, support: SandboxSupport) -> list[str]:
    devices = tuple(f"/dev/{name}" for name in _DEVICES)
    words = [
        *_launcher(),
        *_parent(),
        "guard",
        *_confined(policy, support, (*writable_paths.landlock_paths(policy), *devices)),
    ]
    return [*words, *(["stay"] if launch.background else []), "--", *launch.command]


def _confined(policy: SandboxPolicy, support: SandboxSupport, allowed: tuple[str, ...]) -> list[str]:
    """Return the launcher's orders for Landlock and seccomp."""
    words = ["confine"]
    if support.landlock:
        rights = _WRITING | sum(right for version, right in _LATER if support.landlock >= version)
        words += ["landlock", str(rights), str(_SCOPES if support.landlock >= 6 else 0), *_each("allow", allowed)]
    if support.filtered:
        words += ["filter", _filter(policy.network or support.own_network, support.spaces)]
    return words


@cache
def _filter(internet: bool, shared: bool) -> str:
    return seccomp.program(os.uname().machine, internet=internet, shared=shared).hex()


@cache
def _launcher() -> tuple[str, ...]:
    """Return the words that start the launcher: by the interpreter's real path, since a link may lie in a workspace."""
    from commonplace.agent.sandbox import launcher  # loads ctypes; importing it also leaves it compiled on the disk

    folder = Path(launcher.__file__).resolve().parent
    return str(Path(sys.executable).resolve()), "-I", "-S", "-c", _START, str(folder)


def _parent() -> tuple[str, str]:
    return "parent", str(os.getpid())


def _each(order: str, paths: tuple[str, ...]) -> list[str]:
    return [word for path in paths for word in (order, path)]

"""A command, wrapped so that it runs confined: the same `Launch` with another command line.

With bubblewrap, the line is `sh → bwrap → launcher → command`; with namespaces and Landlock, or with Landlock alone,
`launcher → command`. Either way the launcher gives up privileges, then sets up Landlock and the filter, as far as the
level says that they work, and becomes the command. Invariants:

* A level that cannot do what a policy asks for wraps nothing: `confine` raises, and `unmet` says why beforehand.
* Nothing in the line is looked up on a path that a command could have changed.
* The wrappers stay in the process group that the command is started in, ignore what asks it to end, and are killed
  with it; what is left inside ends with them, and with this process.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from commonplace.agent.sandbox import areas, filters
from commonplace.agent.sandbox.policy import Policy
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


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """What can be done on this machine."""

    mechanism: str
    """`bubblewrap`, `landlock` or `none`."""
    network_off: bool = False
    """Whether a command can be kept from the network, sockets of this machine included."""
    detail: str = ""
    """A sentence for a person."""
    bwrap: str = ""
    """The program."""
    spaces: bool = False
    """Whether there are namespaces for mounts and processes."""
    own_network: bool = False
    """Whether there is a namespace for the network; else the filter refuses every socket."""
    landlock: int = 0
    """The version of Landlock; 0 is none."""
    filtered: bool = False
    """Whether system calls are filtered."""


def unmet(policy: Policy, level: Level) -> str | None:
    """Say why a command has to be allowed by a person, or None: it can be confined as the policy says."""
    if policy.mode == "danger-full-access":
        return None
    if level.mechanism == "none":
        return f"commands cannot be confined on this machine: {level.detail}"
    if not policy.network and not level.network_off:
        return f"commands cannot be kept from the network on this machine: {level.detail}"
    return None


def confine(launch: Launch, policy: Policy, level: Level) -> Launch:
    """Return what to start so that a command runs confined.

    Raises:
        ToolError: it cannot be done here; a person may allow the command as it is.
    """
    if policy.mode == "danger-full-access":
        return launch
    if (why := unmet(policy, level)) is not None:
        raise ToolError("sandbox", why, hint="It can only run with approval.")
    if level.mechanism == "bubblewrap":
        words = _with_bwrap(launch, policy, level)
    elif level.spaces:
        words = _with_spaces(launch, policy, level)
    else:
        words = _alone(launch, policy, level)
    return msgspec.structs.replace(launch, command=tuple(words))


def _with_bwrap(launch: Launch, policy: Policy, level: Level) -> list[str]:
    area = areas.mounted(policy)
    inner = [*_confined(policy, level, (*area.roots, "/dev"))]
    words = [level.bwrap, "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    words += ["--cap-drop", "ALL"]
    if level.own_network and not policy.network:
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


def _with_spaces(launch: Launch, policy: Policy, level: Level) -> list[str]:
    area = areas.mounted(policy)
    spaces = _SPACES | (_NETWORK_SPACE if level.own_network and not policy.network else 0)
    words = [*_launcher(), *_parent(), *_each("hold", area.held), "spaces", str(spaces)]
    for path, writable in area.places:
        words += ["write" if writable else "read", path]
    own = tuple(f"/dev/{name}" for name in (*_DEVICES, *_OWN_DEVICES))
    words += _confined(policy, level, (*area.roots, *own))
    return [*words, *(["stay"] if launch.background else []), "--", *launch.command]


def _alone(launch: Launch, policy: Policy, level: Level) -> list[str]:
    devices = tuple(f"/dev/{name}" for name in _DEVICES)
    words = [*_launcher(), *_parent(), "guard", *_confined(policy, level, (*areas.allowed(policy), *devices))]
    return [*words, *(["stay"] if launch.background else []), "--", *launch.command]


def _confined(policy: Policy, level: Level, allowed: tuple[str, ...]) -> list[str]:
    """Return the orders for what the process itself gives up."""
    words = ["confine"]
    if level.landlock:
        rights = _WRITING | sum(right for version, right in _LATER if level.landlock >= version)
        words += ["landlock", str(rights), str(_SCOPES if level.landlock >= 6 else 0), *_each("allow", allowed)]
    if level.filtered:
        words += ["filter", _filter(policy.network or level.own_network, level.spaces)]
    return words


@cache
def _filter(internet: bool, shared: bool) -> str:
    return filters.program(os.uname().machine, internet=internet, shared=shared).hex()


@cache
def _launcher() -> tuple[str, ...]:
    """Return how the launcher is started: by the interpreter itself, for a link to it may lie in a workspace."""
    from commonplace.agent.sandbox import launcher  # which leaves it compiled, for those who cannot write it down

    folder = Path(launcher.__file__).resolve().parent
    return str(Path(sys.executable).resolve()), "-I", "-S", "-c", _START, str(folder)


def _parent() -> tuple[str, str]:
    return "parent", str(os.getpid())


def _each(order: str, paths: tuple[str, ...]) -> list[str]:
    return [word for path in paths for word in (order, path)]

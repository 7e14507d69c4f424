"""Detect how commands can be confined on this machine, by confining one, once per process.

The ways are tried from the best to the weakest. A way counts when a command that it confines runs, returns its exit
code and cannot write. If none works, the result says so, and a person must be asked about every command.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, Literal

import msgspec

from commonplace.agent.sandbox import seccomp
from commonplace.agent.sandbox.command_wrapper import SandboxSupport, confine
from commonplace.agent.sandbox.policy import SandboxPolicy
from commonplace.agent.sandbox.texts import text
from commonplace.agent.tools.processes import Launch

Way = Literal["bubblewrap", "namespaces", "landlock"]
WAYS: Final[tuple[Way, ...]] = ("bubblewrap", "namespaces", "landlock")
"""From the best to the weakest: bwrap; our own namespaces with Landlock; Landlock alone."""

_SYSTEM: Final = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"
"""Where bwrap is searched: not in the user's own path, which may lead into a workspace."""
_LANDLOCK_ALONE: Final = 6
"""The first version of Landlock that suffices without namespaces: it covers signals and truncating."""
_SECONDS: Final = 20.0
"""How many seconds a probe of the sandbox may take."""
_PROBE_CODE: Final = 7
"""The exit code by which a probe shows that it ran inside the sandbox."""
_PROBE: Final = '{ echo > "$0/written"; } 2> /dev/null; exit 7'


def detect() -> SandboxSupport:
    """Return how commands can be confined here; the first call takes some time."""
    return best_support(WAYS)


@cache
def best_support(ways: tuple[Way, ...]) -> SandboxSupport:
    """Return the support of the first of some ways that works."""
    if not sys.platform.startswith("linux"):
        return SandboxSupport(mechanism="none", detail=text("not_linux"))
    reasons: list[str] = []
    for candidate in _candidates(ways):
        problem = problem_with(candidate)
        if problem is None:
            return candidate
        reasons.append(f"{candidate.mechanism}: {problem}")
    if "bubblewrap" in ways and _bwrap() is None:
        reasons.insert(0, text("no_bwrap"))
    if not landlock_version():
        reasons.append(text("no_landlock"))
    return SandboxSupport(mechanism="none", detail=text("none").format(reasons="; ".join(dict.fromkeys(reasons))))


def _candidates(ways: tuple[Way, ...]) -> Iterator[SandboxSupport]:
    version = landlock_version()
    bwrap = _bwrap()
    known = seccomp.is_known(os.uname().machine)
    for filtered in (True, False) if known else (False,):
        for way in ways:
            if way == "landlock":
                if version >= _LANDLOCK_ALONE and filtered:
                    yield _with_detail(
                        SandboxSupport(mechanism="landlock", network_off=True, landlock=version, filtered=True)
                    )
                continue
            if (way == "bubblewrap" and bwrap is None) or (way == "namespaces" and not version):
                continue
            for own_network in (True, False) if filtered else (True,):
                found = SandboxSupport(
                    mechanism="bubblewrap" if way == "bubblewrap" else "landlock",
                    network_off=filtered,  # without the filter, sockets of this machine can still be reached
                    bwrap=bwrap if way == "bubblewrap" and bwrap else "",
                    spaces=True,
                    own_network=own_network,
                    landlock=version,
                    filtered=filtered,
                )
                yield _with_detail(found)


def _with_detail(found: SandboxSupport) -> SandboxSupport:
    parts = [text("with_bwrap" if found.bwrap else "with_spaces" if found.spaces else "alone")]
    if found.landlock and found.bwrap:
        parts.append(text("and_landlock"))
    parts.append(text("network_off" if found.network_off else "network_on"))
    if not found.spaces:
        parts.append(text("alone_lacks"))
    return msgspec.structs.replace(found, detail=" ".join(parts).format(version=found.landlock))


def problem_with(candidate: SandboxSupport) -> str | None:
    """Confine a command as a test; return what went wrong, or None."""
    with tempfile.TemporaryDirectory(prefix="commonplace-") as folder:
        policy = SandboxPolicy(mode="read-only", cwd=Path(folder), network=not candidate.network_off)
        launch = Launch(("/bin/sh", "-c", _PROBE, folder), Path(folder), {"PATH": "/usr/bin:/bin"})
        wrapped = confine(launch, policy, candidate)
        try:
            done = subprocess.run(  # noqa: S603  # what is run is ours
                wrapped.command,
                cwd=wrapped.cwd,
                env=dict(wrapped.environment),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if os.listdir(folder):
            return text("not_held")
    if done.returncode != _PROBE_CODE:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:200] if lines else text("ended").format(code=done.returncode)
    return None


@cache
def landlock_version() -> int:
    """Return the version of Landlock that the kernel has; 0 is none."""
    import ctypes  # slow to load, and called once

    try:
        call = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return 0
    return max(int(call(ctypes.c_long(444), None, ctypes.c_long(0), ctypes.c_long(1))), 0)


@cache
def _bwrap() -> str | None:
    found = shutil.which("bwrap", path=_SYSTEM)
    return str(Path(found).resolve()) if found else None

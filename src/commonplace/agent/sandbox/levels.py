"""How well commands can be confined on this machine: found by really confining one, once per process.

The ways are tried from the best to the least; a way counts when a command that it confines runs, tells its code and
cannot write. What no way gives is not made up for: the level says so, and whoever runs commands has to ask.
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

from commonplace.agent.sandbox import filters
from commonplace.agent.sandbox.policy import Policy
from commonplace.agent.sandbox.texts import text
from commonplace.agent.sandbox.wrapping import Level, confine
from commonplace.agent.tools.processes import Launch

Way = Literal["bubblewrap", "namespaces", "landlock"]
WAYS: Final[tuple[Way, ...]] = ("bubblewrap", "namespaces", "landlock")
"""bwrap; our own namespaces and Landlock; Landlock alone."""

_SYSTEM: Final = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"
"""Where bwrap is looked for: not in the user's own path, which may lead into a workspace."""
_ALONE: Final = 6
"""The first version of Landlock that can do without namespaces: it guards signals, and truncating."""
_SECONDS: Final = 20.0
_RUNS: Final = 7
_PROBE: Final = '{ echo > "$0/written"; } 2> /dev/null; exit 7'


def level() -> Level:
    """Return what can be done here; the first call takes some time."""
    return best(WAYS)


@cache
def best(ways: tuple[Way, ...]) -> Level:
    """Return the best that some ways give."""
    if not sys.platform.startswith("linux"):
        return Level(mechanism="none", detail=text("not_linux"))
    reasons: list[str] = []
    for candidate in _candidates(ways):
        problem = tried(candidate)
        if problem is None:
            return candidate
        reasons.append(f"{candidate.mechanism}: {problem}")
    if "bubblewrap" in ways and _bwrap() is None:
        reasons.insert(0, text("no_bwrap"))
    if not landlock_version():
        reasons.append(text("no_landlock"))
    return Level(mechanism="none", detail=text("none").format(reasons="; ".join(dict.fromkeys(reasons))))


def _candidates(ways: tuple[Way, ...]) -> Iterator[Level]:
    version = landlock_version()
    bwrap = _bwrap()
    known = filters.is_known(os.uname().machine)
    for filtered in (True, False) if known else (False,):
        for way in ways:
            if way == "landlock":
                if version >= _ALONE and filtered:
                    yield _described(Level(mechanism="landlock", network_off=True, landlock=version, filtered=True))
                continue
            if (way == "bubblewrap" and bwrap is None) or (way == "namespaces" and not version):
                continue
            for own_network in (True, False) if filtered else (True,):
                found = Level(
                    mechanism="bubblewrap" if way == "bubblewrap" else "landlock",
                    network_off=filtered,  # without the filter, sockets of this machine can still be reached
                    bwrap=bwrap if way == "bubblewrap" and bwrap else "",
                    spaces=True,
                    own_network=own_network,
                    landlock=version,
                    filtered=filtered,
                )
                yield _described(found)


def _described(found: Level) -> Level:
    from msgspec.structs import replace

    parts = [text("with_bwrap" if found.bwrap else "with_spaces" if found.spaces else "alone")]
    if found.landlock and found.bwrap:
        parts.append(text("and_landlock"))
    parts.append(text("network_off" if found.network_off else "network_on"))
    if not found.spaces:
        parts.append(text("alone_lacks"))
    return replace(found, detail=" ".join(parts).format(version=found.landlock))


def tried(candidate: Level) -> str | None:
    """Confine a command for a trial; return what went wrong."""
    with tempfile.TemporaryDirectory(prefix="commonplace-") as folder:
        policy = Policy(mode="read-only", cwd=Path(folder), network=not candidate.network_off)
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
    if done.returncode != _RUNS:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:200] if lines else text("ended").format(code=done.returncode)
    return None


@cache
def landlock_version() -> int:
    """Return the version of Landlock that the kernel has; 0 is none."""
    import ctypes

    try:
        call = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return 0
    return max(int(call(ctypes.c_long(444), None, ctypes.c_long(0), ctypes.c_long(1))), 0)


@cache
def _bwrap() -> str | None:
    found = shutil.which("bwrap", path=_SYSTEM)
    return str(Path(found).resolve()) if found else None

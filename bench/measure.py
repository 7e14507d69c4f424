"""Measuring whole programs and pieces of this one."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LAUNCHER = """
import json, os, sys, time
out = os.open(os.devnull, os.O_WRONLY)
begun = time.perf_counter()
quiet = [(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, out, 2)]
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(pid, 0)
busy = usage.ru_utime + usage.ru_stime
print(json.dumps([time.perf_counter() - begun, usage.ru_maxrss / 1024, busy, os.waitstatus_to_exitcode(status)]))
"""
"""A child's peak memory counts what its parent had at the fork, so a small process starts the one that is measured."""


@dataclass(frozen=True)
class Run:
    """One run of a program."""

    seconds: float
    megabytes: float
    """The most memory that its first process, or one that it waited for, took."""
    busy: float
    """Processor time of all its processes, in seconds."""


def run(command: Sequence[str], environment: Mapping[str, str] | None = None, timeout: float = 600) -> Run:
    """Run a program once; it must succeed."""
    launcher = [sys.executable, "-S", "-E", "-c", LAUNCHER, *command]
    done = subprocess.run(
        launcher, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=True
    )
    seconds, megabytes, busy, code = json.loads(done.stdout)
    if code:
        raise RuntimeError(f"{command} ended with {code}")
    return Run(seconds, megabytes, busy)


def best_of(times: int, command: Sequence[str], environment: Mapping[str, str] | None = None) -> Run:
    """Run a program several times; return the median time and the largest memory."""
    runs = [run(command, environment) for _ in range(times)]
    return Run(
        statistics.median(one.seconds for one in runs),
        max(one.megabytes for one in runs),
        statistics.median(one.busy for one in runs),
    )


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """Return the shortest time that a piece of work took."""
    taken: list[float] = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def machine() -> str:
    """Return one line about where this was measured."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"
    )

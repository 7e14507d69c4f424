"""The living processes of this machine, as `/proc` lists them; empty where there is no `/proc`."""

from __future__ import annotations

import os

import msgspec


class LivingProcess(msgspec.Struct, frozen=True):
    """A process that has not ended."""

    id: int
    parent: int
    group: int


def living_processes() -> list[LivingProcess]:
    """Return every living process."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    found: list[LivingProcess] = []
    for name in names:
        if name.isdecimal():
            status = read_proc(f"/proc/{name}/stat", 1024)
            state, parent, group = (status[status.rfind(b")") + 2 :].split()[:3] + [b""] * 3)[:3]
            if state and state not in (b"Z", b"X"):
                found.append(LivingProcess(int(name), int(parent), int(group)))
    return found


def group_members(group: int) -> list[int]:
    """Return the living processes of a process group."""
    return [process.id for process in living_processes() if process.group == group]


def read_proc(path: str, most: int) -> bytes:
    """Return the beginning of a file of `/proc`; empty if its process has ended."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, most)
    except OSError:
        return b""
    finally:
        os.close(descriptor)

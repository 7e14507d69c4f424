"""The system calls that a confined command may not make, as a program for the kernel's seccomp filter. Pure.

The filter covers what rules about files do not: sockets other than the Internet's (a Unix socket of Docker, of D-Bus or
of a key agent leads around every rule), new namespaces and mounts, io_uring (which makes system calls that the filter
does not see), the user's keys, limits of other processes. It compares the number of the call and at most two of its
arguments. Calls of another instruction set end the process, since their numbers mean something else.

A pair of connected stream sockets stays allowed: it leads nowhere else. A datagram socket could be connected elsewhere.
"""

from __future__ import annotations

import errno
import struct
from typing import Final

_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "riscv64": 0xC00000F3}
_X32: Final = 0x40000000
"""The flag of x32 system calls, which an x86_64 kernel may accept."""

_NUMBERS: Final = {
    # name: (x86_64, aarch64 and riscv64)
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "file_setattr": (469, 469),
    "finit_module": (313, 273),
    "fremovexattr": (199, 16),
    "fsconfig": (431, 431),
    "fsetxattr": (190, 7),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgget": (68, 186),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "reboot": (169, 142),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "request_key": (249, 218),
    "semget": (64, 190),
    "setns": (308, 268),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
    "shmat": (30, 196),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
_TESTED: Final = frozenset({"clone", "clone3", "ioctl", "prlimit64", "socket", "socketpair"})
"""Calls that are refused by their arguments."""
_SHARED: Final = frozenset({"mq_open", "mq_unlink", "msgget", "semget", "shmat", "shmget"})
"""Calls for shared memory and messages, which every process of the user can reach without a namespace of its own."""
_ATTRIBUTES: Final = frozenset({
    "file_setattr", "fremovexattr", "fsetxattr", "lremovexattr", "lsetxattr", "removexattr", "removexattrat",
    "setxattr", "setxattrat",
})  # fmt: skip
"""Calls that change extended attributes and flags of files: Landlock has no right for them, mounts keep them away."""
_SET_FLAGS: Final = (0x40086602, 0x40046602, 0x401C5820, 0x40087602, 0x40047602)
"""The ioctls that change flags, quota groups and versions of files."""

_NEW_SPACES: Final = 0x7E020000
"""The flags of `clone` that make namespaces."""
_INTERNET: Final = (2, 10, 16)
"""IPv4, IPv6, and netlink, by which programs ask for the addresses of this machine."""
_UNIX, _STREAM, _SEQPACKET = 1, 1, 5
_TYPE: Final = 0xF
_TYPED_KEYS: Final = (0x5412, 0x541C)
"""The ioctls that put characters into a terminal as if they were typed."""

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_EQUAL, _AT_LEAST, _ANY_BIT = 0x15, 0x35, 0x45
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE = 0, 4

Step = tuple[int, int, int, int]
"""A BPF instruction: code, jump if true, jump if false, operand."""


def is_known(machine: str) -> bool:
    """Return whether there is a filter for a machine (as `os.uname` names it)."""
    return machine in _ARCHITECTURES


def program(machine: str, *, internet: bool, shared: bool) -> bytes:
    """Return the filter.

    Args:
        machine: as `os.uname` names it.
        internet: whether sockets of IPv4 and IPv6 can be made.
        shared: whether memory and messages can be shared with who has the same namespace, and files that may not be
            written are mounted read-only.
    """
    column = 0 if machine == "x86_64" else 1
    numbers = {name: both[column] for name, both in _NUMBERS.items()}
    steps: list[Step] = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, _ARCHITECTURES[machine]), _ends(_KILL)]
    steps.append((_LOAD, 0, 0, _NUMBER))
    if machine == "x86_64":
        steps += [(_AT_LEAST, 0, 1, _X32), _ends(_KILL)]
    refused = numbers.keys() - _TESTED - _ATTRIBUTES - (_SHARED if shared else frozenset())
    for name in sorted(refused):
        steps += _when(numbers[name], [_no()])
    for name in sorted(frozenset() if shared else _ATTRIBUTES):  # programs that copy files go on without
        steps += _when(numbers[name], [_no(errno.EOPNOTSUPP)])
    # Its flags stand in memory, where a filter cannot look; the library then uses `clone`.
    steps += _when(numbers["clone3"], [_no(errno.ENOSYS)])
    steps += _when(numbers["clone"], [_argument(0), (_ANY_BIT, 0, 1, _NEW_SPACES), _no(), _ends(_ALLOW)])
    steps += _when(numbers["socket"], [_argument(0), *_one_of(_INTERNET if internet else ()), _no()])
    pair: list[Step] = [_argument(0), (_EQUAL, 1, 0, _UNIX), _no(), _argument(1), (_AND, 0, 0, _TYPE)]
    steps += _when(numbers["socketpair"], [*pair, *_one_of((_STREAM, _SEQPACKET)), _no()])
    steps += _when(numbers["prlimit64"], [_argument(0), *_one_of((0,)), _no()])
    typed = [step for each in _TYPED_KEYS for step in ((_EQUAL, 0, 1, each), _no())]
    flags = [step for each in (() if shared else _SET_FLAGS) for step in ((_EQUAL, 0, 1, each), _no(errno.EOPNOTSUPP))]
    steps += _when(numbers["ioctl"], [_argument(1), *typed, *flags, _ends(_ALLOW)])
    steps.append(_ends(_ALLOW))
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


def _when(number: int, then: list[Step]) -> list[Step]:
    """Return the steps for one call; they must end in a decision."""
    return [(_EQUAL, 0, len(then), number), *then]


def _one_of(values: tuple[int, ...]) -> list[Step]:
    return [step for value in values for step in ((_EQUAL, 0, 1, value), _ends(_ALLOW))]


def _argument(index: int) -> Step:
    return _LOAD, 0, 0, 16 + 8 * index  # its lower half: all these machines are little-endian


def _no(code: int = errno.EPERM) -> Step:
    return _ends(_ERRNO | code)


def _ends(decision: int) -> Step:
    return _RETURN, 0, 0, decision

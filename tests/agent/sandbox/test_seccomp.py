"""The filter for system calls, decided step by step as the kernel does it, for every kind of machine."""

from __future__ import annotations

import errno
import struct

import pytest

from commonplace.agent.sandbox import seccomp

ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
X86, ARM, I386 = 0xC000003E, 0xC00000B7, 0x40000003


def _decide(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """Run the program on one call."""
    given = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, architecture, 0, *given)
    steps = list(struct.iter_unpack("<HBBI", program))
    at = held = 0
    while True:
        code, yes, no, operand = steps[at]
        at += 1
        match code:
            case 0x20:
                held = struct.unpack_from("<I", data, operand)[0]
            case 0x54:
                held &= operand
            case 0x15:
                at += yes if held == operand else no
            case 0x35:
                at += yes if held >= operand else no
            case 0x45:
                at += yes if held & operand else no
            case _:
                assert code == 0x06
                return operand


UNIX, INET, INET6, NETLINK, VSOCK = 1, 2, 10, 16, 40
CASES = [
    # name, numbers on x86_64 and aarch64, arguments, decision
    ("read", (0, 63), (), ALLOW),
    ("execve", (59, 221), (), ALLOW),
    ("socket unix", (41, 198), (UNIX, 1), REFUSE),
    ("socket vsock", (41, 198), (VSOCK, 1), REFUSE),
    ("pair of streams", (53, 199), (UNIX, 1), ALLOW),
    ("pair of streams, closed on exec", (53, 199), (UNIX, 1 | 0x80000), ALLOW),
    ("pair of packets", (53, 199), (UNIX, 5), ALLOW),
    ("pair of datagrams", (53, 199), (UNIX, 2 | 0x80000), REFUSE),
    ("pair of raw ones", (53, 199), (UNIX, 3), REFUSE),
    ("pair of another family", (53, 199), (30, 1), REFUSE),
    ("clone of a thread", (56, 220), (0x3D0F00,), ALLOW),
    ("clone with a user namespace", (56, 220), (0x10000000 | 17,), REFUSE),
    ("clone with a mount namespace", (56, 220), (0x00020000 | 17,), REFUSE),
    ("clone3", (435, 435), (), 0x00050000 | errno.ENOSYS),
    ("unshare", (272, 97), (), REFUSE),
    ("setns", (308, 268), (), REFUSE),
    ("mount", (165, 40), (), REFUSE),
    ("io_uring_setup", (425, 425), (), REFUSE),
    ("own limits", (302, 261), (0,), ALLOW),
    ("limits of another", (302, 261), (1,), REFUSE),
    ("ioctl", (16, 29), (0, 0x5401), ALLOW),
    ("typing into a terminal", (16, 29), (0, 0x5412), REFUSE),
    ("typing, with other bits above", (16, 29), (0, 0x1_0000_5412), REFUSE),
    ("keyctl", (250, 219), (), REFUSE),
]


@pytest.mark.parametrize(("machine", "column", "architecture"), [("x86_64", 0, X86), ("aarch64", 1, ARM)])
@pytest.mark.parametrize(("numbers", "arguments", "decision"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_each_call_is_decided(
    machine: str, column: int, architecture: int, numbers: tuple[int, int], arguments: tuple[int, ...], decision: int
) -> None:
    program = seccomp.program(machine, internet=True, shared=True)

    assert decision == _decide(program, architecture, numbers[column], *arguments)


@pytest.mark.parametrize("family", [INET, INET6, NETLINK])
@pytest.mark.parametrize("internet", [True, False])
def test_sockets_of_the_internet_are_made_where_they_may(family: int, internet: bool) -> None:
    program = seccomp.program("x86_64", internet=internet, shared=True)

    assert (ALLOW if internet else REFUSE) == _decide(program, X86, 41, family)


@pytest.mark.parametrize("number", [29, 30, 64, 68, 240])
@pytest.mark.parametrize("shared", [True, False])
def test_memory_is_shared_only_in_a_namespace_of_one_s_own(number: int, shared: bool) -> None:
    program = seccomp.program("x86_64", internet=True, shared=shared)

    assert (ALLOW if shared else REFUSE) == _decide(program, X86, number)


@pytest.mark.parametrize("number", [188, 189, 190, 197, 198, 199, 463, 466, 469])
@pytest.mark.parametrize("shared", [True, False])
def test_attributes_are_changed_only_where_mounts_keep_other_files_away(number: int, shared: bool) -> None:
    program = seccomp.program("x86_64", internet=True, shared=shared)

    assert (_decide(program, X86, number) == ALLOW) is shared


@pytest.mark.parametrize("flags", [0x40086602, 0x40046602, 0x401C5820, 0x40087602, 0x40047602])
@pytest.mark.parametrize("shared", [True, False])
def test_flags_are_changed_only_where_mounts_keep_other_files_away(flags: int, shared: bool) -> None:
    program = seccomp.program("x86_64", internet=True, shared=shared)

    assert (_decide(program, X86, 16, 3, flags) == ALLOW) is shared


def test_calls_of_another_instruction_set_end_the_process() -> None:
    program = seccomp.program("x86_64", internet=True, shared=True)

    assert KILL == _decide(program, I386, 102)
    assert KILL == _decide(program, X86, 0x40000000 | 41)
    assert KILL == _decide(seccomp.program("aarch64", internet=True, shared=True), X86, 0)


def test_a_machine_without_a_filter_is_known_as_such() -> None:
    assert (True, False) == (seccomp.is_known("x86_64"), seccomp.is_known("s390x"))

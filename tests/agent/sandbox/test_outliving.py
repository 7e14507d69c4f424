"""Commands that try to outlive their turn: nothing of them is left, whatever sessions they make and whom they trace."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import anyio
import pytest
from confined import PYTHON, Box
from server_fixtures import left

from waiting import until

pytestmark = pytest.mark.anyio

START = "import ctypes, os, signal, sys, time\nlibc = ctypes.CDLL(None, use_errno=True)\n"
WAIT = "\n".join(
    [
        "def stay():",
        "    for number in (1, 2, 3, 15):",
        "        signal.signal(number, signal.SIG_IGN)",
        "    null = os.open('/dev/null', os.O_RDWR)",
        "    for own in (0, 1, 2):",
        "        os.dup2(null, own)",
        "    os.write(ready, b'x')",
        "    os.close(ready)",
        "    time.sleep(600)",
        "    os._exit(0)",
        "came, ready = os.pipe()",
        "",
    ]
)
END = "os.close(ready)\nos.read(came, 1)\n"
ESCAPES = {
    "a session of its own": "if os.fork() == 0:\n    os.setsid(); stay()\n",
    "a session, twice": (
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.setsid(); stay()\n    os._exit(0)\n"
    ),
    "a group of its own": "if os.fork() == 0:\n    os.setpgid(0, 0); stay()\n",
    "no word of its parent's end": "if os.fork() == 0:\n    os.setsid(); libc.prctl(1, 0, 0, 0, 0); stay()\n",
    "an adopter of its own": (
        "if os.fork() == 0:\n    os.setsid(); libc.prctl(36, 1, 0, 0, 0)\n    if os.fork() == 0:\n"
        "        os.setsid()\n        if os.fork() == 0: stay()\n        os._exit(0)\n    time.sleep(600)\n"
    ),
    "what cannot be traced": "if os.fork() == 0:\n    os.setsid(); libc.prctl(4, 0, 0, 0, 0); stay()\n",
    "ten at once": "for each in range(10):\n    if os.fork() == 0:\n        os.setsid(); stay()\n",
    "another program": (
        "if os.fork() == 0:\n    os.setsid(); os.set_inheritable(ready, True)\n"
        "    os.execv(sys.executable, [sys.executable, '-I', '-S', '-c', "
        "f'import os, time; os.write({ready}, b\"x\"); [os.close(n) for n in (0, 1, 2, {ready})]; time.sleep(600)',"
        " token])\n"
    ),
    "another name": (
        "if os.fork() == 0:\n    os.setsid(); libc.prctl(15, b'init', 0, 0, 0); os.chdir('/'); os.umask(0); stay()\n"
    ),
    "a stopped child": (
        "if os.fork() == 0:\n    os.setsid()\n    child = os.fork()\n    if child == 0: stay()\n"
        "    os.kill(child, signal.SIGSTOP); os.write(ready, b'x'); os.close(ready); os._exit(0)\n"
    ),
    "a group of another's": (
        "if os.fork() == 0:\n    os.setpgid(0, 0)\n    first = os.getpid()\n    if os.fork() == 0:\n"
        "        os.setpgid(0, first); stay()\n    os._exit(0)\n"
    ),
    "one after the other": (  # whoever is killed has a child already
        "if os.fork() == 0:\n    os.setsid(); null = os.open('/dev/null', os.O_RDWR)\n"
        "    for own in (0, 1, 2): os.dup2(null, own)\n    os.write(ready, b'x'); os.close(ready)\n"
        "    for each in range(10_000):\n        if os.fork(): os._exit(0)\n        os.setsid()\n    time.sleep(600)\n"
    ),
    "a brother": (
        "if libc.syscall(56, 0x8011, 0, 0, 0, 0) == 0:\n    os.setsid()\n"
        "    if libc.syscall(56, 0x8000, 0, 0, 0, 0) == 0:\n        os.setsid(); stay()\n    os._exit(0)\n"
        if os.uname().machine == "x86_64"
        else "if os.fork() == 0:\n    os.setsid(); stay()\n"
    ),
    "a program without a file": (
        "if os.fork() == 0:\n    os.setsid(); program = os.memfd_create('x', 0); os.set_inheritable(ready, True)\n"
        "    os.write(program, open('/proc/self/exe', 'rb').read())\n    os.execve(program, ['sh', '-I', '-S', '-c', "
        "f'import os, time; os.write({ready}, b\"x\"); [os.close(n) for n in (0, 1, 2, {ready})]; time.sleep(600)',"
        " token], {})\n"
    ),
    "a namespace of its own": (
        "if os.fork() == 0:\n    os.setsid(); libc.unshare(0x30000000)\n    if os.fork() == 0: stay()\n"
        "    time.sleep(600)\n"
    ),
    "who holds the output": (
        "if os.fork() == 0:\n    os.setsid(); signal.signal(15, signal.SIG_IGN); os.write(ready, b'x')\n"
        "    os.close(ready); time.sleep(600)\n"
    ),
    "a leader that is gone": (  # its threads live on in a process that looks ended
        "import threading\nif os.fork() == 0:\n    os.setsid(); threading.Thread(target=stay).start()\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\n"
        f"    libc.syscall({60 if os.uname().machine == 'x86_64' else 93}, 0)\n"
    ).replace("target=stay", "target=lambda: (os.write(ready, b'x'), os.close(ready), time.sleep(600))"),
    "without a signal at its end": (
        "if os.fork() == 0:\n    os.setsid()\n"
        f"    if libc.syscall({56 if os.uname().machine == 'x86_64' else 220}, 0, 0, 0, 0, 0) == 0:\n"
        "        os.setsid(); stay()\n    os._exit(0)\n"
    ),
    "who is traced": (
        "libc.ptrace.argtypes = [ctypes.c_long] * 2 + [ctypes.c_void_p] * 2\nif os.fork() == 0:\n    os.setsid()\n"
        "    child = os.fork()\n    if child == 0: stay()\n    libc.ptrace(0x4206, child, None, None)\n    stay()\n"
    ),
    "a long line of living ones": (
        "if os.fork() == 0:\n    for each in range(40):\n        os.setsid() if each % 2 == 0 else os.setpgid(0, 0)\n"
        "        if os.fork(): time.sleep(600)\n    stay()\n"
    ),
    "a terminal of its own": (
        "import pty\nif os.fork() == 0:\n    try: child, _ = pty.fork()\n    except OSError: child = 0\n"
        "    if child == 0: os.write(ready, b'x'); os.close(ready)\n    time.sleep(600)\n"
    ),
    "half of them killed by the other half": (
        "if os.fork() == 0:\n    os.setsid()\n    for each in range(20):\n        child = os.fork()\n"
        "        if child == 0:\n            os.setsid(); time.sleep(600)\n        if each % 2: os.kill(child, 9)\n"
        "    stay()\n"
    ),
    "who stops and ends the guard": (
        "if os.fork() == 0:\n    os.setsid(); parents = open(f'/proc/{os.getppid()}/status').read().split('PPid:')\n"
        "    for pid in {1, int(parents[1].split()[0])} - {0}:\n        for number in (19, 15, 2, 9):\n"
        "            try: os.kill(pid, number)\n            except OSError: pass\n    stay()\n"
    ),
}


def _script(escape: str, *, goes_on: bool = False) -> str:
    return f"{START}token = sys.argv[1]\n{WAIT}{ESCAPES[escape]}{END}" + (
        "print('up', flush=True)\ntime.sleep(600)\n" * goes_on
    )


async def _gone(token: str) -> bool:
    """Return whether nothing is left of a command; a process that was killed may take a moment to go."""
    with anyio.move_on_after(10):
        await until(lambda: not left(token))
    return not left(token)


@pytest.mark.parametrize("escape", ESCAPES)
async def test_what_leaves_its_group_ends_with_the_command(box: Box, escape: str) -> None:
    token = f"token-{uuid4().hex}"

    code, printed = await box.python(_script(escape), token)

    assert (0, "") == (code, printed)
    assert await _gone(token)


@pytest.mark.parametrize("escape", ["a session of its own", "a session, twice", "an adopter of its own", "ten at once"])
async def test_what_leaves_its_group_ends_with_a_command_that_is_killed(box: Box, escape: str) -> None:
    token = f"token-{uuid4().hex}"
    running = box.start(PYTHON, "-I", "-S", "-c", _script(escape, goes_on=True), token)
    with anyio.fail_after(60):
        await running.settled(0)
    running.signal(9)
    await box.finish(running)

    assert await _gone(token)


TRACES = {
    "attach": "libc.ptrace(16, 1, None, None)",
    "seize": "libc.ptrace(0x4206, 1, None, None)",
    "read its memory": "open('/proc/1/mem', 'rb') and 0",
    "write its memory": "open('/proc/1/mem', 'r+b') and 0",
    "its open files": "os.readlink('/proc/1/fd/0') and 0",
    "its map": "open('/proc/1/maps').read(1) and 0",
    "its variables": "open('/proc/1/environ', 'rb').read() and 0",
    "its folder": "os.readlink('/proc/1/cwd') and 0",
    "its root": "os.listdir('/proc/1/root/') and 0",
    "its system call": "open('/proc/1/syscall').read() and 0",
    "its stack": "open('/proc/1/auxv', 'rb').read() and 0",
    "a call into its memory": "libc.process_vm_writev(1, vector, 1, vector, 1, 0)",
    "a call out of its memory": "libc.process_vm_readv(1, vector, 1, vector, 1, 0)",
    "a descriptor of it": "libc.syscall(438, libc.syscall(434, 1, 0), 0, 0)",
}


@pytest.mark.parametrize("trace", TRACES)
async def test_the_first_process_of_a_namespace_cannot_be_traced(mounted_box: Box, trace: str) -> None:
    script = (
        f"{START}buffer = ctypes.create_string_buffer(8)\n"
        "vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)\n"
        "libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]\n"
        f"try:\n    done = {TRACES[trace]}\nexcept OSError:\n    done = -1\n"
        "print('refused' if done == -1 else 'traced')\n"
    )

    assert (0, "refused\n") == await mounted_box.python(script)


async def test_a_traced_init_cannot_be_made_to_write_hooks_later(mounted_box: Box, tmp_path: Path) -> None:
    """The attack as it was found: attach to the first process, stop it there, and go on without it."""
    token = f"token-{uuid4().hex}"
    script = (
        f"{START}{WAIT}token = sys.argv[1]\nlibc.ptrace.argtypes = [ctypes.c_long] * 2 + [ctypes.c_void_p] * 2\n"
        "print(libc.ptrace(0x4206, 1, None, None))\n"
        "if os.fork() == 0:\n    os.setsid(); libc.prctl(1, 0, 0, 0, 0); stay()\n" + END
    )

    code, printed = await mounted_box.python(script, token)

    assert (0, "-1\n") == (code, printed)
    assert await _gone(token)

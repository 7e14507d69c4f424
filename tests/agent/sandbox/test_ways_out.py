"""Commands that try to get out: every attempt fails, under every way to confine them that works here."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Generator, Iterator
from pathlib import Path

import msgspec
import pytest
from confined import Box

from commonplace.agent.sandbox import SandboxPolicy, SandboxSupport
from commonplace.agent.tools.processes import Processes

pytestmark = pytest.mark.anyio


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """Another process of the user."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def _is_as_it_was(outside: Path) -> bool:
    return ["file"] == os.listdir(outside) and (outside / "file").read_text() == "as it was"


@pytest.mark.parametrize(
    "script",
    [
        'echo bad > "$1/new"',
        'echo bad > "$1/file"',
        'echo bad >> "$1/file"',
        'truncate -s 0 "$1/file"',
        'rm -f "$1/file"',
        'mv "$1/file" .',
        'mv "$1" moved',
        'cp file "$1/file"',
        'mkdir "$1/folder"',
        'mkfifo "$1/fifo"',
        'ln -s file "$1/link"',
        'ln file "$1/hard"',
        'cd "$1" && echo bad > new',
    ],
)
async def test_nothing_outside_of_the_roots_is_written(box: Box, script: str) -> None:
    code, printed = await box.run(script, box.outside)

    assert code != 0, printed
    assert _is_as_it_was(box.outside)


@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
async def test_the_parents_of_the_project_cannot_be_written(box: Box, mode: str) -> None:
    before = sorted(os.listdir(box.project.parent))

    code, _ = await box.run('echo bad > ../../new; mv ../../project ../../moved; rm -rf "$1"', box.outside, mode=mode)

    assert code != 0
    assert before == sorted(os.listdir(box.project.parent))
    assert _is_as_it_was(box.outside)


async def test_read_only_means_that_the_project_too_is_read_only(box: Box) -> None:
    code, _ = await box.run("echo bad > new || echo bad > file", mode="read-only")

    assert code != 0
    assert ["file"] == os.listdir(box.folder)
    assert (box.folder / "file").read_text() == "a line\n"


@pytest.mark.parametrize("script", ["echo bad > link/new", "echo bad > link/file", "rm link/file", "cp file link/file"])
async def test_a_link_out_of_the_roots_is_not_followed(box: Box, script: str) -> None:
    code, _ = await box.run(f'ln -s "$1" link; {script}', box.outside)

    assert code != 0
    assert _is_as_it_was(box.outside)


async def test_a_link_that_was_there_before_is_not_followed(box: Box) -> None:
    (box.folder / "link").symlink_to(box.outside / "file")

    code, _ = await box.run("echo bad > link")

    assert code != 0
    assert _is_as_it_was(box.outside)


async def test_a_file_outside_gets_no_second_name_inside(box: Box) -> None:
    code, _ = await box.run('ln "$1/file" hard && echo bad > hard', box.outside)

    assert code != 0
    assert _is_as_it_was(box.outside)
    assert 1 == (box.outside / "file").stat().st_nlink


async def test_a_pipe_outside_is_not_written_to(box: Box) -> None:
    os.mkfifo(box.outside / "fifo")
    reader = os.open(box.outside / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    try:
        code, _ = await box.run('echo bad > "$1/fifo"', box.outside)
        heard = os.read(reader, 10)
    finally:
        os.close(reader)

    if box.level.landlock:
        assert (True, b"") == (code != 0, heard)


async def test_permissions_and_times_outside_stay(mounted_box: Box) -> None:
    before = (mounted_box.outside / "file").stat()

    await mounted_box.run('chmod 777 "$1/file"; touch -d @1 "$1/file"; chmod 777 "$1"', mounted_box.outside)

    after = (mounted_box.outside / "file").stat()
    assert (before.st_mode, before.st_mtime_ns) == (after.st_mode, after.st_mtime_ns)


@pytest.mark.parametrize("who", ["self", "$PPID", "1", "$2", "$3", "thread-self", "self/task/$$"])
@pytest.mark.parametrize("door", ["root", "cwd/../../../../../../../../.."])
async def test_proc_is_no_door(box: Box, victim: subprocess.Popen[bytes], who: str, door: str) -> None:
    below = f'"/proc/{who}/{door}$1"'
    script = f'echo bad > {below}/new; echo bad > {below}/file; rm -f {below}/file; test ! -e "$1/new"'

    await box.run(script, box.outside, os.getpid(), victim.pid)

    assert _is_as_it_was(box.outside)


READS_MEMORY = """
import os, sys
for pid in sys.argv[1:] + [str(os.getppid())]:
    for name in ("mem", "environ", "maps"):
        for flags in (os.O_RDWR, os.O_RDONLY):
            try:
                with open(os.open(f"/proc/{pid}/{name}", flags), "rb") as file:
                    file.read() if name != "mem" else None
            except OSError:
                continue
            if pid != str(os.getppid()):
                print("open", pid, name)
"""


async def test_the_memory_of_other_processes_is_closed(box: Box, victim: subprocess.Popen[bytes]) -> None:
    code, printed = await box.python(READS_MEMORY, os.getpid(), victim.pid)

    assert (0, "") == (code, printed)


async def test_signals_do_not_reach_other_processes_of_the_user(box: Box, victim: subprocess.Popen[bytes]) -> None:
    code, _ = await box.run('kill -9 "$1"; kill -STOP "$1"; kill -0 "$2" && exit 1; exit 5', victim.pid, os.getpid())

    assert 5 == code
    assert victim.poll() is None


async def test_a_signal_to_whoever_started_the_command_does_not_arrive(box: Box) -> None:
    code, _ = await box.run("kill -9 $PPID; kill -TERM $PPID; exit 5")

    assert 5 == code


LIMITS = """
import resource, sys
resource.prlimit(int(sys.argv[1]), resource.RLIMIT_CPU, (0, 0))
"""


async def test_limits_of_other_processes_stay(box: Box, victim: subprocess.Popen[bytes]) -> None:
    code, _ = await box.python(LIMITS, victim.pid)

    assert code != 0
    assert victim.poll() is None


async def test_a_terminal_of_the_user_is_not_written_to(box: Box) -> None:
    master, slave = os.openpty()
    os.set_blocking(master, False)
    try:
        await box.run('echo bad > "$1"', os.ttyname(slave))
        with pytest.raises(BlockingIOError):
            os.read(master, 10)
    finally:
        os.close(master)
        os.close(slave)


async def test_shared_memory_of_the_user_is_not_written_to(box: Box) -> None:
    shared = Path("/dev/shm") / f"commonplace-{os.getpid()}-{os.urandom(4).hex()}"
    shared.write_text("as it was")
    try:
        await box.run('echo bad > "$1"', shared)
        assert "as it was" == shared.read_text()
    finally:
        shared.unlink()


TRIES = """
import _socket as s, sys
kind, *where = sys.argv[1:]
family, form = {
    "ipv4": (s.AF_INET, s.SOCK_STREAM),
    "ipv4 datagrams": (s.AF_INET, s.SOCK_DGRAM),
    "ipv6": (s.AF_INET6, s.SOCK_STREAM),
    "ipv6 datagrams": (s.AF_INET6, s.SOCK_DGRAM),
    "path": (s.AF_UNIX, s.SOCK_STREAM),
    "path datagrams": (s.AF_UNIX, s.SOCK_DGRAM),
    "abstract": (s.AF_UNIX, s.SOCK_STREAM),
    "led elsewhere": (s.AF_UNIX, s.SOCK_DGRAM),
}[kind]
address = (where[0], int(where[1])) if len(where) == 2 else where[0]
if kind == "abstract":
    address = bytes([0]) + address.encode()
try:
    one = s.socketpair(family, form)[0] if kind == "led elsewhere" else s.socket(family, form)
    one.connect(address)
    one.send(b"bad")
except OSError as error:
    print("refused", error)
    sys.exit(9)
print("through")
"""


@contextlib.contextmanager
def _server(kind: str, folder: Path) -> Generator[tuple[socket.socket, list[str]]]:
    """Serve on this machine, and tell how a client finds it."""
    datagrams = kind.endswith("datagrams") or kind == "led elsewhere"
    family = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}.get(kind.split(maxsplit=1)[0], socket.AF_UNIX)
    with socket.socket(family, socket.SOCK_DGRAM if datagrams else socket.SOCK_STREAM) as server:
        where: list[str]
        if family == socket.AF_UNIX:
            name = f"commonplace-{os.getpid()}-{os.urandom(4).hex()}" if kind == "abstract" else str(folder / "s")
            server.bind(b"\0" + name.encode() if kind == "abstract" else name)
            where = [name]
        else:
            try:
                server.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
            except OSError as error:
                pytest.skip(f"this machine has no {kind}: {error}")
            where = [str(part) for part in server.getsockname()[:2]]
        if not datagrams:
            server.listen()
        server.setblocking(False)
        yield server, where


KINDS = ["ipv4", "ipv4 datagrams", "ipv6", "ipv6 datagrams", "path", "path datagrams", "abstract", "led elsewhere"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
async def test_without_network_no_server_of_this_machine_is_reached(box: Box, kind: str, mode: str) -> None:
    with _server(kind, box.folder) as (server, where):
        code, printed = await box.python(TRIES, kind, *where, mode=mode)

        # In a network of its own a datagram can be sent; it reaches nobody.
        if not (kind.endswith("datagrams") and box.level.own_network):
            assert 9 == code, printed
        with pytest.raises(BlockingIOError):
            server.recv(10) if server.type == socket.SOCK_DGRAM else server.accept()


@pytest.mark.parametrize("kind", KINDS)
async def test_with_network_the_internet_is_open_and_other_programs_are_not(box: Box, kind: str) -> None:
    with _server(kind, box.folder) as (_, where):
        code, printed = await box.python(TRIES, kind, *where, network=True)

    assert (0 if kind.startswith("ip") else 9) == code, printed


CALLS = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for number in map(int, sys.argv[1:]):
    if libc.syscall(ctypes.c_long(number), *[ctypes.c_long(0)] * 6) != -1 or ctypes.get_errno() != 1:
        print(number, os.strerror(ctypes.get_errno()))
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86_64")
async def test_calls_that_lead_around_the_rules_are_refused(box: Box) -> None:
    ring, mount, unshare, keys, perf, handle, tree = 425, 165, 272, 250, 298, 304, 428

    code, printed = await box.python(CALLS, ring, mount, unshare, keys, perf, handle, tree)

    assert (0, "") == (code, printed)


@pytest.mark.parametrize("script", ["unshare -Ur true", "unshare -Urm true", "mount -t tmpfs none ."])
async def test_no_namespace_and_no_mount_is_made(box: Box, script: str) -> None:
    code, printed = await box.run(script)

    assert code != 0, printed


async def test_a_command_has_no_privileges(box: Box) -> None:
    code, printed = await box.run("grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status")

    assert 0 == code
    told = dict(line.split(":\t") for line in printed.splitlines())
    assert (0, "1") == (int(told["CapEff"], 16), told["NoNewPrivs"])
    if os.geteuid() == 0 or box.level.spaces:
        assert 0 == int(told["CapBnd"], 16)


@pytest.mark.parametrize("landlocked", [True, False])
async def test_settings_of_the_kernel_stay(box: Box, landlocked: bool) -> None:
    if not landlocked:
        if not box.level.bwrap:
            pytest.skip("only bubblewrap does without Landlock")
        box.level = msgspec.structs.replace(box.level, landlock=0)
    before = Path("/proc/sys/kernel/core_pattern").read_text()

    code, _ = await box.run("cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern")

    assert code != 0
    assert before == Path("/proc/sys/kernel/core_pattern").read_text()


async def test_this_program_cannot_be_changed_by_what_it_confines(
    level: SandboxSupport, policy: SandboxPolicy, processes: Processes, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = policy.cwd / "src" / "venv"
    own.mkdir()
    (own / "code").write_text("as it was")
    monkeypatch.setattr("sys.prefix", str(own))
    box = Box(level, policy, processes, outside)

    code, _ = await box.run("rm -rf venv; echo bad > venv/code; mv venv other; echo bad > file")

    assert "as it was" == (own / "code").read_text()
    assert (0, "bad\n") == (code, (policy.cwd / "src" / "file").read_text())


async def test_a_folder_that_a_command_replaced_by_a_link_is_not_opened_to_the_next(box: Box) -> None:
    (box.folder / "temporary").mkdir()
    changed = {"tmpdir": box.folder / "temporary"}

    await box.run('rm -rf temporary; ln -s "$1" temporary', box.outside, **changed)
    code, _ = await box.run("echo bad > temporary/new; echo bad > temporary/file", **changed)

    assert code != 0
    assert _is_as_it_was(box.outside)


ATTRIBUTES = {
    "set": "os.setxattr(path, 'user.x', b'bad')",
    "set, by a descriptor": "os.setxattr(os.open(path, os.O_RDONLY), 'user.x', b'bad')",
    "set, on the link itself": "os.setxattr(path, 'user.x', b'bad', follow_symlinks=False)",
    "removed": "os.removexattr(path, 'user.kept')",
    "removed, by a descriptor": "os.removexattr(os.open(path, os.O_RDONLY), 'user.kept')",
    "flags": "fcntl.ioctl(os.open(path, os.O_RDONLY), 0x40086602, struct.pack('l', 0x80))",
    "flags, the short way": "fcntl.ioctl(os.open(path, os.O_RDONLY), 0x40046602, struct.pack('l', 0x80))",
    "flags and groups": "fcntl.ioctl(os.open(path, os.O_RDONLY), 0x401c5820, struct.pack('5I8x', 0x40, 0, 0, 0, 0))",
    "set, by number": "call(188 if x86 else 5, path.encode(), b'user.x', b'bad', 3, 0)",
    "set, by its newest number": "call(463, -100, path.encode(), 0, b'user.x', struct.pack('QIxxxx', 0, 0), 16)",
}


@pytest.mark.parametrize("what", ATTRIBUTES)
async def test_attributes_and_flags_of_files_elsewhere_stay(box: Box, what: str) -> None:
    file = box.outside / "file"
    try:
        os.setxattr(file, "user.kept", b"as it was")
    except OSError:
        pytest.skip("no attributes on this file system")
    script = (
        "import ctypes, fcntl, os, platform, struct, sys\n"
        "path, x86 = sys.argv[1], platform.machine() == 'x86_64'\n"
        "def call(*words):\n"
        "    if ctypes.CDLL(None, use_errno=True).syscall(*words) < 0:\n"
        "        raise OSError(ctypes.get_errno(), 'refused')\n"
        f"{ATTRIBUTES[what]}\n"
    )
    code, printed = await box.python(script, file)

    assert code != 0, printed
    assert "OSError" in printed
    assert {"user.kept": b"as it was"} == {name: os.getxattr(file, name) for name in os.listxattr(file)}

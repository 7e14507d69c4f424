"""The program that sets up a command's confinement by the orders in its arguments, and then becomes the command.

It runs on its own (`python -I -S -c … ORDERS -- COMMAND`) and imports nothing of Commonplace and as little as possible
of the standard library, for it runs before every command. It decides nothing: `command_wrapper` computes the folders,
the rights and the filter. If something cannot be set up, it exits with code 125 and the command never starts.

    parent PID              end when this process ends
    hold PATH               keep an empty folder here while the command runs, unless something else is here
    spaces FLAGS            new namespaces; then `write PATH` and `read PATH` say what is mounted how, in this order
    write PATH, read PATH
    guard                   without namespaces: end all that descends from the command when it, or `parent`, ends
    confine                 give up every privilege; then come `landlock` and `filter`. Not for a program that confines
    landlock FS SCOPES      rights that exist only where an `allow PATH` gives them
    allow PATH
    filter HEX              the program for the system calls
    reap                    be the first process of a namespace that another program made
    stay                    wait after the command's end, as long as a process that it started may print

The process that waits for the command ignores signals that ask a group to end, so that the command ends in its own way
and its exit code is returned; a command that is killed by a signal gives 128 plus the signal.
"""

# pathlib, contextlib, signal and typing would double the time that this takes to start; what it prints is read.
# ruff: noqa: PTH102, PTH106, PTH109, PTH123, S606, T201

from __future__ import annotations

import ctypes
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Final, NoReturn
else:
    import _signal as signal

FAILED: Final = 125
_ASKED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_ORPHANED: Final = signal.SIGUSR2
"""Tells a guard that its parent has ended."""
_LOOK_SECONDS, _LOOKS = 0.05, 100

_PDEATHSIG, _DUMPABLE, _SECCOMP, _CAPBSET_DROP, _SUBREAPER, _NO_NEW_PRIVS = 1, 4, 22, 24, 36, 38
_LANDLOCK, _OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 444, 428, 429, 442
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE, _NEWNET = 1, 2, 4, 8, 4096, 16384, 1 << 18, 1 << 30
_FILE_RIGHTS: Final = 1 << 1 | 1 << 14 | 1 << 15
"""The rights of Landlock that a rule about a file may name: write, truncate, control a device."""
_NEVER: Final = 1 << 6 | 1 << 11
"""Making devices is allowed nowhere."""

_libc = ctypes.CDLL(None, use_errno=True)


class Orders:
    """The orders in the arguments."""

    def __init__(self, words: list[str]) -> None:
        self.parent = 0
        self.spaces = 0
        self.held: list[str] = []
        self.places: list[tuple[str, bool]] = []
        self.landlock: tuple[int, int] | None = None
        self.allowed: list[str] = []
        self.filter = b""
        self.flags: set[str] = set()
        rest = iter(words)
        for word in rest:
            match word:
                case "--":
                    break
                case "parent":
                    self.parent = int(next(rest))
                case "hold":
                    self.held.append(next(rest))
                case "spaces":
                    self.spaces = int(next(rest))
                case "write" | "read":
                    self.places.append((next(rest), word == "write"))
                case "landlock":
                    self.landlock = int(next(rest)), int(next(rest))
                case "allow":
                    self.allowed.append(next(rest))
                case "filter":
                    self.filter = bytes.fromhex(next(rest))
                case "guard" | "confine" | "reap" | "stay":
                    self.flags.add(word)
                case _:
                    raise ValueError(f"unknown order {word!r}")
        self.command = list(rest)


def main(words: list[str]) -> NoReturn:
    """Carry out the orders."""
    orders = Orders(words)
    environment = _environment()
    everything = "stay" in orders.flags
    for number in _ASKED:
        signal.signal(number, signal.SIG_IGN)
    if orders.parent:
        _check(_libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "parent's end")
        if os.getppid() != orders.parent:  # it has ended already
            os._exit(FAILED)
    if orders.held:
        _attend(everything=False, holders=[_hold(path) for path in orders.held])
    folder = os.getcwd()
    if orders.spaces:
        _enter(orders.spaces)
        _attend(everything=False)
        _mount(orders.places)
        if orders.spaces & _NEWNET:
            _loopback()
        os.chdir(folder)  # the folder as it is mounted now
    elif "guard" in orders.flags:
        _guard(everything=everything)
    if "confine" in orders.flags:
        _confine(orders)
        if orders.spaces or "reap" in orders.flags:
            # Or the command could trace the first process of its namespace and make it outlive us; `exec` undoes it.
            _check(_libc.prctl(_DUMPABLE, 0, 0, 0, 0), "no tracing")
            _attend(everything=everything)
        for number in (*_ASKED, _ORPHANED):
            signal.signal(number, signal.SIG_DFL)
    _become(orders.command, environment)


def _guard(*, everything: bool) -> None:
    """Go on as the command; a guard between it and this process ends all its descendants, whatever sessions they make.

    Whoever ends a command kills its process group, so the guard is in a group of its own.
    """
    group = os.getpgrp()
    _attend(everything=False)
    os.setpgid(0, 0)
    _check(_libc.prctl(_SUBREAPER, 1, 0, 0, 0), "subreaper")
    signal.signal(_ORPHANED, _end_all)
    _check(_libc.prctl(_PDEATHSIG, _ORPHANED, 0, 0, 0), "parent's end")
    _attend(everything=everything, ends_all=True)
    os.setpgid(0, group)


def _attend(*, everything: bool, holders: list[tuple[str, int]] | None = None, ends_all: bool = False) -> None:
    """Go on in a new process; the old one waits for it and ends as it did."""
    alive, kept = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(kept)
        _check(_libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "parent's end")
        os.set_blocking(alive, False)
        try:
            if os.read(alive, 1) == b"":  # the parent ended before it could be asked to tell
                os._exit(FAILED)
        except BlockingIOError:
            pass
        os.close(alive)
        for _, descriptor in holders or ():
            os.close(descriptor)
        return
    printing = [(found.st_dev, found.st_ino) for found in (os.fstat(1), os.fstat(2))]
    nothing = os.open("/dev/null", os.O_RDWR)
    for own in (0, 1, 2):  # or nobody would see that the command has closed its own
        os.dup2(nothing, own)
    code = _wait(child, printing if everything else [])
    for path, descriptor in holders or ():
        _release(path, descriptor)
    if ends_all:
        _end_all(code=code)
    os._exit(code)


def _wait(child: int, printing: list[tuple[int, int]]) -> int:
    """Return the exit code of the child, when none of its descendants holds one of some files open."""
    code, quiet = None, 0
    while quiet < 2:  # the list of processes may miss one while others end
        try:
            ended, status = os.waitpid(-1, 0 if code is None else os.WNOHANG)
        except ChildProcessError:
            break
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            code = code if code >= 0 else 128 - code
            if not printing:
                break
        elif ended == 0:
            quiet = 0 if _prints(os.getpid(), printing) else quiet + 1
            time.sleep(_LOOK_SECONDS)
    return FAILED if code is None else code


def _prints(process: int, files: list[tuple[int, int]]) -> bool:
    return any(_has_open(child, files) or _prints(child, files) for child in _children(process))


def _has_open(process: int, files: list[tuple[int, int]]) -> bool:
    try:
        names = os.listdir(f"/proc/{process}/fd")
    except OSError as error:
        return isinstance(error, PermissionError)  # it does not tell, so it may
    for name in names:
        try:
            found = os.stat(f"/proc/{process}/fd/{name}")
        except OSError:
            continue
        if (found.st_dev, found.st_ino) in files:
            return True
    return False


def _children(process: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/children", "rb") as file:  # a text would load a codec
                found += map(int, file.read().split())
    except OSError:  # it has ended, or the kernel does not tell
        pass
    return found


def _end_all(*_: object, code: int = FAILED) -> NoReturn:
    """Kill every child, then those that become ours, and end. It may interrupt itself, so it must not load a module."""
    unseen = 0
    while unseen < _LOOKS:  # the list may miss one while others end; that there is none, only waiting tells
        for child in (children := _children(os.getpid())):
            os.kill(child, signal.SIGKILL)
        unseen = 0 if children else unseen + 1
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(_LOOK_SECONDS / 10)
        except ChildProcessError:
            break
    os._exit(code)


def _environment() -> dict[bytes, bytes]:
    """Return the variables as they were given; Python may add to `os.environ`."""
    with open("/proc/self/environ", "rb") as file:
        pairs = (line.partition(b"=") for line in file.read().split(b"\0"))
        return {name: value for name, equals, value in pairs if name and equals}


def _become(command: list[str], environment: dict[bytes, bytes]) -> NoReturn:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)  # as shells tell it
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _hold(path: str) -> tuple[str, int]:
    """Make an empty folder, or share the one of another command; the lock says that it is in use."""
    import fcntl

    while True:
        try:
            os.mkdir(path, 0o700)
            os.utime(path, (0, 0))  # tells it from a folder of somebody else, if nobody is left to take it away
        except FileExistsError:
            pass
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        try:
            now = os.stat(path, follow_symlinks=False)
        except FileNotFoundError:  # its last user took it away in between
            os.close(descriptor)
            continue
        if os.path.samestat(now, os.fstat(descriptor)):
            return path, descriptor
        os.close(descriptor)


def _release(path: str, descriptor: int) -> None:
    """Remove the folder, unless it is in use or holds something."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rmdir(path)
    except OSError:
        pass


def _enter(flags: int) -> None:
    user, group = os.geteuid(), os.getegid()
    _check(_libc.unshare(ctypes.c_int(flags)), "namespaces")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _mount(places: list[tuple[str, bool]]) -> None:
    """Make everything read-only except writable places; a place is mounted on itself, so that it cannot be moved."""
    _check(_libc.mount(None, b"/", None, ctypes.c_ulong(_REC | _PRIVATE), None), "private mounts")
    trees = {path: _tree(path) for path, writable in places if writable and path != "/"}
    if ("/", True) not in places:
        _read_only(_AT_FDCWD, b"/", 0)
    for path, writable in places:
        if path == "/":
            continue
        tree = trees[path] if writable else _tree(path)
        if not writable:
            _read_only(tree, b"", _AT_EMPTY_PATH)
        _check(_call(_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(path), 4), f"mount of {path}")
        os.close(tree)
    hidden = _NOSUID | _NODEV | _NOEXEC
    _check(_libc.mount(b"proc", b"/proc", b"proc", ctypes.c_ulong(hidden | _RDONLY), None), "/proc")
    kept = {path for path, writable in places if writable}
    if not kept & {"/dev", "/dev/shm"}:  # noqa: S108  # what is put there is this command's own
        _check(_libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", ctypes.c_ulong(_NOSUID | _NODEV), b"mode=1777"), "shm")
    options = b"newinstance,ptmxmode=0666,mode=620"
    if _libc.mount(b"devpts", b"/dev/pts", b"devpts", ctypes.c_ulong(_NOSUID | _NOEXEC), options) == 0:
        _libc.mount(b"/dev/pts/ptmx", b"/dev/ptmx", None, ctypes.c_ulong(_BIND), None)  # without it: no terminals


def _tree(path: str) -> int:
    flags = 1 | os.O_CLOEXEC | _AT_RECURSIVE | 0x100  # a clone, of the thing itself if it is a link
    return _check(_call(_OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags), path)


def _read_only(at: int, path: bytes, flags: int) -> None:
    attributes = (ctypes.c_uint64 * 4)(_RDONLY, 0, 0, 0)
    done = _call(_MOUNT_SETATTR, at, path, flags | _AT_RECURSIVE, ctypes.addressof(attributes), 32)
    _check(done, f"read-only {os.fsdecode(path) or 'mount'}")


def _loopback() -> None:
    """Bring the loopback interface up; if that fails, the command has no network at all."""
    import _socket
    import fcntl

    try:
        link = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
        fcntl.ioctl(link, 0x8914, b"lo".ljust(16, b"\0") + b"\x41\0".ljust(24, b"\0"))  # up and running
        link.close()
    except OSError:
        pass


def _confine(orders: Orders) -> None:
    _check(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    rules = _rules(orders) if orders.landlock is not None else None
    for capability in range(64):
        if _libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break  # one that this kernel does not know; or there is no right to give any up, as there is none at all
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    _check(_libc.capset(header, none), "capabilities")
    if rules is not None:
        _check(_call(_LANDLOCK + 2, rules, 0), "Landlock")
        os.close(rules)
    if orders.filter:
        code = ctypes.create_string_buffer(orders.filter, len(orders.filter))
        program = (ctypes.c_uint64 * 2)(len(orders.filter) // 8, ctypes.addressof(code))
        _check(_libc.prctl(_SECCOMP, 2, ctypes.byref(program), 0, 0), "filter")


def _rules(orders: Orders) -> int:
    assert orders.landlock is not None
    rights, scopes = orders.landlock
    attributes = (ctypes.c_uint64 * 3)(rights, 0, scopes)
    # Kernels take a longer record than they know as long as the rest of it is zero.
    rules = _check(_call(_LANDLOCK, ctypes.addressof(attributes), 24, 0), "Landlock rules")
    for path in orders.allowed:
        try:
            place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:  # what is not there is not allowed either
            continue
        is_folder = os.fstat(place).st_mode & 0o170000 == 0o040000
        rule = ctypes.create_string_buffer(12)
        ctypes.c_uint64.from_buffer(rule).value = rights & ~_NEVER if is_folder else rights & _FILE_RIGHTS
        ctypes.c_int32.from_buffer(rule, 8).value = place
        _check(_call(_LANDLOCK + 1, rules, 1, ctypes.addressof(rule), 0), f"rule for {path}")
        os.close(place)
    return rules


def _call(number: int, *arguments: int | bytes) -> int:
    words = [each if isinstance(each, bytes) else ctypes.c_long(each) for each in arguments]
    return _libc.syscall(ctypes.c_long(number), *words)


def _check(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def run() -> NoReturn:
    """Carry out the orders of the arguments, or print why not."""
    try:
        main(sys.argv[1:])
    except (OSError, ValueError, StopIteration) as problem:
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else problem
        print(f"sandbox: {reason}", file=sys.stderr, flush=True)
        os._exit(FAILED)

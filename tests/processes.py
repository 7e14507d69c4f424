"""Run `commonplace …` as a process of its own that need not load the program first.

A process is forked from one that has loaded it already (`preloaded.py`): that takes a tenth of the time. It has a pid,
streams, an environment and a folder of its own, can be killed, and ends as any other. Tests of how the program starts,
and of the Python that it is started with, start it in the usual way.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Any

PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL
CompletedProcess = subprocess.CompletedProcess
TimeoutExpired = subprocess.TimeoutExpired


@cache
def _server() -> socket.socket:
    """Start the process that has loaded the program, once for this process; it ends with its socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    script = Path(__file__).with_name("preloaded.py")
    variables = {"PATH": os.environ.get("PATH", os.defpath), "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-P", str(script), str(theirs.fileno())],
        stdin=DEVNULL,
        stdout=DEVNULL,
        pass_fds=[theirs.fileno()],
        env=variables,
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait(60)

    atexit.register(end)
    return ours


class Process:
    """A run of the program, with what `subprocess.Popen` offers for one; pipes are bytes, or text if that is asked for.

    Args:
        arguments: What stands behind `commonplace` on the command line.
        stdin, stdout, stderr: PIPE, DEVNULL or a descriptor.
        env: The whole environment; that of this process if it is left out.
        cwd: The folder; that of this process if it is left out.
        code: Python that runs instead of the program.
        path: Folders from which that imports.
        terminal: The process leads a session whose terminal is its stdin.
    """

    def __init__(
        self,
        arguments: Sequence[object],
        *,
        stdin: int = DEVNULL,
        stdout: int = PIPE,
        stderr: int = PIPE,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        text: bool = False,
        terminal: bool = False,
        code: str | None = None,
        path: Sequence[Path] = (),
    ) -> None:
        self.args = ["commonplace", *map(str, arguments)]
        self.returncode: int | Any = None
        self._text = text
        given: list[int] = []
        self.stdin = self._stream(stdin, given, writing=True)
        self.stdout = self._stream(stdout, given, writing=False)
        self.stderr = self._stream(stderr, given, writing=False)
        told, telling = os.pipe()
        request = {
            "arguments": self.args[1:],
            "environment": dict(os.environ if env is None else env),
            "folder": str(cwd or Path.cwd()),
            "terminal": terminal,
            "code": code,
            "path": [str(Path(__file__).parent), *map(str, path)],
        }
        socket.send_fds(_server(), [json.dumps(request).encode()], [*given, telling])
        for descriptor in (*given, telling):
            os.close(descriptor)
        self._told = os.fdopen(told)
        self.pid = int(self._told.readline())

    def _stream(self, kind: int, given: list[int], *, writing: bool) -> IO[Any] | None:
        """Open one stream: note the descriptor of the process, and return our end of a pipe."""
        if kind == DEVNULL:
            given.append(os.open(os.devnull, os.O_RDWR))
            return None
        if kind != PIPE:
            given.append(os.dup(kind))
            return None
        reader, writer = os.pipe()
        given.append(reader if writing else writer)
        mode = "w" if writing else "r"
        if self._text:
            return os.fdopen(writer if writing else reader, mode, encoding="utf-8")
        return os.fdopen(writer if writing else reader, mode + "b")

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()

    def poll(self) -> int | None:
        """Return how it ended, or None while it runs."""
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self._take()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return how it ended, when it has.

        Raises:
            TimeoutExpired: it runs on.
        """
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise TimeoutExpired(self.args, timeout or 0.0)
            self._take()
        assert self.returncode is not None
        return self.returncode

    def _take(self) -> None:
        with self._told:
            self.returncode = int(self._told.readline())

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, given: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Write to stdin, read the others to their end, and wait for the end of the process.

        Raises:
            TimeoutExpired: it runs on.
        """
        found: dict[str, Any] = {"stdout": None, "stderr": None}

        def read(name: str, stream: IO[Any]) -> None:
            with stream:
                found[name] = stream.read()

        def write(stream: IO[Any]) -> None:
            try:
                with stream:
                    if given:
                        stream.write(given)
            except BrokenPipeError:
                pass  # it does not want to know

        threads = [
            threading.Thread(target=read, args=(name, stream), daemon=True)
            for name, stream in (("stdout", self.stdout), ("stderr", self.stderr))
            if stream is not None and not stream.closed
        ]
        if self.stdin is not None and not self.stdin.closed:
            threads.append(threading.Thread(target=write, args=(self.stdin,), daemon=True))
        for thread in threads:
            thread.start()
        self.wait(timeout)
        for thread in threads:
            thread.join(timeout)
        return found["stdout"], found["stderr"]


def run(
    arguments: Sequence[object],
    *,
    given: Any = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    text: bool = False,
    timeout: float = 100.0,
    code: str | None = None,
    path: Sequence[Path] = (),
) -> CompletedProcess[Any]:
    """Run the program, or other code, to its end; without anything given, its stdin is empty."""
    stdin = DEVNULL if given is None else PIPE
    process = Process(arguments, stdin=stdin, env=env, cwd=cwd, text=text, code=code, path=path)
    try:
        out, err = process.communicate(given, timeout)
    except TimeoutExpired:
        process.kill()
        raise
    return CompletedProcess(process.args, process.wait(), out, err)

"""A process that has loaded the program, and becomes one run of it after the other: `python -P preloaded.py SOCKET`.

Loading takes most of the time of a short run. Each request on the socket is forked: the child gets the arguments, the
environment, the folder and the three streams of the request, and goes on in `main`, or in other code that the request
brings, as a process of its own. Its pid and its exit code are written to the fourth descriptor of the request. See
`processes.py`.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import select
import socket
import sys
import termios
import threading
import time
from typing import Any

import commonplace

LIBRARIES = ("anyio._backends._asyncio", "httpx2", "numpy", "prompt_toolkit", "psycopg", "pygit2", "rich.console")
"""What functions import when they need it."""


def load() -> None:
    """Import everything that a run can need."""
    for name in LIBRARIES:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(commonplace.__path__, "commonplace."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def serve(requests: int) -> str | None:
    """Answer requests until there are no more; return in a child, with the code that it is to run, if any."""
    running: dict[int, tuple[int, int]] = {}
    source = socket.socket(fileno=requests)
    while True:
        for ready in select.select([requests, *running], [], [])[0]:
            if ready in running:
                program, told = running.pop(ready)
                os.close(ready)
                _, status = os.waitpid(program, 0)
                os.write(told, f"{os.waitstatus_to_exitcode(status)}\n".encode())
                os.close(told)
                continue
            data, descriptors, _, _ = socket.recv_fds(source, 2**18, 4)
            if not data:
                os._exit(0)
            *streams, told = descriptors
            program = os.fork()
            if program == 0:
                source.detach()
                request = json.loads(data)
                become(request, streams)
                return request["code"]
            for stream in streams:
                os.close(stream)
            os.write(told, f"{program}\n".encode())
            running[os.pidfd_open(program)] = program, told


def become(request: dict[str, Any], streams: list[int]) -> None:
    """Take over what the request says of arguments, environment, folder, streams and terminal."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 4096)
    if request["terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["folder"])
    sys.argv = ["commonplace", *request["arguments"]]
    sys.path[:0] = request["path"]
    sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")  # noqa: SIM115 (they stay open)
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115


def end(code: int) -> None:
    """End as Python does, but without taking everything apart that was loaded."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    load()
    asked = serve(int(sys.argv[1]))
    try:
        if asked is None:
            from commonplace.surfaces.cli import main

            main()
        else:
            exec(compile(asked, "<asked>", "exec"), {"__name__": "__main__"})
    except SystemExit as ended:
        end(ended.code if isinstance(ended.code, int) else 0)
    end(0)

"""`commonplace mcp --http 0` as a process of its own, for as long as a test needs it."""

from __future__ import annotations

import re
import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import processes


@dataclass(frozen=True)
class Place:
    """Where a server is, and what opens its door."""

    url: str
    token: str
    process: processes.Process

    @property
    def port(self) -> int:
        """Its port."""
        return int(self.url.rpartition(":")[2].partition("/")[0])


@contextmanager
def served(*options: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> Generator[Place]:
    """Start a server, and end it in order."""
    process = processes.Process(["mcp", "--http", "0", *options], text=True, cwd=cwd, env=environment)
    assert process.stderr is not None
    assert process.stdout is not None
    try:
        first, second = process.stderr.readline(), process.stderr.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/mcp", first)
        assert address, first
        token = re.search(r"Bearer (\S+)", second)
        yield Place(address[0], token[1] if token else "", process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(100) == 0
        assert process.stdout.read() == ""
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(100)
        process.stdout.close()
        process.stderr.close()
